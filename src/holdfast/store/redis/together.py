"""Holds that began together, written out for the script: the keys, the value and the member of each, in one text.

By far most of what the warm tier is told is of this kind, so it is made for many holds at once: what differs between them
are three ids, always at the same places of a line.
"""

from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from holdfast.store.redis.keys import Keys, member, seat_value

HOLD = np.dtype([("hold", "V16"), ("seat", "V16"), ("user", "V16"), ("ordinal", "<i4"), ("version", "<i4")])

Holds = NDArray[np.void]
"""Of `HOLD`."""

_NOBODY = UUID(int=0)
_ID = 36
_GROUPS = ((0, 0, 8), (9, 8, 12), (14, 12, 16), (19, 16, 20), (24, 20, 32))
"""Where the parts of an id between its dashes begin, and which of its digits they are."""
_DASH = ord("-")


def lines_of(keys: Keys, organization_id: UUID, holds: Holds, held_until: datetime | None) -> tuple[str, list[int]]:
    """A line a hold: the key of its meta, its seat's key, what stands in that, and its member of the event's list; and
    where in a line the first three of them end."""
    meta, seat = keys.meta(organization_id, _NOBODY), keys.seat(organization_id, _NOBODY)
    value, listed = seat_value(_NOBODY, _NOBODY, held_until), member(_NOBODY, _NOBODY, _NOBODY, held_until)
    ends = [len(meta), len(meta) + len(seat), len(meta) + len(seat) + len(value)]
    line = np.frombuffer(f"{meta}{seat}{value}{listed}".encode(), np.uint8)
    lines = np.empty((len(holds), len(line)), np.uint8)
    lines[:] = line
    hold, seat_id, user = _texts(holds)
    for text, starts in (
        (hold, (meta.rindex(str(_NOBODY)), ends[1], ends[2] + _ID + 1)),
        (seat_id, (ends[0] + seat.rindex(str(_NOBODY)), ends[2])),
        (user, (ends[1] + _ID + 1, ends[2] + 2 * (_ID + 1))),
    ):
        for start in starts:
            lines[:, start : start + _ID] = text
    return lines.tobytes().decode(), ends


def _texts(holds: Holds) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """The ids of the holds, of their seats and of their users."""
    raw = holds.view(np.uint8).reshape(len(holds), HOLD.itemsize)[:, : 3 * 16]
    digits = np.frombuffer(raw.tobytes().hex().encode(), np.uint8).reshape(len(holds), 3, 32)
    texts = np.full((len(holds), 3, _ID), _DASH, np.uint8)
    for at, start, stop in _GROUPS:
        texts[:, :, at : at + stop - start] = digits[:, :, start:stop]
    return texts[:, 0], texts[:, 1], texts[:, 2]
