"""Every fault of a document at once, each with the JSON pointer of the place it is in.

An organiser who imports forty thousand seats wants one list to work through, not one fault per attempt.
Readers collect into `Problems`, go on past what is wrong, and raise once at the end.
"""

from collections.abc import Iterable

import msgspec

MAX_PROBLEMS = 1_000


class Problem(msgspec.Struct, frozen=True):
    pointer: str
    """RFC 6901; the empty string is the whole document."""
    code: str
    detail: str


class DocumentInvalid(Exception):
    """A document was refused whole; nothing of it was kept."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        super().__init__(f"{first.pointer or '(document)'}: {first.detail}{more}")


class Problems:
    """A collector with a limit, so that a hostile document cannot make the answer larger than itself."""

    def __init__(self, limit: int = MAX_PROBLEMS) -> None:
        self._limit = limit
        self._found: list[Problem] = []
        self._left_out = 0

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, pointer: str, code: str, detail: str) -> None:
        if len(self._found) >= self._limit:
            self._left_out += 1
            return
        self._found.append(Problem(_sayable(pointer), code, _sayable(detail)))

    def listed(self) -> tuple[Problem, ...]:
        if not self._left_out:
            return tuple(self._found)
        said = f"{self._left_out} more problems were found; only the first {self._limit} are listed"
        return (*self._found, Problem("", "too_many_problems", said))


def child(pointer: str, key: str | int) -> str:
    """The pointer of a member or element below `pointer`."""
    if isinstance(key, int):
        return f"{pointer}/{key}"
    return f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"


def quoted(value: object, limit: int = 60) -> str:
    """A short rendering of somebody else's value, for a sentence."""
    text = value if isinstance(value, str) else type_name(value)
    return f"“{text[:limit]}…”" if len(text) > limit else f"“{text}”"


def type_name(value: object) -> str:
    """The JSON name of a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"
    return f"a {type(value).__name__}"


def listing(names: Iterable[str]) -> str:
    return ", ".join(names)


def _sayable(text: str) -> str:
    # A lone surrogate in a key or value would make the report itself impossible to encode.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
