"""Random histories of payments: whatever is recorded as money buys its tickets or is due back, exactly one of the two."""

import asyncio
from contextlib import suppress
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from holdfast.accounts.principal import Call
from holdfast.holds.answers import Placement
from holdfast.kernel.errors import Refusal
from holdfast.payments.service import CompleteAsked
from holdfast.payments.settlement import engine_call
from holdfast.payments.signed_webhook import sign
from holdfast.workers.expire_holds import ExpireHolds
from holdfast.workers.settle_payments import SettlePayments
from tests.checkouts import open_checkout
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.payment_ground import SECRET, message
from tests.race.ground import Ground, ground

PRICE = 2_500
LIFE_S = 600

which = st.integers(0, 1)
steps = st.one_of(
    st.tuples(st.just("told"), which, st.sampled_from(["a", "b"]), st.sampled_from([0, 0, 0, 1])),
    st.tuples(st.just("failed"), which, st.sampled_from(["a", "b"])),
    st.tuples(st.just("stated"), which, st.sampled_from(["x", "y"]), st.booleans()),
    st.tuples(st.just("recorded"), which),
    st.tuples(st.just("pay"), which),
    st.tuples(st.just("cancel payment"), which),
    st.tuples(st.just("complete"), which),
    st.tuples(st.just("time"), st.sampled_from([LIFE_S / 2, LIFE_S + 1])),
    st.tuples(st.just("sweep"), which),
    st.tuples(st.just("expire session"), which),
    st.tuples(st.just("cancel session"), which),
    # Of what one session had, sometimes a part: what late money could still have is not sold then either.
    st.tuples(st.just("other buyer"), which, st.booleans()),
    st.tuples(st.just("settle"), which),
)

TRUTH = """
SELECT c.id, c.status::text, c.payment_id,
  (SELECT coalesce(sum(l.quantity), 0) FROM checkout_lines l WHERE l.checkout_id = c.id)::integer AS places,
  (SELECT coalesce(sum(l.quantity * l.price_minor), 0) FROM checkout_lines l WHERE l.checkout_id = c.id)::integer AS due,
  (SELECT count(*) FROM tickets t WHERE t.checkout_id = c.id AND t.status = 'valid')::integer AS tickets
FROM checkouts c WHERE c.event_id = $1
"""
MONEY = """
SELECT p.id, p.checkout_id, p.status, p.amount_minor, p.received_at IS NOT NULL AS arrived, count(r.id)::integer AS refunds,
  coalesce(sum(r.amount_minor), 0)::integer AS owed
FROM payments p LEFT JOIN refunds r ON r.payment_id = p.id WHERE p.event_id = $1 GROUP BY p.organization_id, p.id
"""
SOLD = """
SELECT (SELECT count(*) FROM event_seats s WHERE s.event_id = $1 AND s.state = 'sold')
    + (SELECT coalesce(sum(z.sold), 0) FROM event_zones z WHERE z.event_id = $1) AS sold,
  (SELECT count(*) FROM tickets t WHERE t.event_id = $1 AND t.status = 'valid') AS tickets
"""
RECORD = """
INSERT INTO payments (organization_id, id, checkout_id, event_id, provider, reference, amount_minor, currency, status, actor,
  created_at, received_at)
SELECT organization_id, uuidv7(), id, event_id, 'stripe', uuidv7()::text, $2, 'EUR', 'received', 'SYSTEM', holdfast_now(),
  holdfast_now() FROM checkouts WHERE id = $1
"""


