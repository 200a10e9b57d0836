-- available → held for general admission: quantities of counted pools, a whole batch in one call.
--
-- Zones come once each, sorted, in z_*; claims come sorted by request and point at their zone by position. The zones' rows
-- are locked, then shared out in the order of the requests: a request that does not fit does not keep out a smaller one
-- behind it. A request gets all of its quantities or none. Places whose hold is over are free, swept or not.
-- A zone's number, like a seat's, means something in one version of the layout (z_layout), and counts for no other.
CREATE OR REPLACE FUNCTION hold_places(
  p_org uuid, p_window_s integer, p_locks bigint[], p_events uuid[],
  l_request integer[], l_user uuid[], l_ip text[], l_user_limit integer[], l_ip_limit integer[], l_quantity integer[],
  z_event uuid[], z_layout integer[], z_zone smallint[],
  c_request integer[], c_z integer[], c_quantity integer[], c_hold uuid[],
  c_user uuid[], c_session text[], c_ip text[], c_keep_ip boolean[], c_agent text[], c_trace text[],
  c_actor text[], c_source text[], c_hold_type text[], c_ttl_s integer[], c_any_time boolean[]
) RETURNS SETOF hold_outcome LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now      timestamptz;
  v_over     integer[] := '{}';
  v_retry    integer[];
  v_room     integer[];
  v_version  integer[];
  v_disabled boolean[];
  v_status   text[];
  v_on_sale  boolean[];
  v_layout   integer[];
  v_taken    integer[] := array_fill(0, ARRAY[cardinality(z_zone)]);
  v_wanted   integer[] := array_fill(0, ARRAY[cardinality(z_zone)]);  -- by the request at hand, which may name a zone twice
  v_count    integer[] := array_fill(0, ARRAY[cardinality(z_zone)]);
  v_swept    boolean[] := array_fill(false, ARRAY[cardinality(z_zone)]);
  v_granted  integer[] := array_fill(NULL::integer, ARRAY[cardinality(c_z)]);  -- by claim: the zone's version it made
  v_fits     boolean;
  v_left     integer;
  v_swept_to integer;
  i integer := 1;
  j integer;
  z integer;
