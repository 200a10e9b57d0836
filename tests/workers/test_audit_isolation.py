"""The audit of the walls between organizations finds nothing, until something is planted."""

import asyncio
import io
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
import structlog
from prometheus_client import REGISTRY

from holdfast.checkout.direct_sale import SaleAsked
from holdfast.logs import configure_logs
from holdfast.store.postgres.isolation import BY_EVENT, REFERENCES, Finding
from holdfast.store.redis.warm import Warm
from holdfast.webhooks.courier import Courier
from holdfast.webhooks.records import NewEndpoint
from holdfast.webhooks.service import WebhooksService
from holdfast.workers.audit_isolation import FIRST_PAUSE_S, PAUSE_S, AuditIsolation, key_parts
from holdfast.workers.expire_holds import ExpireHolds
from holdfast.workers.fold_occupancy import FoldOccupancy
from holdfast.workers.snapshot_occupancy import SnapshotOccupancy
from tests.conftest import TestDatabase
from tests.factories import PublishedEvent, make_organization, make_published_event, staff_call, theatre_config
from tests.race.ground import Ground, ground, selection

HALL = theatre_config(2, 10, ga_capacity=50)
TILL = {"validStates": ["SOLD"], "skipLockedState": True, "paymentRequired": True}
SCANNED = (
    """INSERT INTO ticket_days (organization_id, ticket_id, event_id, day, last_scan_at)
    SELECT organization_id, id, event_id, '2030-01-01', now() FROM tickets WHERE id = $1""",
    """INSERT INTO zone_attendance (organization_id, event_id, day, zone_no)
    SELECT organization_id, event_id, '2030-01-01', zone_no FROM tickets WHERE id = $1""",
    """INSERT INTO admissions (organization_id, event_id, scan_id, ticket_id, direction, outcome, source, scanned_at,
      at, actor)
    SELECT organization_id, event_id, gen_random_uuid(), id, 'in', 'admit', 'api', now(), now(), 'API' FROM tickets
    WHERE id = $1""",
)


@dataclass
class Houses:
    """Two organizations, each with an event, holds, a sale, and a webhook."""

    g: Ground
    mine: PublishedEvent
    theirs: PublishedEvent

    @property
    def me(self) -> UUID:
        return self.mine.organization.organization_id

    @property
    def them(self) -> UUID:
        return self.theirs.organization.organization_id

    async def plant(self, statement: str, *args: Any) -> None:
        """As the owner, past every constraint: what no code of ours can do."""
        async with self.g.owner.transaction():
            await self.g.owner.execute("SET LOCAL session_replication_role = replica")
            done = await self.g.owner.execute(statement, *args)
            assert not done.endswith(" 0"), done

    async def hold_of(self, event: PublishedEvent) -> UUID:
        found: UUID = await self.g.owner.fetchval(
            "SELECT id FROM holds WHERE event_id = $1 AND status = 'active' AND ordinal IS NOT NULL LIMIT 1", event.id
        )
        return found


async def furnish(g: Ground, event: PublishedEvent) -> None:
    app = g.apps[0]
    call = staff_call(event.organization)
    await g.hold(app, call, [0, 1], 3, event)
    booking = app.services.booking
    assert await booking.lock(call, event.id, selection([5, 6]))
    assert await booking.sale(call, event.id, selection([5]))
    await app.services.accounts.store_organization_config(call, {"holdTypes": {"TILL": TILL}})
    asked = SaleAsked(seats=(event.seats[12],), hold_type="TILL", payment_reference="till 1")
    sale = await app.services.box_office.sell(call, event.id, asked)
    await app.services.returns.revert(call, sale.tickets[0].id, "ill")
    for statement in SCANNED:
        await g.sql(statement, sale.tickets[0].id)
    courier = Courier(private_targets=True)
    service = WebhooksService(app.database, courier)
    endpoint = await service.create(call, NewEndpoint(url="http://127.0.0.1:1025/"))
    await service.test(call, endpoint.id)
    await courier.close()


@asynccontextmanager
async def houses(database: TestDatabase, **settings: Any) -> AsyncIterator[Houses]:
    async with ground(database, HALL, instances=1, **settings) as g:
        second = await make_organization(g.parts, "Second")
        theirs = await make_published_event(g.parts, second, config=HALL)
        for event in (g.event, theirs):
            await furnish(g, event)
        await FoldOccupancy(g.apps[0].database).once()
        await SnapshotOccupancy(g.apps[0].database).once()
        yield Houses(g, g.event, theirs)


