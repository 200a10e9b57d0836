"""Whom a buyer may seat where: each person for the zone of their own place."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.accounts.principal import Call, Principal, Role
from holdfast.holds.attendees import (
    SOMEBODY,
    Attendee,
    People,
    Person,
    require_access,
    require_known,
    require_room_for,
)
from holdfast.holds.lifecycle import Actor
from holdfast.kernel.errors import InvalidRequest, ZoneAccessDenied
from holdfast.seating.layout import AccessMode, Zone, ZoneType

BUYER = UUID(int=1)


def zone(zone_no: int, **more: Any) -> Zone:
    name = f"Z{zone_no}"
    kind = ZoneType.RESERVED_SEATING
    return Zone(zone_no=zone_no, id=uuid4(), zone_id=name, name=name, zone_type=kind, capacity=9, **more)


PUBLIC = zone(0)
GOLD = zone(1, access_mode=AccessMode.MEMBERSHIP_TIER, required_tier="gold")
CREW = zone(2, access_mode=AccessMode.ROLE_BASED, allowed_roles=("scanner",))
LISTED = zone(3, access_mode=AccessMode.WHITELIST)

GOLDEN = Person(user_id=uuid4(), membership_id=uuid4(), known=True, tiers=frozenset({"gold"}), active=True)
PLAIN = Person(user_id=uuid4(), membership_id=uuid4(), known=True, active=True)
LAPSED = Person(user_id=uuid4(), membership_id=uuid4(), known=True, tiers=frozenset({"gold"}), role="scanner")
ON_LIST = Person(user_id=uuid4(), whitelisted=True)
SCANNER = Person(user_id=uuid4(), membership_id=uuid4(), known=True, role="scanner", active=True)
ORGANISER = Person(user_id=uuid4(), membership_id=uuid4(), known=True, role="organizer", active=True)


def call(role: Role = Role.CUSTOMER, actor: Actor = Actor.CUSTOMER, guest: UUID | None = None) -> Call:
    return Call(
        principal=Principal(
            organization_id=uuid4(),
            tenant_id=None,
            actor=actor,
            role=role,
            subject="user:x",
            user_id=BUYER,
            tiers=frozenset({"gold"}),  # as remembered: what counts is what is true now
            membership_active=True,
            guest_event_id=guest,
        )
    )


def friends(*people: Person) -> tuple[list[Attendee], tuple[Person, ...]]:
    return [Attendee(user_id=person.user_id or uuid4()) for person in people], people


@pytest.mark.parametrize(
    ("where", "who", "may"),
    [
        (PUBLIC, Person(), True),
        (GOLD, GOLDEN, True),
        (GOLD, PLAIN, False),
        (GOLD, LAPSED, False),
        (GOLD, ON_LIST, True),  # the event's list opens every zone to a friend
        (GOLD, Person(), False),
        (GOLD, ORGANISER, True),
        (CREW, SCANNER, True),
        (CREW, LAPSED, False),
        (CREW, PLAIN, False),
        (LISTED, ON_LIST, True),
        (LISTED, GOLDEN, False),
    ],
)
def test_a_friend_sits_where_they_may_sit_themselves(where: Zone, who: Person, may: bool) -> None:
    named, found = friends(who)
    people = People(Person(), found)
    if may:
        require_access(call(), [where], [], named, people)
        return
    with pytest.raises(ZoneAccessDenied) as caught:
        require_access(call(), [where], [], named, people)
    (entry,) = caught.value.facts["attendees"]
    assert entry == {
        "index": 0,
        "reason": caught.value.detail,
        "access_mode": where.access_mode.value,
        "zone": where.zone_id,
    }


def test_why_a_friend_does_not_qualify_is_not_told() -> None:
    said = set()
    for who in (PLAIN, LAPSED, Person(), Person(user_id=uuid4())):
        named, found = friends(who)
        with pytest.raises(ZoneAccessDenied) as caught:
            require_access(call(), [GOLD], [], named, People(Person(), found))
        said.add((caught.value.detail, str(caught.value.facts)))
    assert len(said) == 1


def test_all_who_do_not_qualify_are_listed_and_the_buyer_answers_for_their_own_places_only() -> None:
    named, found = friends(PLAIN, GOLDEN, PLAIN)
    require_access(call(), [GOLD], [], *_one(GOLDEN))
    with pytest.raises(ZoneAccessDenied) as caught:
        require_access(call(), [GOLD, GOLD, LISTED, PUBLIC], [(GOLD, 3)], named, People(Person(), found))
    # The third friend sits on the list's seat; the buyer's own are a public one and three of gold, told once.
    listed = [(entry["index"], entry["zone"]) for entry in caught.value.facts["attendees"]]
    assert listed == [(0, "Z1"), (2, "Z3"), (4, "Z1")]
    require_access(call(), [GOLD, GOLD], [], *_one(GOLDEN, buyer=GOLDEN))


def _one(friend: Person, buyer: Person | None = None) -> tuple[list[Attendee], People]:
    named, found = friends(friend)
    return named, People(buyer or Person(), found)


def test_somebody_nameless_sits_in_public_zones_only() -> None:
    for nameless in (SOMEBODY, Attendee(name="Aunt Ada")):
        people = People(GOLDEN, (Person(),))
        require_access(call(), [PUBLIC], [], [nameless], people)
        with pytest.raises(ZoneAccessDenied):
            require_access(call(), [GOLD], [], [nameless], people)


def test_a_buyer_may_name_themselves() -> None:
    require_access(call(), [GOLD], [], [Attendee(user_id=BUYER)], People(GOLDEN, (GOLDEN,)))
    with pytest.raises(ZoneAccessDenied) as caught:
        require_access(call(), [GOLD], [], [Attendee(user_id=BUYER)], People(PLAIN, (PLAIN,)))
    assert "you do not have" in caught.value.detail  # of themselves they may know


@pytest.mark.parametrize(
    ("role", "buyer", "where", "may"),
    [
        (Role.CUSTOMER, GOLDEN, GOLD, True),
        (Role.CUSTOMER, PLAIN, GOLD, False),  # the tier was taken away since the credential was looked at
        (Role.CUSTOMER, LAPSED, GOLD, False),
        (Role.SCANNER, SCANNER, CREW, True),
        (Role.SCANNER, PLAIN, CREW, False),
        (Role.SCANNER, LAPSED, CREW, False),
        (Role.CUSTOMER, SCANNER, CREW, False),  # a token for less than its bearer could claim is for less
        (Role.CUSTOMER, ON_LIST, LISTED, True),
        (Role.CUSTOMER, ON_LIST, GOLD, False),  # the list opens other zones to friends, not to the buyer
    ],
)
def test_a_buyer_is_judged_by_what_is_true_now(role: Role, buyer: Person, where: Zone, may: bool) -> None:
    if may:
        require_access(call(role), [where], [], [], People(buyer))
        return
    with pytest.raises(ZoneAccessDenied) as caught:
        require_access(call(role), [where], [], [], People(buyer))
    assert "attendees" not in caught.value.facts


def test_a_guest_has_no_tier_whoever_has_the_same_id() -> None:
    with pytest.raises(ZoneAccessDenied):
        require_access(call(guest=uuid4()), [GOLD], [], [], People(GOLDEN))


def test_an_organiser_seats_whom_they_like_but_must_name_somebody() -> None:
    organiser = call(Role.ADMIN, Actor.ADMIN)
    named, found = friends(Person())
    require_access(organiser, [GOLD], [], named, People(Person(), found))
    asked = [Attendee(email="a@b"), Attendee(user_id=uuid4()), Attendee(membership_id=uuid4()), Attendee(name="N")]
    with pytest.raises(InvalidRequest) as caught:
        require_known(asked, People(Person(), (Person(),) * 4))
    assert [problem["pointer"] for problem in caught.value.facts["errors"]] == ["/attendees/0", "/attendees/2"]
    require_known(asked, People(Person(), (PLAIN,) * 4))


def test_there_are_no_more_attendees_than_places() -> None:
    require_room_for([SOMEBODY] * 2, 2)
    with pytest.raises(InvalidRequest) as caught:
        require_room_for([SOMEBODY] * 3, 2)
    assert caught.value.facts["errors"][0]["pointer"] == "/attendees/2"
