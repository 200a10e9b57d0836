-- available → held for numbered seats: a whole batch of requests in one call, the engine's busiest statement.
--
-- A claim is one seat wanted by one request. Claims come sorted by (event, ordinal), and no seat comes twice in a batch.
-- A request gets all of its seats or none: what a failing request had taken is given back before the commit, as if it had
-- never been touched.
--
-- The UPDATE is the decision: seat state, event state and sale window are all in its WHERE clause, under a shared lock on
-- the event, so a cancel that commits first always wins. A seat whose hold is over is taken at once, whether or not the
-- sweeper has run: the old hold expires in the same transaction, with both moves in the log.
--
-- An ordinal means a seat of one version of the layout: a claim says which (c_layout), and counts for no other. Whoever
-- still had the version before a migration in mind is refused, and never gets the seat that has the number now.

-- The first row (n = 0) says when it was decided; then one row a refused claim (n is its position) with the facts of the
-- refusal. A claim without a row was granted, for the life it asked from the moment of the decision.
DROP TYPE IF EXISTS hold_outcome CASCADE;
CREATE TYPE hold_outcome AS (
  n              integer,
  decided_at     timestamptz,
  held_until     timestamptz,   -- of the hold in the way
  state          text,          -- the seat's state (null: no such seat)
  own_hold_id    uuid,          -- the caller's own live hold on this very seat
  own_hold_type  text,
  own_created_at timestamptz,
  room           integer,       -- GA zone: the places left
  event_status   text,
  on_sale        boolean,
  retry_after_s  integer,       -- over a limit per user or ip
  kept           boolean,       -- for the companion of a wheelchair user
  layout_version integer        -- of the event now
);

-- Which requests of a batch are over their limit of holds placed in the window, and how long until they fit.
-- The caller holds the advisory locks of these users and ips, which makes the count exact among all processes.
CREATE OR REPLACE FUNCTION requests_over_limit(
  p_org uuid, p_now timestamptz, p_window_s integer,
  l_request integer[], l_user uuid[], l_ip text[], l_user_limit integer[], l_ip_limit integer[], l_quantity integer[],
  OUT over integer[], OUT retry_after_s integer[]
) LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_since timestamptz := p_now - make_interval(secs => p_window_s);
BEGIN
  SELECT coalesce(array_agg(l.request), '{}'), array_agg(greatest(1, ceil(extract(epoch FROM
      coalesce(f.free_at, p_now + make_interval(secs => p_window_s)) - p_now))::integer))
    INTO over, retry_after_s
  FROM unnest(l_request, l_user, l_ip, l_user_limit, l_ip_limit, l_quantity)
    AS l (request, user_id, ip, user_limit, ip_limit, quantity)
  CROSS JOIN LATERAL (
    SELECT count(*)::integer AS placed FROM holds h
    WHERE h.organization_id = p_org AND h.user_id = l.user_id AND h.created_at > v_since) u
  CROSS JOIN LATERAL (
    SELECT CASE WHEN l.ip_limit IS NULL THEN 0 ELSE (
      SELECT count(*) FROM holds h
      WHERE h.organization_id = p_org AND h.ip = l.ip AND h.created_at > v_since) END AS placed) a
  LEFT JOIN LATERAL (
    -- The oldest holds that must leave the window before this request fits.
    SELECT max(o.created_at) + make_interval(secs => p_window_s) AS free_at FROM (
      SELECT h.created_at FROM holds h
      WHERE h.organization_id = p_org AND h.user_id = l.user_id AND h.created_at > v_since
      ORDER BY h.created_at LIMIT greatest(0, u.placed + l.quantity - l.user_limit)) o
  ) f ON u.placed + l.quantity > l.user_limit AND l.quantity <= l.user_limit
  WHERE l.quantity > 0 AND (u.placed + l.quantity > l.user_limit OR a.placed + l.quantity > l.ip_limit);
END $$;