def run(database: TestDatabase, test: Callable[[Houses], Awaitable[None]], **settings: Any) -> None:
    async def main() -> None:
        async with houses(database, **settings) as h:
            await test(h)

    asyncio.run(main())


async def audit(h: Houses) -> list[Finding]:
    return await AuditIsolation(h.g.apps[0].database, None).audit()


def test_between_two_busy_organizations_nothing_crosses(database: TestDatabase) -> None:
    async def test(h: Houses) -> None:
        assert await audit(h) == []
        await h.g.pass_time(3600)
        await ExpireHolds(h.g.apps[0].database).once()
        assert await audit(h) == []

    run(database, test)


def moved(table: str, change: str, which: str = "true") -> str:
    return f"UPDATE {table} SET {change} WHERE organization_id = :me AND {which}"


PLANTED = {
    "holds.event_id": moved("holds", "event_id = :event", "ordinal IS NULL"),
    "event_seats.hold_id": moved("event_seats", "hold_id = :hold", "ordinal = 0"),
    "seat_state_events.event_id": moved("seat_state_events", "event_id = :event", "ordinal = 1"),
    "seat_state_events.hold_id": moved("seat_state_events", "hold_id = :hold", "ordinal = 5"),
    "outbox.event_id": moved("outbox", "event_id = :event", "kind = 'SeatSold'"),
    "audit_entries.event_id": moved("audit_entries", "event_id = :event", "action = 'seat_sold'"),
    "event_seats.event_id": moved("event_seats", "event_id = :event", "ordinal = 9"),
    "event_zones.event_id": moved("event_zones", "event_id = :event"),
    "occupancy_counts.event_id": moved("occupancy_counts", "event_id = :event", "state = 'sold'"),
    "occupancy_snapshots.event_id": moved("occupancy_snapshots", "event_id = :event"),
    "event_whitelist.event_id": """
        INSERT INTO event_whitelist (organization_id, event_id, user_id) VALUES (:me, :event, :hold)""",
    "occupancy_changes.event_id": """
        INSERT INTO occupancy_changes (organization_id, event_id, zone_no, state, hold_type, change)
        VALUES (:me, :event, 0, 'sold', '', 1)""",
    "sold_out_events.event_id": "INSERT INTO sold_out_events (organization_id, event_id, at) VALUES (:me, :event, now())",
    "memberships.user_id": """
        UPDATE memberships SET user_id = (SELECT id FROM users WHERE organization_id <> :me LIMIT 1)
        WHERE organization_id = :me""",
    "webhook_deliveries.endpoint_id": """
        UPDATE webhook_deliveries SET endpoint_id = (SELECT id FROM webhook_endpoints WHERE organization_id <> :me)
        WHERE organization_id = :me""",
    "webhook_deliveries.message_id": """
        UPDATE webhook_deliveries SET message_id = (SELECT id FROM webhook_messages WHERE organization_id <> :me)
        WHERE organization_id = :me""",
    "webhook_messages.event_id": moved("webhook_messages", "event_id = :event"),
    "webhook_endpoints.event_id": moved("webhook_endpoints", "event_id = :event"),
    "layouts.venue_id": """
        UPDATE layouts SET venue_id = (SELECT id FROM venues WHERE organization_id <> :me) WHERE organization_id = :me""",
    "events.layout_id": """
        UPDATE events SET layout_id = (SELECT id FROM layouts WHERE organization_id <> :me) WHERE organization_id = :me""",
    "events.series_id": moved("events", "series_id = :hold"),
    "event_layout_changes.event_id": """
        INSERT INTO event_layout_changes (organization_id, event_id, log_id, outbox_id, migration_id, from_version,
          to_version, base_version, capacities, last_booking_id, at)
        VALUES (:me, :event, 0, 0, :hold, 1, 2, 1, '{}', 1, now())""",
    "layout_migrations.event_id": """
        INSERT INTO layout_migrations (organization_id, id, event_id, layout_id, from_version, to_version, plan, fingerprint,
          created_at) SELECT :me, :hold, :event, id, 1, 1, '{}', '', now() FROM layouts WHERE organization_id = :me""",
    "layout_migrations.layout_id": """
        INSERT INTO layout_migrations (organization_id, id, event_id, layout_id, from_version, to_version, plan, fingerprint,
          created_at) SELECT :me, :hold, (SELECT id FROM events WHERE organization_id = :me), id, 1, 1, '{}', '', now()
        FROM layouts WHERE organization_id <> :me""",
    "series.layout_id": """
        INSERT INTO series (organization_id, id, name, layout_id, layout_version)
        VALUES (:me, :hold, 'Run', (SELECT id FROM layouts WHERE organization_id <> :me), 1)""",
}
PLANTED |= {
    "holds.checkout_id": moved("holds", "checkout_id = :hold"),
    "checkouts.event_id": moved("checkouts", "event_id = :event"),
    "checkouts.payment_id": moved("checkouts", "payment_id = :hold"),
    "checkout_lines.checkout_id": """
        INSERT INTO checkout_lines (organization_id, checkout_id, hold_id, quantity, payment_required, added_at)
        SELECT :me, :hold, id, 1, true, now() FROM holds WHERE organization_id = :me LIMIT 1""",
    "checkout_lines.hold_id": """
        INSERT INTO checkout_lines (organization_id, checkout_id, hold_id, quantity, payment_required, added_at)
        SELECT :me, id, :hold, 1, true, now() FROM checkouts WHERE organization_id = :me""",
    "payments.event_id": moved("payments", "event_id = :event"),
    "payments.checkout_id": moved("payments", "checkout_id = :hold"),
    "refunds.event_id": moved("refunds", "event_id = :event"),
    "refunds.checkout_id": moved("refunds", "checkout_id = :hold"),
    "refunds.payment_id": moved("refunds", "payment_id = :hold"),
    "refunds.ticket_id": moved("refunds", "ticket_id = :hold"),
    "tickets.event_id": moved("tickets", "event_id = :event"),
    "tickets.checkout_id": moved("tickets", "checkout_id = :hold"),
    "tickets.hold_id": moved("tickets", "hold_id = :hold"),
    "ticket_days.event_id": moved("ticket_days", "event_id = :event"),
    "ticket_days.ticket_id": moved("ticket_days", "ticket_id = :hold"),
    "zone_attendance.event_id": moved("zone_attendance", "event_id = :event"),
    "admissions.event_id": moved("admissions", "event_id = :event"),
    "admissions.ticket_id": moved("admissions", "ticket_id = :hold"),
}
ALSO = {"holds.event_id": {"seat_state_events.hold_id"}, "tickets.event_id": {"admissions.ticket_id"}}
"""A hold that is moved elsewhere is also missed by the log of where it was, and a ticket by the log of its scans."""


