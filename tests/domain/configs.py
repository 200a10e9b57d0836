"""Layouts of every kind that the rules allow, for tests that send them through a format and back."""

from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from holdfast.seating.layout import AccessMode, GroupType, SeatCategory, ZoneType
from holdfast.seating.validate import parse_layout

Config = dict[str, Any]
LAYOUT_ID = UUID(int=7)

texts = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=12).filter(
    lambda text: not text.isspace()
)
awkward = st.sampled_from(
    ["=1+1", "+A", "-1", "@x", "'quoted", "a,b", "a;b", 'say "x"', " A ", "Ä–ß", "<&>", "1", "#", "|"]
)
names = awkward | texts
coordinates = st.integers(-1000, 1000) | st.floats(-1e6, 1e6, allow_nan=False)
points = st.fixed_dictionaries({"x": coordinates, "y": coordinates})
sayable = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)
metadata = st.dictionaries(sayable, st.none() | st.booleans() | st.integers(-9, 9) | sayable, max_size=3)


@st.composite
def layout_configs(draw: st.DrawFn) -> Config:
    zone_ids = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    seat_ids = iter(draw(st.lists(names, min_size=40, max_size=40, unique=True)))
    zones: list[Config] = [draw(zones_of(zone_id, seat_ids)) for zone_id in zone_ids]
    config: Config = {"zones": zones}
    if draw(st.booleans()):
        config["focal_point"] = draw(points | st.none())
    if draw(st.booleans()):
        config["total_capacity"] = sum(zone["capacity"] for zone in zones)
    if draw(st.booleans()):
        config["background_svg"] = draw(st.none() | st.just("<svg>\n\t<g/> — ü</svg>\r\n") | texts)
    seated = [zone for zone in zones if zone.get("seats")]
    grouped = draw(st.booleans())
    if seated and grouped:
        zone = draw(st.sampled_from(seated))
        seats: list[str] = [seat["seat_id"] for seat in zone["seats"]]
        more = bool(draw(st.booleans()))
        config["groups"] = [
            {
                "group_id": draw(names),
                "group_type": draw(st.sampled_from(list(GroupType))).value,
                "seat_ids": draw(st.lists(st.sampled_from(seats), min_size=1, unique=True)),
                **({"metadata": draw(metadata)} if more else {}),
            }
        ]
    parse_layout(LAYOUT_ID, config)  # only sound ones are of use here
    return config


@st.composite
def zones_of(draw: st.DrawFn, zone_id: str, seat_ids: Any) -> Config:
    kind = draw(st.sampled_from(list(ZoneType)))
    zone: Config = {"zone_id": zone_id, "name": draw(names), "zone_type": kind.value}
    mode = draw(st.none() | st.sampled_from(list(AccessMode)))
    if mode is not None or draw(st.booleans()):
        zone["access_mode"] = None if mode is None else mode.value
    if mode is AccessMode.MEMBERSHIP_TIER or draw(st.booleans()):
        zone[draw(st.sampled_from(["required_tier", "membership_tier"]))] = draw(names)
    if mode is AccessMode.ROLE_BASED or draw(st.booleans()):
        zone["allowed_roles"] = draw(st.lists(names, min_size=1, max_size=3))
    if draw(st.booleans()):
        zone["focal_point"] = draw(st.none() | points)
    if draw(st.booleans()):
        zone["metadata"] = draw(metadata)
    if kind.is_ga:
        zone["capacity"] = draw(st.integers(1, 500))
        if draw(st.booleans()):
            zone["seats"] = []
        return zone
    places = draw(st.lists(st.tuples(names, st.integers(0, 30)), min_size=1, max_size=9, unique=True))
    seats: list[Config] = []
    for row, number in places:
        seat: Config = {"seat_id": next(seat_ids), "row": row, "number": number}
        if draw(st.booleans()):
            seat["category"] = draw(st.none() | st.sampled_from([category.value for category in SeatCategory]))
        if draw(st.booleans()):
            seat["coordinates"] = draw(st.none() | points)
        seats.append(seat)
    if len(seats) > 1 and draw(st.booleans()):
        seats[0]["companion_seat_id"] = seats[1]["seat_id"]
    zone["seats"] = seats
    zone["capacity"] = len(seats)
    if draw(st.booleans()):
        rows = sorted({row for row, _ in places})
        zone["rows"] = {
            row: draw(st.fixed_dictionaries({"aisles_after": st.lists(st.integers(0, 30), max_size=3)}) | st.just({}))
            for row in draw(st.lists(st.sampled_from(rows), unique=True))
        }
    return zone
