"""The names of the keys, and what is written in them, to the letter."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import numpy as np
import pytest

from holdfast.kernel.ids import new_id
from holdfast.store.redis.keys import IN_SCRIPTS, Keys, expiry_unix, iso, member, parse_iso, score, seat_value
from holdfast.store.redis.scripts import APPLY_MOVES
from holdfast.store.redis.together import HOLD as HOLD_COLUMNS
from holdfast.store.redis.together import lines_of
from holdfast.store.redis.warm import Warm
from holdfast.store.redis.warm_hold import WarmHold, read_member
from tests.store.redis_ground import run

ORG = UUID("0198c0de-0000-7000-8000-000000000001")
EVENT = UUID("0198c0de-0000-7000-8000-000000000002")
SEAT = UUID("0198c0de-0000-7000-8000-000000000003")
HOLD = UUID("0198c0de-0000-7000-8000-000000000004")
USER = UUID("0198c0de-0000-7000-8000-000000000005")
UNTIL = datetime(2025, 11, 26, 14, 5, 0, 123456, UTC)


def test_keys_are_spelled_as_promised() -> None:
    keys = Keys("hf")
    assert keys.seat_holds(ORG, EVENT) == f"hf:org:{ORG}:event:{EVENT}:seat_holds"
    assert keys.seat(ORG, SEAT) == f"hf:org:{ORG}:seat:{SEAT}:hold"
    assert keys.meta(ORG, HOLD) == f"hf:org:{ORG}:hold:{HOLD}:meta"
    assert keys.occupancy(ORG, EVENT) == f"hf:org:{ORG}:event:{EVENT}:occupancy"
    assert keys.layout(ORG, SEAT) == f"hf:org:{ORG}:layout:{SEAT}:config"
    assert keys.bitmap(ORG, EVENT) == f"hf:org:{ORG}:event:{EVENT}:seats:bitmap"
    assert (keys.writer, keys.cursor, keys.changes) == ("hf:registry:writer", "hf:registry:cursor", "hf:changes")


def test_on_a_cluster_the_organization_is_the_hash_tag() -> None:
    keys = Keys("hf", cluster=True)
    assert keys.seat(ORG, SEAT) == f"hf:org:{{{ORG}}}:seat:{SEAT}:hold"
    assert (keys.writer, keys.cursor) == ("hf:{registry}:writer", "hf:{registry}:cursor")


def test_members_and_values_are_spelled_as_promised() -> None:
    assert member(SEAT, HOLD, USER, UNTIL) == f"{SEAT}:{HOLD}:{USER}:2025-11-26T14:05:00.123456Z"
    assert member(SEAT, HOLD, None, UNTIL.replace(microsecond=0)) == f"{SEAT}:{HOLD}::2025-11-26T14:05:00Z"
    assert seat_value(HOLD, USER, UNTIL) == f"{HOLD}:{USER}:1764165900"
    assert score(UNTIL) == "1764165900"
    assert iso(UNTIL.astimezone(timezone(timedelta(hours=2)))) == "2025-11-26T14:05:00.123456Z"


def test_a_hold_without_end_has_its_own_spelling() -> None:
    assert member(SEAT, HOLD, USER, None) == f"{SEAT}:{HOLD}:{USER}:"
    assert seat_value(HOLD, None, None) == f"{HOLD}::0"
    assert (score(None), expiry_unix(None)) == ("+inf", 0)


@pytest.mark.parametrize("until", [UNTIL, UNTIL.replace(microsecond=0), None])
def test_what_is_written_is_read_back(until: datetime | None) -> None:
    assert parse_iso(iso(until)) == until
    hold = WarmHold(hold_id=HOLD, event_id=EVENT, seat_id=SEAT, user_id=None, held_until=until)
    assert read_member(EVENT, hold.member.encode()) == hold


@pytest.mark.parametrize(
    "text", ["", "::::", "x", f"{SEAT}:{HOLD}:{USER}", f"{SEAT}:{HOLD}:{USER}:soon", f"{SEAT}:no:{USER}:", "\udcff"]
)
def test_a_member_of_anybody_else_is_not_read(text: str) -> None:
    assert read_member(EVENT, text.encode(errors="surrogateescape")) is None


def test_the_scripts_make_the_same_keys(valkey: str) -> None:
    ask = IN_SCRIPTS + "return {seat_holds_key(ARGV[1]), seat_key(ARGV[1]), meta_key(ARGV[1]),"
    ask += " occupancy_key(ARGV[1]), bitmap_key(ARGV[1])}"
    assert APPLY_MOVES.text.startswith(IN_SCRIPTS)

    async def work(warm: Warm) -> None:
        keys = warm.keys
        made = await warm.connection.client.execute_command("EVAL", ask, 1, keys.prefix(ORG), str(EVENT))
        functions = (keys.seat_holds, keys.seat, keys.meta, keys.occupancy, keys.bitmap)
        assert [key.decode() for key in made] == [function(ORG, EVENT) for function in functions]

    run(valkey, work)


@pytest.mark.parametrize("cluster", [False, True])
@pytest.mark.parametrize("until", [UNTIL, UNTIL.replace(microsecond=0), None])
def test_lines_of_many_holds_are_spelled_as_those_of_one(cluster: bool, until: datetime | None) -> None:
    keys = Keys("a:{b}-00000000-0000-0000-0000-000000000000", cluster)
    ids = [[new_id() for _ in range(5)] for _ in range(3)]
    holds = np.zeros(5, HOLD_COLUMNS)
    for name, column in zip(("hold", "seat", "user"), ids, strict=True):
        holds[name] = np.frombuffer(b"".join(one.bytes for one in column), "V16")
    text, (meta_end, seat_end, value_end) = lines_of(keys, ORG, holds, until)
    width = len(text) // 5
    for n, (hold, seat, user) in enumerate(zip(*ids, strict=True)):
        line = text[n * width : (n + 1) * width]
        assert line[:meta_end] == keys.meta(ORG, hold)
        assert line[meta_end:seat_end] == keys.seat(ORG, seat)
        assert line[seat_end:value_end] == seat_value(hold, user, until)
        assert line[value_end:] == member(seat, hold, user, until)
