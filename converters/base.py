"""What a converter promises."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.framework.schema import Schema

__all__ = ["Converter"]


class Converter(ABC):
    """Turns keys or values into the bytes that go on the topic.

    Made and configured once per task, for keys or for values; used on the task's thread only.
    """

    def configure(self, props: Mapping[str, str], *, is_key: bool) -> None:
        """Read the configuration, its prefix (`value.converter.`) taken off; called once, first."""

    @abstractmethod
    def convert(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The bytes of one value; None is a null on the topic.

        Raises `DataError` for a value that it cannot write, saying what it is and what the converter takes.
        """

    def convert_all(self, topic: str, schema: Schema | None, values: Sequence[Any]) -> Sequence[bytes | None]:
        """The bytes of many values of one schema: the fast way to say the same.

        It may be `values` itself, where they are what goes on the topic already. The error is that of the first
        value that cannot be written; which one it was, `convert` tells.
        """
        return [self.convert(topic, schema, value) for value in values]
