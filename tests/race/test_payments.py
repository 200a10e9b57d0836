"""Money, sweeper and the next buyer at the same instant: every session has one outcome. With controls."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from holdfast.accounts.principal import Call
from holdfast.checkout.answers import CheckoutView
from holdfast.checkout.refusals import HoldsExpired
from holdfast.holds.answers import Placement
from holdfast.kernel.errors import Refusal, SeatHeldByAnother, SeatNotAvailable
from holdfast.kernel.ids import new_id
from holdfast.payments.service import CompleteAsked
from holdfast.payments.settlement import engine_call
from holdfast.payments.signed_webhook import sign
from holdfast.workers.expire_holds import ExpireHolds
from tests.checkouts import open_checkout
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.payment_ground import SECRET, message
from tests.race.ground import Ground, all_at_once, changed, ground, until_seen

SEATS = 200
HALL = theatre_config(8, SEATS // 8, ga_capacity=50)
LOCKING = "BEGIN\n  PERFORM FROM event_seats s\n"
SLOWLY = changed("lock_companions", (LOCKING, LOCKING.replace("BEGIN\n", "BEGIN\n  PERFORM pg_sleep(0.02);\n")))
"""Between the look at the session and the sale, where the end of the holds can come."""
ALIVE = " AND (s.held_until IS NULL OR s.held_until > holdfast_now())"
FREE = "      AND (s.state = 'available' OR (s.state = 'held' AND s.held_until <= v_now))\n"

OUTCOMES = """
SELECT c.id, c.status::text, h.status::text AS hold, s.state::text AS seat, h.ended_at > h.held_until AS late,
  (SELECT count(*) FROM tickets t WHERE t.checkout_id = c.id AND t.status = 'valid')::integer AS tickets,
  (SELECT array_agg(p.status ORDER BY p.status) FROM payments p WHERE p.checkout_id = c.id) AS payments
