"""Files that may be one another's past: what is rotated keeps its folder and the beginning of its name."""

import os
import re
from collections.abc import Iterable

import attrs

from headrace.sources.files.objects import is_storable

__all__ = ["Families", "family_of"]

NUMBERED = re.compile(r"[-_]?[0-9][0-9_:TZ-]*$")


def family_of(path: str) -> str:
    """The folder, and the name up to its first dot without a number or a date at its end.

    `app.log`, `app.log.1`, `app-2024-01-31.log` and `app_2.log` are one family.
    """
    folder, name = os.path.split(path)
    return os.path.join(folder, NUMBERED.sub("", name.split(".", 1)[0]))  # noqa: PTH118 - paths are texts here


@attrs.define
class Families:
    """The names of each family that were ever seen."""

    _names: dict[str, set[str]] = attrs.field(factory=dict, init=False)

    def learn(self, paths: Iterable[str]) -> None:
        """Take in names."""
        for path in filter(is_storable, paths):
            self._names.setdefault(family_of(path), set()).add(path)

    def others(self, path: str) -> tuple[str, ...]:
        """The other names of a file's family."""
        return tuple(sorted(self._names.get(family_of(path), set()) - {path}))
