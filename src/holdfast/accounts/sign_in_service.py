"""Signs people in with a password, and out again; keeps their passwords and the list of their signed-in browsers."""

import asyncio
import hashlib
import ipaddress
from functools import partial
from uuid import UUID

import structlog
from msgspec.structs import replace

from holdfast.accounts.passwords import Hashing, password_fault
from holdfast.accounts.principal import STAFF, Call, Principal
from holdfast.accounts.records import OPERATOR, Origin, origin_of
from holdfast.accounts.refusals import (
    ChooseOrganization,
    NoSignIn,
    SignInFailed,
    UserNotFound,
    WrongPassword,
)
from holdfast.accounts.service import AccountsService, require_grant
from holdfast.accounts.sign_in import (
    FAILURE_WINDOW_S,
    FAILURES_MAX,
    MAY_SIGN_IN,
    TOUCHED_AGAIN_S,
    Candidate,
    CookieText,
    Session,
    SignIn,
    new_cookie,
    session_of,
    sign_in_principal,
)
from holdfast.accounts.standing import highest_grantable
from holdfast.holds.lifecycle import Actor
from holdfast.kernel.counting import PlainCounter
from holdfast.kernel.errors import Forbidden, InvalidRequest, Overloaded, RateLimited, Unauthorized
from holdfast.kernel.problems import Problem
from holdfast.store.postgres import accounts as store_accounts
from holdfast.store.postgres import sign_ins as store
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.sign_ins import Attempt, Entry

log = structlog.get_logger("holdfast.accounts")

SIGN_INS = PlainCounter("holdfast_sign_ins", "Attempts to sign in with a password", ("outcome",))
NOBODY = (UUID(int=0), UUID(int=0))
"""Stands where no user has the address, so that the same is done for them."""
BUSY_TRIES = 20
BUSY_PAUSE_S = 0.15


