-- Checkouts: the session's row is locked after the event (shared) and before any seat. See 02_locks.sql.

-- Null: there is none. Whoever has this lock decides what becomes of the checkout; its holds may still end beside it, under
-- the locks of their seats.
CREATE OR REPLACE FUNCTION lock_checkout(p_org uuid, p_checkout uuid) RETURNS checkouts LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_checkout checkouts;
BEGIN
  PERFORM share_events(ARRAY(SELECT c.event_id FROM checkouts c WHERE c.organization_id = p_org AND c.id = p_checkout));
  SELECT c.* INTO v_checkout FROM checkouts c WHERE c.organization_id = p_org AND c.id = p_checkout FOR UPDATE;
  RETURN v_checkout;
END $$;

-- One clock ---------------------------------------------------------------------------------------------------------
-- The rows of holds whose seats (or zone) the caller has locked: from one checkout (null: from none) into another, with a
-- new end; a hold without an end keeps none. Only while they live. Tells viewers and caches, and says so where an end came
-- nearer: everything that remembers holds takes it for granted otherwise that they are only ever put off.
CREATE OR REPLACE FUNCTION retime_holds(
  p_org uuid, p_event uuid, p_holds uuid[], p_zone smallint, p_from uuid, p_to uuid, p_until timestamptz, p_actor text
) RETURNS uuid[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now  timestamptz := holdfast_now();
  v_done uuid[];
BEGIN
  WITH kept AS (
    UPDATE holds h SET checkout_id = p_to, held_until = CASE WHEN h.held_until IS NOT NULL THEN p_until END
    WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.status = 'active'
      AND (h.held_until IS NULL OR h.held_until > v_now) AND h.checkout_id IS NOT DISTINCT FROM p_from
    RETURNING h.id, h.ordinal, h.quantity, h.user_id, h.hold_type, h.source, old.held_until AS was
  ), told AS (
    INSERT INTO outbox (organization_id, at, kind, event_id, actor, source, state, hold_type, held_until,
      ordinals, versions, hold_ids, user_ids, quantities, zone_no, payload)
    SELECT p_org, v_now, 'SeatHoldExtended', p_event, p_actor, k.source, 'held', k.hold_type, p_until,
      CASE WHEN p_zone IS NULL THEN array_agg(k.ordinal ORDER BY k.id) END,
      CASE WHEN p_zone IS NULL THEN array_agg(s.version ORDER BY k.id) END,
      array_agg(k.id ORDER BY k.id), array_agg(k.user_id ORDER BY k.id), array_agg(k.quantity ORDER BY k.id), p_zone,
      CASE WHEN k.was > p_until THEN '{"shortened": true}'::jsonb END
    FROM kept k
    LEFT JOIN event_seats s ON s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = k.ordinal
    WHERE k.was IS NOT NULL AND k.was <> p_until
    GROUP BY k.source, k.hold_type, k.was > p_until
  )
  SELECT coalesce(array_agg(k.id), '{}') INTO v_done FROM kept k;
  RETURN v_done;
END $$;

-- The same for holds on seats and places, whichever are alive: locks the seats in order, then the zones. Answers those it
-- found alive. Where a hold went to another checkout meanwhile its seat has a wrong end: the caller rolls back unless it
-- was all of them.
CREATE OR REPLACE FUNCTION set_hold_ends(
  p_org uuid, p_event uuid, p_holds uuid[], p_from uuid, p_to uuid, p_until timestamptz, p_actor text
) RETURNS uuid[] LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off  -- the nested loop keeps the order of the locks
AS $$
DECLARE
  v_hold uuid[];
  v_done uuid[] := '{}';
  v_pool record;
BEGIN
  WITH kept AS (
    UPDATE event_seats s SET held_until = CASE WHEN s.held_until IS NOT NULL THEN p_until END
    FROM (SELECT h.id, h.ordinal FROM holds h
          WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.event_id = p_event AND h.status = 'active'
            AND h.ordinal IS NOT NULL
          ORDER BY h.ordinal) w
    WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = w.ordinal
      AND s.state = 'held' AND s.hold_id = w.id AND (s.held_until IS NULL OR s.held_until > holdfast_now())
    RETURNING new.hold_id
  )
  SELECT array_agg(k.hold_id) INTO v_hold FROM kept k;
  IF v_hold IS NOT NULL THEN
    v_done := retime_holds(p_org, p_event, v_hold, NULL, p_from, p_to, p_until, p_actor);
  END IF;
  FOR v_pool IN
    SELECT h.zone_no, array_agg(h.id) AS ids FROM holds h
    WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.event_id = p_event AND h.status = 'active'
      AND h.ordinal IS NULL
    GROUP BY 1 ORDER BY 1
  LOOP
    PERFORM FROM event_zones z
    WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = v_pool.zone_no FOR UPDATE;
    v_done := v_done || retime_holds(p_org, p_event, v_pool.ids, v_pool.zone_no, p_from, p_to, p_until, p_actor);
  END LOOP;
  RETURN v_done;
END $$;

-- When a hold ends that enters the session, or is kept alive by its heartbeat, at this moment.
CREATE OR REPLACE FUNCTION checkout_hold_end(p_expires_at timestamptz, p_heartbeat_s integer, p_now timestamptz)
RETURNS timestamptz LANGUAGE sql IMMUTABLE RETURN
  CASE WHEN p_heartbeat_s IS NULL THEN p_expires_at
       ELSE least(p_expires_at, p_now + make_interval(secs => p_heartbeat_s)) END;

-- Lines at their prices; p_prices and p_paid by position in p_holds.
CREATE OR REPLACE FUNCTION add_checkout_lines(
  p_org uuid, p_checkout uuid, p_holds uuid[], p_prices bigint[], p_paid boolean[], p_at timestamptz
) RETURNS void LANGUAGE sql VOLATILE AS $$
  INSERT INTO checkout_lines (organization_id, checkout_id, hold_id, quantity, price_minor, payment_required, added_at)
  SELECT p_org, p_checkout, h.id, h.quantity, w.price, w.paid, p_at
  FROM unnest(p_holds, p_prices, p_paid) AS w (id, price, paid)
  JOIN holds h ON h.organization_id = p_org AND h.id = w.id;
$$;

-- All of these holds, alive and in no checkout, into a new one. False: not all of them are, or the event is not on sale;
-- the caller rolls back and finds out which. The caller shares the event.
CREATE OR REPLACE FUNCTION open_checkout(
  p_org uuid, p_event uuid, p_checkout uuid, p_user uuid, p_session text, p_source text, p_actor text,
  p_life_s integer, p_heartbeat_s integer, p_currency text, p_holds uuid[], p_prices bigint[], p_paid boolean[]
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := holdfast_now();
  v_end timestamptz := v_now + make_interval(secs => p_life_s);
BEGIN
  IF NOT event_on_sale(p_org, p_event) THEN
    RETURN false;
  END IF;
  INSERT INTO checkouts (organization_id, id, event_id, user_id, session_id, source, actor, expires_at, heartbeat_s,
    last_heartbeat_at, currency, created_at)
  VALUES (p_org, p_checkout, p_event, p_user, p_session, p_source, p_actor, v_end, p_heartbeat_s,
    CASE WHEN p_heartbeat_s IS NOT NULL THEN v_now END, p_currency, v_now);
  IF cardinality(set_hold_ends(p_org, p_event, p_holds, NULL, p_checkout, checkout_hold_end(v_end, p_heartbeat_s, v_now),
                               p_actor)) < cardinality(p_holds) THEN
    RETURN false;
  END IF;
  PERFORM add_checkout_lines(p_org, p_checkout, p_holds, p_prices, p_paid, v_now);
  RETURN true;
END $$;

-- More of them into one that is open. The caller has locked it (lock_checkout).
CREATE OR REPLACE FUNCTION add_to_checkout(
  p_org uuid, p_checkout uuid, p_actor text, p_holds uuid[], p_prices bigint[], p_paid boolean[], p_currency text
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := holdfast_now();
  v_checkout checkouts;
BEGIN
  UPDATE checkouts c SET currency = coalesce(c.currency, p_currency)
  WHERE c.organization_id = p_org AND c.id = p_checkout AND c.status = 'open' AND c.expires_at > v_now
  RETURNING c.* INTO v_checkout;
  IF NOT FOUND OR NOT event_on_sale(p_org, v_checkout.event_id)
    OR cardinality(set_hold_ends(p_org, v_checkout.event_id, p_holds, NULL, p_checkout,
                                 checkout_hold_end(v_checkout.expires_at, v_checkout.heartbeat_s, v_now), p_actor))
       < cardinality(p_holds)
    OR v_checkout.expires_at <= holdfast_now()  -- who waited for a seat may be too late
  THEN
    RETURN false;
  END IF;
  PERFORM add_checkout_lines(p_org, p_checkout, p_holds, p_prices, p_paid, v_now);
  RETURN true;
END $$;

-- A new end for what is alive in it, never past its own. Answers these holds; what has ended is not revived. Null: the
-- session is over, or not of this kind. The caller has locked it.
CREATE OR REPLACE FUNCTION beat_checkout(p_org uuid, p_checkout uuid, p_actor text) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now timestamptz := holdfast_now();
  v_checkout checkouts;
BEGIN
  UPDATE checkouts c SET last_heartbeat_at = v_now
  WHERE c.organization_id = p_org AND c.id = p_checkout AND c.status IN ('open', 'paying') AND c.expires_at > v_now
    AND c.heartbeat_s IS NOT NULL
  RETURNING c.* INTO v_checkout;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  RETURN set_hold_ends(p_org, v_checkout.event_id,
    ARRAY(SELECT h.id FROM holds h WHERE h.organization_id = p_org AND h.checkout_id = p_checkout AND h.status = 'active'),
    p_checkout, p_checkout, checkout_hold_end(v_checkout.expires_at, v_checkout.heartbeat_s, v_now), p_actor);
END $$;

-- Ending ------------------------------------------------------------------------------------------------------------
-- Holds that outlive their checkout are in none again, and may enter another. Locks as every writer does.
CREATE OR REPLACE FUNCTION detach_holds(p_org uuid, p_event uuid, p_holds uuid[]) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off  -- the nested loop keeps the order of the locks
AS $$
BEGIN
  PERFORM FROM (
    SELECT FROM (SELECT h.ordinal FROM holds h
                 WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.event_id = p_event AND h.status = 'active'
                   AND h.ordinal IS NOT NULL ORDER BY h.ordinal) w
    JOIN event_seats s ON s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = w.ordinal
    FOR UPDATE OF s) seats;
  PERFORM FROM (
    SELECT FROM event_zones z WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no IN (
      SELECT h.zone_no FROM holds h
      WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.event_id = p_event AND h.status = 'active'
        AND h.ordinal IS NULL)
    ORDER BY z.zone_no FOR UPDATE OF z) zones;
  UPDATE holds h SET checkout_id = NULL
  WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.event_id = p_event AND h.status = 'active';
END $$;

-- What ending leaves behind: an audit entry and a message for each.
CREATE OR REPLACE FUNCTION record_checkouts_ended(
  p_org uuid, p_checkouts checkouts[], p_action text, p_kind text, p_at timestamptz,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS void LANGUAGE sql VOLATILE AS $$
  WITH ended AS (
    SELECT c.id, c.event_id, jsonb_build_object('checkout_id', c.id, 'expires_at', c.expires_at, 'hold_ids', (
      SELECT coalesce(jsonb_agg(l.hold_id ORDER BY l.hold_id), '[]') FROM checkout_lines l
      WHERE l.organization_id = p_org AND l.checkout_id = c.id AND l.dropped_at IS NULL)) AS facts
    FROM unnest(p_checkouts) c
  ), audited AS (
    INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, event_id, actor, user_id, ip, user_agent,
      request_id, reason, changes)
    SELECT p_org, p_at, p_action, 'Checkout', e.id, e.event_id, p_actor, p_user, p_ip, p_agent, p_trace, p_reason, e.facts
    FROM ended e
  )
  INSERT INTO outbox (organization_id, at, kind, event_id, actor, payload)
  SELECT p_org, p_at, p_kind, e.event_id, p_actor, e.facts FROM ended e;
$$;

-- The sweeper's step: at most p_limit sessions that are over. Those that somebody else is working on are left to them.
CREATE OR REPLACE FUNCTION expire_due_checkouts(p_org uuid, p_limit integer)
RETURNS TABLE (checkout_id uuid, event_id uuid) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
  v_events uuid[];
  v_now    timestamptz;
  v_ended  checkouts[];
BEGIN
  v_events := ARRAY(
    SELECT DISTINCT d.event_id FROM (
      SELECT c.event_id FROM checkouts c
      WHERE c.organization_id = p_org AND c.status IN ('open', 'paying') AND c.expires_at <= holdfast_now()
      ORDER BY c.expires_at LIMIT p_limit) d);
  PERFORM share_events(v_events);  -- before any checkout is locked: who owns an event waits for checkouts
  v_now := holdfast_now();
  WITH due AS (
    SELECT c.id FROM checkouts c
    WHERE c.organization_id = p_org AND c.event_id = ANY (v_events) AND c.status IN ('open', 'paying')
      AND c.expires_at <= v_now
    ORDER BY c.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  ), ended AS (
    UPDATE checkouts c SET status = 'expired', ended_at = v_now FROM due
    WHERE c.organization_id = p_org AND c.id = due.id AND c.status IN ('open', 'paying')
    RETURNING c AS one
  )
  SELECT array_agg(e.one) INTO v_ended FROM ended e;
  IF v_ended IS NULL THEN
    RETURN;
  END IF;
  PERFORM record_checkouts_ended(p_org, v_ended, 'checkout_expired', 'CheckoutExpired', v_now,
    'SYSTEM', NULL, NULL, NULL, NULL, NULL);
  RETURN QUERY SELECT e.id, e.event_id FROM unnest(v_ended) e;
END $$;

-- One that the caller has locked, or (p_checkout null) every one of an event that the caller owns. Answers those it ended.
CREATE OR REPLACE FUNCTION cancel_checkouts(
  p_org uuid, p_event uuid, p_checkout uuid,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS uuid[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now   timestamptz := holdfast_now();
  v_ended checkouts[];
BEGIN
  WITH ended AS (
    UPDATE checkouts c SET status = 'cancelled', ended_at = v_now
    WHERE c.organization_id = p_org AND c.event_id = p_event AND (p_checkout IS NULL OR c.id = p_checkout)
      AND c.status IN ('open', 'paying') AND (p_checkout IS NULL OR c.expires_at > v_now)
    RETURNING c AS one
  )
  SELECT array_agg(e.one) INTO v_ended FROM ended e;
  IF v_ended IS NULL THEN
    RETURN '{}';
  END IF;
  PERFORM record_checkouts_ended(p_org, v_ended, 'checkout_cancelled', 'CheckoutCancelled', v_now,
    p_actor, p_user, p_ip, p_agent, p_trace, p_reason);
  RETURN ARRAY(SELECT e.id FROM unnest(v_ended) e);
END $$;
