"""Two organizations in one database: to each, the other's things do not exist."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
import httpx

from tests.checkouts import open_checkout
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.client import bearer
from tests.http.contents import contents
from tests.stage import Stage, stage

UNKNOWN = "00000000-0000-7000-8000-000000000000"
UNKNOWN_NUMBER = 2_000_000_000
SECRET = "Zanzibar"
"""Part of every name that the other organization gave to anything."""


@dataclass(frozen=True)
class Ids:
    """What a request can name. Once with the other organization's ids, once with ids that never existed."""

    event: str
    seat: str
    hold: str
    venue: str
    layout: str
    user: str
    key: str
    zone: str
    webhook: str
    delivery: str
    series: str
    migration: str
    ticket: str
    checkout: str
    payment: str
    refund: str


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    body: Any = None
    params: dict[str, str] | None = None
    with_key: bool = False


Case = Callable[[Ids, Ids], Asked]
"""From the foreign (or unknown) ids and one's own ids to a request."""

OWN_EVENT: dict[str, Case] = {
    "a seat of one's own event": lambda them, me: Asked("POST", f"/api/events/{me.event}/seats/{them.seat}/reserve"),
    "a zone to analyse": lambda them, me: Asked(
        "GET", f"/api/events/{me.event}/analytics/conversion", params={"zone": them.zone}
    ),
    "a look at a seat": lambda them, me: Asked("GET", f"/api/events/{me.event}/seats/{them.seat}"),
    "several seats": lambda them, me: Asked("POST", f"/api/events/{me.event}/holds", {"seats": [me.seat, them.seat]}),
    "places": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/holds", {"ga": [{"zone_id": them.zone, "quantity": 1}]}
    ),
    "a zone to choose in": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/best-available", {"quantity": 1, "zones": [them.zone]}
    ),
    "holds to release": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/holds/release", {"hold_ids": [them.hold]}
    ),
    "a hold to move": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/holds/move", {"moves": [{"hold_id": them.hold, "seat": me.seat}]}
    ),
    "a seat to move to": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/holds/move", {"moves": [{"hold_id": me.hold, "seat": them.seat}]}
    ),
    "holds to check out": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/checkouts", {"hold_ids": [them.hold]}
    ),
    "a hold for one's own checkout": lambda them, me: Asked(
        "POST", f"/api/checkouts/{me.checkout}/holds", {"hold_ids": [them.hold]}
    ),
    "a hold to drop": lambda them, me: Asked("DELETE", f"/api/checkouts/{me.checkout}/holds/{them.hold}"),
    "a seat to block": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/seats/block", {"seats": [them.seat], "reason": "x"}
    ),
    "a seat to unblock": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/seats/unblock", {"seats": [them.seat]}
    ),
    "places to block": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/zones/{them.zone}/block", {"quantity": 1, "reason": "x"}
    ),
    "a seat to sell": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/sales", {"seats": [me.seat, them.seat], "holdType": "TILL"}
    ),
    "places to sell": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/sales", {"ga": [{"zone_id": them.zone, "quantity": 1}], "holdType": "TILL"}
    ),
    "tickets to revert": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/tickets/revert", {"ticket_ids": [me.ticket, them.ticket], "reason": "x"}
    ),
    "a seat to exchange for": lambda them, me: Asked("POST", f"/api/tickets/{me.ticket}/exchange", {"seat": them.seat}),
    "a zone to exchange for": lambda them, me: Asked(
        "POST", f"/api/tickets/{me.ticket}/exchange", {"zone_id": them.zone}
    ),
    "a migration of one's own event": lambda them, me: Asked(
        "POST", f"/api/events/{me.event}/migrations/{them.migration}/apply"
    ),
    "a migration to read": lambda them, me: Asked("GET", f"/api/events/{me.event}/migrations/{them.migration}"),
    "a layout for an event": lambda them, me: Asked("POST", "/api/events", {"name": "Mine", "layout_id": them.layout}),
    "a series for an event": lambda them, me: Asked("POST", "/api/events", {"name": "Mine", "series_id": them.series}),
    "a layout for a series": lambda them, me: Asked("POST", "/api/series", {"name": "Mine", "layout_id": them.layout}),
    "a ticket at one's own gate": lambda them, me: Asked("GET", f"/api/tickets/{them.ticket}.png"),
    "another layout for a series": lambda them, me: Asked(
        "PATCH", f"/api/series/{me.series}", {"layout_id": them.layout}
    ),
}
"""An id of theirs inside a request about one's own things."""


