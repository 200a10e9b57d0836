"""The other side of the comparison: the reserve as one would write it plainly, three statements in a transaction.

It knows no users, no limits, no audit and no messages. pgbench runs it, so that no client's language is in the way.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from holdfast.bench.cpu import Spent
from holdfast.bench.stand import DATABASE, Stand, StandFailed
from holdfast.store.embedded import OWNER, pgbench_path

THREADS = 2

_TABLES = """
CREATE TABLE plain_seat (
  event integer NOT NULL, seat integer NOT NULL, state text NOT NULL DEFAULT 'available', buyer integer,
  held_until timestamptz, version integer NOT NULL DEFAULT 0, PRIMARY KEY (event, seat)) WITH (fillfactor = 70);
CREATE TABLE plain_hold (
  id uuid PRIMARY KEY DEFAULT uuidv7(), event integer NOT NULL, seat integer NOT NULL, buyer integer NOT NULL,
  status text NOT NULL DEFAULT 'active', held_until timestamptz NOT NULL, created_at timestamptz NOT NULL);
CREATE UNIQUE INDEX plain_hold_active ON plain_hold (event, seat) WHERE status = 'active';
CREATE INDEX plain_hold_due ON plain_hold (held_until) WHERE status = 'active';
CREATE TABLE plain_log (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event integer NOT NULL, seat integer NOT NULL,
  old_state text NOT NULL, new_state text NOT NULL, buyer integer NOT NULL, at timestamptz NOT NULL);
INSERT INTO plain_seat (event, seat) SELECT 1, n FROM generate_series(0, {seats} - 1) n;
VACUUM (ANALYZE) plain_seat
"""

# Each client walks its own part of a permutation of the seats: random places, and no seat wanted twice.
_SCRIPT = """
\\set n :n + 1
\\set seat permute(:n * {clients} + :client_id, {seats}, 7)
\\set buyer random(1, 2000)
BEGIN;
UPDATE plain_seat SET state = 'held', buyer = :buyer, held_until = now() + interval '5 minutes', version = version + 1
  WHERE event = 1 AND seat = :seat AND state = 'available';
INSERT INTO plain_hold (event, seat, buyer, held_until, created_at)
  VALUES (1, :seat, :buyer, now() + interval '5 minutes', now());
INSERT INTO plain_log (event, seat, old_state, new_state, buyer, at)
  VALUES (1, :seat, 'available', 'held', :buyer, now());
COMMIT;
"""


@dataclass(frozen=True)
class PlainRun:
    rate: float
    holds: int
    spent: Spent

    def microseconds(self, *processes: str) -> float:
        return 1e6 * sum(self.spent.ours[name] for name in processes) / max(1, self.holds)


class PlainReserve:
    def __init__(self, stand: Stand, seats: int) -> None:
        self._stand = stand
        self._seats = seats
        stand.sql(_TABLES.format(seats=seats))

    def refill(self) -> None:
        self._stand.sql(
            """
            TRUNCATE plain_hold, plain_log;
            UPDATE plain_seat SET state = 'available', buyer = NULL, held_until = NULL WHERE state <> 'available';
            VACUUM (ANALYZE) plain_seat
            """
        )

    def run(self, clients: int, seconds: float) -> PlainRun:
        script = self._stand.folder / f"plain-{clients}.sql"
        script.write_text(_SCRIPT.format(clients=clients, seats=self._seats))
        options = ["-n", "-M", "prepared", "-c", clients, "-j", min(THREADS, clients), "-T", max(1, round(seconds))]
        first, child_first = self._stand.meter.read(), os.times()
        done = subprocess.run(  # noqa: S603 - a program of our own dependency
            [pgbench_path(), *map(str, options), "-D", "n=0", "-f", str(script)],
            env=self._stand.address.client_environment(OWNER, DATABASE),
            capture_output=True,
            text=True,
            cwd=Path("/"),
        )
        last, child_last = self._stand.meter.read(), os.times()
        rate = re.search(r"tps = ([\d.]+) \(without initial", done.stdout)
        holds = re.search(r"actually processed: (\d+)", done.stdout)
        failed = re.search(r"failed transactions: (\d+)", done.stdout)
        if done.returncode != 0 or rate is None or holds is None or (failed and int(failed[1])):
            raise StandFailed(f"pgbench: {done.stderr[-500:]} {done.stdout[-500:]}")
        client = child_last.children_user + child_last.children_system
        client -= child_first.children_user + child_first.children_system
        return PlainRun(float(rate[1]), int(holds[1]), self._stand.meter.between(first, last, client=client))
