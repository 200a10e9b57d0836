"""The snapshot of a large event, from memory: its size, how fast it is served, and a 304 for whoever has it already."""

import gzip
import http.client
import random
import statistics
import time
from collections.abc import Callable
from uuid import UUID

from holdfast.bench.progress import Progress
from holdfast.bench.report import Measured, Quantity, Ratio, at_most
from holdfast.bench.scale import Scale
from holdfast.bench.stand import WHOLE, OnSale, Stand, StandFailed

SIZE_GOAL = at_most(15)
TAKEN_SHARE = 0.6
REQUESTS = 300


def measure(stand: Stand, event: OnSale, scale: Scale, progress: Progress) -> Measured:
    stand.use(WHOLE)
    stand.refill()
    progress.say("a sale half over")
    _sell(stand, event)
    stand.notify()
    path, token = f"/api/events/{event.id}/availability", stand.guests(event, 1)[0]
    common = {"authorization": f"Bearer {token}", "accept": "application/octet-stream"}
    connection = http.client.HTTPConnection("127.0.0.1", stand.port, timeout=60)
    _, packed, tag = _get(connection, path, {**common, "accept-encoding": "gzip"})
    plain = len(gzip.decompress(packed))
    rounds: dict[str, list[float]] = {"snapshot": [], "hello": [], "unchanged": []}
    for n in range(scale.rounds):
        progress.say(f"round {n + 1}: served {REQUESTS} times")
        rounds["snapshot"].append(_seconds(lambda: _get(connection, path, {**common, "accept-encoding": "gzip"})))
        rounds["unchanged"].append(_seconds(lambda: _unchanged(connection, path, {**common, "if-none-match": tag})))
        rounds["hello"].append(_seconds(lambda: _get(connection, "/healthz", {})))
    connection.close()
    return Measured(
        "Snapshot",
        [
            Ratio("snapshot of the large event, compressed (kB)", [len(packed) / 1000], goal=SIZE_GOAL),
            Ratio("served from memory ÷ hello (seconds)", _over(rounds["snapshot"], rounds["hello"])),
            Ratio("304 for whoever has it ÷ hello (seconds)", _over(rounds["unchanged"], rounds["hello"])),
        ],
        [
            Quantity("seats", [float(len(event.seats))], ""),
            Quantity("not compressed", [plain / 1000], "kB"),
            Quantity("served from memory", [1000 * s for s in rounds["snapshot"]], "ms"),
            Quantity("304", [1000 * s for s in rounds["unchanged"]], "ms"),
            Quantity("hello", [1000 * s for s in rounds["hello"]], "ms"),
        ],
        [],
        [
            f"{TAKEN_SHARE:.0%} of the parties have bought: one to five seats side by side. Seats scattered at random, which"
            " nobody buys, pack to 17 to 20 kB: their disorder alone is 12 to 16."
        ],
    )


def _sell(stand: Stand, event: OnSale) -> None:
    """Parties of one to five side by side, as people come. As the owner, and told through the outbox."""
    chance = random.Random(5)
    taken: list[int] = []
    at = 0
    while at < len(event.seats):
        party = chance.randint(1, 5)
        if chance.random() < TAKEN_SHARE:
            taken += range(at, min(at + party, len(event.seats)))
        at += party
    stand.sql(
        """
        WITH taken AS (
          UPDATE event_seats SET state = 'sold', sold_at = holdfast_now(), version = version + 1
          WHERE event_id = $1 AND ordinal = ANY ($2::integer[])
          RETURNING organization_id, event_id, ordinal, version)
        INSERT INTO outbox (organization_id, at, kind, event_id, actor, state, ordinals, versions, hold_ids)
        SELECT organization_id, holdfast_now(), 'SeatSold', event_id, 'SYSTEM', 'sold', array_agg(ordinal),
          array_agg(version), array_agg(NULL::uuid)
        FROM taken GROUP BY organization_id, event_id
        """,
        UUID(event.id),
        taken,
    )


def _get(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> tuple[int, bytes, str]:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status not in (200, 304):
        raise StandFailed(f"GET {path}: {answer.status} {body[:300]!r}")
    return answer.status, body, answer.headers.get("etag", "")


def _unchanged(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> None:
    if _get(connection, path, headers)[0] != 304:
        raise StandFailed(f"GET {path}: an unchanged snapshot was sent again")


def _seconds(work: Callable[[], object]) -> float:
    taken: list[float] = []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _over(these: list[float], those: list[float]) -> list[float]:
    return [one / other for one, other in zip(these, those, strict=True)]