def of_event(method: str, rest: str = "", body: Any = None) -> Case:
    return lambda them, me: Asked(method, f"/api/events/{them.event}{rest}", body)


def of_migration(method: str, rest: str = "") -> Case:
    return lambda them, me: Asked(method, f"/api/events/{them.event}/migrations/{them.migration}{rest}")


def of_checkout(method: str, rest: str = "", body: Any = None) -> Case:
    return lambda them, me: Asked(method, f"/api/checkouts/{them.checkout}{rest}", body)


def booking(call: str) -> Case:
    body = {"sessionId": "s", "seats": [{"id": 1}]}
    return lambda them, me: Asked(
        "POST", f"/api/private/v2.0/booking/{call}", body, {"eventId": them.event}, with_key=True
    )


# Every route that takes an id, with a request that would go through if the id were one's own.
WITH_ID: dict[tuple[str, str], Case] = {
    ("PATCH", "/api/users/{id}"): lambda them, me: Asked("PATCH", f"/api/users/{them.user}", {"tiers": ["gold"]}),
    ("PUT", "/api/users/{id}/password"): lambda them, me: Asked(
        "PUT", f"/api/users/{them.user}/password", {"password": "taken over by me"}
    ),
    ("DELETE", "/api/api-keys/{id}"): lambda them, me: Asked("DELETE", f"/api/api-keys/{them.key}"),
    ("GET", "/api/layouts/{layout_id}"): lambda them, me: Asked("GET", f"/api/layouts/{them.layout}"),
    ("POST", "/api/venues/{venue_id}/layouts"): lambda them, me: Asked(
        "POST", f"/api/venues/{them.venue}/layouts", {"name": "Plan", "config": theatre_config(1, 2)}
    ),
    ("POST", "/api/layouts/{layout_id}/versions"): lambda them, me: Asked(
        "POST", f"/api/layouts/{them.layout}/versions", {"config": theatre_config(1, 2)}
    ),
    ("POST", "/api/venues/{venue_id}/layouts/import"): lambda them, me: Asked(
        "POST", f"/api/venues/{them.venue}/layouts/import", theatre_config(1, 2), {"name": "Plan", "format": "native"}
    ),
    ("POST", "/api/layouts/{layout_id}/versions/import"): lambda them, me: Asked(
        "POST", f"/api/layouts/{them.layout}/versions/import", theatre_config(1, 2)
    ),
    ("GET", "/api/layouts/{layout_id}/export"): lambda them, me: Asked(
        "GET", f"/api/layouts/{them.layout}/export", params={"format": "csv"}
    ),
    ("GET", "/api/layouts/{layout_id}/picture.svg"): lambda them, me: Asked(
        "GET", f"/api/layouts/{them.layout}/picture.svg"
    ),
    ("GET", "/api/events/{event_id}/picture.svg"): of_event("GET", "/picture.svg"),
    ("POST", "/api/layouts/{layout_id}/versions/{version}/status"): lambda them, me: Asked(
        "POST", f"/api/layouts/{them.layout}/versions/1/status", {"status": "archived"}
    ),
    ("GET", "/api/events/{event_id}"): of_event("GET"),
    ("GET", "/api/events/{event_id}/analytics/conversion"): of_event("GET", "/analytics/conversion"),
    ("GET", "/api/events/{event_id}/analytics/funnel"): of_event("GET", "/analytics/funnel"),
    ("GET", "/api/events/{event_id}/analytics/occupancy"): of_event("GET", "/analytics/occupancy"),
    ("GET", "/api/events/{event_id}/analytics/expiry"): of_event("GET", "/analytics/expiry"),
    ("GET", "/api/events/{event_id}/analytics/accessibility"): of_event("GET", "/analytics/accessibility"),
    ("PATCH", "/api/events/{event_id}"): of_event("PATCH", body={"name": "Taken over"}),
    ("POST", "/api/events/{event_id}/status"): of_event("POST", "/status", {"status": "cancelled"}),
    ("GET", "/api/events/{event_id}/seats"): of_event("GET", "/seats"),
    ("GET", "/api/events/{event_id}/seats/{seat}"): lambda them, me: Asked(
        "GET", f"/api/events/{them.event}/seats/{them.seat}"
    ),
    ("GET", "/api/events/{event_id}/zones"): of_event("GET", "/zones"),
    ("GET", "/api/events/{event_id}/groups"): of_event("GET", "/groups"),
    ("GET", "/api/events/{event_id}/prices"): of_event("GET", "/prices"),
    ("POST", "/api/events/{event_id}/zones/{zone}/block"): lambda them, me: Asked(
        "POST", f"/api/events/{them.event}/zones/{them.zone}/block", {"quantity": 1, "reason": "x"}
    ),
    ("POST", "/api/events/{event_id}/zones/{zone}/unblock"): lambda them, me: Asked(
        "POST", f"/api/events/{them.event}/zones/{them.zone}/unblock", {"quantity": 1}
    ),
    ("GET", "/api/series/{series_id}"): lambda them, me: Asked("GET", f"/api/series/{them.series}"),
    ("PATCH", "/api/series/{series_id}"): lambda them, me: Asked(
        "PATCH", f"/api/series/{them.series}", {"blocked_seat_ids": ["A-1"]}
    ),
    ("POST", "/api/events/{event_id}/seats/block"): lambda them, me: Asked(
        "POST", f"/api/events/{them.event}/seats/block", {"seats": [them.seat], "reason": "x"}
    ),
    ("POST", "/api/events/{event_id}/seats/unblock"): lambda them, me: Asked(
        "POST", f"/api/events/{them.event}/seats/unblock", {"seats": [them.seat]}
    ),
    ("GET", "/api/events/{event_id}/whitelist"): of_event("GET", "/whitelist"),
    ("PUT", "/api/events/{event_id}/whitelist"): of_event("PUT", "/whitelist", {"user_ids": [UNKNOWN]}),
    ("DELETE", "/api/events/{event_id}/whitelist"): of_event("DELETE", "/whitelist", {"user_ids": [UNKNOWN]}),
    ("GET", "/api/events/{event_id}/state-log"): of_event("GET", "/state-log"),
    ("GET", "/api/events/{event_id}/availability"): of_event("GET", "/availability"),
    ("GET", "/api/events/{event_id}/live"): of_event("GET", "/live"),
    ("GET", "/api/events/{event_id}/occupancy"): of_event("GET", "/occupancy"),
    ("GET", "/api/events/{event_id}/occupancy/history"): of_event("GET", "/occupancy/history"),
    ("GET", "/api/events/{event_id}/geometry"): of_event("GET", "/geometry"),
    ("GET", "/api/events/{event_id}/hold-types"): of_event("GET", "/hold-types"),
    ("GET", "/api/events/{event_id}/migrations"): of_event("GET", "/migrations"),
    ("POST", "/api/events/{event_id}/migrations"): of_event("POST", "/migrations", {"layout_version": 2}),
    ("GET", "/api/events/{event_id}/migrations/{migration_id}"): of_migration("GET"),
    ("DELETE", "/api/events/{event_id}/migrations/{migration_id}"): of_migration("DELETE"),
    ("POST", "/api/events/{event_id}/migrations/{migration_id}/apply"): of_migration("POST", "/apply"),
    ("GET", "/api/events/{event_id}/migrations/{migration_id}/notifications"): of_migration("GET", "/notifications"),
    ("GET", "/api/webhooks/{id}"): lambda them, me: Asked("GET", f"/api/webhooks/{them.webhook}"),
    ("PATCH", "/api/webhooks/{id}"): lambda them, me: Asked(
        "PATCH", f"/api/webhooks/{them.webhook}", {"enabled": False}
    ),
    ("DELETE", "/api/webhooks/{id}"): lambda them, me: Asked("DELETE", f"/api/webhooks/{them.webhook}"),
    ("POST", "/api/webhooks/{id}/rotate-secret"): lambda them, me: Asked(
        "POST", f"/api/webhooks/{them.webhook}/rotate-secret"
    ),
    ("POST", "/api/webhooks/{id}/test"): lambda them, me: Asked("POST", f"/api/webhooks/{them.webhook}/test"),
    ("POST", "/api/webhooks/{id}/replay"): lambda them, me: Asked(
        "POST", f"/api/webhooks/{them.webhook}/replay", {"since": "2020-01-01T00:00:00Z"}
    ),
    ("GET", "/api/webhooks/{id}/deliveries"): lambda them, me: Asked("GET", f"/api/webhooks/{them.webhook}/deliveries"),
    ("GET", "/api/webhooks/deliveries/{id}"): lambda them, me: Asked("GET", f"/api/webhooks/deliveries/{them.delivery}"),
    ("POST", "/api/webhooks/deliveries/{id}/replay"): lambda them, me: Asked(
        "POST", f"/api/webhooks/deliveries/{them.delivery}/replay"
    ),
    ("POST", "/api/checkouts/{checkout_id}/pay"): lambda them, me: Asked(
        "POST", f"/api/checkouts/{them.checkout}/pay", {"provider": "trial"}
    ),
    ("POST", "/api/checkouts/{checkout_id}/pay/cancel"): lambda them, me: Asked(
        "POST", f"/api/checkouts/{them.checkout}/pay/cancel"
    ),
    ("POST", "/api/checkouts/{checkout_id}/complete"): lambda them, me: Asked(
        "POST", f"/api/checkouts/{them.checkout}/complete", {"payment_reference": "mine"}
    ),
    ("GET", "/api/payments/{payment_id}"): lambda them, me: Asked("GET", f"/api/payments/{them.payment}"),
    ("POST", "/api/payments/{payment_id}/simulate"): lambda them, me: Asked(
        "POST", f"/api/payments/{them.payment}/simulate"
    ),
    ("POST", "/api/refunds/{refund_id}/done"): lambda them, me: Asked(
        "POST", f"/api/refunds/{them.refund}/done", {"reference": "mine"}
    ),
    ("POST", "/api/registry/reconcile"): lambda them, me: Asked(
        "POST", "/api/registry/reconcile", {"event_id": them.event}
    ),
    ("POST", "/api/events/{event_id}/seats/{seat_id}/reserve"): lambda them, me: Asked(
        "POST", f"/api/events/{them.event}/seats/{them.seat}/reserve"
    ),
    ("GET", "/api/events/{event_id}/holds"): of_event("GET", "/holds"),
    ("POST", "/api/events/{event_id}/best-available"): of_event("POST", "/best-available", {"quantity": 1}),
    ("POST", "/api/events/{event_id}/best-available/preview"): of_event(
        "POST", "/best-available/preview", {"quantity": 1}
    ),
    ("POST", "/api/events/{event_id}/holds"): lambda them, me: Asked(
        "POST", f"/api/events/{them.event}/holds", {"seats": [them.seat]}
    ),
    ("POST", "/api/events/{event_id}/holds/release"): lambda them, me: Asked(
        "POST", f"/api/events/{them.event}/holds/release", {"hold_ids": [them.hold]}
    ),
    ("POST", "/api/events/{event_id}/holds/move"): lambda them, me: Asked(
        "POST",
        f"/api/events/{them.event}/holds/move",
        {"moves": [{"hold_id": them.hold, "seat": them.seat}]},
    ),
    ("POST", "/api/events/{event_id}/sales"): lambda them, me: Asked(
        "POST", f"/api/events/{them.event}/sales", {"seats": [them.seat], "holdType": "TILL"}
    ),
    ("POST", "/api/events/{event_id}/tickets/revert"): lambda them, me: Asked(
        "POST", f"/api/events/{them.event}/tickets/revert", {"ticket_ids": [them.ticket], "reason": "x"}
    ),
    ("POST", "/api/tickets/{ticket_id}/revert"): lambda them, me: Asked(
        "POST", f"/api/tickets/{them.ticket}/revert", {"reason": "x"}
    ),
    ("POST", "/api/tickets/{ticket_id}/exchange"): lambda them, me: Asked(
        "POST", f"/api/tickets/{them.ticket}/exchange", {"seat": me.seat}
    ),
    ("POST", "/api/events/{event_id}/checkouts"): of_event("POST", "/checkouts"),
    ("GET", "/api/events/{event_id}/checkouts"): of_event("GET", "/checkouts"),
    ("GET", "/api/checkouts/{checkout_id}"): of_checkout("GET"),
    ("POST", "/api/checkouts/{checkout_id}/holds"): of_checkout("POST", "/holds", {"hold_ids": [UNKNOWN]}),
    ("DELETE", "/api/checkouts/{checkout_id}/holds/{hold_id}"): of_checkout("DELETE", f"/holds/{UNKNOWN}"),
    ("POST", "/api/checkouts/{checkout_id}/heartbeat"): of_checkout("POST", "/heartbeat"),
    ("POST", "/api/checkouts/{checkout_id}/cancel"): of_checkout("POST", "/cancel"),
    ("GET", "/api/holds/{hold_id}"): lambda them, me: Asked("GET", f"/api/holds/{them.hold}"),
    ("DELETE", "/api/holds/{hold_id}"): lambda them, me: Asked("DELETE", f"/api/holds/{them.hold}"),
    ("POST", "/api/holds/{hold_id}/extend"): lambda them, me: Asked("POST", f"/api/holds/{them.hold}/extend"),
    ("GET", "/api/tickets/{ticket_id}"): lambda them, me: Asked("GET", f"/api/tickets/{them.ticket}"),
    ("POST", "/api/tickets/{ticket_id}/reissue"): lambda them, me: Asked("POST", f"/api/tickets/{them.ticket}/reissue"),
    ("GET", "/api/events/{event_id}/tickets"): of_event("GET", "/tickets"),
    ("GET", "/api/events/{event_id}/attendance"): of_event("GET", "/attendance"),
    ("GET", "/api/events/{event_id}/admissions"): of_event("GET", "/admissions"),
    ("POST", "/api/events/{event_id}/admissions"): lambda them, me: Asked(
        "POST", f"/api/events/{them.event}/admissions", {"ticket_id": them.ticket}
    ),
    **{("POST", f"/api/private/v2.0/booking/{call}"): booking(call) for call in (
        "lock", "unlock", "sale", "directsale", "revertsale")},
    ("GET", "/api/private/v2.0/booking/state"): lambda them, me: Asked(
        "GET", "/api/private/v2.0/booking/state", params={"eventId": them.event}, with_key=True
    ),
}  # fmt: skip

