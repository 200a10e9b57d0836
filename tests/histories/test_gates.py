"""Any history at the gates (in, out, days, void, reissue, exit scans, uploads, repetitions) against a small model of it."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, ClassVar, TypeVar
from uuid import UUID

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.accounts.principal import Role
from holdfast.app import Application
from holdfast.gates.answers import AdmissionAnswer
from holdfast.gates.scan import Direction, ScanAsked
from holdfast.kernel.ids import new_id
from tests.conftest import TestDatabase
from tests.factories import make_organization, make_published_event, staff_call, theatre_config
from tests.race.ground import parts_of
from tests.stage import stage_settings
from tests.tickets import issue

T = TypeVar("T")
PIT_ROOM = 1
ENTITLEMENTS = ("single_entry", "limited_reentry_per_day", "unlimited_multi_day")


# The model ----------------------------------------------------------------------------------------------------------
@dataclass
class Day:
    entries: int = 0
    inside: bool = False
    others: int = 0
    last_at: datetime | None = None


@dataclass
class Ticket:
    id: UUID
    zone: str
    codes: list[str]
    void: bool = False
    days: dict[date, Day] = field(default_factory=lambda: defaultdict(Day))


@dataclass
class House:
    """What the engine should decide, said once more as simply as possible."""

    entitlement: str
    limit: int
    valid_days: list[date]
    exit_scans: bool = False
    tickets: list[Ticket] = field(default_factory=list)

    def present(self, zone: str, day: date) -> int:
        return sum(t.days[day].inside + t.days[day].others for t in self.tickets if t.zone == zone)

    def refusal(self, ticket: Ticket, version: int, day: date) -> str | None:
        today = ticket.days[day]
        if ticket.void:
            return "void"
        if version != len(ticket.codes) - 1:
            return "replaced_code"
        if day not in self.valid_days:
            return "wrong_day"
        if self.entitlement == "single_entry" and any(d.entries for d in ticket.days.values()):
            return "already_used"
        if self.exit_scans and today.inside:
            return "already_inside"
        if self.entitlement == "limited_reentry_per_day" and today.entries >= self.limit:
            return "no_entries_left"
        if not today.inside and ticket.zone == "pit" and self.present("pit", day) >= PIT_ROOM:
            return "zone_full"
        return None

    def come_in(self, ticket: Ticket, version: int, day: date, at: datetime, passed: bool) -> tuple[str, str | None]:
        reason, today = self.refusal(ticket, version, day), ticket.days[day]
        if reason is not None and not passed:
            return "refuse", reason
        if today.inside and reason is not None and (self.exit_scans or reason in ("already_used", "replaced_code")):
            today.others += 1
        today.entries, today.inside = today.entries + 1, True
        today.last_at = max(today.last_at or at, at)
        return "admit", reason

    def go_out(self, ticket: Ticket, day: date, at: datetime, passed: bool) -> tuple[str, str | None]:
        today = next((ticket.days[d] for d in (day, day - timedelta(days=1)) if ticket.days[d].inside), None)
        if today is None:
            return ("admit" if passed else "refuse"), "not_inside"
        assert today.last_at is not None
        if passed and at < today.last_at and not today.others:
            return "admit", "superseded"
        today.inside, today.others = today.others > 0, max(0, today.others - 1)
        today.last_at = max(today.last_at, at)
        return "admit", None

    def scan(
        self, ticket: Ticket, version: int, direction: str, day: date, at: datetime, passed: bool
    ) -> tuple[str, str | None]:
        if direction == "in":
            return self.come_in(ticket, version, day, at, passed)
        return self.go_out(ticket, day, at, passed)


# The machine --------------------------------------------------------------------------------------------------------
class AtTheGates(RuleBasedStateMachine):
    loop: ClassVar[asyncio.AbstractEventLoop]
    app: ClassVar[Application]
    database: ClassVar[TestDatabase]
    owner: ClassVar[asyncpg.Connection]

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def now(self) -> datetime:
        found: datetime = self.wait(self.owner.fetchval("SELECT holdfast_now()"))
        return found

    @initialize(entitlement=st.sampled_from(ENTITLEMENTS), exit_scans=st.booleans())
    def open_the_house(self, entitlement: str, exit_scans: bool) -> None:
        # Half past, so that no test ever straddles midnight.
        now = self.now()
        half_past = now.replace(minute=30, second=0, microsecond=0)
        self.wait(self.database.advance_clock(((half_past - now).total_seconds()) % 3600))
        today = self.now().date()
        days = [today, today + timedelta(days=1)]
        limit = {"max_daily_entries": 2} if entitlement == "limited_reentry_per_day" else {}
        self.admission = {"entitlement": entitlement, "exit_scans": exit_scans, **limit}
        self.house = House(entitlement, 2, days, exit_scans)
        self.wait(self._make([day.isoformat() for day in days]))
        self.scans: dict[UUID, tuple[ScanAsked, str, str | None]] = {}

    async def _make(self, days: list[str]) -> None:
        parts = parts_of(self.app)
        organization = await make_organization(parts)
        config = theatre_config(1, 2, ga_capacity=2)
        self.event = await make_published_event(parts, organization, config=config, days=days, admission=self.admission)
        self.call = staff_call(organization, Role.ADMIN)
        seats = await issue(self.app, organization.organization_id, self.event.id, 0, 1)
        places = await issue(self.app, organization.organization_id, self.event.id, zone="pit", quantity=2)
        room = "UPDATE event_zones SET capacity = $2, sold = $2 WHERE event_id = $1"
        await self.owner.execute(room, self.event.id, PIT_ROOM)
        for zone, tickets in (("stalls", seats), ("pit", places)):
            self.house.tickets += [Ticket(ticket, zone, [await self._code(ticket)]) for ticket in tickets]

    async def _code(self, ticket: UUID) -> str:
        return await self.app.services.tickets.code(self.call, ticket)

    @rule(hours=st.sampled_from([1, 5, 20]))
    def time_passes(self, hours: int) -> None:
        self.wait(self.database.advance_clock(3600 * hours))

    @rule(n=st.integers(0, 3))
    def a_ticket_is_issued_anew(self, n: int) -> None:
        ticket = self.house.tickets[n]
        if not ticket.void:
            view = self.wait(self.app.services.tickets.reissue(self.call, ticket.id))
            assert isinstance(view.code, str)
            ticket.codes.append(view.code)

    @rule(n=st.integers(0, 3))
    def a_ticket_is_returned(self, n: int) -> None:
        ticket = self.house.tickets[n]
        void = "UPDATE tickets SET status = 'void', voided_at = coalesce(voided_at, now()) WHERE id = $1"
        self.wait(self.owner.execute(void, ticket.id))
        ticket.void = True

    @rule()
    def exit_scans_are_turned_on_or_off(self) -> None:
        self.house.exit_scans = not self.house.exit_scans
        self.admission = {**self.admission, "exit_scans": self.house.exit_scans}
        self.wait(self.app.services.seating.patch_event(self.call, self.event.id, {"admission": self.admission}))

    @rule(n=st.integers(0, 3), direction=st.sampled_from(["in", "in", "out"]), age=st.sampled_from([0, 0, 1]))
    def a_gate_scans(self, n: int, direction: str, age: int) -> None:
        ticket = self.house.tickets[n]
        version = max(0, len(ticket.codes) - 1 - age)
        asked = ScanAsked(scan_id=new_id(), direction=Direction(direction), code=ticket.codes[version], gate="A")
        answer = self.wait(self.app.services.gates.scan(self.call, self.event.id, asked))
        at = answer.scanned_at
        expected = self.house.scan(ticket, version, direction, at.date(), at, passed=False)
        self._compare(ticket, answer, expected, at.date())
        self.scans[asked.scan_id] = (asked, *expected)

    @rule(
        taken=st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from(["in", "out"]), st.integers(0, 40), st.booleans()),
            min_size=1,
            max_size=4,
            unique_by=lambda scan: scan[2],
        )
    )
    def a_gate_without_a_connection_uploads(self, taken: list[tuple[int, str, int, bool]]) -> None:
        now = self.now()
        asked: list[tuple[Ticket, int, ScanAsked]] = []
        for n, direction, hours, passed in taken:
            ticket = self.house.tickets[n]
            version = hours % len(ticket.codes)
            scan = ScanAsked(
                scan_id=new_id(),
                direction=Direction(direction),
                code=ticket.codes[version],
                scanned_at=now - timedelta(hours=hours),
                passed=passed,
            )
            asked.append((ticket, version, scan))
        answer = self.wait(self.app.services.gates.upload(self.call, self.event.id, [scan for _, _, scan in asked]))
        told = {scan.scan_id: scan for scan in answer.scans}
        for ticket, version, scan in sorted(asked, key=lambda one: one[2].scanned_at or now):
            assert scan.scanned_at is not None
            at, day = scan.scanned_at, scan.scanned_at.date()
            expected: tuple[str, str | None] = ("refuse", "refused_at_gate")
            if scan.passed:
                expected = self.house.scan(ticket, version, scan.direction, day, at, passed=True)
            result, admission = told[scan.scan_id].result, told[scan.scan_id].admission
            assert admission is not None
            assert (admission.outcome, admission.reason) == expected
            in_conflict = expected[0] == "admit" and expected[1] not in (None, "superseded")
            assert result == ("conflict" if in_conflict else "applied" if expected[0] == "admit" else "refused")
            self.scans[scan.scan_id] = (scan, *expected)

    @precondition(lambda self: self.scans)
    @rule(data=st.data())
    def a_scan_is_sent_again(self, data: st.DataObject) -> None:
        asked, outcome, reason = self.scans[data.draw(st.sampled_from(list(self.scans)))]
        if asked.scanned_at is not None:
            answer = self.wait(self.app.services.gates.upload(self.call, self.event.id, [asked])).scans[0]
            assert answer.result == "duplicate"
            assert answer.admission is not None
            assert (answer.admission.outcome, answer.admission.reason) == (outcome, reason)
        else:
            again = self.wait(self.app.services.gates.scan(self.call, self.event.id, asked))
            assert (again.outcome, again.reason, again.duplicate) == (outcome, reason, True)

    def _compare(self, ticket: Ticket, answer: AdmissionAnswer, expected: tuple[str, str | None], day: date) -> None:
        assert (answer.outcome, answer.reason) == expected
        if answer.direction == "in":
            assert answer.entries_today == ticket.days[day].entries
            assert answer.inside == ticket.days[day].inside

    @invariant()
    def everybody_inside_is_counted_and_nobody_else(self) -> None:
        if not hasattr(self, "scans"):
            return
        rows = self.wait(self.owner.fetch("SELECT * FROM zone_attendance WHERE event_id = $1", self.event.id))
        counted = {(row["zone_no"], row["day"]): (row["present"], row["entered"]) for row in rows}
        days = {day for ticket in self.house.tickets for day in ticket.days}
        for zone_no, zone in enumerate(("stalls", "pit")):
            for day in days:
                entered = sum(t.days[day].entries > 0 for t in self.house.tickets if t.zone == zone)
                assert counted.pop((zone_no, day), (0, 0)) == (self.house.present(zone, day), entered)
        assert set(counted.values()) <= {(0, 0)}
        scans = self.wait(self.owner.fetchval("SELECT count(*) FROM admissions WHERE event_id = $1", self.event.id))
        assert scans == len(self.scans)


@pytest.fixture
def machine(database: TestDatabase) -> Iterator[type[AtTheGates]]:
    loop = asyncio.new_event_loop()
    AtTheGates.loop, AtTheGates.database = loop, database
    AtTheGates.app = loop.run_until_complete(Application.open(stage_settings(database), work=False))
    AtTheGates.owner = loop.run_until_complete(asyncpg.connect(database.owner))
    yield AtTheGates
    loop.run_until_complete(AtTheGates.owner.close())
    loop.run_until_complete(AtTheGates.app.close())
    loop.close()


def test_any_history_at_the_gates_is_what_the_model_says(machine: type[AtTheGates]) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=checks),
    )
