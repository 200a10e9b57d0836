"""A large event from its layout to its sale, step by step; and the last step ÷ bare rows into such a table."""

import time

from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio
from holdfast.bench.scale import Scale
from holdfast.bench.stand import OnSale, Stand, event_body, layout_body, on_sale

_TABLE = """
DROP TABLE IF EXISTS bare_seats;
CREATE TABLE bare_seats (LIKE event_seats INCLUDING ALL)
"""
_ROWS = """
INSERT INTO bare_seats (organization_id, event_id, ordinal, zone_no, booking_id)
SELECT $1, $2, n, 0, n + 1 FROM generate_series(0, $3::integer - 1) n
"""


def measure(stand: Stand, scale: Scale, progress: Progress) -> tuple[Measured, list[OnSale]]:
    """And the events it has published, for the other measurements: two at least."""
    body = layout_body(scale.seats)
    venue = stand.venue
    steps: dict[str, list[float]] = {"layout": [], "event": [], "publish": [], "bare": []}
    made: list[OnSale] = []
    foreign: list[float] = []
    for n in range(max(2, scale.publication_rounds)):
        progress.say(f"round {n + 1}: {scale.seats:,} seats")
        started = stand.meter.read()
        clock = _Clock()
        layout = stand.post_bytes(f"/api/venues/{venue}/layouts", body)
        steps["layout"].append(clock.lap())
        event = stand.post("/api/events", event_body(layout["id"]))
        steps["event"].append(clock.lap())
        stand.post(f"/api/events/{event['id']}/status", {"status": "published"})
        steps["publish"].append(clock.lap())
        made.append(on_sale(event["id"], layout["id"], scale.seats))
        stand.sql(_TABLE)
        clock.lap()
        stand.sql(_ROWS, stand.first.organization_id, event["id"], scale.seats)
        steps["bare"].append(clock.lap())
        foreign.append(stand.meter.between(started, stand.meter.read()).foreign_cores)
    stand.sql("DROP TABLE bare_seats")
    measured = Measured(
        "Publication",
        [
            Ratio(
                f"publishing {scale.seats:,} seats ÷ bare rows into such a table (seconds)",
                [publish / bare for publish, bare in zip(steps["publish"], steps["bare"], strict=True)],
            )
        ],
        [
            Quantity(f"layout of {scale.seats:,} seats stored (POST)", steps["layout"], "s"),
            Quantity("event created (POST)", steps["event"], "s"),
            Quantity("event published (POST)", steps["publish"], "s"),
            Quantity("bare rows (INSERT … SELECT generate_series)", steps["bare"], "s"),
        ],
        foreign,
        [f"The layout's document has {len(body) / 1e6:.1f} MB."],
    )
    return measured, made


class _Clock:
    def __init__(self) -> None:
        self._at = time.perf_counter()

    def lap(self) -> float:
        before, self._at = self._at, time.perf_counter()
        return self._at - before