# Routes that take no id of a thing: they may only ever speak of the caller's own organization.
WITHOUT_ID: dict[tuple[str, str], Asked] = {
    ("GET", "/api/me"): Asked("GET", "/api/me"),
    ("GET", "/api/organizations/config"): Asked("GET", "/api/organizations/config"),
    ("POST", "/api/organizations/config"): Asked("POST", "/api/organizations/config", {"holdTypes": {"MINE": {}}}),
    ("GET", "/api/policy"): Asked("GET", "/api/policy"),
    ("PUT", "/api/policy"): Asked("PUT", "/api/policy", {"max_seats_per_booking": 9}),
    ("GET", "/api/users"): Asked("GET", "/api/users"),
    ("POST", "/api/users"): Asked("POST", "/api/users", {}),
    ("GET", "/api/users/me/sign-ins"): Asked("GET", "/api/users/me/sign-ins"),
    ("DELETE", "/api/users/me/sign-ins"): Asked("DELETE", "/api/users/me/sign-ins"),
    ("GET", "/api/api-keys"): Asked("GET", "/api/api-keys"),
    ("POST", "/api/api-keys"): Asked("POST", "/api/api-keys", {"name": "mine"}),
    ("GET", "/api/webhooks"): Asked("GET", "/api/webhooks"),
    ("POST", "/api/webhooks"): Asked("POST", "/api/webhooks", {"url": "http://127.0.0.1:9998/mine"}),
    ("GET", "/api/registry/status"): Asked("GET", "/api/registry/status"),
    ("GET", "/api/venues"): Asked("GET", "/api/venues"),
    ("POST", "/api/venues"): Asked("POST", "/api/venues", {"name": "Mine"}),
    ("GET", "/api/layouts"): Asked("GET", "/api/layouts"),
    ("POST", "/api/layouts/check"): Asked("POST", "/api/layouts/check", theatre_config(1, 2)),
    ("GET", "/api/events"): Asked("GET", "/api/events"),
    ("POST", "/api/events"): Asked("POST", "/api/events", {"name": "Mine", "zones": []}),
    ("GET", "/api/series"): Asked("GET", "/api/series"),
    ("POST", "/api/series"): Asked("POST", "/api/series", {"name": "Mine"}),
    ("GET", "/api/holds"): Asked("GET", "/api/holds"),
    ("GET", "/api/checkouts"): Asked("GET", "/api/checkouts"),
    ("GET", "/api/audit"): Asked("GET", "/api/audit"),
    ("GET", "/api/tickets"): Asked("GET", "/api/tickets"),
    ("GET", "/api/ticket-keys"): Asked("GET", "/api/ticket-keys"),
    ("POST", "/api/ticket-keys/rotate"): Asked("POST", "/api/ticket-keys/rotate"),
    ("GET", "/api/refunds"): Asked("GET", "/api/refunds"),
    ("GET", "/api/payments/providers"): Asked("GET", "/api/payments/providers"),
    ("PUT", "/api/payments/providers/{name}"): Asked("PUT", "/api/payments/providers/own", {"kind": "test"}),
    ("DELETE", "/api/payments/providers/{name}"): Asked("DELETE", "/api/payments/providers/own"),
}
# A tenant is shared by its organizations on purpose; a guest, and who signs in, has no organization before the answer
# (test_session.py); what is on sale is there for everybody (test_public.py).
ELSEWHERE = {
    ("POST", "/api/session"),
    ("GET", "/api/session"),
    ("DELETE", "/api/session"),
    ("GET", "/api/public/events"),
    ("GET", "/api/public/events/{event_id}"),
    ("GET", "/api/tenants/config"),
    ("POST", "/api/tenants/config"),
    ("POST", "/api/guest-tokens"),
    ("POST", "/api/payments/webhook/{provider}"),  # has no credential: see test_payment_messages.py
}
# Filters that name a thing: what is not one's own is simply not there.
FILTERS = (
    ("/api/audit", "event_id"),
    ("/api/holds", "event_id"),
    ("/api/layouts", "venue_id"),
    ("/api/events", "series_id"),
    ("/api/tickets", "event_id"),
    ("/api/refunds", "event_id"),
)


