"""What viewers are sent, byte by byte; and what they then know."""

import random
import struct
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.live import codec
from holdfast.live.availability import _body
from holdfast.live.codec import Place, ZoneLeft
from holdfast.live.viewing import EventStream, Watched

STATES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=50)
NAMES = [None, "CART", "COMP", "RÉSERVÉ"]
POOLS = [ZoneLeft(3, 100, 7, 20, 12)]


def columns(seats: list[tuple[int, int]]) -> tuple[Any, Any]:
    return np.array([s for s, _ in seats], np.uint8), np.array([t for _, t in seats], np.uint8)


@given(seats=STATES, mark=st.integers(0, 2**63))
def test_a_snapshot_reads_back_as_it_was(seats: list[tuple[int, int]], mark: int) -> None:
    states, types = columns(seats)
    read = codec.decode_snapshot(codec.encode_snapshot(mark, states, types, NAMES, POOLS, "1.2.3"))
    assert (read.mark, read.sequence, read.zones) == (mark, "1.2.3", POOLS)
    assert [read.state(n) for n in range(len(seats))] == [codec.STATE_NAMES[s] for s, _ in seats]
    assert [read.hold_type(n) for n in range(len(seats))] == [NAMES[t] for _, t in seats]


def test_a_snapshot_that_is_cut_short_or_something_else_is_none() -> None:
    states, types = columns([(1, 1)] * 10)
    whole = codec.encode_snapshot(1, states, types, NAMES, [], "1.2.3")
    for broken in (whole[:-1], b"HFS2" + whole[4:], b"HFS1"):
        with pytest.raises((ValueError, struct.error)):
            codec.decode_snapshot(broken)


def test_more_hold_types_than_fit_are_shown_without_a_name() -> None:
    states, types = columns([(1, 31), (1, 32), (1, 255)])
    names = [None, *(f"T{n}" for n in range(1, 256))]
    read = codec.decode_snapshot(codec.encode_snapshot(1, states, types, names, [], "1.2.3"))
    assert [read.hold_type(n) for n in range(3)] == ["T31", None, None]


def test_the_json_snapshot_says_the_same_in_letters() -> None:
    states, types = columns([(0, 0), (1, 1), (2, 2), (3, 0), (1, 1)])
    data = msgspec.json.decode(codec.encode_json_snapshot("e", "1.2.3", states, types, NAMES, POOLS))["data"]
    assert data["states"] == "ahsbh"
    assert data["hold_types"] == {"CART": [1, 4], "COMP": [2]}
    assert data["zones"] == [{"zone_no": 3, "capacity": 100, "held": 7, "sold": 20, "version": 12, "blocked": 0}]


@pytest.mark.parametrize("text", ["", "1", "1.2", "1.2.3.4", "a.2.3", "-1.2.3", "1.2.٣", "1" * 20 + ".2.3", " 1.2.3"])
def test_what_is_no_place_is_none(text: str) -> None:
    assert codec.parse_place(text) is None


@given(st.integers(0, 2**60), st.integers(0, 2**40), st.integers(0, 2**40))
def test_a_place_reads_back_as_it_was(mark: int, unix_s: int, n: int) -> None:
    assert codec.parse_place(str(Place(mark, unix_s, n))) == Place(mark, unix_s, n)


@given(cuts=st.lists(st.integers(0, 400), max_size=8))
def test_a_stream_is_understood_in_whatever_pieces_it_comes(cuts: list[int]) -> None:
    frames = [
        codec.frame("resync", b"{}", "1.2.3"),
        codec.HEARTBEAT,
        codec.frame("occupancy", b'{"event":1}'),
        codec.frame("seats", b'{"ordinals":[1]}', "4.5.6"),
    ]
    whole = b"retry: 1500\n\n" + b"".join(frame.sse for frame in frames)
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    stream = EventStream()
    heard = [message for start, end in pairwise(edges) for message in stream.feed(whole[start:end])]
    assert heard == [
        ("resync", "1.2.3", b"{}"),
        ("occupancy", None, b'{"event":1}'),
        ("seats", "4.5.6", b'{"ordinals":[1]}'),
    ]


def test_an_older_change_never_replaces_a_newer_one() -> None:
    states, types = columns([(0, 0)] * 3)
    viewer = Watched()
    viewer.load(codec.encode_snapshot(1, states, types, [None], [], "1.2.3"))

    def told(value: int, version: int) -> bytes:
        return codec.encode_changes(
            [1],
            np.array([0, value, 0], np.uint8),
            np.zeros(3, np.uint8),
            np.array([0, version, 0], np.int32),
            [None],
            [],
        )

    viewer.hear("seats", "2.2.2", told(2, 5))
    viewer.hear("seats", "3.3.3", told(1, 4))
    assert viewer.states == bytes([0, 2, 0])
    viewer.hear("seats", "4.4.4", told(0, 6))
    assert viewer.states == bytes([0, 0, 0])
    assert viewer.last_id == "4.4.4"


def test_occupancy_is_counted_by_zone_with_pools_among_them() -> None:
    states, types = columns([(0, 0), (1, 1), (1, 2), (2, 0), (3, 0)])
    zones = np.array([0, 0, 0, 1, 1], np.int64)
    counted = codec.count_states(states, types, zones, NAMES, 3, [ZoneLeft(2, 10, 3, 4, 1)])
    assert [(z.available, z.held, z.sold, z.blocked, z.total) for z in counted.zones] == [
        (1, 2, 0, 0, 3),
        (0, 0, 1, 1, 2),
        (3, 3, 4, 0, 10),
    ]
    assert counted.event.total == 15
    assert counted.held_by_type == {"CART": 1, "COMP": 1}


def test_a_hundred_thousand_seats_are_fifteen_kilobytes() -> None:
    """At any point of a sale to parties of one to five."""
    for share in (0.05, 0.3, 0.6, 0.9):
        chance = random.Random(int(share * 100))
        seats: list[tuple[int, int]] = []
        while len(seats) < 100_000:
            taken = chance.random() < share
            state = (1, 1) if taken and chance.random() < 0.1 else (2, 0) if taken else (0, 0)
            seats += [state] * chance.randint(1, 5)
        states, types = columns(seats[:100_000])
        body = _body(codec.encode_snapshot(1, states, types, NAMES, [], "1.2.3"))
        assert len(body.plain) < 100_200
        assert len(body.gzipped) <= 15_000, share
