"""Who may take a place in a zone."""

from collections.abc import Collection

import msgspec

from holdfast.seating.layout import AccessMode, Zone

STAFF_ROLES = frozenset(("organizer", "admin", "superadmin"))


class AccessDenied(msgspec.Struct, frozen=True):
    zone_id: str
    mode: AccessMode
    reason: str


def check_zone_access(
    zone: Zone, *, role: str, tiers: Collection[str], membership_active: bool, whitelisted: bool
) -> AccessDenied | None:
    """None where the user may book in the zone; otherwise why not, in words the user may see.

    `whitelisted` is whether the user is on the event's list. A restricted zone that names no tier or no role,
    as an event's override could leave it, admits staff alone.
    """
    if role in STAFF_ROLES:
        return None
    reason: str | None = None
    match zone.access_mode:
        case AccessMode.PUBLIC:
            pass
        case AccessMode.MEMBERSHIP_TIER:
            reason = _tier_reason(zone, tiers, membership_active)
        case AccessMode.ROLE_BASED:
            if role not in zone.allowed_roles:
                allowed = ", ".join(zone.allowed_roles) or "staff"
                reason = f"{zone.name} is for these roles only: {allowed}; yours is {role or 'none'}"
        case AccessMode.WHITELIST:
            if not whitelisted:
                reason = f"{zone.name} is for people on the event’s list only, and you are not on it"
    return None if reason is None else AccessDenied(zone.zone_id, zone.access_mode, reason)


def check_attendee_access(
    zone: Zone, *, role: str, tiers: Collection[str], membership_active: bool, whitelisted: bool
) -> AccessDenied | None:
    """As above for a person somebody else books for: being on the event's list is enough in every mode."""
    if whitelisted:
        return None
    return check_zone_access(zone, role=role, tiers=tiers, membership_active=membership_active, whitelisted=whitelisted)


def _tier_reason(zone: Zone, tiers: Collection[str], membership_active: bool) -> str | None:
    if zone.required_tier is None:
        return f"{zone.name} is for members only, and no tier has been named for it yet"
    if zone.required_tier not in tiers:
        return f"{zone.name} is for members of the tier {zone.required_tier}, which you do not have"
    if not membership_active:
        return f"{zone.name} is for members of the tier {zone.required_tier}; your membership is not active"
    return None