async def routes_of(client: httpx.AsyncClient) -> set[tuple[str, str]]:
    document = (await client.get("/openapi.json")).json()
    return {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}


TILL = {"validStates": ["SOLD"], "skipLockedState": True, "paymentRequired": False}


async def furnish(made: Stage, name: str) -> Ids:
    """An organization with one of everything, its ids."""
    venue = (await made.post("/api/venues", {"name": f"{name} hall"})).json()["data"]["id"]
    layout = await made.post(
        f"/api/venues/{venue}/layouts", {"name": f"{name} plan", "config": theatre_config(2, 5, ga_capacity=10)}
    )
    layout_id = layout.json()["data"]["id"]
    event = (await made.post("/api/events", {"name": f"{name} night", "layout_id": layout_id})).json()["data"]["id"]
    await made.post(f"/api/events/{event}/status", {"status": "published"})
    await made.post("/api/organizations/config", {"holdTypes": {f"{name.upper()}_HOLD": {}, "TILL": TILL}})
    seats = (await made.client.get(f"/api/events/{event}/seats", headers=made.admin)).json()["data"]
    zones = (await made.client.get(f"/api/events/{event}/zones", headers=made.admin)).json()["data"]
    hold = await made.client.post(f"/api/events/{event}/seats/{seats[3]['id']}/reserve", headers=made.admin)
    guest = [{"name": f"{name} guest"}]
    sold = {"seats": [seats[4]["id"]], "holdType": "TILL", "attendees": guest}
    sale = await made.post(f"/api/events/{event}/sales", sold)
    ticket = sale.json()["data"]["tickets"][0]["id"]
    user = await made.post(
        "/api/users", {"display_name": f"{name} person", "email": f"{name}@example.org", "role": "scanner"}
    )
    await made.client.post(f"/api/events/{event}/seats/{seats[1]['id']}/reserve", headers=made.admin)
    held = (await made.client.get("/api/holds", headers=made.admin)).json()["data"]
    other = next(one["hold_id"] for one in held if one["hold_id"] != hold.json()["data"]["hold_id"])
    checkout = await made.post(f"/api/events/{event}/checkouts", {"hold_ids": [other]})
    key = await made.post("/api/api-keys", {"name": f"{name} key"})
    endpoint = await made.post("/api/webhooks", {"url": f"http://127.0.0.1:9999/{name}"})
    webhook = endpoint.json()["data"]["id"]
    delivery = await made.post(f"/api/webhooks/{webhook}/test", {})
    series = await made.post("/api/series", {"name": f"{name} run", "layout_id": layout_id})
    await made.post(f"/api/layouts/{layout_id}/versions", {"config": theatre_config(2, 6, ga_capacity=10)})
    migration = await made.post(f"/api/events/{event}/migrations", {"layout_version": 2})
    await made.post(f"/api/events/{event}/admissions", {"ticket_id": ticket, "gate": f"{name} gate"})
    await made.client.get(f"/api/tickets/{ticket}", headers=made.admin)
    _, payment, refund = await furnish_money(made, event, [seats[5]["id"], seats[6]["id"]])
    return Ids(
        event=event,
        seat=seats[0]["id"],
        hold=hold.json()["data"]["hold_id"],
        venue=venue,
        layout=layout_id,
        user=user.json()["data"]["id"],
        key=key.json()["data"]["id"],
        zone=zones[0]["id"],
        webhook=webhook,
        delivery=delivery.json()["data"]["id"],
        series=series.json()["data"]["id"],
        migration=migration.json()["data"]["id"],
        ticket=ticket,
        payment=payment,
        refund=refund,
        checkout=checkout.json()["data"]["id"],
    )