FROM checkouts c JOIN holds h ON h.checkout_id = c.id
JOIN event_seats s ON s.event_id = h.event_id AND s.ordinal = h.ordinal
WHERE c.event_id = $1
"""


async def open_all(g: Ground, seats: Sequence[int], ends_in_s: float, **terms: Any) -> list[UUID]:
    """A session for each seat, of a buyer each, all ending at one instant."""
    (row,) = await g.sql("SELECT holdfast_now() + make_interval(secs => $1) AS ends", ends_in_s)
    checkouts: list[UUID] = []
    for start in range(0, len(seats), 20):
        held = await asyncio.gather(*[g.hold(g.apps[0], g.buyer(), [n]) for n in seats[start : start + 20]])
        for placement in held:
            assert isinstance(placement, Placement)
            checkouts.append(await open_checkout(g.owner, [placement.holds[0].hold_id], **terms))
    for table, column in (("checkouts", "expires_at"), ("holds", "held_until"), ("event_seats", "held_until")):
        await g.sql(
            f"UPDATE {table} SET {column} = $2 WHERE event_id = $1 AND {column} IS NOT NULL", g.event.id, row["ends"]
        )
    for app in g.apps:
        app.hot.doubt(g.organization_id, g.event.id, list(seats))
    return checkouts


async def complete(g: Ground, n: int, checkout_id: UUID, call: Call, **asked: Any) -> CheckoutView | Refusal:
    try:
        return await g.apps[n % 2].services.payments.complete(call, checkout_id, CompleteAsked(**asked))
    except Refusal as refusal:
        return refusal


async def sweeping(g: Ground, stop: asyncio.Event) -> None:
    sweeper = ExpireHolds(g.apps[1].database, batch=7)
    while not stop.is_set():
        await sweeper.sweep(g.organization_id)
        await asyncio.sleep(0)
    await sweeper.sweep(g.organization_id)


# Complete against the sweeper -------------------------------------------------------------------------------------
async def completes_at_the_end(g: Ground, eve_s: float = 0.6) -> list[str]:
    g.event = await g.new_event(HALL)
    checkouts = await open_all(g, range(SEATS), 3_600, payment_required=False)
    await g.to_the_eve(eve_s)
    stop = asyncio.Event()
    sweeper = asyncio.create_task(sweeping(g, stop))

    async def one(n: int) -> CheckoutView | Refusal:
        await asyncio.sleep(2 * eve_s * ((n * 37) % SEATS) / SEATS)
        return await complete(g, n, checkouts[n], g.admin)

    answers = dict(zip(checkouts, await asyncio.gather(*[one(n) for n in range(SEATS)]), strict=True))
    await asyncio.sleep(eve_s)
    stop.set()
    await sweeper
    faults: list[str] = []
    kinds: Counter[str] = Counter()
    for row in await g.sql(OUTCOMES, g.event.id):
        answer = answers[row["id"]]
        said = "completed" if isinstance(answer, CheckoutView) else "open" if isinstance(answer, HoldsExpired) else "?"
        kinds[said] += 1
        wanted = ("converted", "sold", 1) if said == "completed" else ("expired", "available", 0)
        if (row["status"], row["hold"], row["seat"], row["tickets"]) != (said, *wanted):
            faults.append(f"answered {answer!r:.60}, and is {dict(row)}")
        if row["hold"] == "converted" and row["late"]:
            faults.append("sold after its end")
    assert kinds["?"] == 0, kinds
    if min(kinds["completed"], kinds["open"]) < 5 and eve_s < 8:
        return await completes_at_the_end(g, eve_s * 2)  # all too early or all too late: nobody met anybody
    return faults + await g.faults()


def test_a_session_at_its_end_is_completed_or_over_and_its_hold_agrees(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL, control=[SLOWLY]) as g:
            assert await completes_at_the_end(g) == []

    asyncio.run(run())


def test_control_without_the_end_in_the_condition_a_session_is_sold_after_it(database: TestDatabase) -> None:
    async def run() -> None:
        control = [SLOWLY, changed("convert_holds", (ALIVE, ""))]
        async with ground(database, HALL, control=control) as g:
            assert await completes_at_the_end(g) != []

    asyncio.run(run())


# Everybody at one session -----------------------------------------------------------------------------------------
async def add_provider(g: Ground) -> None:
    await g.sql(
        "INSERT INTO payment_providers (organization_id, name, kind, secret, created_at, updated_at)"
        " VALUES ($1, 'stripe', 'webhook', $2, now(), now())",
        g.organization_id,
        SECRET,
    )


async def database_time(g: Ground) -> int:
    (row,) = await g.sql("SELECT extract(epoch FROM holdfast_now())::bigint AS now")
    return int(row["now"])


async def tell(g: Ground, now: int, checkout_id: UUID, reference: str) -> None:
    body = message(str(checkout_id), reference)
    call = engine_call(g.organization_id, "tests")
    await g.apps[0].services.payments.receiving.receive(call, "stripe", sign(SECRET, now, body), body)


async def everybody_at_once(g: Ground) -> list[str]:
    """Completes of the buyer and of a till, and a provider's word again and again: two payments for one session."""
    g.event = await g.new_event(HALL)
    buyer = g.buyer()
    held = await g.hold(g.apps[0], buyer, [0, 1], places=3)
    assert isinstance(held, Placement)
    checkout_id = await open_checkout(g.owner, [hold.hold_id for hold in held.holds])
    reference, till = f"pi_{new_id()}", f"till-{new_id()}"
    told = [message(str(checkout_id), reference, amount=12_500, message_id=f"evt_{n}") for n in range(10)]
    now = await database_time(g)
    call = engine_call(g.organization_id, "tests")
    webhooks = [
        g.apps[n % 2].services.payments.receiving.receive(call, "stripe", sign(SECRET, now, body), body)
        for n, body in enumerate(told)
    ]
    stated = [complete(g, n, checkout_id, g.admin, payment_reference=till) for n in range(20)]
    asked = [complete(g, n, checkout_id, buyer) for n in range(20)]
    answers = await all_at_once([*webhooks, *stated, *asked])
    faults = [f"answered {a!r}" for a in answers if isinstance(a, Refusal) and a.code != "payment_required"]
    rows = await g.sql("SELECT status, reference FROM payments WHERE checkout_id = $1 ORDER BY status", checkout_id)
    if sorted(row["status"] for row in rows) not in (["applied"], ["applied", "refund_due"]):
        faults.append(f"payments are {[tuple(row) for row in rows]}")
    (counts,) = await g.sql("SELECT count(*), count(DISTINCT id) FROM tickets WHERE checkout_id = $1", checkout_id)
    if counts["count"] != 5:
        faults.append(f"{counts['count']} tickets for five places")
    told_of = "SELECT count(*) FROM outbox WHERE kind = 'CheckoutCompleted' AND event_id = $1"
    (word,) = await g.sql(told_of, g.event.id)
    if word["count"] != 1:
        faults.append(f"told {word['count']} times")
    shown = {tuple(a.tickets) for a in answers if isinstance(a, CheckoutView)}
    if len(shown) > 1:
        faults.append("not everybody was shown the same tickets")
    return faults + await g.faults()