@pytest.mark.parametrize("where", sorted(PLANTED))
def test_a_reference_into_another_organization_is_found(database: TestDatabase, where: str) -> None:
    async def test(h: Houses) -> None:
        ids = {"me": h.me, "event": h.theirs.id, "hold": await h.hold_of(h.theirs)}
        await h.plant(re.sub(r":(\w+)", lambda word: f"'{ids[word[1]]}'", PLANTED[where]))
        found = await audit(h)
        expected = {where} | ALSO.get(where, set())
        assert {(finding.organization_id, finding.where) for finding in found} == {(h.me, one) for one in expected}
        assert all(finding.reference is not None for finding in found)

    run(database, test)


def test_every_column_that_names_an_event_is_looked_at_and_every_search_is_tried_here(database: TestDatabase) -> None:
    searched = {f"{table}.event_id" for table in BY_EVENT} | {f"{table}.{column}" for table, column, _ in REFERENCES}
    assert searched | {"event_seats.hold_id", "seat_state_events.hold_id", "admissions.ticket_id"} == set(PLANTED)

    async def named() -> set[str]:
        owner = await asyncpg.connect(database.owner)
        try:
            rows = await owner.fetch(
                """
                SELECT e.table_name FROM information_schema.columns e JOIN information_schema.columns o USING (table_name)
                WHERE e.table_schema = 'public' AND e.column_name = 'event_id' AND o.column_name = 'organization_id'
                """
            )
        finally:
            await owner.close()
        return {f"{row['table_name']}.event_id" for row in rows}

    assert asyncio.run(named()) - searched == set()


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("ALTER TABLE holds DISABLE ROW LEVEL SECURITY", "holds"),
        ("ALTER TABLE events NO FORCE ROW LEVEL SECURITY", "events"),
        ("CREATE TABLE forgotten (organization_id uuid NOT NULL)", "forgotten"),
        ("CREATE POLICY anybody ON users TO holdfast_app USING (true)", "users.anybody"),
        ("CREATE POLICY everybody ON users USING (email IS NOT NULL)", "users.everybody"),
        ("ALTER TABLE venues OWNER TO holdfast_app", "venues"),
    ],
)
def test_a_gap_in_the_walls_is_found(database: TestDatabase, statement: str, where: str) -> None:
    async def test(h: Houses) -> None:
        await h.g.owner.execute(statement)
        found = await audit(h)
        assert [(finding.organization_id, finding.where) for finding in found] == [(None, where)]

    run(database, test)


