-- The order in which everything locks, so that no two transactions can wait for each other:
--   1. advisory: idempotency keys, users and ips under a limit (one sorted list of keys)
--   2. advisory: events (shared by those who move seats, exclusive by those who change the event's state)
--   3. checkouts, then tickets, by id     4. seats, by (event, ordinal)     5. GA zones, by (event, zone)
--   6. hold rows, only under 4 or 5; zone_attendance, last of all

CREATE OR REPLACE FUNCTION event_lock_key(p_event uuid) RETURNS bigint LANGUAGE sql IMMUTABLE RETURN
  hashtextextended('event:' || p_event::text, 0);

CREATE OR REPLACE FUNCTION share_events(p_events uuid[]) RETURNS void LANGUAGE sql VOLATILE AS $$
  SELECT pg_advisory_xact_lock_shared(event_lock_key(e)) FROM (SELECT e FROM unnest(p_events) e ORDER BY e) sorted;
$$;

-- Whoever changes an event's state waits for the moves under way, and the moves that follow see the change.
CREATE OR REPLACE FUNCTION own_event(p_event uuid) RETURNS void LANGUAGE sql VOLATILE AS $$
  SELECT pg_advisory_xact_lock(event_lock_key(p_event));
$$;
