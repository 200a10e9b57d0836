"""The two shapes of every success."""

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Data(msgspec.Struct, Generic[T], frozen=True):
    data: T


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list. `next_cursor` is to be sent as `cursor` for the next part; null: there is none."""

    data: list[T]
    next_cursor: str | None