async def furnish_money(made: Stage, event: str, seats: list[str]) -> tuple[str, str, str]:
    """An open checkout; a payment, and one too many, of another."""
    await made.client.put("/api/payments/providers/trial", headers=made.admin, json={"kind": "test"})
    connection = await asyncpg.connect(made.database.owner)
    try:
        holds = [await made.client.post(f"/api/events/{event}/seats/{s}/reserve", headers=made.admin) for s in seats]
        waiting, paid = [await open_checkout(connection, [hold.json()["data"]["hold_id"]]) for hold in holds]
    finally:
        await connection.close()
    for reference in ("one", "two"):
        done = await made.post(f"/api/checkouts/{paid}/complete", {"payment_reference": reference})
        assert done.status_code == 200, done.text
    (refund,) = (await made.client.get("/api/refunds", headers=made.admin)).json()["data"]
    return str(waiting), str(refund["payment_id"]), str(refund["id"])


async def send(made: Stage, asked: Asked) -> httpx.Response:
    headers = made.api_key if asked.with_key else made.admin
    kwargs: dict[str, Any] = {} if asked.body is None else {"json": asked.body}
    return await made.client.request(asked.method, asked.path, headers=headers, params=asked.params, **kwargs)


def fingerprint(answer: httpx.Response, them: Ids, unknown: Ids) -> tuple[int, dict[str, str], str]:
    """All that a caller can see, but the request's own id and the ids they sent themselves."""
    text = answer.text
    for name in Ids.__dataclass_fields__:
        text = text.replace(getattr(them, name), "{id}").replace(getattr(unknown, name), "{id}")
    headers = {name: value for name, value in answer.headers.items() if name not in ("x-request-id", "date")}
    return answer.status_code, headers, text