CREATE OR REPLACE FUNCTION hold_seats(
  p_org uuid, p_window_s integer, p_locks bigint[], p_events uuid[],
  l_request integer[], l_user uuid[], l_ip text[], l_user_limit integer[], l_ip_limit integer[], l_quantity integer[],
  c_request integer[], c_event uuid[], c_layout integer[], c_ordinal integer[], c_zone smallint[], c_hold uuid[],
  c_user uuid[], c_session text[], c_ip text[], c_keep_ip boolean[], c_agent text[], c_trace text[],
  c_actor text[], c_source text[], c_hold_type text[], c_ttl_s integer[], c_any_time boolean[],
  p_companions integer[]
) RETURNS SETOF hold_outcome LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  v_now       timestamptz;
  v_over      integer[] := '{}';
  v_retry     integer[];
  v_new       integer[];       -- by limited request: the seats in it that are not the caller's already
  v_n         bigint[];
  v_version   integer[];       -- by claim; null where the seat was not taken
  v_old_hold  uuid[];          -- by claim; set where an expired hold was in the seat
  v_old_type  text[];
  v_old_until timestamptz[];
  v_expired   boolean;
  v_missed    boolean;
  v_failed    integer[];
  v_kept      integer[] := '{}';  -- claims for seats that are kept for a wheelchair user's companion
  v_later     integer[] := '{}';  -- and those of which that is not yet certain
  v_noted     integer[];
  v_reason    text[];             -- by claim; null, for nearly all
  -- Some request wants several seats, and may get only part of them at first.
  v_several   boolean := cardinality(c_request) > (SELECT count(DISTINCT r) FROM unnest(c_request) r);
