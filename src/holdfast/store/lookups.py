"""How often each tier had what was looked for."""

from prometheus_client import Counter

LOOKUPS = Counter(
    "holdfast_tier_lookups_total",
    "Lookups by tier (hot, warm, cold), by what was looked for, and by outcome (hit, miss, stale)",
    ["tier", "what", "outcome"],
)