TABLES = (
    "organizations", "users", "memberships", "api_keys", "venues", "layouts", "layout_versions", "series",
    "events", "event_whitelist", "event_seats", "event_zones", "holds", "seat_state_events", "audit_entries", "outbox",
    "occupancy_counts", "occupancy_changes", "webhook_endpoints", "webhook_messages", "webhook_deliveries",
    "layout_migrations", "event_layout_changes", "checkouts", "checkout_lines", "payment_providers", "payments",
    "payment_messages", "refunds", "tickets", "ticket_keys", "ticket_days", "zone_attendance", "admissions", "sign_ins",
)  # fmt: skip


def test_every_route_has_a_case_here(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database) as made:
            known = WITH_ID.keys() | WITHOUT_ID.keys() | ELSEWHERE
            routes = await routes_of(made.client)
            assert routes - known == set(), "these routes need a case in this file"
            assert known - routes == set(), "these routes are gone"

    asyncio.run(main())


def test_an_id_of_another_organization_answers_like_one_that_never_existed(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, webhook_private_targets=True) as theirs:
            them = await furnish(theirs, SECRET)
            first = await theirs.app.services.accounts.bootstrap("Mine")
            made = Stage(theirs.client, theirs.app, database, first, "", [], [])
            me = await furnish(made, "Mine")
            unknown = Ids(*[UNKNOWN] * len(Ids.__dataclass_fields__))
            before = await contents(made, TABLES)
            for name, case in {**{f"{m} {p}": c for (m, p), c in WITH_ID.items()}, **OWN_EVENT}.items():
                foreign = await send(made, case(them, me))
                missing = await send(made, case(unknown, me))
                assert foreign.status_code == 404, (name, foreign.text)
                assert fingerprint(foreign, them, unknown) == fingerprint(missing, them, unknown), name
                assert SECRET not in foreign.text, name
                assert await contents(made, TABLES) == before, name

    asyncio.run(main())


