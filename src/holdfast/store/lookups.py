"""How often each tier had what was looked for."""

from holdfast.kernel.counting import PlainCounter

LOOKUPS = PlainCounter(
    "holdfast_tier_lookups",
    "Lookups by tier (hot, warm, cold), by what was looked for, and by outcome (hit, miss, stale; taken, free, wrong)",
    ("tier", "what", "outcome"),
)
