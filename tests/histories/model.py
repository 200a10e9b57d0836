"""The rules of holds and sales in the plainest form, to compare the engine with: one hall, one clock, no concurrency.

Written from what the product promises, not from how it does it. Time is in whole minutes: the tests move the clock by
minutes and take less than one to run, so a hold made at minute 3 for 5 minutes is over at minute 8 and never before.
"""

from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

NATIVE_MINUTES = 5
BOOKING_MINUTES = 15
LONGEST_MINUTES = 30
WINDOW_MINUTES = 5

Owner = str  # "buyer-1" or "session-1"


@dataclass(eq=False)
class Hold:
    owner: Owner
    seat: int | None
    quantity: int
    created: int
    until: int
    status: str = "active"
    id: UUID | None = None  # as the engine named it; booking v2 does not say


@dataclass
class Seat:
    state: str = "available"
    hold: Hold | None = None
    ticket: bool = False  # kept while a sold seat is blocked


@dataclass(frozen=True)
class Placed:
    """Seats and places are the caller's; `holds` are all of them, `created` those that are new."""

    holds: list[Hold]
    created: list[Hold]


@dataclass
class Hall:
    seats: list[Seat]
    capacity: int
    limit: int
    now: int = 0
    sold_places: int = 0
    holds: list[Hold] = field(default_factory=list)

    # What there is ---------------------------------------------------------------------------------------------------
    def alive(self, hold: Hold | None) -> bool:
        return hold is not None and hold.status == "active" and hold.until > self.now

    def status(self, hold: Hold) -> str:
        return "expired" if hold.status == "active" and hold.until <= self.now else hold.status

    def state(self, n: int) -> str:
        """As everybody sees it: a seat whose hold is over is free, whether or not anybody has cleaned up."""
        seat = self.seats[n]
        return "available" if seat.state == "held" and not self.alive(seat.hold) else seat.state

    def in_state(self, state: str) -> list[int]:
        return [n for n in range(len(self.seats)) if self.state(n) == state]

    def held_places(self, owner: Owner | None = None) -> int:
        return sum(h.quantity for h in self._live_places(owner))

    def _live_places(self, owner: Owner | None = None) -> list[Hold]:
        return [h for h in self.holds if h.seat is None and self.alive(h) and owner in (None, h.owner)]

    def free_places(self) -> int:
        return self.capacity - self.sold_places - self.held_places()

    def owns(self, owner: Owner, n: int) -> bool:
        seat = self.seats[n]
        return seat.state == "held" and seat.hold is not None and self.alive(seat.hold) and seat.hold.owner == owner

    def summary(self) -> tuple[list[str], int, int]:
        return [self.state(n) for n in range(len(self.seats))], self.held_places(), self.sold_places

    def accounts(self) -> Counter[tuple[Owner, int | None, str]]:
        """How much each owner had where, and how it ended."""
        found: Counter[tuple[Owner, int | None, str]] = Counter()
        for hold in self.holds:
            found[hold.owner, hold.seat, self.status(hold)] += hold.quantity
        return found

    # Holding ---------------------------------------------------------------------------------------------------------
    def hold(self, owner: Owner, seats: list[int], places: int) -> Placed | str:
        """A buyer asks: all or nothing; what is theirs already stays as it is."""
        own = [n for n in seats if self.owns(owner, n)]
        new = [n for n in sorted(seats) if n not in own]
        placed_lately = sum(h.owner == owner and h.created > self.now - WINDOW_MINUTES for h in self.holds)
        wanted = len(new) + (places > 0)
        if wanted and placed_lately + wanted > self.limit:
            return "rate_limited"
        for n in new:
            if self.state(n) == "held":
                return "seat_held_by_another_user"
            if self.state(n) != "available":
                return "seat_not_available"
        if places > self.free_places():
            return "block_at_capacity"
        created = self._place(owner, new, places, NATIVE_MINUTES)
        kept = [hold for n in own if (hold := self.seats[n].hold) is not None]
        return Placed(kept + created, created)

    def lock(self, session: Owner, seats: list[int], places: int) -> bool:
        if any(self.state(n) != "available" for n in seats) or places > self.free_places():
            return False
        self._place(session, sorted(seats), places, BOOKING_MINUTES)
        return True

    def _place(self, owner: Owner, seats: list[int], places: int, minutes: int) -> list[Hold]:
        until = self.now + minutes
        made = [Hold(owner, n, 1, self.now, until) for n in seats]
        for hold in made:
            assert hold.seat is not None
            self._clear(hold.seat)
            self.seats[hold.seat] = Seat("held", hold)
        if places:
            made.append(Hold(owner, None, places, self.now, until))
        self.holds += made
        return made

    def _clear(self, n: int) -> None:
        """Whoever takes a seat ends what was in it."""
        hold = self.seats[n].hold
        if hold is not None and hold.status == "active":
            assert not self.alive(hold)
            hold.status = "expired"

    # Ending ----------------------------------------------------------------------------------------------------------
    def release(self, owner: Owner | None, hold: Hold) -> str:
        """By a buyer, or (no owner) by the organiser. What has ended already is answered as it is."""
        if owner not in (None, hold.owner):
            return "release_forbidden"
        if self.alive(hold):
            hold.status = "cancelled"
            if hold.seat is not None:
                self.seats[hold.seat] = Seat()
        return self.status(hold)

    def extend(self, owner: Owner, hold: Hold) -> str:
        if owner != hold.owner:
            return "forbidden"
        if self.status(hold) == "expired":
            return "hold_expired"
        if hold.status != "active":
            return "hold_not_active"
        latest = hold.created + LONGEST_MINUTES
        if hold.until == latest:
            return "max_hold_reached"
        hold.until = min(self.now + NATIVE_MINUTES, latest)
        return "active"

    def unlock(self, session: Owner, seats: list[int], places: int) -> bool:
        if not self._has(session, seats, places):
            return False
        for n in seats:
            self._end(n, "cancelled", Seat())
        self._draw(session, places, "cancelled")
        return True

    # Selling ---------------------------------------------------------------------------------------------------------
    def sale(self, session: Owner, seats: list[int], places: int) -> bool:
        if not self._has(session, seats, places):
            return False
        for n in seats:
            self._end(n, "converted", Seat("sold", ticket=True))
        self._draw(session, places, "converted")
        self.sold_places += places
        return True

    def direct_sale(self, seats: list[int], places: int) -> bool:
        if any(self.state(n) != "available" for n in seats) or places > self.free_places():
            return False
        for n in seats:
            self._clear(n)
            self.seats[n] = Seat("sold", ticket=True)
        self.sold_places += places
        return True

    def revert(self, seats: list[int], places: int) -> bool:
        if any(self.state(n) != "sold" for n in seats) or places > self.sold_places:
            return False
        for n in seats:
            self.seats[n] = Seat()
        self.sold_places -= places
        return True

    def _has(self, session: Owner, seats: list[int], places: int) -> bool:
        return all(self.owns(session, n) for n in seats) and places <= self.held_places(session)

    def _end(self, n: int, status: str, after: Seat) -> None:
        hold = self.seats[n].hold
        assert hold is not None
        hold.status = status
        self.seats[n] = after

    def _draw(self, session: Owner, places: int, status: str) -> None:
        """Out of the session's holds, the oldest first; one that is larger than needed is split."""
        for hold in self._live_places(session):
            part = min(places, hold.quantity)
            if part == 0:
                return
            if part == hold.quantity:
                hold.status = status
            else:
                hold.quantity -= part
                self.holds.append(Hold(session, None, part, hold.created, hold.until, status))
            places -= part

    # Blocking --------------------------------------------------------------------------------------------------------
    def block(self, seats: list[int], force: bool) -> str:
        if not force and any(self.state(n) == "sold" for n in seats):
            return "seat_sold"
        for n in seats:
            seat = self.seats[n]
            if seat.hold is not None and seat.hold.status == "active":
                seat.hold.status = "cancelled" if self.alive(seat.hold) else "expired"
            self.seats[n] = Seat("blocked", ticket=seat.ticket)
        return "blocked"

    def unblock(self, seats: list[int]) -> str:
        if any(self.seats[n].state != "blocked" for n in seats):
            return "seat_not_blocked"
        for n in seats:
            self.seats[n] = Seat("sold", ticket=True) if self.seats[n].ticket else Seat()
        return "unblocked"
