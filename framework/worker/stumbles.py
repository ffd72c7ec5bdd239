"""What a task tries again, and for how long it has got nowhere with it."""

import time

import attrs

from headrace.framework.errors import HeadraceError

__all__ = ["Stumbles"]


@attrs.define
class Stumbles:
    """Failures since the source last answered. Written by the pump, read by the runner on its own thread."""

    error: HeadraceError | None = attrs.field(default=None, init=False)
    _since: float | None = attrs.field(default=None, init=False)

    def note(self, error: HeadraceError) -> bool:
        """It has failed; whether that is the first time since it last went well."""
        first = self._since is None
        if first:
            self._since = time.monotonic()
        self.error = error
        return first

    def over(self) -> None:
        """The source has answered."""
        self._since = self.error = None

    @property
    def lasted_s(self) -> float | None:
        """For how long it has got nowhere; None if it gets on."""
        since = self._since
        return None if since is None else time.monotonic() - since