class SignInService:
    def __init__(self, database: Database, accounts: AccountsService, hashing: Hashing | None = None) -> None:
        self._database = database
        self._accounts = accounts
        self._hashing = hashing or Hashing()

    def close(self) -> None:
        self._hashing.close()

    # In and out ----------------------------------------------------------------------------------------------
    async def sign_in(
        self, email: str, password: str, organization_id: UUID | None, origin: Origin
    ) -> tuple[Session, CookieText]:
        """A new cookie in any case. Raises SignInFailed, ChooseOrganization, RateLimited or Overloaded."""
        address = await self._folded(email)
        attempt = await self._enter(_subject("email", address), *_network_subjects(origin.ip))
        try:
            candidates = await self._candidates(address, organization_id)
            right = await self._right(candidates, password)
        except Overloaded:
            await self._settle(attempt, failed=False)  # nobody has looked at the password
            raise
        if len(right) > 1:
            await self._settle(attempt, failed=False)
            SIGN_INS.add("several")
            raise ChooseOrganization([{"id": str(one.organization_id), "name": one.organization_name} for one in right])
        made = await self._open(right[0], origin) if right else None
        if made is None:
            await self._fail(attempt, [one for one in candidates if one is not None], origin)
            SIGN_INS.add("failed")
            raise SignInFailed
        await self._settle(attempt, failed=False)
        SIGN_INS.add("signed_in")
        return made

    async def _folded(self, email: str) -> str:
        """In small letters as the database makes them: two spellings that it takes for one address count as one."""
        try:
            email.encode()
        except UnicodeEncodeError:
            email = "\x00"
        if "\x00" in email:
            problem = Problem("/email", "not_text", "contains characters that are no text")
            raise InvalidRequest(f"email {problem.detail}.", [problem])
        async with self._database.transaction() as tx:
            return await store.folded(tx, email.strip())

    async def _candidates(self, email: str, organization_id: UUID | None) -> list[Candidate | None]:
        """Who may be meant. For nobody there is one None: whatever is done for somebody is done once for nobody too."""
        async with self._database.transaction(engine=True) as tx:
            found = await store.find_by_email(tx, email, organization_id)
        candidates: list[Candidate | None] = []
        for owner, user_id in found or [NOBODY]:
            async with self._database.transaction(owner) as tx:
                candidates.append(await store.find_candidate(tx, owner, user_id))
        return candidates

    async def _right(self, candidates: list[Candidate | None], password: str) -> list[Candidate]:
        """Those whose password it is."""
        nobodys = await self._hashing.nobodys()
        right: list[Candidate] = []
        for candidate in candidates:
            kept = None if candidate is None else candidate.password_hash
            matches = await self._hashing.matches(password, kept or nobodys)
            if candidate is not None and kept is not None and matches and candidate.may_sign_in:
                right.append(candidate)
        return right

    async def _open(self, candidate: Candidate, origin: Origin) -> tuple[Session, CookieText] | None:
        cookie = new_cookie(candidate.organization_id)
        member, password_hash = candidate.member, candidate.password_hash
        assert password_hash is not None

        async def work(tx: Transaction) -> bool:
            made = await store.insert_sign_in(tx, member.id, cookie, password_hash, origin)
            if made is None:
                return False
            await self._audit(tx, cookie.organization_id, _of_user(origin, candidate), "signed_in", member.id)
            return True

        if not await self._database.run(candidate.organization_id, work):
            return None
        return session_of(candidate, cookie), cookie

    async def _fail(self, attempt: Attempt, candidates: list[Candidate], origin: Origin) -> None:
        """The audit of a known user's organization is written where the attempt is settled: one commit either way."""
        first = candidates[0] if candidates else None
        async with self._database.transaction(None if first is None else first.organization_id) as tx:
            await store.settle_attempt(tx, attempt, failed=True)
            if first is not None:
                await self._audit(tx, first.organization_id, origin, "sign_in_failed", first.member.id)
        for other in candidates[1:]:
            async with self._database.transaction(other.organization_id) as tx:
                await self._audit(tx, other.organization_id, origin, "sign_in_failed", other.member.id)
        log.info("sign_in_failed", known=first is not None)

    async def principal_of_cookie(self, cookie: CookieText) -> tuple[Principal, float]:
        """Who the bearer is, and for how many seconds that can be relied on at most."""
        async with self._database.transaction(cookie.organization_id) as tx:
            standing = await store.find_sign_in(tx, cookie)
            principal = sign_in_principal(cookie.organization_id, standing)
            assert standing is not None
            if standing.untouched_s >= TOUCHED_AGAIN_S:
                await store.touch_sign_in(tx, cookie.organization_id, standing.id)
        return principal, standing.remaining_s

    async def session(self, cookie: CookieText, principal: Principal) -> Session:
        async with self._database.transaction(cookie.organization_id) as tx:
            assert principal.user_id is not None
            candidate = await store.find_candidate(tx, cookie.organization_id, principal.user_id)
        if candidate is None:
            raise Unauthorized("You are not signed in, or not any more. Please sign in.")
        return session_of(candidate, cookie)

    async def sign_out(self, cookie: CookieText, origin: Origin) -> None:
        """Again without effect."""

        async def work(tx: Transaction) -> None:
            user_id = await store.end_sign_in(tx, cookie)
            if user_id is not None:
                by = replace(origin, actor=Actor.ADMIN, subject=f"user:{user_id}", user_id=user_id)
                await self._audit(tx, cookie.organization_id, by, "signed_out", user_id)

        await self._database.run(cookie.organization_id, work)

    # One's browsers ------------------------------------------------------------------------------------------
    async def list_own(self, call: Call, current: CookieText | None) -> list[SignIn]:
        user_id = _user_of(call)
        async with self._database.transaction(call.organization_id) as tx:
            return await store.list_sign_ins(tx, call.organization_id, user_id, current)

    async def end_others(self, call: Call, current: CookieText | None) -> int:
        user_id = _user_of(call)

        async def work(tx: Transaction) -> int:
            ended = await store.end_sign_ins(tx, call.organization_id, user_id, current)
            if ended:
                await self._audit(tx, call.organization_id, origin_of(call), "sign_ins_ended", user_id, ended=ended)
                self._access_changed(tx, call.organization_id)
            return ended

        return await self._database.run(call.organization_id, work)

    # Passwords -----------------------------------------------------------------------------------------------
    # No Idempotency-Key is kept for these: it would keep a quick hash of a body that has a password in it.
    async def set_password(
        self, call: Call, user_id: UUID, password: str, current: str | None, cookie: CookieText | None
    ) -> None:
        """One's own with the current one; an administrator's for somebody of no higher role. Ends all sign-ins but the
        one that asks."""
        own = call.principal.user_id == user_id and call.principal.guest_event_id is None
        if not own and highest_grantable(call.principal) is None:
            # Before anything is looked up: to others, whether there is such a user is nothing to know.
            raise Forbidden("This needs an administrator's credential.", required_role="admin")
        candidate = await self._candidate(call.organization_id, user_id)
        if own and candidate.password_hash is not None:
            await self._require_current(candidate, current)
        else:
            require_grant(call, candidate.member.role)
        await self._store_password(candidate, password, origin_of(call), cookie if own else None)

    async def set_password_as_operator(self, organization_id: UUID, email: str, password: str) -> UUID:
        async with self._database.transaction(organization_id) as tx:
            user_id = await store.find_user_by_email(tx, organization_id, email.strip())
        if user_id is None:
            raise UserNotFound
        candidate = await self._candidate(organization_id, user_id)
        await self._store_password(candidate, password, OPERATOR, None)
        return user_id

    async def _candidate(self, organization_id: UUID, user_id: UUID) -> Candidate:
        async with self._database.transaction(organization_id) as tx:
            candidate = await store.find_candidate(tx, organization_id, user_id)
        if candidate is None:
            raise UserNotFound
        return candidate

    async def _require_current(self, candidate: Candidate, current: str | None) -> None:
        if current is None:
            problem = Problem("/current_password", "missing", "is needed to change one's own password")
            raise InvalidRequest(f"current_password {problem.detail}.", [problem])
        assert candidate.password_hash is not None
        attempt = await self._enter(_subject("user", f"{candidate.organization_id}/{candidate.member.id}"))
        try:
            right = await self._hashing.matches(current, candidate.password_hash)
        except Overloaded:
            await self._settle(attempt, failed=False)
            raise
        await self._settle(attempt, failed=not right)
        if not right:
            raise WrongPassword

    async def _store_password(
        self, candidate: Candidate, password: str, origin: Origin, but: CookieText | None
    ) -> None:
        member, organization_id = candidate.member, candidate.organization_id
        require_password(password, member.email)
        if member.role not in MAY_SIGN_IN:
            raise NoSignIn("Only staff sign in with a password; this user is a customer.", role=member.role.value)
        if member.email is None:
            raise NoSignIn("This user has no e-mail address to sign in with.")
        if member.deactivated_at is not None or not member.active:
            raise NoSignIn("This user was deactivated.")
        hashed = await self._hashing.hash(password)

        async def work(tx: Transaction) -> None:
            if not await store.set_password(tx, organization_id, member.id, hashed, candidate.password_hash):
                raise WrongPassword  # it was changed at this very moment
            ended = await store.end_sign_ins(tx, organization_id, member.id, but)
            first = candidate.password_hash is None
            await self._audit(tx, organization_id, origin, "password_set", member.id, first=first, sign_ins_ended=ended)
            self._access_changed(tx, organization_id)

        await self._database.run(organization_id, work)

    # Slowing down --------------------------------------------------------------------------------------------
    async def _enter(self, *subjects: bytes) -> Attempt:
        """At most ten failures in a quarter of an hour, for all processes together."""
        for _ in range(BUSY_TRIES):
            try:
                async with self._database.transaction() as tx:
                    attempt = store.attempt_of(subjects, await tx.now())
                    entered = await store.enter_attempt(tx, attempt)
                    if entered.entry is not Entry.ENTERED:
                        raise _NoRoom(entered.entry, entered.retry_after_s)
                return attempt
            except _NoRoom as refused:
                if refused.entry is Entry.FULL:
                    SIGN_INS.add("limited")
                    raise _limited(refused.retry_after_s) from None
            # Many sign in at once from one place: each waits for the others to be looked at.
            await asyncio.sleep(BUSY_PAUSE_S)
        SIGN_INS.add("limited")
        raise _limited(1.0)

    async def _settle(self, attempt: Attempt, *, failed: bool) -> None:
        async with self._database.transaction() as tx:
            await store.settle_attempt(tx, attempt, failed=failed)

    # ---------------------------------------------------------------------------------------------------------
    @staticmethod
    async def _audit(
        tx: Transaction, organization_id: UUID, origin: Origin, action: str, user_id: UUID, **said: object
    ) -> None:
        await store_accounts.audit(tx, organization_id, origin, action, "user", user_id, said)

    def _access_changed(self, tx: Transaction, organization_id: UUID) -> None:
        for hook in self._accounts.on_access_change:
            tx.after_commit(partial(hook, organization_id))