BEGIN
  PERFORM set_config('holdfast.organization_id', p_org::text, true);
  IF cardinality(p_locks) > 0 THEN
    PERFORM pg_advisory_xact_lock(k) FROM unnest(p_locks) k;
  END IF;
  PERFORM share_events(p_events);
  IF p_companions IS NOT NULL THEN
    PERFORM lock_companions(p_org, p_companions, c_event, c_ordinal);
  END IF;
  v_now := holdfast_now();

  IF cardinality(l_request) > 0 THEN
    SELECT o.over, o.retry_after_s INTO v_over, v_retry
    FROM requests_over_limit(p_org, v_now, p_window_s, l_request, l_user, l_ip, l_user_limit, l_ip_limit, l_quantity) o;
    IF cardinality(v_over) > 0 THEN
      -- Asking again for one's own seat places nothing: only what is new in a request counts.
      SELECT array_agg(l.quantity - (
          SELECT count(*)::integer FROM unnest(c_request, c_event, c_ordinal) AS c (request, event_id, ordinal)
          JOIN event_seats s ON s.organization_id = p_org AND s.event_id = c.event_id AND s.ordinal = c.ordinal
          JOIN holds h ON h.organization_id = p_org AND h.id = s.hold_id AND h.user_id = l.user_id
          WHERE c.request = l.request AND s.state = 'held' AND (s.held_until IS NULL OR s.held_until > v_now)) ORDER BY l.n)
        INTO v_new FROM unnest(l_request, l_user, l_quantity) WITH ORDINALITY AS l (request, user_id, quantity, n);
      SELECT o.over, o.retry_after_s INTO v_over, v_retry
      FROM requests_over_limit(p_org, v_now, p_window_s, l_request, l_user, l_ip, l_user_limit, l_ip_limit, v_new) o;
    END IF;
  END IF;

  IF p_companions IS NOT NULL THEN
    SELECT k.kept, k.noted, k.later INTO v_kept, v_noted, v_later
    FROM kept_companions(p_org, v_now, p_companions, c_request, c_event, c_ordinal, c_zone, c_user, c_session) k;
    IF cardinality(v_noted) > 0 THEN
      SELECT array_agg(CASE WHEN i = ANY (v_noted) THEN kept_seat_note() END ORDER BY i)
        INTO v_reason FROM generate_series(1, cardinality(c_event)) i;
    END IF;
  END IF;

  WITH taken AS (
    UPDATE event_seats s
    SET state = 'held', hold_id = c.hold_id, hold_type = c.hold_type, locked_at = v_now,
        held_until = v_now + make_interval(secs => c.ttl_s),
        version = s.version + CASE s.state WHEN 'held' THEN 2 ELSE 1 END
    FROM (SELECT * FROM unnest(c_request, c_event, c_layout, c_ordinal, c_hold, c_hold_type, c_ttl_s, c_any_time)
            WITH ORDINALITY AS c (request, event_id, layout, ordinal, hold_id, hold_type, ttl_s, any_time, n)
          WHERE c.request <> ALL (v_over) AND c.n <> ALL (v_kept) AND c.n <> ALL (v_later)) c
    JOIN events e ON e.organization_id = p_org AND e.id = c.event_id
    WHERE s.organization_id = p_org AND s.event_id = c.event_id AND s.ordinal = c.ordinal
      AND (s.state = 'available' OR (s.state = 'held' AND s.held_until <= v_now))
      AND e.status IN ('published', 'live')
      AND e.layout_version IS NOT DISTINCT FROM c.layout
      AND (c.any_time OR (v_now >= coalesce(e.sale_start, '-infinity') AND v_now <= coalesce(e.sale_end, 'infinity')))
    RETURNING c.n, new.version, old.hold_id, old.hold_type, old.held_until
  )
  SELECT array_agg(t.n), array_agg(t.version), array_agg(t.hold_id), array_agg(t.hold_type), array_agg(t.held_until),
         bool_or(t.hold_id IS NOT NULL), count(*) < cardinality(c_event)
    INTO v_n, v_version, v_old_hold, v_old_type, v_old_until, v_expired, v_missed
  FROM (SELECT * FROM taken ORDER BY taken.n) t;

  IF v_missed THEN  -- lay what was taken beside the claims again
    SELECT array_agg(t.version ORDER BY i.n), array_agg(t.old_hold ORDER BY i.n), array_agg(t.old_type ORDER BY i.n),
           array_agg(t.old_until ORDER BY i.n)
      INTO v_version, v_old_hold, v_old_type, v_old_until
    FROM generate_series(1, cardinality(c_event)) AS i (n)
    LEFT JOIN unnest(v_n, v_version, v_old_hold, v_old_type, v_old_until) AS t (n, version, old_hold, old_type, old_until)
      ON t.n = i.n;
  END IF;

  IF v_missed AND v_several THEN
    SELECT array_agg(DISTINCT c.request) INTO v_failed
    FROM unnest(c_request, v_version) AS c (request, version) WHERE c.version IS NULL;

    UPDATE event_seats s
    SET state = CASE WHEN c.old_hold IS NULL THEN 'available' ELSE 'held' END::seat_state, hold_id = c.old_hold,
        hold_type = c.old_type, held_until = c.old_until,
        locked_at = (SELECT h.created_at FROM holds h WHERE h.organization_id = p_org AND h.id = c.old_hold),
        version = s.version - CASE WHEN c.old_hold IS NULL THEN 1 ELSE 2 END
    FROM unnest(c_request, c_event, c_ordinal, v_version, v_old_hold, v_old_type, v_old_until)
      AS c (request, event_id, ordinal, version, old_hold, old_type, old_until)
    WHERE c.version IS NOT NULL AND c.request = ANY (v_failed)
      AND s.organization_id = p_org AND s.event_id = c.event_id AND s.ordinal = c.ordinal;

    SELECT array_agg(CASE WHEN c.request = ANY (v_failed) THEN NULL ELSE c.version END ORDER BY c.n),
           bool_or(c.old_hold IS NOT NULL AND c.request <> ALL (v_failed))
      INTO v_version, v_expired
    FROM unnest(c_request, v_version, v_old_hold) WITH ORDINALITY AS c (request, version, old_hold, n);
  END IF;

  IF v_expired THEN
    PERFORM end_lapsed_holds(p_org, v_now, array_agg(c.event_id), array_agg(c.ordinal), array_agg(c.zone_no),
      array_agg(c.version - 1), array_agg(c.old_hold), array_agg(c.old_type))
    FROM unnest(c_event, c_ordinal, c_zone, v_version, v_old_hold, v_old_type)
      AS c (event_id, ordinal, zone_no, version, old_hold, old_type)
    WHERE c.version IS NOT NULL AND c.old_hold IS NOT NULL;
  END IF;

  IF v_n IS NOT NULL THEN
  WITH c AS (
    SELECT * FROM unnest(c_event, c_ordinal, c_zone, c_hold, c_user, c_session, c_ip, c_keep_ip, c_agent, c_trace, c_actor,
        c_source, c_hold_type, c_ttl_s, v_version, v_reason)
      AS c (event_id, ordinal, zone_no, hold_id, user_id, session_id, ip, keep_ip, agent, trace, actor,
        source, hold_type, ttl_s, version, reason)
    WHERE c.version IS NOT NULL
  ), placed AS (
    INSERT INTO holds (organization_id, id, event_id, ordinal, zone_no, user_id, session_id, ip, hold_type, actor, source,
      held_until, created_at)
    SELECT p_org, c.hold_id, c.event_id, c.ordinal, c.zone_no, c.user_id, c.session_id, CASE WHEN c.keep_ip THEN c.ip END,
      c.hold_type, c.actor, c.source, v_now + make_interval(secs => c.ttl_s), v_now
    FROM c
  ), audited AS (
    -- What was reserved is in the hold's own row, which stays: the audit adds who asked, from where and with what.
    INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, event_id, actor, user_id, ip, user_agent,
      request_id)
    SELECT p_org, v_now, 'seat_reserved', 'SeatHold', c.hold_id, c.event_id, c.actor, c.user_id, c.ip, c.agent, c.trace
    FROM c
  ), logged AS (
    INSERT INTO seat_state_events (organization_id, event_id, at, verb, ordinal, zone_no, quantity, old_state, new_state,
      version, hold_type, hold_id, session_id, actor, user_id, reason)
    SELECT p_org, c.event_id, v_now, 'hold', c.ordinal, c.zone_no, 1, 'available', 'held',
      c.version, c.hold_type, c.hold_id, c.session_id, c.actor, c.user_id, c.reason
    FROM c
  ), counted AS (
    INSERT INTO occupancy_changes (organization_id, event_id, zone_no, state, hold_type, change)
    SELECT p_org, c.event_id, c.zone_no, 'held', c.hold_type, count(*) FROM c GROUP BY c.event_id, c.zone_no, c.hold_type
  )
  INSERT INTO outbox (organization_id, at, kind, event_id, actor, source, state, hold_type, held_until,
    ordinals, versions, hold_ids, user_ids)
  SELECT p_org, v_now, 'SeatReserved', c.event_id, c.actor, c.source, 'held', c.hold_type,
    v_now + make_interval(secs => c.ttl_s),
    array_agg(c.ordinal), array_agg(c.version), array_agg(c.hold_id), array_agg(c.user_id)
  FROM c GROUP BY c.event_id, c.actor, c.source, c.hold_type, c.ttl_s;
  END IF;

  RETURN NEXT ROW(0, v_now, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::hold_outcome;
  IF NOT v_missed THEN
    RETURN;
  END IF;

  -- For what was refused: what stood in the way, as it is now.
  RETURN QUERY SELECT c.n::integer, v_now, s.held_until, s.state::text, own.id, own.hold_type,
    own.created_at, NULL::integer, e.status::text,
    c.any_time OR (v_now >= coalesce(e.sale_start, '-infinity') AND v_now <= coalesce(e.sale_end, 'infinity')),
    v_retry[array_position(v_over, c.request)], c.n = ANY (v_kept), e.layout_version
  FROM unnest(c_request, c_event, c_ordinal, c_user, c_any_time, v_version)
    WITH ORDINALITY AS c (request, event_id, ordinal, user_id, any_time, version, n)
  LEFT JOIN event_seats s ON s.organization_id = p_org AND s.event_id = c.event_id AND s.ordinal = c.ordinal
  LEFT JOIN events e ON e.organization_id = p_org AND e.id = c.event_id
  LEFT JOIN holds own ON own.organization_id = p_org AND own.id = s.hold_id AND s.state = 'held'
    AND own.user_id = c.user_id AND (own.held_until IS NULL OR own.held_until > v_now)
  WHERE c.version IS NULL;
END $$;
