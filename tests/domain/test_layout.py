import time
import uuid

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.seating.layout import (
    AccessMode,
    GroupType,
    Layout,
    Point,
    RowInfo,
    SeatCategory,
    SeatGroup,
    SeatIndex,
    Zone,
    ZoneType,
    seat_uuid_column,
    zone_column,
    zone_uuid,
)

LAYOUT_ID = uuid.UUID("6f2b1c1e-6b0e-4f0e-9a53-0a4f4d2f9d11")


def made(*seat_counts: int) -> Layout:
    zones: list[Zone] = []
    first = 0
    for zone_no, count in enumerate(seat_counts):
        kind = ZoneType.RESERVED_SEATING if count else ZoneType.GA_STANDING
        name = f"z{zone_no}"
        zones.append(
            Zone(
                zone_no=zone_no,
                id=zone_uuid(LAYOUT_ID, name),
                zone_id=name,
                name=name.upper(),
                zone_type=kind,
                capacity=count or 100,
                first_ordinal=first,
                seat_count=count,
            )
        )
        first += count
    seat_ids = [f"S-{ordinal}" for ordinal in range(first)]
    return Layout(
        layout_id=LAYOUT_ID,
        zones=tuple(zones),
        seat_uuids=seat_uuid_column(LAYOUT_ID, seat_ids),
        seat_ids=seat_ids,
        rows=[f"R{ordinal // 50}" for ordinal in range(first)],
        numbers=[ordinal % 50 for ordinal in range(first)],
        zone_nos=zone_column(zones),
        categories=[SeatCategory.STANDARD] * first,
        xs=[float(ordinal) for ordinal in range(first)],
        ys=[None if ordinal % 7 == 0 else 1.5 for ordinal in range(first)],
        companions=[-1] * first,
        total_capacity=sum(zone.capacity for zone in zones),
    )


@given(st.uuids(), st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=20))
def test_a_seats_id_is_the_standard_uuid5_of_layout_and_seat_id(layout_id: uuid.UUID, names: list[str]) -> None:
    column = seat_uuid_column(layout_id, names)
    assert column == b"".join(uuid.uuid5(layout_id, name).bytes for name in names)


def test_a_zones_id_is_the_uuid5_of_its_prefixed_name() -> None:
    assert zone_uuid(LAYOUT_ID, "stalls") == uuid.uuid5(LAYOUT_ID, "zone:stalls")


def test_a_seat_is_found_by_its_raw_id_and_by_its_uuid() -> None:
    layout = made(3, 0, 2)
    for ordinal in range(5):
        assert layout.seat_index.get(layout.seat_uuid_bytes(ordinal)) == ordinal
        assert layout.seat_index.of(layout.seat_uuid(ordinal)) == ordinal
    assert layout.seat_index.get(bytes(16)) is None
    assert len(layout.seat_index) == 5


def test_the_seat_index_is_built_once() -> None:
    layout = made(3)
    assert layout.seat_index is layout.seat_index
    assert isinstance(layout.seat_index, SeatIndex)


def test_seats_know_their_zone_and_zones_their_seats() -> None:
    layout = made(3, 0, 2)
    assert [layout.zone_of(ordinal).zone_id for ordinal in range(5)] == ["z0", "z0", "z0", "z2", "z2"]
    assert [list(zone.ordinals) for zone in layout.zones] == [[0, 1, 2], [], [3, 4]]
    assert [zone.is_ga for zone in layout.zones] == [False, True, False]


@pytest.mark.parametrize("ordinal", [-1, 5])
def test_an_ordinal_outside_the_layout_is_an_index_error(ordinal: int) -> None:
    layout = made(3, 0, 2)
    with pytest.raises(IndexError):
        layout.seat_uuid(ordinal)
    with pytest.raises(IndexError):
        layout.zone_of(ordinal)


def test_a_zone_is_found_by_its_name_or_its_uuid_in_any_spelling() -> None:
    layout = made(3, 0)
    zone = layout.zones[1]
    assert layout.zone("z1") is zone
    assert layout.zone(str(zone.id)) is zone
    assert layout.zone(str(zone.id).upper()) is zone
    assert layout.zone(zone.id.hex) is zone
    assert layout.zone("nowhere") is None
    assert layout.zone(str(uuid.uuid4())) is None


@pytest.mark.parametrize(
    ("kind", "is_ga", "is_vip"),
    [
        (ZoneType.RESERVED_SEATING, False, False),
        (ZoneType.GA_SEATED, True, False),
        (ZoneType.GA_STANDING, True, False),
        (ZoneType.VIP_RESERVED, False, True),
        (ZoneType.VIP_STANDING, True, True),
    ],
)
def test_standing_and_unnumbered_zones_are_general_admission(kind: ZoneType, is_ga: bool, is_vip: bool) -> None:
    assert kind.is_ga is is_ga
    assert kind.is_vip is is_vip


def test_a_wheelchair_seat_has_the_companions_it_names_and_those_that_name_it() -> None:
    layout = msgspec.structs.replace(
        made(5),
        categories=[
            SeatCategory.WHEELCHAIR,
            SeatCategory.COMPANION,
            SeatCategory.COMPANION,
            SeatCategory.WHEELCHAIR,
            SeatCategory.STANDARD,
        ],
        companions=[1, 0, 0, -1, -1],
    )
    assert layout.wheelchair_companions == {0: (1, 2)}


coordinates = st.none() | st.floats(-1e6, 1e6)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    counts = draw(st.lists(st.integers(0, 6), max_size=4))
    layout = made(*counts)
    n = layout.seat_count

    def column(values: st.SearchStrategy[object]) -> object:
        return draw(st.lists(values, min_size=n, max_size=n))

    zones = tuple(
        msgspec.structs.replace(
            zone,
            access_mode=draw(st.sampled_from(AccessMode)),
            required_tier=draw(st.none() | words),
            allowed_roles=tuple(draw(st.lists(words, max_size=2))),
            focal_point=draw(st.none() | st.builds(Point, st.floats(-9, 9), st.floats(-9, 9))),
            rows={draw(words): RowInfo(aisles_after=(1, 4))},
            metadata={"a": [1, None, {"b": draw(words)}]},
        )
        for zone in layout.zones
    )
    groups = (SeatGroup("g", GroupType.VIP_TABLE, 0, (0,), {"k": 1}),) if n else ()
    return msgspec.structs.replace(
        layout,
        zones=zones,
        rows=column(words),
        numbers=column(st.integers(0, 1_000_000)),
        categories=column(st.sampled_from(SeatCategory)),
        xs=column(coordinates),
        ys=column(coordinates),
        companions=column(st.integers(-1, max(n - 1, 0))),
        groups=groups,
        focal_point=draw(st.none() | st.just(Point(1.0, -2.0))),
        background_svg=draw(st.none() | words),
    )


@given(layouts())
def test_a_layout_survives_packing_unchanged(layout: Layout) -> None:
    assert Layout.unpack(layout.pack()) == layout


def test_an_unknown_packed_form_is_refused() -> None:
    wire = msgspec.msgpack.decode(made(1).pack())
    wire[0] = 99
    with pytest.raises(ValueError, match="form 99"):
        Layout.unpack(msgspec.msgpack.encode(wire))


def test_a_hundred_thousand_seats_unpack_in_well_under_a_tenth_of_a_second() -> None:
    packed = made(*[5_000] * 20).pack()
    best_s = min(_timed(packed) for _ in range(5))
    assert best_s < 0.1


def _timed(packed: bytes) -> float:
    start = time.perf_counter()
    Layout.unpack(packed)
    return time.perf_counter() - start
