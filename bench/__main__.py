"""Headrace beside its peers and its limit: `python bench --help`."""

from sidebyside.main import main

if __name__ == "__main__":
    main()