def test_a_guest_or_member_of_one_organization_is_nobody_in_the_other(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, webhook_private_targets=True) as theirs:
            guest = await theirs.buyer()
            first = await theirs.app.services.accounts.bootstrap("Mine")
            made = Stage(theirs.client, theirs.app, database, first, "", [], [])
            me = await furnish(made, "Mine")
            before = await contents(made, TABLES)
            for path in (f"/api/events/{me.event}", f"/api/events/{me.event}/seats", f"/api/holds/{me.hold}"):
                assert (await theirs.client.get(path, headers=guest)).status_code == 404
            answer = await theirs.client.post(f"/api/events/{me.event}/seats/{me.seat}/reserve", headers=guest)
            assert (answer.status_code, answer.json()["error"]) == (404, "event_not_found")
            assert await contents(made, TABLES) == before

    asyncio.run(main())


def test_what_takes_no_id_speaks_of_the_callers_own_organization_alone(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, webhook_private_targets=True) as theirs:
            them = await furnish(theirs, SECRET)
            first = await theirs.app.services.accounts.bootstrap("Mine")
            made = Stage(theirs.client, theirs.app, database, first, "", [], [])
            await furnish(made, "Mine")
            told = [str(theirs.first.organization_id), str(theirs.first.admin_user_id), *vars(them).values()]
            where = "WHERE t::text LIKE '%' || $1 || '%'"
            mine = str(theirs.first.organization_id)

            async def theirs_now() -> list[list[str]]:
                return [
                    [row["row"] for row in await made.sql(f"SELECT t::text AS row FROM {t} t {where} ORDER BY 1", mine)]
                    for t in TABLES
                ]

            before = await theirs_now()
            for asked in WITHOUT_ID.values():
                for headers in (made.admin, made.api_key):
                    answer = await made.client.request(asked.method, asked.path, headers=headers, json=asked.body)
                    assert answer.status_code < 500, (asked, answer.text)
                    assert SECRET.lower() not in answer.text.lower(), asked
                    assert [text for text in told if text in answer.text] == [], asked
            for path, name in FILTERS:
                value = {"venue_id": them.venue, "series_id": them.series}.get(name, them.event)
                answer = await made.client.get(path, headers=made.admin, params={name: value})
                assert (answer.status_code, answer.json()["data"]) == (200, []), path
            assert await theirs_now() == before

    asyncio.run(main())


