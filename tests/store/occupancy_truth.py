"""The occupancy of an event the slow way: every seat, every hold and every pool counted, beside the counters."""

from typing import Any
from uuid import UUID

# One statement, and so one instant, also while others write.
DIFFERENCES = """
WITH truth AS (
  SELECT zone_no, state::text, CASE state WHEN 'held' THEN hold_type ELSE '' END AS hold_type, count(*) AS places
  FROM event_seats WHERE event_id = $1 AND state <> 'available' GROUP BY 1, 2, 3
  UNION ALL
  SELECT zone_no, 'held', hold_type, sum(quantity) FROM holds
  WHERE event_id = $1 AND status = 'active' AND ordinal IS NULL GROUP BY 1, 2, 3
  UNION ALL
  SELECT zone_no, 'sold', '', sold FROM event_zones WHERE event_id = $1 AND sold > 0
), pools AS (
  SELECT z.zone_no, z.held - coalesce(sum(t.places), 0) AS off FROM event_zones z
  LEFT JOIN truth t ON t.zone_no = z.zone_no AND t.state = 'held' WHERE z.event_id = $1 GROUP BY z.zone_no, z.held
), told AS (
  SELECT zone_no, state::text, hold_type, sum(places) AS places FROM (
    SELECT zone_no, state, hold_type, places FROM occupancy_counts WHERE event_id = $1
    UNION ALL SELECT zone_no, state, hold_type, change FROM occupancy_changes WHERE event_id = $1) c
  GROUP BY 1, 2, 3 HAVING sum(places) <> 0
)
SELECT coalesce(truth.zone_no, told.zone_no)::integer AS zone_no, coalesce(truth.state, told.state) AS state,
  coalesce(truth.hold_type, told.hold_type) AS hold_type, truth.places::integer AS there, told.places::integer AS told
FROM truth FULL JOIN told USING (zone_no, state, hold_type) WHERE truth.places IS DISTINCT FROM told.places
UNION ALL SELECT zone_no, 'held', 'pool', off::integer, 0 FROM pools WHERE off <> 0
"""


async def differences(owner: Any, event_id: UUID) -> list[tuple[Any, ...]]:
    """(zone, state, hold type, what is there, what the counters say), where the two differ."""
    return [tuple(row) for row in await owner.fetch(DIFFERENCES, event_id)]