# Keys -----------------------------------------------------------------------------------------------------------------
def test_keys_of_the_warm_tier_that_name_anothers_event_are_found(database: TestDatabase, valkey: str) -> None:
    async def test(h: Houses) -> None:
        warm = Warm.open(valkey, "audit", 1.0)
        duty = AuditIsolation(h.g.apps[0].database, warm)
        client: Any = warm.connection.client
        keys, hold = warm.keys, await h.hold_of(h.mine)
        layout = h.mine.layout.id
        try:
            await client.hset(keys.meta(h.me, hold), "event_id", str(h.mine.id))
            await client.set(keys.occupancy(h.them, h.theirs.id), "{}")
            await client.set(keys.layout(h.me, layout), "{}")
            await client.set("audit:org:junk", "x")
            await client.set("elsewhere:org:" + str(uuid4()) + ":event:" + str(uuid4()), "x")
            for n in range(1200):  # more than a page
                await client.set(keys.seat(h.me, h.mine.seats[n % 20]) + str(n), "x")
            assert await duty.audit() == []
            await client.hset(keys.meta(h.me, uuid4()), "event_id", str(h.theirs.id))
            await client.zadd(keys.seat_holds(h.them, h.mine.id), {"x": 1})
            await client.set(keys.layout(h.them, layout), "{}")
            found = {(finding.organization_id, finding.reference) for finding in await duty.audit()}
            assert found == {(h.me, str(h.theirs.id)), (h.them, str(h.mine.id)), (h.them, str(layout))}
        finally:
            await warm.close()

    run(database, test)


def test_a_warm_tier_that_is_away_does_not_stop_the_audit(database: TestDatabase) -> None:
    async def test(h: Houses) -> None:
        warm = Warm.open("redis://127.0.0.1:1/0", "audit", 0.2)
        try:
            assert await AuditIsolation(h.g.apps[0].database, warm).audit() == []
        finally:
            await warm.close()

    run(database, test)


def test_a_key_says_whose_it_is_and_what_it_is_about() -> None:
    organization, event = uuid4(), uuid4()
    plain = f"hf:org:{organization}:event:{event}:seat_holds".encode()
    of_cluster = f"hf:org:{{{organization}}}:event:{event}:seat_holds".encode()
    assert key_parts("hf", plain) == key_parts("hf", of_cluster) == (organization, "event", event)
    assert key_parts("hf", b"hf:org:x:event:y:z") == (None, "event", None)
    assert key_parts("hf", b"\xff\xfe") == (None, "", None)


# The duty -------------------------------------------------------------------------------------------------------------
def test_the_duty_waits_a_moment_then_counts_and_logs_what_it_finds_every_hour(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faults() -> float | None:
        return REGISTRY.get_sample_value("holdfast_isolation_faults")

    written = io.StringIO()

    async def test(h: Houses) -> None:
        duty = AuditIsolation(h.g.apps[0].database, None)
        assert await duty.once() == FIRST_PAUSE_S
        assert await duty.once() == PAUSE_S
        assert faults() == 0
        assert (REGISTRY.get_sample_value("holdfast_isolation_audited_timestamp_seconds") or 0) > 1_600_000_000
        root = logging.getLogger()
        before, level, kept = root.handlers, root.level, structlog.get_config()
        monkeypatch.setattr(sys, "stderr", written)
        configure_logs("info")
        try:
            await h.plant("UPDATE event_zones SET event_id = $2 WHERE organization_id = $1", h.me, h.theirs.id)
            await duty.once()
        finally:
            root.handlers = before
            root.setLevel(level)
            structlog.configure(**kept)
        assert faults() == 1
        (line,) = [json.loads(line) for line in written.getvalue().splitlines() if "isolation_fault" in line]
        assert (line["organization_id"], line["where"]) == (str(h.me), "event_zones.event_id")
        assert line["reference"] == str(h.theirs.id)
        await h.plant("UPDATE event_zones SET event_id = $2 WHERE organization_id = $1", h.me, h.mine.id)
        await duty.once()
        assert faults() == 0

    run(database, test)