class _NoRoom(Exception):
    """Gives the transaction up: what has no room is not entered anywhere."""

    def __init__(self, entry: Entry, retry_after_s: float) -> None:
        super().__init__(entry)
        self.entry = entry
        self.retry_after_s = retry_after_s


def require_password(password: str, email: str | None) -> None:
    fault = password_fault(password, email)
    if fault is not None:
        raise InvalidRequest(f"The password {fault[1]}.", [Problem("/password", *fault)])


def _limited(retry_after_s: float) -> RateLimited:
    return RateLimited(
        "Too many attempts to sign in. Please wait.",
        retry_after_s=retry_after_s,
        limit=FAILURES_MAX,
        window_s=FAILURE_WINDOW_S,
    )


def _subject(kind: str, value: str) -> bytes:
    return hashlib.sha256(f"{kind}\x00{value}".encode("utf-8", "surrogatepass")).digest()


def _network_subjects(ip: str | None) -> list[bytes]:
    """An IPv6 subscriber has at least a /64 to choose addresses from: it counts as one."""
    if ip is None:
        return []
    address = ipaddress.ip_address(ip)
    if address.version == 6:
        address = ipaddress.ip_network((address.packed[:8] + bytes(8), 64)).network_address
    return [_subject("ip", str(address))]


def _of_user(origin: Origin, candidate: Candidate) -> Origin:
    member = candidate.member
    actor = Actor.ADMIN if member.role in STAFF else Actor.CUSTOMER
    return replace(origin, actor=actor, subject=f"user:{member.id}", user_id=member.id)


def _user_of(call: Call) -> UUID:
    if call.principal.user_id is None or call.principal.guest_event_id is not None:
        raise Forbidden("This is about a user's own browsers: an API key or a guest has none.")
    return call.principal.user_id