class History:
    """Two sessions of an event: a seat and two places each."""

    def __init__(self, g: Ground) -> None:
        self.g = g
        self.service = g.apps[0].services.payments
        self.checkouts: list[UUID] = []
        self.due = 3 * PRICE
        self.told = 0

    async def begin(self) -> None:
        self.g.event = await self.g.new_event(theatre_config(1, 2, ga_capacity=4))
        for n in range(2):
            held = await self.g.hold(self.g.apps[0], self.g.buyer(), [n], places=2)
            assert isinstance(held, Placement)
            holds = [hold.hold_id for hold in held.holds]
            self.checkouts.append(await open_checkout(self.g.owner, holds, price_minor=PRICE, life_s=LIFE_S))
        self.g.apps[0].hot.doubt(self.g.organization_id, self.g.event.id, [0, 1])

    async def step(self, kind: str, *terms: Any) -> None:
        with suppress(Refusal):  # told at once, and nothing is recorded
            await self._step(kind, *terms)

    async def _step(self, kind: str, n: Any, *terms: Any) -> None:
        g = self.g
        admin: Call = g.admin
        match kind:
            case "told":
                await self._tell(n, terms[0], "payment_intent.succeeded", self.due + terms[1])
            case "failed":
                await self._tell(n, terms[0], "payment_intent.payment_failed", self.due)
            case "stated":
                asked = CompleteAsked(payment_reference=f"{terms[0]}-{g.event.id}", late=terms[1])
                await self.service.complete(admin, self.checkouts[n], asked)
            case "recorded":
                await g.sql(RECORD, self.checkouts[n], self.due)
            case "pay":
                await self.service.pay(admin, self.checkouts[n], "stripe")
            case "cancel payment":
                await self.service.cancel_payment(admin, self.checkouts[n])
            case "complete":
                await self.service.complete(admin, self.checkouts[n], CompleteAsked())
            case "time":
                await g.pass_time(n)
            case "sweep":
                await ExpireHolds(g.apps[0].database).sweep(g.organization_id)
            case "expire session" | "cancel session":
                status = "expired" if kind.startswith("expire") else "cancelled"
                over = "AND expires_at <= holdfast_now()" if status == "expired" else ""
                await g.sql(
                    f"UPDATE checkouts SET status = '{status}' WHERE id = $1 AND status IN ('open', 'paying') {over}",
                    self.checkouts[n],
                )
            case "other buyer":
                await (g.hold(g.apps[0], g.buyer(), [n]) if terms[0] else g.hold(g.apps[0], g.buyer(), places=2))
            case "settle":
                await SettlePayments(g.apps[0].database, self.service.settlement, older_than_s=0).once()

    async def _tell(self, n: int, reference: str, kind: str, amount: int) -> None:
        self.told += 1
        (row,) = await self.g.sql("SELECT extract(epoch FROM holdfast_now())::bigint AS now")
        # Of one payment a provider tells one checkout only.
        name = f"{reference}-{self.checkouts[n]}"
        body = message(str(self.checkouts[n]), name, kind=kind, amount=amount, message_id=f"evt_{self.told}")
        call = engine_call(self.g.organization_id, "tests")
        await self.service.receiving.receive(call, "stripe", sign(SECRET, row["now"], body), body)

    async def faults(self, *, settled: bool) -> list[str]:
        found: list[str] = []
        money = await self.g.sql(MONEY, self.g.event.id)
        for row in await self.g.sql(TRUTH, self.g.event.id):
            applied = [m for m in money if m["checkout_id"] == row["id"] and m["status"] == "applied"]
            completed = row["status"] == "completed"
            if completed != (len(applied) == 1) or row["tickets"] != (row["places"] if completed else 0):
                found.append(f"{row['status']} with {row['tickets']} tickets and {len(applied)} payments")
            if completed and (applied[0]["amount_minor"], applied[0]["id"]) != (row["due"], row["payment_id"]):
                found.append("completed with another amount or payment")
        (sold,) = await self.g.sql(SOLD, self.g.event.id)
        if sold["sold"] != sold["tickets"]:
            found.append(f"{sold['sold']} places are sold, with {sold['tickets']} tickets")
        for m in money:
            due_back = m["status"] == "refund_due"
            if (m["refunds"], m["owed"]) != ((1, m["amount_minor"]) if due_back else (0, 0)):
                found.append(f"a payment is {m['status']} with {m['refunds']} refunds")
            if m["arrived"] and m["status"] not in ("applied", "refund_due", *(() if settled else ("received",))):
                found.append(f"money that arrived is {m['status']}")
        return found


@settings(
    max_examples=25,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # a history is short enough to read as it is
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(story=st.lists(steps, min_size=3, max_size=14))
@example(story=[("time", LIFE_S + 1), ("other buyer", 0, False), ("other buyer", 0, False), ("told", 0, "a", 0)])
@example(story=[("recorded", 0), ("recorded", 0), ("settle", 0), ("told", 1, "a", 1), ("told", 1, "b", 0)])
def play(runner: asyncio.Runner, g: Ground, story: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        history = History(g)
        await history.begin()
        for kind, *terms in story:
            await history.step(kind, *terms)
            assert await history.faults(settled=False) == [], (kind, terms)
        await history.step("settle", 0)
        assert await history.faults(settled=True) == []
        assert await g.faults() == []

    runner.run(run())


def test_money_buys_its_tickets_or_is_due_back(database: TestDatabase) -> None:
    with asyncio.Runner() as runner:
        place = ground(database, theatre_config(1, 2), instances=1)
        g = runner.run(place.__aenter__())
        try:
            provider = (
                "INSERT INTO payment_providers (organization_id, name, kind, secret, created_at, updated_at)"
                " VALUES ($1, 'stripe', 'webhook', $2, now(), now())"
            )
            runner.run(g.sql(provider, g.organization_id, SECRET))
            play(runner, g)
        finally:
            runner.run(place.__aexit__(None, None, None))
