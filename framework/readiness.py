"""What a plugin can do before there is anything to do."""

__all__ = ["Readiness"]


class Readiness:
    """A plugin whose users need what takes time to import and load."""

    @classmethod
    def get_ready(cls) -> None:
        """Import and load what every use of it needs, whatever the configuration; ask nobody for anything.

        Called at most once in a process, where there is time for it before the first plan. Nothing may depend on it,
        and a failure only shows in the log. Does nothing unless it is overridden.
        """