def test_an_organization_named_in_a_request_changes_nothing_about_whose_it_is(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, webhook_private_targets=True) as theirs:
            them = await furnish(theirs, SECRET)
            first = await theirs.app.services.accounts.bootstrap("Mine")
            other = str(theirs.first.organization_id)
            headers = {**bearer(first.admin_token), "X-Organization-ID": other, "X-Tenant-ID": other}
            params = {"organization_id": other, "tenant_id": other}
            client = theirs.client
            answer = await client.get(f"/api/events/{them.event}", headers=headers, params=params)
            assert answer.status_code == 404
            listed = await client.get("/api/events", headers=headers, params=params)
            assert SECRET not in listed.text
            made = await client.post("/api/venues", headers=headers, json={"name": "x", "organization_id": other})
            assert made.status_code == 400
            key = {"X-API-Key": first.api_key, "X-Organization-ID": other}
            assert (await client.get("/api/events", headers=key)).status_code in (403, 404)

    asyncio.run(main())


def test_a_code_of_another_organization_is_refused_and_tells_nothing_of_it(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, webhook_private_targets=True) as theirs:
            them = await furnish(theirs, SECRET)
            code = (await theirs.client.get(f"/api/tickets/{them.ticket}", headers=theirs.admin)).json()["data"]["code"]
            first = await theirs.app.services.accounts.bootstrap("Mine")
            made = Stage(theirs.client, theirs.app, database, first, "", [], [])
            me = await furnish(made, "Mine")
            for body, reason in (
                ({"code": code}, "other_organization"),
                ({"ticket_id": them.ticket}, "unknown_ticket"),
            ):
                answer = await made.post(f"/api/events/{me.event}/admissions", body)
                data = answer.json()["data"]
                assert (data["outcome"], data["reason"], data["ticket"]) == ("refuse", reason, None)
                assert SECRET not in answer.text

    asyncio.run(main())
