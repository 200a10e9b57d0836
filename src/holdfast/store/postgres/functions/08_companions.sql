-- The seats of wheelchair users' companions. While a wheelchair seat is taken, its companion seats are for its owner; from
-- a certain occupancy of the zone on, for everybody. Only claims for companion seats pay for any of this.
--
-- p_companions, everywhere: one row for each wheelchair seat that a claim's seat belongs to: the claim's position, the
-- wheelchair seat's ordinal, the places taken in the zone from which on the seat is everybody's, and 1 where the rule binds
-- (0: an organiser, who may, and of whom it is noted). Null where no claim is for a companion seat.

-- The claims' seats and those they depend on, in the order in which everybody locks seats: until the caller commits, no
-- wheelchair seat is taken or given back whose state this decision rests on. See docs/decisions/0012.
CREATE OR REPLACE FUNCTION lock_companions(p_org uuid, p_companions integer[], c_event uuid[], c_ordinal integer[])
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM FROM event_seats s
  JOIN (SELECT c.event_id, c.ordinal FROM unnest(c_event, c_ordinal) AS c (event_id, ordinal)
        UNION
        SELECT c_event[p_companions[i][1]], p_companions[i][2] FROM generate_subscripts(p_companions, 1) AS i) w
    ON s.event_id = w.event_id AND s.ordinal = w.ordinal
  WHERE s.organization_id = p_org
  ORDER BY s.event_id, s.ordinal FOR NO KEY UPDATE OF s;
END $$;

-- What the log says where an organiser takes such a seat.
CREATE OR REPLACE FUNCTION kept_seat_note() RETURNS text LANGUAGE sql IMMUTABLE RETURN
  'taken by the organiser while it was kept for the companion of a wheelchair user';

-- Whether a seat that is held (p_hold) or sold (p_sold_at) is this user's or session's. A sale knows its owner by its ticket
-- (whose purchase it is, and who will sit there), by the hold that it converted or, where there is no ticket, by its own line
-- in the log: with a ticket, that line names who sold it.
CREATE OR REPLACE FUNCTION seat_is_own(
  p_org uuid, p_event uuid, p_ordinal integer, p_hold uuid, p_sold_at timestamptz, p_user uuid, p_session text
) RETURNS boolean LANGUAGE sql STABLE RETURN CASE
  WHEN p_hold IS NOT NULL THEN EXISTS (
    SELECT FROM holds h
    WHERE h.organization_id = p_org AND h.id = p_hold AND (h.user_id = p_user OR h.session_id = p_session))
  ELSE EXISTS (
    SELECT FROM holds h
    WHERE h.organization_id = p_org AND h.event_id = p_event AND h.ordinal = p_ordinal AND h.status = 'converted'
      AND h.ended_at >= p_sold_at AND (h.user_id = p_user OR h.session_id = p_session))
  OR EXISTS (
    SELECT FROM tickets t
    WHERE t.organization_id = p_org AND t.event_id = p_event AND t.ordinal = p_ordinal AND t.status = 'valid'
      AND (t.user_id = p_user OR t.attendee_user_id = p_user))
  OR NOT EXISTS (
    SELECT FROM tickets t
    WHERE t.organization_id = p_org AND t.event_id = p_event AND t.ordinal = p_ordinal AND t.status = 'valid')
  AND EXISTS (
    SELECT FROM seat_state_events l
    WHERE l.organization_id = p_org AND l.event_id = p_event AND l.ordinal = p_ordinal AND l.verb = 'direct_sale'
      AND l.at >= p_sold_at AND (l.user_id = p_user OR l.session_id = p_session))
  END;

-- Places held or sold in a zone. Counts and changes are read in one statement: their sum is exact at its instant.
CREATE OR REPLACE FUNCTION places_taken(p_org uuid, p_event uuid, p_zone smallint) RETURNS integer LANGUAGE sql STABLE RETURN (
  SELECT coalesce(sum(o.places), 0)::integer FROM (
    SELECT k.places FROM occupancy_counts k
    WHERE k.organization_id = p_org AND k.event_id = p_event AND k.zone_no = p_zone AND k.state IN ('held', 'sold')
    UNION ALL
    SELECT c.change FROM occupancy_changes c
    WHERE c.organization_id = p_org AND c.event_id = p_event AND c.zone_no = p_zone AND c.state IN ('held', 'sold')) o);

-- Which claims may not be granted, by position: `kept` for somebody else's companion; `later`: their wheelchair seat is free
-- but wanted by another request of the same batch, so they are to ask again when that is decided. `noted` may be granted,
-- because the rule does not bind them, and the log shall say so. Each statement has its own snapshot (volatile).
CREATE OR REPLACE FUNCTION kept_companions(
  p_org uuid, p_now timestamptz, p_companions integer[],
  c_request integer[], c_event uuid[], c_ordinal integer[], c_zone smallint[], c_user uuid[], c_session text[],
  OUT kept integer[], OUT noted integer[], OUT later integer[]
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_n integer[]; v_free_from integer[]; v_binding boolean[];
BEGIN
  SELECT array_agg(j.n) FILTER (WHERE j.taken AND NOT j.own), array_agg(j.free_from) FILTER (WHERE j.taken AND NOT j.own),
         array_agg(j.binding) FILTER (WHERE j.taken AND NOT j.own),
         coalesce(array_agg(j.n) FILTER (WHERE j.wanted AND NOT j.taken AND NOT j.own AND j.binding), '{}')
    INTO v_n, v_free_from, v_binding, later
  FROM (
    SELECT r.n, min(r.free_from) AS free_from, bool_and(r.binding) AS binding, bool_or(t.taken) AS taken,
      bool_or(coalesce(w.request = c_request[r.n], false) OR CASE WHEN t.taken THEN
        seat_is_own(p_org, s.event_id, s.ordinal, s.hold_id, s.sold_at, c_user[r.n], c_session[r.n]) ELSE false END) AS own,
      bool_or(coalesce(w.request <> c_request[r.n], false)) AS wanted
    FROM (SELECT p_companions[i][1] AS n, p_companions[i][2] AS wheelchair, p_companions[i][3] AS free_from,
            p_companions[i][4] = 1 AS binding FROM generate_subscripts(p_companions, 1) AS i) r
    JOIN event_seats s ON s.organization_id = p_org AND s.event_id = c_event[r.n] AND s.ordinal = r.wheelchair
    CROSS JOIN LATERAL (
      SELECT s.state = 'sold' OR (s.state = 'held' AND (s.held_until IS NULL OR s.held_until > p_now)) AS taken) t
    LEFT JOIN unnest(c_request, c_event, c_ordinal) AS w (request, event_id, ordinal)
      ON w.event_id = s.event_id AND w.ordinal = s.ordinal
    GROUP BY r.n) j;
  SELECT coalesce(array_agg(k.n) FILTER (WHERE k.binding), '{}'), coalesce(array_agg(k.n) FILTER (WHERE NOT k.binding), '{}')
    INTO kept, noted
  FROM unnest(v_n, v_free_from, v_binding) AS k (n, free_from, binding)
  WHERE places_taken(p_org, c_event[k.n], c_zone[k.n]) < k.free_from;
END $$;
