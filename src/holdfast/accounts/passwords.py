"""Passwords: which are good enough, and the slow hash that is kept of them.

A hash takes a tenth of a second of one core and 46 MB by design. It is made in threads of its own, so few at once that
a crowd at the sign-in cannot take the machine from the buyers; beyond a short queue it is refused.
"""

import asyncio
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from holdfast.kernel.errors import Overloaded

T = TypeVar("T")

CHARS_MIN: Final = 10
CHARS_MAX: Final = 200
MEMORY_KIB: Final = 46 * 1024
AT_ONCE: Final = 2
WAITING_MAX: Final = 30

# Of those long enough, the ones that every list of stolen passwords begins with; and our own name.
COMMON: Final = frozenset((
    "0123456789", "0987654321", "1029384756", "1111111111", "1122334455", "1212121212", "1234512345", "12345678910",
    "1234567890", "12345678900", "123456789a", "123456789q", "123123123123", "1234554321", "1234567891",
    "123qweasdzxc", "1q2w3e4r5t", "1q2w3e4r5t6y", "1qaz2wsx3edc", "147258369a", "123456abcdef", "abc1234567",
    "abcd123456", "abcdef123456", "abcdefghij", "abcdefghijk", "admin12345", "admin123456", "administrator",
    "asdfasdfasdf", "asdfghjkl123", "asdfghjkl;", "babygirl123", "basketball", "baseball123", "changeme123",
    "changemenow", "charlie123", "computer123", "default123", "dragon1234", "football123", "holdfast123",
    "holdfast1234", "holdfastholdfast", "iloveyou12", "iloveyou123", "iloveyou1234", "letmein123", "letmein1234",
    "liverpool1", "manchester", "master1234", "michael123", "mypassword", "myspace123", "p@ssw0rd123",
    "passw0rd123", "password01", "password11", "password12", "password123", "password1234", "password12345",
    "password123456", "passwordpassword", "princess123", "q1w2e3r4t5", "q1w2e3r4t5y6", "qazwsxedc123",
    "qazwsxedcrfv", "qwer123456", "qwerasdfzxcv", "qwerty1234", "qwerty12345", "qwerty123456", "qwertyqwerty",
    "qwertyuiop", "qwertyuiop123", "qwertyuiop[]", "starwars123", "summer2024", "summer2025", "sunshine123",
    "superman123", "thisisapassword", "trustno1234", "welcome123", "welcome1234", "welcome2024", "welcome2025",
    "zaq12wsxcde3", "zxcvbnm123", "zxcvbnmasdf", "zxcvbnmasdfg",
))  # fmt: skip


def password_fault(password: str, email: str | None) -> tuple[str, str] | None:
    """Why this password will not do: a code, and a sentence's end. None: it will."""
    try:
        password.encode()
    except UnicodeEncodeError:
        return "not_text", "contains characters that are no text"
    if not CHARS_MIN <= len(password) <= CHARS_MAX:
        return "bad_length", f"must have {CHARS_MIN} to {CHARS_MAX} characters"
    plain = password.strip().casefold()
    if plain in COMMON or len(set(plain)) < 3:
        return "too_common", "is one of those that are tried first"
    if email is not None and plain in (email.strip().casefold(), email.strip().casefold().partition("@")[0]):
        return "is_the_email", "must not be the e-mail address"
    return None


def _bytes(password: str) -> bytes:
    """The same for the same text, however a keyboard composes its accents."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


class Hashing:
    """Argon2id, in threads."""

    def __init__(self, *, memory_kib: int = MEMORY_KIB, at_once: int = AT_ONCE, waiting_max: int = WAITING_MAX) -> None:
        self._hasher = PasswordHasher(time_cost=2, memory_cost=memory_kib, parallelism=1, type=Type.ID)
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="password")
        self._room = at_once + waiting_max
        self._under_way = 0
        self._nobodys: asyncio.Task[str] | None = None

    async def hash(self, password: str) -> str:
        return await self._in_thread(self._hasher.hash, _bytes(password))

    async def matches(self, password: str, kept: str) -> bool:
        return await self._in_thread(self._verify, kept, _bytes(password))

    async def nobodys(self) -> str:
        """A hash to hold a password against where there is no user: the answer takes as long."""
        if self._nobodys is None or (self._nobodys.done() and self._nobodys.exception() is not None):
            self._nobodys = asyncio.create_task(self.hash("nobody has this password"))
        return await asyncio.shield(self._nobodys)

    def _verify(self, kept: str, password: bytes) -> bool:
        try:
            return self._hasher.verify(kept, password)
        except (VerificationError, InvalidHashError):
            return False

    async def _in_thread(self, work: Callable[..., T], *args: object) -> T:
        if self._under_way >= self._room:
            raise Overloaded("Too many people are signing in at the moment. Please try again.", retry_after_s=2)
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)
        finally:
            self._under_way -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
