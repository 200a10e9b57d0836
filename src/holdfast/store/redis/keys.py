"""Every key of the warm tier, what stands in it, and how long it lives.

Of an organization, after the prefix `{namespace}:org:{organization}`:

- `:event:{event}:seat_holds`, a ZSET: members `{seat}:{hold}:{user}:{held_until_iso}`, the score being the hold's end in
  whole unix seconds;
- `:seat:{seat}:hold`, a STRING: `{hold}:{user}:{expiry_unix}`, lives as long as the hold;
- `:hold:{hold}:meta`, a HASH: the hold, as long as it lives; of places in a GA zone there is this key only;
- `:event:{event}:occupancy`, a STRING: JSON, for 10 seconds;
- `:event:{event}:seats:bitmap`, a STRING: bit n is set while the seat with ordinal n is not available; for 24 hours from the
  last write;
- `:layout:{layout}:config`, a STRING: JSON, for 24 hours.

A hold without an end has the score `+inf`, an empty `held_until_iso`, the `expiry_unix` 0, and its keys do not lapse. A
hold without a user has an empty user. A seat's id comes from its layout, so events of one layout share `:seat:{seat}:hold`:
it belongs to the event that the hold's meta names, and is deleted only by whoever finds the hold in it that ended.

Of all organizations together: `{namespace}:registry:writer` (who writes; lapses with the lease) and
`{namespace}:registry:cursor` (up to where the change feed is written down here). `{namespace}:changes` is a channel.

On Redis Cluster everything of an organization must lie on one node, as one script writes it: the id, in braces, is what
the place is computed from. The registry's two keys are kept together by `{registry}` in the same way.
"""

from datetime import UTC, datetime
from uuid import UUID

import msgspec

OCCUPANCY_TTL_S = 10
LAYOUT_TTL_S = 24 * 3600
BITMAP_TTL_S = 24 * 3600

NO_END_SCORE = "+inf"

# The same keys for the scripts, which get the organization's prefix as their only key.
IN_SCRIPTS = """
local prefix = KEYS[1]
local function seat_holds_key(event) return prefix .. ':event:' .. event .. ':seat_holds' end
local function seat_key(seat) return prefix .. ':seat:' .. seat .. ':hold' end
local function meta_key(hold) return prefix .. ':hold:' .. hold .. ':meta' end
local function occupancy_key(event) return prefix .. ':event:' .. event .. ':occupancy' end
local function bitmap_key(event) return prefix .. ':event:' .. event .. ':seats:bitmap' end
local template_key = prefix .. ':template' -- never seen: made and deleted within one script
"""


class Keys(msgspec.Struct, frozen=True):
    namespace: str
    cluster: bool = False

    def prefix(self, organization_id: UUID) -> str:
        if self.cluster:
            return f"{self.namespace}:org:{{{organization_id}}}"
        return f"{self.namespace}:org:{organization_id}"

    def seat_holds(self, organization_id: UUID, event_id: UUID) -> str:
        return f"{self.prefix(organization_id)}:event:{event_id}:seat_holds"

    def seat(self, organization_id: UUID, seat_id: UUID) -> str:
        return f"{self.prefix(organization_id)}:seat:{seat_id}:hold"

    def meta(self, organization_id: UUID, hold_id: UUID) -> str:
        return f"{self.prefix(organization_id)}:hold:{hold_id}:meta"

    def occupancy(self, organization_id: UUID, event_id: UUID) -> str:
        return f"{self.prefix(organization_id)}:event:{event_id}:occupancy"

    def bitmap(self, organization_id: UUID, event_id: UUID) -> str:
        return f"{self.prefix(organization_id)}:event:{event_id}:seats:bitmap"

    def layout(self, organization_id: UUID, layout_id: UUID) -> str:
        return f"{self.prefix(organization_id)}:layout:{layout_id}:config"

    @property
    def writer(self) -> str:
        return f"{self.namespace}:{self._registry}:writer"

    @property
    def cursor(self) -> str:
        return f"{self.namespace}:{self._registry}:cursor"

    @property
    def changes(self) -> str:
        return f"{self.namespace}:changes"

    @property
    def _registry(self) -> str:
        return "{registry}" if self.cluster else "registry"


def iso(instant: datetime | None) -> str:
    """UTC with a Z; microseconds where there are any. Empty for no end."""
    if instant is None:
        return ""
    return instant.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def parse_iso(text: str) -> datetime | None:
    """Empty is no end. Raises ValueError for what `iso` never writes."""
    if not text:
        return None
    if not text.endswith("Z"):
        raise ValueError(f"not an instant of ours: {text!r}")
    return datetime.fromisoformat(text)


def expiry_unix(held_until: datetime | None) -> int:
    return 0 if held_until is None else int(held_until.timestamp())


def score(held_until: datetime | None) -> str:
    return NO_END_SCORE if held_until is None else str(int(held_until.timestamp()))


def member(seat_id: UUID, hold_id: UUID, user_id: UUID | None, held_until: datetime | None) -> str:
    return f"{seat_id}:{hold_id}:{user_id or ''}:{iso(held_until)}"


def seat_value(hold_id: UUID, user_id: UUID | None, held_until: datetime | None) -> str:
    return f"{hold_id}:{user_id or ''}:{expiry_unix(held_until)}"
