"""Every field of the seating policy over HTTP: what it does, how an event overrides it, and what locking it means.

What the accessibility fields and the orphan rule do is tested with them; here they are locked and overridden like the rest.
"""

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest

from holdfast.accounts.principal import Call
from holdfast.holds.lifetime import NATIVE_RESERVE_TTL_S
from holdfast.holds.plan import HoldsAsked
from holdfast.seating.policy import POLICY_FIELDS, FieldKind, PolicyValue
from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.contents import contents, member
from tests.http.test_reserve import held, refused, reserve_path, run
from tests.stage import Stage

PICK = {"orphan_avoidance_strict": False}
PIT = [{"zone_id": "pit", "name": "Pit", "zone_type": "ga_standing", "capacity": 50}]
LOUNGE = [{"zone_id": "vip", "name": "Lounge", "zone_type": "vip_standing", "capacity": 5}]


def another(name: str) -> PolicyValue:
    """A value of the field that is not its default."""
    field = POLICY_FIELDS[name]
    if field.kind is FieldKind.BOOLEAN:
        return not field.default
    return 7 if field.default is None else field.default + 3


async def put_policy(made: Stage, **fields: Any) -> dict[str, Any]:
    answer = await made.client.put("/api/policy", headers=made.admin, json=fields)
    assert answer.status_code == 200, answer.text
    effective: dict[str, Any] = answer.json()["data"]["effective"]
    return effective


async def patch(made: Stage, event_id: str, **fields: Any) -> httpx.Response:
    return await made.client.patch(f"/api/events/{event_id}", headers=made.admin, json=fields)


async def override(made: Stage, **overrides: Any) -> None:
    answer = await patch(made, made.event_id, overrides={**PICK, **overrides})
    assert answer.status_code == 200, answer.text


async def in_effect(made: Stage, event_id: str) -> dict[str, Any]:
    answer = await made.client.get(f"/api/events/{event_id}", headers=made.admin)
    assert answer.status_code == 200, answer.text
    policy: dict[str, Any] = answer.json()["data"]["effective_policy"]
    return policy


async def layout_of(made: Stage, event_id: str) -> str:
    answer = await made.client.get(f"/api/events/{event_id}", headers=made.admin)
    layout_id: str = answer.json()["data"]["layout_id"]
    return layout_id


def codes(answer: httpx.Response, status: int = 422) -> list[str]:
    assert answer.status_code == status, answer.text
    return [problem["code"] for problem in answer.json()["errors"]]


# Overrides and locks, of every field ---------------------------------------------------------------------------------
def test_there_are_twenty_four_fields() -> None:
    assert len(POLICY_FIELDS) == 24
    assert all(another(name) != field.default for name, field in POLICY_FIELDS.items())


async def _documents(made: Stage) -> dict[str, dict[str, Any]]:
    """For each field an event that may have the other value: what allows no places of one kind has the other kind."""
    seated = {"name": "Seated", "layout_id": await layout_of(made, made.event_id)}
    standing = {"name": "Standing", "zones": PIT}
    return {name: standing if name == "allow_reserved_seating" else seated for name in POLICY_FIELDS}


