-- Seats in the order in which everybody locks them, and how they stand then: one whose hold is over is free. Of a seat that
-- was blocked after it was sold, `sold` is true. The caller shares the event. See 02_locks.sql.
CREATE OR REPLACE FUNCTION lock_seats(p_org uuid, p_event uuid, p_ordinals integer[])
RETURNS TABLE (ordinal integer, state text, held_until timestamptz, sold boolean, now timestamptz)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM FROM event_seats s
  WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = ANY (p_ordinals)
  ORDER BY s.ordinal FOR NO KEY UPDATE;
  RETURN QUERY
  SELECT s.ordinal, CASE WHEN s.state = 'held' AND s.held_until <= t.now THEN 'available' ELSE s.state::text END,
    s.held_until, s.sold_at IS NOT NULL, t.now
  FROM event_seats s CROSS JOIN (SELECT holdfast_now() AS now) t
  WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = ANY (p_ordinals) ORDER BY s.ordinal;
END $$;
