"""The page on the configuration is made from the code."""

from pathlib import Path

from headrace.framework.config import SourceCommonConfig
from headrace.framework.config_docs import options_table, page

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_what_the_code_says():
    """docs/configuration.md does not drift: `python -m headrace.framework.config_docs` makes it."""
    assert PAGE.read_text() == page()


def test_every_option_is_in_it():
    """Each key of each option is on the page, with its default."""
    table = options_table(SourceCommonConfig)
    for declared in SourceCommonConfig.options():
        [row] = [line for line in table.splitlines() if line.startswith(f"| `{declared.key}` |")]
        assert f"| {'required' if declared.required else declared.default or ''} |" in row
    assert options_table(SourceCommonConfig, besides=SourceCommonConfig).count("\n") == 2
