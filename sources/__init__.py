"""Where records come from: one folder per source, with the same file names in each.

A source is found by its name in the registry, never by an import from another source.
"""