def test_an_override_of_any_field_takes_effect_until_the_field_is_locked(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        for name, document in (await _documents(made)).items():
            await put_policy(made)
            value, default = another(name), POLICY_FIELDS[name].default
            created = await made.post("/api/events", {**document, "overrides": {name: value}})
            assert created.status_code == 201, (name, created.text)
            event_id = created.json()["data"]["id"]
            assert (await in_effect(made, event_id))[name] == value, name
            patched = await made.post("/api/events", document)
            later_id = patched.json()["data"]["id"]
            assert (await in_effect(made, later_id))[name] == default, name
            assert (await patch(made, later_id, overrides={name: value})).status_code == 200, name
            assert (await in_effect(made, later_id))[name] == value, name
            # Locked afterwards, it is the organization's again: for events that had set it as well.
            await put_policy(made, locked_fields=[name])
            for one in (event_id, later_id):
                assert (await in_effect(made, one))[name] == default, name
                shown = (await made.client.get(f"/api/events/{one}", headers=made.admin)).json()["data"]
                assert shown["overrides"] == {name: value}, name  # it is remembered, and counts again once unlocked
                assert (await patch(made, one, name="Renamed")).status_code == 200, name
            await put_policy(made)
            assert (await in_effect(made, event_id))[name] == value, name

    run(database, check, config=theatre_config(1, 4))


def test_a_locked_field_of_any_name_cannot_be_overridden(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        documents = await _documents(made)
        for name, document in documents.items():
            await put_policy(made, locked_fields=[name])
            event_id = (await made.post("/api/events", document)).json()["data"]["id"]
            before = await contents(made, ("events", "outbox"))
            for value in (another(name), POLICY_FIELDS[name].default):  # even to say the same again
                for answer in (
                    await made.post("/api/events", {**document, "overrides": {name: value}}),
                    await patch(made, event_id, overrides={name: value}),
                    await patch(made, made.event_id, overrides={name: value}),
                ):
                    assert refused(answer, 409, "override_not_permitted")["fields"] == [name], name
            assert await contents(made, ("events", "outbox")) == before, name
        every = {name: another(name) for name in POLICY_FIELDS}
        await put_policy(made, locked_fields=list(POLICY_FIELDS))
        answer = await patch(made, made.event_id, overrides=every)
        assert refused(answer, 409, "override_not_permitted")["fields"] == sorted(POLICY_FIELDS)
        await put_policy(made, locked_fields=["max_hold_minutes", "max_group_split"])
        answer = await patch(made, made.event_id, overrides=every)
        assert refused(answer, 409, "override_not_permitted")["fields"] == ["max_group_split", "max_hold_minutes"]

    run(database, check, config=theatre_config(1, 4))


def test_bad_values_are_named_in_a_policy_and_in_overrides(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        before = await contents(made, ("events", "organizations"))
        bad = {"max_group_split": 0, "allow_vip_zones": 1, "max_seats_per_booking": "10", "colour": "red"}
        answer = await made.client.put("/api/policy", headers=made.admin, json=bad)
        problem = refused(answer, 400, "invalid_policy")
        assert {e["pointer"] for e in problem["errors"]} == {f"/{name}" for name in bad}
        answer = await patch(made, made.event_id, overrides=bad)
        assert {e["pointer"] for e in answer.json()["errors"]} == {f"/overrides/{name}" for name in bad}
        assert answer.status_code == 422
        answer = await patch(made, made.event_id, overrides={"locked_fields": []})
        assert codes(answer) == ["unknown_field"]
        answer = await made.client.put("/api/policy", headers=made.admin, json={"locked_fields": ["colour"]})
        assert codes(answer, 400) == ["unknown_field"]
        for headers in (await made.buyer(), await member(made)):
            answer = await made.client.put("/api/policy", headers=headers, json={})
            assert answer.status_code == 403
        assert await contents(made, ("events", "organizations")) == before

    run(database, check, config=theatre_config(1, 4))


# Which zones there may be --------------------------------------------------------------------------------------------
RESERVED, GA, BOTH = theatre_config(1, 2), {"zones": PIT}, theatre_config(1, 2, ga_capacity=5)
VIP = {"zones": LOUNGE}
ZONE_RULES = [
    ({"allow_reserved_seating": False}, RESERVED, GA, "reserved_not_allowed"),
    ({"allow_ga_seating": False}, GA, RESERVED, "ga_not_allowed"),
    ({"allow_hybrid_ga_reserved": False}, BOTH, RESERVED, "hybrid_not_allowed"),
    ({"allow_vip_zones": False}, VIP, GA, "vip_not_allowed"),
]


def test_zones_of_a_kind_that_is_not_allowed_cannot_be_made_configured_or_published(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        venue = (await made.post("/api/venues", {"name": "Hall"})).json()["data"]["id"]

        async def draw(config: dict[str, Any]) -> httpx.Response:
            return await made.post(f"/api/venues/{venue}/layouts", {"name": "Plan", "config": config})

        async def publish(event_id: str) -> httpx.Response:
            return await made.post(f"/api/events/{event_id}/status", {"status": "published"})

        for rule, forbidden, allowed, code in ZONE_RULES:
            (field,) = rule
            open_to_all = {"allow_vip_zones": True}
            await put_policy(made, **open_to_all)
            layout_id = (await draw(forbidden)).json()["data"]["id"]
            body = {"name": "Evening", "layout_id": layout_id}
            on_sale = await made.make_event(forbidden)
            draft = (await made.post("/api/events", body)).json()["data"]["id"]
            # Tightened after the layout was drawn: no new layout, no new event, no draft goes on sale …
            await put_policy(made, **{**open_to_all, **rule})
            assert codes(await draw(forbidden)) == [code]
            assert (await draw(allowed)).status_code == 201
            answer = await made.post(f"/api/layouts/{layout_id}/versions", {"config": forbidden})
            assert codes(answer) == [code]
            assert codes(await made.post("/api/events", body)) == [code]
            assert codes(await patch(made, draft, name="Draft")) == [code]
            before = await contents(made, ("events", "event_seats", "event_zones"))
            assert codes(await publish(draft)) == [code]
            assert await contents(made, ("events", "event_seats", "event_zones")) == before
            # … but what is on sale stays on sale, and can be looked after.
            assert (await patch(made, on_sale, name="Still on", overrides=PICK)).status_code == 200
            seats = (await made.client.get(f"/api/events/{on_sale}/seats", headers=made.admin)).json()["data"]
            if seats:
                held(await made.client.post(reserve_path(on_sale, seats[0]["id"]), headers=await member(made)))
            assert (await made.post(f"/api/events/{on_sale}/status", {"status": "live"})).status_code == 200
            # An event may allow itself what is not locked, and then go on sale.
            assert (await patch(made, draft, overrides={field: True})).status_code == 200
            # A lock that comes later takes it away again.
            await put_policy(made, **rule, locked_fields=[field])
            assert code in codes(await publish(draft))
            await put_policy(made, **rule)
            assert (await publish(draft)).status_code == 200

    run(database, check, config=theatre_config(1, 4))


def test_an_event_may_forbid_itself_kinds_of_zones(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        layout_id = await layout_of(made, made.event_id)  # with seats and places
        for stated in (False, True):  # with a policy of the organization, and without
            if stated:
                await put_policy(made)
            for field, code in (
                ("allow_reserved_seating", "reserved_not_allowed"),
                ("allow_ga_seating", "ga_not_allowed"),
                ("allow_hybrid_ga_reserved", "hybrid_not_allowed"),
            ):
                body = {"name": "Evening", "layout_id": layout_id, "overrides": {field: False}}
                assert codes(await made.post("/api/events", body)) == [code]
                assert codes(await patch(made, made.event_id, overrides={field: False})) == [code]
            vip = {"name": "Evening", "zones": LOUNGE, "overrides": {"allow_vip_zones": False}}
            assert codes(await made.post("/api/events", vip)) == ["vip_not_allowed"]

    run(database, check, config=BOTH)


# What binds buyers ----------------------------------------------------------------------------------------------------
def test_a_booking_has_at_most_so_many_places(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        async def ask(*seats: int, ga: int = 0, headers: dict[str, str] | None = None) -> httpx.Response:
            places = [{"zone_id": "pit", "quantity": ga}] if ga else []
            return await made.hold(headers or await made.buyer(), *seats, ga=places)

        assert refused(await ask(ga=11), 422, "max_seats_exceeded")["max_seats"] == 10
        await put_policy(made, max_seats_per_booking=3, orphan_avoidance_strict=False)
        assert refused(await ask(0, 1, ga=2), 422, "max_seats_exceeded")["max_seats"] == 3
        held(await ask(0, 1, ga=1))
        await override(made, max_seats_per_booking=4)
        held(await ask(2, 3, ga=2))
        refused(await ask(4, 5, 6, 7, 8), 422, "max_seats_exceeded")
        held(await ask(4, 5, 6, 7, 8, headers=made.admin))  # organisers set aside what they like
        await put_policy(made, max_seats_per_booking=3, locked_fields=["max_seats_per_booking"])
        refused(await ask(10, 11, 12, 13), 422, "max_seats_exceeded")

    run(database, check, event={"overrides": PICK})


def test_a_hold_lasts_as_long_as_the_policy_says_and_is_extended_no_further(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        async def life(n: int) -> int:
            seconds: int = held(await made.reserve(n, await made.buyer()))["expires_in_seconds"]
            return seconds

        assert await life(0) == 300  # no policy: the endpoint's own
        await put_policy(made)
        assert await life(1) == 600  # a policy that does not say
        await put_policy(made, default_hold_ttl_minutes=3)
        assert await life(2) == 180
        await override(made, default_hold_ttl_minutes=7, max_hold_minutes=10)
        assert await life(3) == 420
        buyer = await member(made)
        hold_id = held(await made.reserve(4, buyer))["hold_id"]
        await made.advance_clock(300)
        extend = f"/api/holds/{hold_id}/extend"
        answer = await made.client.post(extend, headers=buyer)
        assert (
            298 <= held(answer, 200)["expires_in_seconds"] <= 300
        )  # ten minutes from its beginning, not seven from now
        refused(await made.client.post(extend, headers=buyer), 409, "max_hold_reached")
        await put_policy(
            made,
            default_hold_ttl_minutes=4,
            max_hold_minutes=12,
            locked_fields=["default_hold_ttl_minutes", "max_hold_minutes"],
        )
        assert await life(5) == 240
        await made.client.post(extend, headers=buyer)
        await made.advance_clock(200)
        answer = await made.client.post(extend, headers=buyer)
        assert 215 <= held(answer, 200)["expires_in_seconds"] <= 221  # twelve minutes from its beginning

    run(database, check, event={"overrides": PICK})


def test_a_user_and_an_address_place_so_many_holds_in_five_minutes(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await override(made, max_holds_per_user=2)
        buyer = await made.buyer()
        held(await made.hold(buyer, 0, 1))
        refused(await made.reserve(2, buyer), 429, "rate_limited")
        await put_policy(made, max_holds_per_user=3, locked_fields=["max_holds_per_user"])
        held(await made.reserve(2, buyer))
        refused(await made.reserve(3, buyer), 429, "rate_limited")
        await put_policy(made, max_holds_per_user=None)
        await override(made, max_holds_per_user=None, max_holds_per_ip=2)
        held(await made.reserve(3, buyer))
        held(await made.reserve(4, await made.buyer()))
        refused(await made.reserve(5, await made.buyer()), 429, "rate_limited")
        await put_policy(made, max_holds_per_ip=3, locked_fields=["max_holds_per_ip"])
        held(await made.reserve(5, await made.buyer()))
        refused(await made.reserve(6, await made.buyer()), 429, "rate_limited")
        held(await made.reserve(6, made.admin))

    run(database, check, event={"overrides": PICK})


# What is asked of a choice -------------------------------------------------------------------------------------------
def test_where_the_system_chooses_buyers_do_not_pick_numbered_seats(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        held(await made.reserve(0, buyer))  # not asked for yet
        other = await made.buyer()
        for _ in range(3):  # until the server knows the request by heart
            refused(await made.reserve(0, other), 409, "seat_held_by_another_user")
        await override(made, prefer_clustering_over_selection=True)
        await asyncio.sleep(0.06)  # what is known by heart is looked at again after a twentieth of a second
        before = await contents(made)
        for answer in (
            await made.reserve(1, other),
            await made.reserve(0, other),  # whoever has it
            await made.hold(other, 1),
            await made.hold(other, 1, ga=[{"zone_id": "pit", "quantity": 1}]),
            await made.hold({**other, "Idempotency-Key": "k"}, 1, 2),
        ):
            problem = refused(answer, 409, "selection_not_offered")
            assert problem["use"] == f"/api/events/{made.event_id}/best-available"
            assert "best available" in problem["detail"]
        assert await contents(made) == before
        held(await made.hold(other, ga=[{"zone_id": "pit", "quantity": 2}]))  # places are not picked
        held(await made.hold(made.admin, 1, 2))
        held(await made.reserve(3, made.api_key))
        await put_policy(made, locked_fields=["prefer_clustering_over_selection"])
        held(await made.reserve(4, other))
        await put_policy(made, prefer_clustering_over_selection=True)
        refused(await made.reserve(5, other), 409, "selection_not_offered")

    run(database, check, event={"overrides": PICK})


def test_what_the_system_chose_is_not_refused_as_a_buyers_choice(database: TestDatabase) -> None:
    async def check(made: Stage) -> None:
        await override(made, prefer_clustering_over_selection=True, group_adjacency_strict=True, max_group_split=1)
        token = (await made.buyer())["Authorization"].encode()
        principal = await made.app.services.authenticator.authenticate([(b"authorization", token)])
        asked = HoldsAsked(
            seats=tuple(UUID(made.seats[n]["id"]) for n in (0, 5)),
            endpoint_ttl_s=NATIVE_RESERVE_TTL_S,
            chosen_by_system=True,
        )
        placement = await made.app.services.holds.hold_seats(Call(principal=principal), UUID(made.event_id), asked)
        assert [hold.seat_label for hold in placement.holds] == ["A-1", "A-6"]

    run(database, check, event={"overrides": PICK})


@pytest.mark.parametrize(
    ("split", "together", "apart", "parts"),
    [
        (1, (0, 1, 2), (0, 1, 3), [["A-1", "A-2"], ["A-4"]]),
        (2, (0, 1, 12, 13), (9, 10, 4, 5), [["A-5"], ["A-6"], ["A-10"], ["B-1"]]),
    ],
)
def test_picked_seats_are_in_so_many_parts_at_most(
    database: TestDatabase, split: int, together: tuple[int, ...], apart: tuple[int, ...], parts: list[list[str]]
) -> None:
    async def check(made: Stage) -> None:
        buyer = await made.buyer()
        await put_policy(made, max_group_split=split, orphan_avoidance_strict=False)
        await override(made, group_adjacency_strict=True)
        before = await contents(made)
        problem = refused(await made.hold(buyer, *apart), 409, "seats_not_together")
        names = {seat["id"]: seat["seat_id"] for seat in made.seats}
        assert [[names[seat] for seat in cluster] for cluster in problem["clusters"]] == parts
        assert problem["max_group_split"] == split
        assert await contents(made) == before
        held(await made.hold(buyer, *together))
        held(await made.reserve(19, buyer))  # one seat is together with itself; what one has already does not count
        held(await made.hold(made.admin, 20, 24, 28, 32))
        await override(made, group_adjacency_strict=True, max_group_split=4)
        held(await made.hold(await member(made), *[n for n in apart if n not in together]))
        await put_policy(made, orphan_avoidance_strict=False, locked_fields=["group_adjacency_strict"])
        held(await made.hold(await member(made), 21, 25, 29, 33))

    run(database, check, config=theatre_config(4, 10, aisle_after=5), event={"overrides": PICK})
