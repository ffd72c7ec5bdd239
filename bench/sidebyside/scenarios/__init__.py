"""What is measured: each scenario by its name, in the order in which they run."""

from sidebyside.scenario import Scenario
from sidebyside.scenarios import formats, latency, lines, memory, scaling, small, start

__all__ = ["scenarios"]


def scenarios() -> dict[str, Scenario]:
    """All of them."""
    modules = (lines, formats, small, start, latency, scaling, memory)
    return {one.name: one for module in modules for one in module.SCENARIOS}
