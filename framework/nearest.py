"""The known word that somebody may have meant."""

import difflib
from collections.abc import Iterable

__all__ = ["near_miss", "nearest"]

SHORT = 5
"""Words up to this length are near each other with one slip; longer ones with two."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like `word`, or None where none is like it."""
    names = list(known)
    close = near_miss(word, names)
    if close is not None:
        return close
    found = difflib.get_close_matches(word, names, n=1)
    return found[0] if found else None


def near_miss(word: str, known: Iterable[str]) -> str | None:
    """The known word of which `word` is a slip of the finger, or None.

    Stricter than `nearest`: a letter or two wrong, missing, too many or swapped, or other separators and capitals.
    """
    limit = 1 if len(word) <= SHORT else 2
    bare = _bare(word)
    best: tuple[int, str] | None = None
    for name in known:
        distance = 0 if _bare(name) == bare else _distance(word, name, limit)
        if distance <= limit and (best is None or distance < best[0]):
            best = distance, name
    return best[1] if best else None


def _bare(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum())


def _distance(left: str, right: str, limit: int) -> int:
    """Insertions, deletions, replacements and swaps between two words; anything above `limit` is `limit + 1`."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    older: list[int] = []
    previous: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        older, previous, row = previous, row, [i]
        for j, b in enumerate(right, start=1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)
