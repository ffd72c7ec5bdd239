"""What the formats are configured with."""

from collections.abc import Mapping
from typing import ClassVar, Self

import attrs

from headrace.framework.limits import max_decompression_ratio, max_record_bytes
from headrace.framework.options import Options
from headrace.framework.tolerance import Tolerance, errors_tolerance

__all__ = ["FormatOptions"]


@attrs.frozen(kw_only=True)
class FormatOptions(Options):
    """The keys that concern every format; one with keys of its own extends it, and names what these begin with."""

    BEGINNING: ClassVar[str] = ""

    max_record_bytes: int = max_record_bytes()
    max_decompression_ratio: int = max_decompression_ratio()
    errors_tolerance: Tolerance = errors_tolerance()

    @property
    def tolerant(self) -> bool:
        """Whether a bad record is given out as a rejected piece, and reading goes on behind it."""
        return self.errors_tolerance is Tolerance.ALL

    @classmethod
    def of(cls, props: Mapping[str, str]) -> Self:
        """What a connector's configuration says to this format; `ConfigError` with every fault of its keys."""
        known = cls.known()
        own = cls.BEGINNING
        return cls.from_props(
            {key: value for key, value in props.items() if key in known or (own and key.startswith(own))}
        )
