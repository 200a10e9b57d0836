"""The demo's theatre: stalls and balcony, boxes for members, a standing pit, wheelchair places with a companion's beside."""

from typing import Any

PIT_SHARE = 0.10
BALCONY_SHARE = 0.28
VIP_SHARE = 0.06
ROW_SEATS_STEP = 2
WHEELCHAIR_PAIRS = 4


def theatre(seats: int) -> dict[str, Any]:
    """A layout's config with about so many numbered seats, and a pit beside."""
    balcony = int(seats * BALCONY_SHARE)
    vip = max(4, int(seats * VIP_SHARE))
    stalls = _block("stalls", "Stalls", seats - balcony - vip, top=120, prefix="", pairs=WHEELCHAIR_PAIRS)
    gallery = _block("balcony", "Balcony", balcony, top=_behind(stalls), prefix="BAL-", pairs=2)
    boxes = _block("boxes", "Boxes", vip, top=_behind(gallery), prefix="BOX-", pairs=0)
    boxes |= {"zone_type": "vip_reserved", "access_mode": "membership_tier", "required_tier": "gold"}
    pit = {
        "zone_id": "pit",
        "name": "Pit",
        "zone_type": "ga_standing",
        "capacity": max(10, int(seats * PIT_SHARE)),
        "access_mode": "public",
    }
    return {"focal_point": {"x": 500, "y": 0}, "zones": [boxes, pit, stalls, gallery]}


def _block(zone_id: str, name: str, count: int, *, top: int, prefix: str, pairs: int) -> dict[str, Any]:
    """Rows that widen towards the back, an aisle in the middle, wheelchair pairs at the ends of the last row."""
    seats: list[dict[str, Any]] = []
    rows: dict[str, Any] = {}
    lengths = _row_lengths(count)
    for place, length in enumerate(lengths):
        row = _letters(place)
        rows[row] = {"aisles_after": [length // 2]} if length >= 8 else {}
        left = 500 - (length - 1) * 10
        for number in range(1, length + 1):
            x = left + (number - 1) * 20 + (10 if number > length // 2 else -10)
            point = {"x": x, "y": top + 30 * place}
            seats.append({"seat_id": f"{prefix}{row}-{number}", "row": row, "number": number, "coordinates": point})
    for pair in range(min(pairs, lengths[-1] // 4)):
        # Two from the left end, two from the right, and so on inwards.
        at = -lengths[-1] + pair if pair % 2 == 0 else -pair
        wheelchair, companion = (seats[at], seats[at + 1]) if pair % 2 == 0 else (seats[at], seats[at - 1])
        wheelchair |= {"category": "wheelchair", "companion_seat_id": companion["seat_id"]}
        companion["category"] = "companion"
    return {
        "zone_id": zone_id,
        "name": name,
        "zone_type": "reserved_seating",
        "capacity": len(seats),
        "access_mode": "public",
        "rows": rows,
        "seats": seats,
    }


def _behind(block: dict[str, Any]) -> int:
    """Where the next block begins, with a passage between."""
    last: int = block["seats"][-1]["coordinates"]["y"]
    return last + 90


def _row_lengths(count: int) -> list[int]:
    """Rows of growing length that hold exactly so many seats."""
    widest = max(6, min(60, round((count * 2.4) ** 0.5)))
    lengths: list[int] = []
    left = count
    while left > 0:
        length = min(left, widest, widest * 2 // 3 + ROW_SEATS_STEP * len(lengths))
        lengths.append(length)
        left -= length
    if len(lengths) > 1 and lengths[-1] < lengths[0]:
        # A stub of a last row goes to the rows before it, one seat each from the back.
        stub = lengths.pop()
        for n in range(stub):
            lengths[-1 - n % len(lengths)] += 1
    return lengths


def _letters(place: int) -> str:
    """A, B, … Z, AA, AB, …"""
    text = ""
    place += 1
    while place > 0:
        place, digit = divmod(place - 1, 26)
        text = chr(ord("A") + digit) + text
    return text
