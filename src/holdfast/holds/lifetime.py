"""How long a hold lasts: one resolver for every way of placing one."""

from holdfast.holds.hold_types import CART, Layer, ResolvedHoldType
from holdfast.seating.policy import SeatingPolicy

NATIVE_RESERVE_TTL_S = 300
BOOKING_V2_TTL_S = 900


def resolve_ttl_s(
    hold_type: ResolvedHoldType,
    *,
    event_override_minutes: int | None,
    policy: SeatingPolicy | None,
    endpoint_default_s: int,
) -> int | None:
    """Seconds a new hold lives; None until somebody releases it.

    `event_override_minutes` is the event's own `default_hold_ttl_minutes`, None where it sets none; the
    caller has checked that the field is not locked. `policy` is the organization's, None where it made none.
    """
    if hold_type.name != CART:
        return hold_type.ttl_seconds
    if event_override_minutes is not None:
        return event_override_minutes * 60
    # The platform's own figure for CART ranks below the policy: only a layer somebody wrote counts here.
    # Such a layer's null is an answer too, and means no end.
    if hold_type.layers["ttl_seconds"] in (Layer.ORGANIZATION, Layer.TENANT):
        return hold_type.ttl_seconds
    if policy is not None:
        return policy.default_hold_ttl_minutes * 60
    return endpoint_default_s
