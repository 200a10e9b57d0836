"""Who has placed how many holds through this process lately: so that whoever is over the limit is told that first.

The limit itself is counted in the database, exactly and for all processes. This is only for the order of the answers: a
buyer over the limit who asks for a taken seat hears of the limit. Pure.
"""

from collections import OrderedDict

USERS_MAX = 50_000


class RecentHolds:
    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._placed: OrderedDict[int, list[float]] = OrderedDict()

    def note(self, user: int, holds: int, now: float) -> None:
        """`user`: any number that tells one from another; 0 stands for nobody."""
        if not user:
            return
        times = self._placed.get(user)
        if times is None:
            times = self._placed[user] = []
            if len(self._placed) > USERS_MAX:
                self._placed.popitem(last=False)
        times.extend([now] * holds)

    def too_many(self, user: int, more: int, limit: int | None, now: float) -> bool:
        """Whether so many more would be over the limit."""
        if limit is None or not user:
            return False
        times = self._placed.get(user)
        if times is None:
            return more > limit
        if len(times) + more > limit and times[0] <= now - self._window_s:
            times[:] = [at for at in times if at > now - self._window_s]
        return len(times) + more > limit
