"""What one cache said, beside what was so: true if it was true at some instant between a second before it was asked and
its answer.
"""

from collections.abc import Iterator

from holdfast.holds.lifecycle import SeatState
from holdfast.insight.history_facts import Word
from holdfast.insight.timeline import Span, Timeline, were


class Hearing:
    def __init__(self, line: Timeline, word: Word, converge_s: float, slack_s: float) -> None:
        self._line = line
        self._word = word
        self._since = word.began - converge_s
        self._slack_s = slack_s

    def faults(self) -> Iterator[str | None]:
        """One for each thing it said; none where that was so."""
        for ordinal, said in self._word.states.items():
            yield self._wrong_state(ordinal, said)
        for ordinal in self._line.zone_nos:
            if self._word.holders is not None:
                yield self._wrong_holder(ordinal)
            if self._word.taken is not None:
                yield self._wrongly_taken(ordinal)
        for (zone_no, state), said_count in self._word.counts.items():
            low, high = self._counted(zone_no, state)
            fault = f"{self._word.source} counts {said_count} {state} in zone {zone_no}, and there were {low} to {high}"
            yield None if low <= said_count <= high else fault

    def _spans(self, ordinal: int) -> list[Span]:
        return self._line.possible(ordinal, self._since, self._word.ended)

    def _lapsed(self, span: Span) -> bool:
        return span.lapsed_by(self._word.ended + self._slack_s)

    def _looks(self, span: Span, said: SeatState) -> bool:
        """A seat whose hold is over may be shown as free before it is swept."""
        return span.state is said or (said is SeatState.AVAILABLE and self._lapsed(span))

    def _wrong_state(self, ordinal: int, said: SeatState) -> str | None:
        spans = self._spans(ordinal)
        if any(self._looks(span, said) for span in spans):
            return None
        return f"{self._word.source} says seat {ordinal} is {said}, and it was {were(spans)}"

    def _wrong_holder(self, ordinal: int) -> str | None:
        assert self._word.holders is not None
        said, spans = self._word.holders.get(ordinal), self._spans(ordinal)
        if said is not None:
            true = any(span.hold_id == said for span in spans)
        else:
            true = any(span.state is not SeatState.HELD or self._lapsed(span) for span in spans)
        where = "no hold" if said is None else f"hold {said}"
        return None if true else f"{self._word.source} has seat {ordinal} in {where}, and it was {were(spans)}"

    def _wrongly_taken(self, ordinal: int) -> str | None:
        assert self._word.taken is not None
        taken, spans = ordinal in self._word.taken, self._spans(ordinal)
        if taken:
            true = any(span.state is not SeatState.AVAILABLE for span in spans)
        else:
            true = any(self._looks(span, SeatState.AVAILABLE) for span in spans)
        said = "taken" if taken else "free"
        return None if true else f"{self._word.source} has seat {ordinal} {said}, and it was {were(spans)}"

    def _counted(self, zone_no: int, state: SeatState) -> tuple[int, int]:
        """How many places of a zone were in a state: at least, and at most."""
        for zone in self._line.record.last.facts.zones:
            if zone.zone_no == zone_no:
                steps = self._line.zone_possible(zone_no, self._since, self._word.ended)
                counts = [_zone_count(step.held, step.sold, zone.capacity, state) for step in steps]
                return min(counts), max(counts)
        low = high = 0
        for ordinal, of_zone in self._line.zone_nos.items():
            if of_zone == zone_no:
                spans = self._spans(ordinal)
                low += all(span.state is state and not self._lapsed(span) for span in spans)
                high += any(self._looks(span, state) for span in spans)
        return low, high


def _zone_count(held: int, sold: int, capacity: int, state: SeatState) -> int:
    counts = {SeatState.HELD: held, SeatState.SOLD: sold, SeatState.AVAILABLE: capacity - held - sold}
    return counts.get(state, 0)