BEGIN
  PERFORM set_config('holdfast.organization_id', p_org::text, true);
  IF cardinality(p_locks) > 0 THEN
    PERFORM pg_advisory_xact_lock(k) FROM unnest(p_locks) k;
  END IF;
  PERFORM share_events(p_events);
  FOR z IN 1 .. cardinality(z_zone) LOOP
    SELECT v_room || (p.capacity - p.held - p.sold - p.blocked), v_version || p.version, v_disabled || coalesce(p.disabled, false)
      INTO v_room, v_version, v_disabled
    FROM (SELECT 1) one LEFT JOIN LATERAL (
      SELECT * FROM event_zones p
      WHERE p.organization_id = p_org AND p.event_id = z_event[z] AND p.zone_no = z_zone[z] FOR UPDATE) p ON true;
  END LOOP;
  v_now := holdfast_now();
  SELECT array_agg(e.status::text ORDER BY w.n), array_agg(v_now >= coalesce(e.sale_start, '-infinity')
           AND v_now <= coalesce(e.sale_end, 'infinity') ORDER BY w.n),
         array_agg(e.layout_version ORDER BY w.n)
    INTO v_status, v_on_sale, v_layout
  FROM unnest(z_event) WITH ORDINALITY AS w (event_id, n)
  LEFT JOIN events e ON e.organization_id = p_org AND e.id = w.event_id;

  IF cardinality(l_request) > 0 THEN
    SELECT o.over, o.retry_after_s INTO v_over, v_retry
    FROM requests_over_limit(p_org, v_now, p_window_s, l_request, l_user, l_ip, l_user_limit, l_ip_limit, l_quantity) o;
  END IF;

  WHILE i <= cardinality(c_z) LOOP
    j := i;
    v_fits := c_request[i] <> ALL (v_over);
    WHILE j <= cardinality(c_z) AND c_request[j] = c_request[i] LOOP
      z := c_z[j];
      v_wanted[z] := v_wanted[z] + c_quantity[j];
      v_fits := v_fits AND v_layout[z] IS NOT DISTINCT FROM z_layout[z];
      IF v_fits AND v_room[z] < v_wanted[z] AND NOT v_swept[z] AND NOT v_disabled[z] THEN
        v_swept[z] := true;
        PERFORM end_zone_holds(p_org, z_event[z], z_zone[z], 'expire', NULL,
          'SYSTEM', NULL, NULL, NULL, NULL, NULL, 'taken over by the next buyer');
        SELECT p.capacity - p.held - p.sold - p.blocked, p.version INTO v_left, v_swept_to FROM event_zones p
        WHERE p.organization_id = p_org AND p.event_id = z_event[z] AND p.zone_no = z_zone[z];
        v_room[z] := v_left - v_taken[z];
        v_version[z] := v_swept_to;
      END IF;
      v_fits := v_fits AND coalesce(v_room[z] >= v_wanted[z], false)
        AND coalesce(v_status[z] IN ('published', 'live'), false) AND (c_any_time[j] OR v_on_sale[z])
        AND NOT v_disabled[z];
      j := j + 1;
    END LOOP;
    FOR k IN i .. j - 1 LOOP
      v_wanted[c_z[k]] := 0;
    END LOOP;
    IF v_fits THEN
      FOR k IN i .. j - 1 LOOP
        z := c_z[k];
        v_room[z] := v_room[z] - c_quantity[k];
        v_taken[z] := v_taken[z] + c_quantity[k];
        v_count[z] := v_count[z] + 1;
        v_granted[k] := v_count[z];
      END LOOP;
    END IF;
    i := j;
  END LOOP;

  UPDATE event_zones p SET held = p.held + w.taken, version = p.version + w.moves
  FROM unnest(z_event, z_zone, v_taken, v_count) AS w (event_id, zone_no, taken, moves)
  WHERE w.moves > 0 AND p.organization_id = p_org AND p.event_id = w.event_id AND p.zone_no = w.zone_no
    AND NOT p.disabled
    AND p.capacity - p.held - p.sold - p.blocked >= w.taken;

  WITH c AS (
    SELECT z_event[c.z] AS event_id, z_zone[c.z] AS zone_no, v_version[c.z] + c.granted AS version, c.*
    FROM unnest(c_z, c_quantity, c_hold, c_user, c_session, c_ip, c_keep_ip, c_agent, c_trace, c_actor, c_source, c_hold_type,
        c_ttl_s, v_granted)
      AS c (z, quantity, hold_id, user_id, session_id, ip, keep_ip, agent, trace, actor, source, hold_type, ttl_s, granted)
    WHERE c.granted IS NOT NULL
  ), placed AS (
    INSERT INTO holds (organization_id, id, event_id, zone_no, quantity, user_id, session_id, ip, hold_type, actor, source,
      held_until, created_at)
    SELECT p_org, c.hold_id, c.event_id, c.zone_no, c.quantity, c.user_id, c.session_id, CASE WHEN c.keep_ip THEN c.ip END,
      c.hold_type, c.actor, c.source, v_now + make_interval(secs => c.ttl_s), v_now
    FROM c
  ), audited AS (
    INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, event_id, actor, user_id, ip, user_agent,
      request_id)
    SELECT p_org, v_now, 'seat_reserved', 'SeatHold', c.hold_id, c.event_id, c.actor, c.user_id, c.ip, c.agent, c.trace
    FROM c
  ), logged AS (
    INSERT INTO seat_state_events (organization_id, event_id, at, verb, zone_no, quantity, old_state, new_state,
      version, hold_type, hold_id, session_id, actor, user_id)
    SELECT p_org, c.event_id, v_now, 'hold', c.zone_no, c.quantity, 'available', 'held',
      c.version, c.hold_type, c.hold_id, c.session_id, c.actor, c.user_id
    FROM c
  ), counted AS (
    INSERT INTO occupancy_changes (organization_id, event_id, zone_no, state, hold_type, change)
    SELECT p_org, c.event_id, c.zone_no, 'held', c.hold_type, sum(c.quantity) FROM c
    GROUP BY c.event_id, c.zone_no, c.hold_type
  )
  INSERT INTO outbox (organization_id, at, kind, event_id, actor, source, state, hold_type, held_until, hold_ids, user_ids,
    quantities, zone_no, zone_version, zone_held, zone_sold, zone_blocked)
  SELECT p_org, v_now, 'SeatReserved', g.event_id, g.actor, g.source, 'held', g.hold_type,
    v_now + make_interval(secs => g.ttl_s), g.hold_ids, g.user_ids, g.quantities, z.zone_no, z.version, z.held, z.sold,
    z.blocked
  FROM (SELECT c.event_id, c.zone_no, c.actor, c.source, c.hold_type, c.ttl_s, array_agg(c.hold_id) AS hold_ids,
          array_agg(c.user_id) AS user_ids, array_agg(c.quantity) AS quantities
        FROM c GROUP BY c.event_id, c.zone_no, c.actor, c.source, c.hold_type, c.ttl_s) g
  JOIN event_zones z ON z.organization_id = p_org AND z.event_id = g.event_id AND z.zone_no = g.zone_no;

  RETURN NEXT ROW(0, v_now, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::hold_outcome;
  RETURN QUERY SELECT c.n::integer, v_now, NULL::timestamptz,
    CASE WHEN v_room[c.z] IS NULL THEN NULL WHEN v_disabled[c.z] THEN 'blocked' ELSE 'available' END,
    NULL::uuid, NULL::text, NULL::timestamptz, v_room[c.z], v_status[c.z], c.any_time OR v_on_sale[c.z],
    v_retry[array_position(v_over, c.request)], NULL::boolean, v_layout[c.z]
  FROM unnest(c_request, c_z, c_any_time, v_granted) WITH ORDINALITY AS c (request, z, any_time, granted, n)
  WHERE c.granted IS NULL;
END $$;
