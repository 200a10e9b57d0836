"""How people stand with an organization and an event, read anew each time."""

import asyncio

from holdfast.accounts.principal import Role
from holdfast.holds.attendees import SOMEBODY, Attendee, Person
from holdfast.kernel.ids import new_id
from holdfast.store.postgres.attendees import find_people
from tests.conftest import TestDatabase
from tests.factories import make_organization, make_published_event, open_parts, staff_call


def test_people_are_found_by_user_membership_or_address_as_they_stand_now(database: TestDatabase) -> None:
    async def main() -> None:
        async with open_parts(database.app) as parts:
            made = await make_published_event(parts)
            call = staff_call(made.organization)
            user = await parts.accounts.create_user(call, tiers=("gold",), email="Ada@Example.org", role=Role.SCANNER)
            elsewhere = await make_organization(parts, "Elsewhere")
            guest, stranger = new_id(), new_id()

            async def look(*wanted: Attendee, organization: object = None) -> list[Person]:
                owner = made.organization if organization is None else elsewhere
                async with parts.database.transaction(owner.organization_id) as tx:
                    return await find_people(tx, owner.organization_id, made.id, wanted)

            (ada,) = await look(Attendee(user_id=user.id))
            assert (ada.user_id, ada.known, ada.active, ada.role) == (user.id, True, True, "scanner")
            assert ada.tiers == {"gold"}
            assert not ada.whitelisted
            assert ada.membership_id is not None
            same = await look(Attendee(email="ada@example.ORG"), Attendee(membership_id=ada.membership_id))
            assert same == [ada, ada]
            await parts.seating.add_to_whitelist(call, made.id, [user.id, guest])
            listed, by_id, nobody, somebody, wrong = await look(
                Attendee(email="ada@example.org"),
                Attendee(user_id=guest),
                Attendee(user_id=stranger),
                SOMEBODY,
                Attendee(email="nobody@example.org"),
            )
            assert listed.whitelisted
            assert (by_id.user_id, by_id.whitelisted, by_id.known) == (guest, True, False)
            assert nobody == Person(user_id=stranger)
            assert somebody == wrong == Person()
            await parts.accounts.deactivate_user(call, user.id)
            await parts.seating.remove_from_whitelist(call, made.id, [user.id])
            (closed,) = await look(Attendee(user_id=user.id))
            assert not closed.active
            assert not closed.whitelisted
            # Another organization knows nobody of these.
            assert await look(
                Attendee(email="ada@example.org"), Attendee(membership_id=ada.membership_id), organization=elsewhere
            ) == [Person(), Person()]
            assert await look(Attendee(user_id=guest), organization=elsewhere) == [Person(user_id=guest)]

    asyncio.run(main())
