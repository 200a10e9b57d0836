"""The rules of checkout, money and tickets in the plainest form: the hall of `model`, with sessions in it.

Time is in whole minutes, as there. Money is what arrived; each sum of it bought tickets or is to be given back.
"""

from dataclasses import dataclass, field
from uuid import UUID

from tests.histories.model import Hall, Hold, Owner, Seat

SESSION_MINUTES = 30
HEARTBEAT_MINUTES = 10
SEAT_PRICE = 1_000
PLACE_PRICE = 300


@dataclass(eq=False)
class Session:
    owner: Owner
    until: int
    lines: list[Hold]
    status: str = "open"
    id: UUID | None = None
    dropped: set[Hold] = field(default_factory=set)
    tickets: int = 0
    applied: int = 0
    refunds: list[int] = field(default_factory=list)

    @property
    def kept(self) -> list[Hold]:
        return [hold for hold in self.lines if hold not in self.dropped]

    @property
    def due(self) -> int:
        return sum(hold.quantity * (PLACE_PRICE if hold.seat is None else SEAT_PRICE) for hold in self.kept)


@dataclass
class CheckoutHall(Hall):
    heartbeat: bool = False
    sessions: list[Session] = field(default_factory=list)

    def session_of(self, hold: Hold) -> Session | None:
        return next((s for s in self.sessions if hold in s.lines), None)

    def standing(self, session: Session) -> str:
        """As everybody sees it, whether or not anybody has cleaned up."""
        return "expired" if session.status in ("open", "paying") and session.until <= self.now else session.status

    def loose(self, owner: Owner) -> list[Hold]:
        return [h for h in self.holds if h.owner == owner and self.alive(h) and self.session_of(h) is None]

    # The session -----------------------------------------------------------------------------------------------------
    def open(self, owner: Owner) -> Session | None:
        lines = self.loose(owner)
        if not lines:
            return None
        session = Session(owner, self.now + SESSION_MINUTES, lines)
        self.sessions.append(session)
        self._prolong(session)
        return session

    def add(self, session: Session) -> bool:
        new = self.loose(session.owner)
        if self.standing(session) != "open" or not new:
            return False
        session.lines += new
        for hold in new:
            hold.until = self._life(session)
        return True

    def beat(self, session: Session) -> bool:
        if self.standing(session) not in ("open", "paying"):
            return False
        if self.heartbeat:
            self._prolong(session)
        return True

    def _prolong(self, session: Session) -> None:
        for hold in session.kept:
            if self.alive(hold):
                hold.until = self._life(session)

    def _life(self, session: Session) -> int:
        return min(self.now + HEARTBEAT_MINUTES, session.until) if self.heartbeat else session.until

    def drop(self, session: Session, hold: Hold) -> bool:
        if self.standing(session) != "open":
            return False
        session.dropped.add(hold)
        self._let_go(hold)
        return True

    def _let_go(self, hold: Hold) -> None:
        if self.alive(hold):
            hold.status = "cancelled"
            if hold.seat is not None:
                self.seats[hold.seat] = Seat()

    def cancel(self, session: Session) -> bool:
        if self.standing(session) != "open":
            return False
        session.status = "cancelled"
        for hold in session.kept:
            self._let_go(hold)
        return True

    def release_own(self, hold: Hold) -> bool:
        """Of a hold in a session: the session lets go of it, or it stays."""
        session = self.session_of(hold)
        if session is None or not self.alive(hold):
            self._let_go(hold)
            return True
        return self.drop(session, hold)

    # Money -----------------------------------------------------------------------------------------------------------
    def fresh(self, session: Session) -> bool:
        return bool(session.kept) and all(self.alive(hold) for hold in session.kept)

    def pay(self, session: Session) -> bool:
        if self.standing(session) not in ("open", "paying") or not self.fresh(session):
            return False
        session.status = "paying"
        return True

    def stop_paying(self, session: Session) -> bool:
        if self.standing(session) not in ("open", "paying"):
            return False
        session.status = "open"
        return True

    def complete_by_hand(self, session: Session) -> bool:
        """Somebody at the till says that they have the money; they are told at once where it buys nothing."""
        if self.standing(session) not in ("open", "paying") or not self.fresh(session):
            return False
        self.receive(session, session.due)
        return True

    def receive(self, session: Session, amount: int) -> str:
        """Money has arrived, whenever it did: for the places, or to be given back."""
        payable = session.status not in ("completed", "cancelled") and bool(session.kept) and amount == session.due
        if payable and self._take(session):
            session.status = "completed"
            session.applied = amount
            return "applied"
        session.refunds.append(amount)
        if self.standing(session) == "paying":
            session.status = "open"
        return "refund_due"

    def _take(self, session: Session) -> bool:
        """All that the session had, also what was lost meanwhile, if nobody else has it."""
        lost = [hold for hold in session.kept if not self.alive(hold)]
        seats = [hold.seat for hold in lost if hold.seat is not None]
        places = sum(hold.quantity for hold in lost if hold.seat is None)
        if any(self.state(n) != "available" for n in seats) or places > self.free_places():
            return False
        for hold in session.kept:
            if hold not in lost:
                hold.status = "converted"
            if hold.seat is not None:
                self._clear(hold.seat)
                self.seats[hold.seat] = Seat("sold", ticket=True)
            else:
                self.sold_places += hold.quantity
            session.tickets += hold.quantity
        return True