def test_fifty_at_one_session_get_one_set_of_tickets(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            await add_provider(g)
            for _ in range(4):
                assert await everybody_at_once(g) == []

    asyncio.run(run())


LOCKED = "AND c.id = p_checkout FOR UPDATE;"


def test_control_without_the_sessions_lock_the_fifty_do_not_agree(database: TestDatabase) -> None:
    async def run() -> None:
        control = [changed("lock_checkout", (LOCKED, LOCKED.replace(" FOR UPDATE", "")))]
        async with ground(database, HALL, control=control) as g:
            await add_provider(g)

            async def race() -> list[str]:
                try:
                    return await everybody_at_once(g)
                except Exception as error:  # the indexes behind the lock give way with one
                    return [repr(error)]

            assert await until_seen(race) != []

    asyncio.run(run())


async def two_payments(g: Ground) -> list[str]:
    """Both recorded, both settled at the same instant: one buys, the other is due back."""
    g.event = await g.new_event(HALL)
    held = await g.hold(g.apps[0], g.buyer(), places=2)
    assert isinstance(held, Placement)
    checkout_id = await open_checkout(g.owner, [hold.hold_id for hold in held.holds])
    payments = []
    for _ in range(2):
        (row,) = await g.sql(
            "INSERT INTO payments (organization_id, id, checkout_id, event_id, provider, reference, amount_minor, currency,"
            " status, actor, created_at, received_at) VALUES ($1, uuidv7(), $2, $3, 'stripe', uuidv7()::text, 5000, 'EUR',"
            " 'received', 'SYSTEM', now(), now()) RETURNING id",
            g.organization_id,
            checkout_id,
            g.event.id,
        )
        payments.append(row["id"])
    call = engine_call(g.organization_id, "tests")

    async def settle(n: int) -> str:
        try:
            settled = await g.apps[n].services.payments.settlement.settle(call, payments[n])
        except Exception as error:  # of whatever kind: money that is there must not fail
            return repr(error)
        return settled.status.value

    answers = sorted(await all_at_once([settle(0), settle(1)]))
    faults = [] if answers == ["applied", "refund_due"] else [f"settled as {answers}"]
    (row,) = await g.sql("SELECT count(*) FROM tickets WHERE checkout_id = $1", checkout_id)
    if row["count"] != 2:
        faults.append(f"{row['count']} tickets for two places")
    return faults + await g.faults()


def test_of_two_payments_at_once_one_buys_and_the_other_is_due_back(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            for _ in range(10):
                assert await two_payments(g) == []

    asyncio.run(run())


def test_control_without_the_sessions_lock_two_payments_meet_in_the_sale(database: TestDatabase) -> None:
    async def run() -> None:
        control = [changed("lock_checkout", (LOCKED, LOCKED.replace(" FOR UPDATE", "")))]
        async with ground(database, HALL, control=control) as g:
            assert await until_seen(lambda: two_payments(g)) != []

    asyncio.run(run())


# Late money against the next buyer --------------------------------------------------------------------------------
FEW = 40


async def late_money_and_the_next_buyer(g: Ground, spread_s: float = 0.3) -> list[str]:
    g.event = await g.new_event(HALL)
    checkouts = await open_all(g, range(FEW), 600)
    await g.pass_time(601)

    now = await database_time(g)

    async def both(n: int) -> Placement | Refusal:
        async def taking() -> Placement | Refusal:
            await asyncio.sleep(spread_s * n / FEW)  # a payment takes longer to get to the seat than a hold
            return await g.hold(g.apps[1], g.buyer(), [n])

        taken, _ = await asyncio.gather(taking(), tell(g, now, checkouts[n], f"pi_{checkouts[n]}"))
        return taken

    outcomes = await asyncio.gather(*[both(n) for n in range(FEW)])
    rows = {row["id"]: row for row in await g.sql(OUTCOMES, g.event.id)}
    faults: list[str] = []
    kinds: Counter[str] = Counter()
    for n, taken in enumerate(outcomes):
        row = rows[checkouts[n]]
        got = (row["seat"], row["tickets"], row["payments"])
        if isinstance(taken, Placement):
            wanted = ("held", 0, ["refund_due"])
        else:
            assert isinstance(taken, SeatHeldByAnother | SeatNotAvailable)
            wanted = ("sold", 1, ["applied"])
        kinds[wanted[0]] += 1
        if got != wanted:
            faults.append(f"seat {n}: next buyer {taken!r:.60}, and {dict(row)}")
    if len(kinds) < 2 and not faults and spread_s < 5:
        return await late_money_and_the_next_buyer(g, spread_s * 2)  # nobody met anybody
    assert faults or len(kinds) == 2, kinds
    return faults + await g.faults()


def test_a_seat_goes_to_late_money_or_to_the_next_buyer_never_to_both(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL) as g:
            await add_provider(g)
            for _ in range(2):
                assert await late_money_and_the_next_buyer(g) == []

    asyncio.run(run())


def test_control_a_late_sale_that_does_not_look_takes_the_next_buyers_seat(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, HALL, control=[changed("sell_seats_directly", (FREE, ""))]) as g:
            await add_provider(g)
            assert await until_seen(lambda: late_money_and_the_next_buyer(g), 3) != []

    asyncio.run(run())
