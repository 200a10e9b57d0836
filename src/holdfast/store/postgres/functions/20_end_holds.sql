-- held → available: release (asked for) and expire (the hold's life is over).

-- Frees the seats of these holds. 'release' touches only holds still alive, 'expire' only those that are over, so the two
-- together account for every hold exactly once. Answers the holds it ended.
CREATE OR REPLACE FUNCTION end_seat_holds(
  p_org uuid, p_verb text, p_holds uuid[],
  p_actor text, p_user uuid, p_session text, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS uuid[] LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off  -- the nested loop keeps the order of the locks
AS $$
DECLARE
  v_now     timestamptz := holdfast_now();
  v_event   uuid[]; v_ordinal integer[]; v_zone smallint[]; v_version integer[]; v_type text[]; v_hold uuid[];
  v_n       integer;
BEGIN
  WITH freed AS (
    UPDATE event_seats s
    SET state = 'available', hold_id = NULL, hold_type = NULL, held_until = NULL, locked_at = NULL, version = s.version + 1
    FROM (SELECT h.id, h.event_id, h.ordinal FROM holds h
          WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.status = 'active' AND h.ordinal IS NOT NULL
          ORDER BY h.event_id, h.ordinal) w
    WHERE s.organization_id = p_org AND s.event_id = w.event_id AND s.ordinal = w.ordinal
      AND s.state = 'held' AND s.hold_id = w.id
      AND CASE p_verb WHEN 'expire' THEN s.held_until <= holdfast_now()
                      ELSE s.held_until IS NULL OR s.held_until > holdfast_now() END
    RETURNING new.event_id, new.ordinal, new.zone_no, new.version, old.hold_type, old.hold_id
  )
  SELECT array_agg(event_id), array_agg(ordinal), array_agg(zone_no), array_agg(version), array_agg(hold_type),
         array_agg(hold_id), count(*)
    INTO v_event, v_ordinal, v_zone, v_version, v_type, v_hold, v_n
  FROM freed;
  IF v_n = 0 THEN
    RETURN '{}';
  END IF;
  UPDATE holds h SET status = CASE p_verb WHEN 'expire' THEN 'expired' ELSE 'cancelled' END::hold_status, ended_at = v_now
  WHERE h.organization_id = p_org AND h.id = ANY (v_hold) AND h.status = 'active';
  PERFORM record_moves(p_org, p_verb, v_now, p_actor, p_user, p_session, p_ip, p_agent, p_trace, p_reason,
    v_event, v_ordinal, v_zone, array_fill(1, ARRAY[v_n]), array_fill('held'::seat_state, ARRAY[v_n]),
    array_fill('available'::seat_state, ARRAY[v_n]), v_version, v_type, v_hold, array_fill(NULL::text, ARRAY[v_n]));
  RETURN v_hold;
END $$;

-- Gives back places of one GA zone. The same split between alive and over as for seats.
CREATE OR REPLACE FUNCTION end_zone_holds(
  p_org uuid, p_event uuid, p_zone smallint, p_verb text, p_holds uuid[],
  p_actor text, p_user uuid, p_session text, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS uuid[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now     timestamptz;
  v_version integer;
  v_hold uuid[]; v_quantity integer[]; v_type text[]; v_n integer;
BEGIN
  SELECT z.version INTO v_version FROM event_zones z
  WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = p_zone FOR UPDATE;
  v_now := holdfast_now();
  WITH ended AS (
    UPDATE holds h SET status = CASE p_verb WHEN 'expire' THEN 'expired' ELSE 'cancelled' END::hold_status, ended_at = v_now
    WHERE h.organization_id = p_org AND h.event_id = p_event AND h.zone_no = p_zone AND h.ordinal IS NULL
      AND h.status = 'active' AND (p_holds IS NULL OR h.id = ANY (p_holds))
      AND CASE p_verb WHEN 'expire' THEN h.held_until <= v_now ELSE h.held_until IS NULL OR h.held_until > v_now END
    RETURNING h.id, h.quantity, h.hold_type
  )
  SELECT array_agg(id), array_agg(quantity), array_agg(hold_type), count(*) INTO v_hold, v_quantity, v_type, v_n FROM ended;
  IF v_n = 0 THEN
    RETURN '{}';
  END IF;
  UPDATE event_zones z SET held = z.held - (SELECT sum(q) FROM unnest(v_quantity) q), version = z.version + v_n
  WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = p_zone;
  PERFORM record_zone_moves(p_org, p_event, p_zone, p_verb, v_now, p_actor, p_user, p_session, p_ip, p_agent, p_trace,
    p_reason, 'held', 'available', v_version, v_hold, v_quantity, v_type);
  RETURN v_hold;
END $$;

-- The log of moves within one GA zone; p_version is the zone's version before the first of them.
CREATE OR REPLACE FUNCTION record_zone_moves(
  p_org uuid, p_event uuid, p_zone smallint, p_verb text, p_at timestamptz,
  p_actor text, p_user uuid, p_session text, p_ip text, p_agent text, p_trace text, p_reason text,
  p_old seat_state, p_new seat_state, p_version integer, m_hold uuid[], m_quantity integer[], m_type text[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_n integer := cardinality(m_quantity);
BEGIN
  PERFORM record_moves(p_org, p_verb, p_at, p_actor, p_user, p_session, p_ip, p_agent, p_trace, p_reason,
    array_fill(p_event, ARRAY[v_n]), array_fill(NULL::integer, ARRAY[v_n]), array_fill(p_zone, ARRAY[v_n]), m_quantity,
    array_fill(p_old, ARRAY[v_n]), array_fill(p_new, ARRAY[v_n]),
    (SELECT array_agg(p_version + i ORDER BY i) FROM generate_series(1, v_n) i),
    m_type, m_hold, array_fill(NULL::text, ARRAY[v_n]));
END $$;

-- Ends the named holds of one organization, seats first, then zones, as every writer does; answers those it ended.
-- A hold already over is expired rather than released: its owner no longer had it to give. It shares the events, so that
-- where a hold stands does not change between being read and being locked (a migration gives its seat another number).
CREATE OR REPLACE FUNCTION release_holds(
  p_org uuid, p_holds uuid[],
  p_actor text, p_user uuid, p_session text, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS TABLE (hold_id uuid, verb text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_zone record;
  v_verb text;
BEGIN
  PERFORM share_events(ARRAY(
    SELECT DISTINCT h.event_id FROM holds h WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.status = 'active'));
  FOREACH v_verb IN ARRAY ARRAY['release', 'expire'] LOOP
    RETURN QUERY SELECT e, v_verb FROM unnest(end_seat_holds(p_org, v_verb, p_holds,
      CASE v_verb WHEN 'expire' THEN 'SYSTEM' ELSE p_actor END, p_user, p_session, p_ip, p_agent, p_trace, p_reason)) e;
  END LOOP;
  FOR v_zone IN
    SELECT h.event_id, h.zone_no, array_agg(h.id) AS ids FROM holds h
    WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.status = 'active' AND h.ordinal IS NULL
    GROUP BY 1, 2 ORDER BY 1, 2
  LOOP
    FOREACH v_verb IN ARRAY ARRAY['release', 'expire'] LOOP
      RETURN QUERY SELECT e, v_verb FROM unnest(end_zone_holds(p_org, v_zone.event_id, v_zone.zone_no, v_verb, v_zone.ids,
        CASE v_verb WHEN 'expire' THEN 'SYSTEM' ELSE p_actor END, p_user, p_session, p_ip, p_agent, p_trace, p_reason)) e;
    END LOOP;
  END LOOP;
END $$;

-- The sweeper's step for one organization: at most p_limit holds that ended more than the grace ago. Seats being worked on
-- by anybody else are skipped: they are either being taken (which expires the hold) or swept already.
CREATE OR REPLACE FUNCTION expire_due_holds(p_org uuid, p_grace_s double precision, p_limit integer)
RETURNS integer LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  v_now   timestamptz;
  v_until timestamptz;
  v_event uuid[]; v_ordinal integer[]; v_zone smallint[]; v_version integer[]; v_type text[]; v_hold uuid[];
  v_n     integer;
  v_pool  record;
  v_ended uuid[];
BEGIN
  PERFORM set_config('holdfast.organization_id', p_org::text, true);
  v_now := holdfast_now();
  v_until := v_now - make_interval(secs => p_grace_s);
  WITH due AS (
    SELECT h.id, h.event_id, h.ordinal FROM holds h
    WHERE h.organization_id = p_org AND h.status = 'active' AND h.held_until <= v_until AND h.ordinal IS NOT NULL
    ORDER BY h.held_until LIMIT p_limit
  ), locked AS (
    SELECT s.event_id, s.ordinal, s.hold_id FROM (SELECT * FROM due ORDER BY event_id, ordinal) d
    JOIN event_seats s ON s.organization_id = p_org AND s.event_id = d.event_id AND s.ordinal = d.ordinal
    WHERE s.state = 'held' AND s.hold_id = d.id AND s.held_until <= v_until
    FOR UPDATE OF s SKIP LOCKED
  ), freed AS (
    UPDATE event_seats s
    SET state = 'available', hold_id = NULL, hold_type = NULL, held_until = NULL, locked_at = NULL, version = s.version + 1
    FROM locked l
    WHERE s.organization_id = p_org AND s.event_id = l.event_id AND s.ordinal = l.ordinal
      AND s.state = 'held' AND s.hold_id = l.hold_id
    RETURNING new.event_id, new.ordinal, new.zone_no, new.version, old.hold_type, old.hold_id
  )
  SELECT array_agg(event_id), array_agg(ordinal), array_agg(zone_no), array_agg(version), array_agg(hold_type),
         array_agg(hold_id), count(*)
    INTO v_event, v_ordinal, v_zone, v_version, v_type, v_hold, v_n
  FROM freed;
  IF v_n > 0 THEN
    UPDATE holds h SET status = 'expired', ended_at = v_now
    FROM unnest(v_hold) AS e (id)
    WHERE h.organization_id = p_org AND h.id = e.id AND h.status = 'active';
    PERFORM record_moves(p_org, 'expire', v_now, 'SYSTEM', NULL, NULL, NULL, NULL, NULL, NULL,
      v_event, v_ordinal, v_zone, array_fill(1, ARRAY[v_n]), array_fill('held'::seat_state, ARRAY[v_n]),
      array_fill('available'::seat_state, ARRAY[v_n]), v_version, v_type, v_hold, array_fill(NULL::text, ARRAY[v_n]));
  END IF;
  FOR v_pool IN
    SELECT z.event_id, z.zone_no FROM (
      SELECT DISTINCT h.event_id, h.zone_no FROM holds h
      WHERE h.organization_id = p_org AND h.status = 'active' AND h.held_until <= v_until AND h.ordinal IS NULL) d
    JOIN event_zones z ON z.organization_id = p_org AND z.event_id = d.event_id AND z.zone_no = d.zone_no
    ORDER BY 1, 2 FOR UPDATE OF z SKIP LOCKED
  LOOP
    v_ended := end_zone_holds(p_org, v_pool.event_id, v_pool.zone_no, 'expire',
      (SELECT coalesce(array_agg(d.id), '{}') FROM (  -- none left: none, and not every one (null)
         SELECT h.id FROM holds h
         WHERE h.organization_id = p_org AND h.event_id = v_pool.event_id AND h.zone_no = v_pool.zone_no
           AND h.status = 'active' AND h.ordinal IS NULL AND h.held_until <= v_until
         ORDER BY h.held_until LIMIT p_limit) d),
      'SYSTEM', NULL, NULL, NULL, NULL, NULL, NULL);
    v_n := v_n + cardinality(v_ended);
  END LOOP;
  RETURN v_n;
END $$;

-- Longer life for the caller's hold, never past p_cap_s from its creation. Not a move: the seat stays held.
CREATE OR REPLACE FUNCTION extend_hold(
  p_org uuid, p_hold uuid, p_ttl_s integer, p_cap_s integer,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text
) RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now   timestamptz;
  v_hold  holds;
  v_until timestamptz;
  v_version integer;
BEGIN
  PERFORM share_events(ARRAY(SELECT h.event_id FROM holds h WHERE h.organization_id = p_org AND h.id = p_hold));
  SELECT h.* INTO v_hold FROM holds h WHERE h.organization_id = p_org AND h.id = p_hold;  -- as it is under that lock
  IF v_hold.ordinal IS NULL THEN
    PERFORM FROM event_zones z
    WHERE z.organization_id = p_org AND z.event_id = v_hold.event_id AND z.zone_no = v_hold.zone_no FOR UPDATE;
  ELSE
    PERFORM FROM event_seats s
    WHERE s.organization_id = p_org AND s.event_id = v_hold.event_id AND s.ordinal = v_hold.ordinal FOR UPDATE;
  END IF;
  v_now := holdfast_now();
  v_until := least(v_now + make_interval(secs => p_ttl_s), v_hold.created_at + make_interval(secs => p_cap_s));
  UPDATE holds h SET held_until = v_until
  WHERE h.organization_id = p_org AND h.id = p_hold AND h.status = 'active' AND h.held_until > v_now
    AND h.held_until < v_until AND h.checkout_id IS NULL;  -- in a checkout it lives as long as that
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  UPDATE event_seats s SET held_until = v_until
  WHERE s.organization_id = p_org AND s.event_id = v_hold.event_id AND s.ordinal = v_hold.ordinal
    AND s.state = 'held' AND s.hold_id = p_hold
  RETURNING s.version INTO v_version;
  INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, event_id, actor, user_id, ip, user_agent,
    request_id, changes)
  VALUES (p_org, v_now, 'seat_hold_extended', 'SeatHold', p_hold, v_hold.event_id, p_actor, p_user, p_ip, p_agent, p_trace,
    jsonb_build_object('held_until', v_until, 'was', v_hold.held_until));
  INSERT INTO outbox (organization_id, at, kind, event_id, actor, source, state, hold_type, held_until,
    ordinals, versions, hold_ids, user_ids, quantities, zone_no)
  VALUES (p_org, v_now, 'SeatHoldExtended', v_hold.event_id, p_actor, v_hold.source, 'held', v_hold.hold_type, v_until,
    CASE WHEN v_hold.ordinal IS NOT NULL THEN ARRAY[v_hold.ordinal] END,
    CASE WHEN v_hold.ordinal IS NOT NULL THEN ARRAY[v_version] END,
    ARRAY[p_hold], ARRAY[v_hold.user_id], ARRAY[v_hold.quantity], CASE WHEN v_hold.ordinal IS NULL THEN v_hold.zone_no END);
  RETURN v_until;
END $$;
