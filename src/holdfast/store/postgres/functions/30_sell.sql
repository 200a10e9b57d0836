-- held → sold (convert), available → sold (direct sale), sold → available (revert sale).
-- Each answers how many seats moved; the caller rolls back unless it was all of them.

-- Asserted again where a sale is written: the caller shares the event's lock, so a cancel that commits first wins.
CREATE OR REPLACE FUNCTION event_on_sale(p_org uuid, p_event uuid) RETURNS boolean LANGUAGE sql STABLE RETURN
  EXISTS (SELECT FROM events e WHERE e.organization_id = p_org AND e.id = p_event AND e.status IN ('published', 'live'));

-- Only the holds of this session convert, and only while they live by the database's clock. What is in a checkout is sold by
-- that alone; a hold comes into one under the lock of its seat, so the seats are locked before the holds are looked at.
CREATE OR REPLACE FUNCTION convert_session_seats(
  p_org uuid, p_event uuid, p_ordinals integer[], p_session text, p_new_type text, p_types_when_sold text[],
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text
) RETURNS integer LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off  -- the nested loop keeps the order of the locks
AS $$
DECLARE
  v_now timestamptz := holdfast_now();
  v_ordinal integer[]; v_zone smallint[]; v_version integer[]; v_type text[]; v_hold uuid[]; v_after text[]; v_n integer;
BEGIN
  PERFORM FROM lock_seats(p_org, p_event, p_ordinals);
  v_now := holdfast_now();
  WITH sold AS (
    UPDATE event_seats s
    SET state = 'sold', sold_at = v_now, hold_id = NULL, held_until = NULL, locked_at = NULL, version = s.version + 1,
        hold_type = coalesce(p_new_type, CASE WHEN s.hold_type = ANY (p_types_when_sold) THEN s.hold_type END)
    FROM (SELECT o FROM unnest(p_ordinals) o ORDER BY o) w
    WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = w.o AND s.state = 'held'
      AND (s.held_until IS NULL OR s.held_until > holdfast_now())
      AND EXISTS (SELECT FROM holds h WHERE h.organization_id = p_org AND h.id = s.hold_id AND h.session_id = p_session
                  AND h.status = 'active' AND h.checkout_id IS NULL)
      AND event_on_sale(p_org, p_event)
    RETURNING new.ordinal, new.zone_no, new.version, old.hold_type, old.hold_id, new.hold_type AS after
  )
  SELECT array_agg(ordinal), array_agg(zone_no), array_agg(version), array_agg(hold_type), array_agg(hold_id),
         array_agg(after), count(*)
    INTO v_ordinal, v_zone, v_version, v_type, v_hold, v_after, v_n FROM sold;
  IF v_n > 0 THEN
    UPDATE holds h SET status = 'converted', ended_at = v_now
    WHERE h.organization_id = p_org AND h.id = ANY (v_hold) AND h.status = 'active';
    PERFORM record_moves(p_org, 'convert', v_now, p_actor, p_user, p_session, p_ip, p_agent, p_trace, NULL,
      array_fill(p_event, ARRAY[v_n]), v_ordinal, v_zone, array_fill(1, ARRAY[v_n]), array_fill('held'::seat_state, ARRAY[v_n]),
      array_fill('sold'::seat_state, ARRAY[v_n]), v_version, v_type, v_hold, array_fill(p_session, ARRAY[v_n]), v_after);
  END IF;
  RETURN v_n;
END $$;

-- The session that buys is the owner, or p_owner where somebody sells to them; a seat kept for another's companion is not
-- sold (p_companions: by position).
DROP FUNCTION IF EXISTS sell_seats_directly(uuid, uuid, integer[], text, text, text, uuid, text, text, text);
DROP FUNCTION IF EXISTS sell_seats_directly(uuid, uuid, integer[], text, text, text, uuid, text, text, text, integer[]);
CREATE OR REPLACE FUNCTION sell_seats_directly(
  p_org uuid, p_event uuid, p_ordinals integer[], p_hold_type text, p_session text,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_companions integer[] DEFAULT NULL,
  p_reason text DEFAULT NULL, p_owner uuid DEFAULT NULL
) RETURNS integer LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off  -- the nested loop keeps the order of the locks
AS $$
DECLARE
  v_now timestamptz := holdfast_now();
  v_ordinal integer[]; v_zone smallint[]; v_version integer[]; v_n integer;
  v_old_hold uuid[]; v_old_type text[];
  v_seats integer := cardinality(p_ordinals);
  v_event uuid[];
  v_kept integer[]; v_noted integer[];
  v_reason text := p_reason;
BEGIN
  IF p_companions IS NOT NULL THEN
    v_event := array_fill(p_event, ARRAY[v_seats]);
    PERFORM lock_companions(p_org, p_companions, v_event, p_ordinals);
    v_now := holdfast_now();
    SELECT k.kept, k.noted INTO v_kept, v_noted
    FROM kept_companions(p_org, v_now, p_companions, array_fill(1, ARRAY[v_seats]), v_event, p_ordinals,
      (SELECT array_agg(s.zone_no ORDER BY w.n) FROM unnest(p_ordinals) WITH ORDINALITY AS w (o, n)
       JOIN event_seats s ON s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = w.o),
      array_fill(coalesce(p_owner, p_user), ARRAY[v_seats]), array_fill(p_session, ARRAY[v_seats])) k;
    IF cardinality(v_kept) > 0 THEN
      RETURN 0;
    END IF;
    IF cardinality(v_noted) > 0 THEN
      SELECT concat_ws('; ', p_reason, kept_seat_note() || ': ordinal ' || string_agg(p_ordinals[n]::text, ', ')) INTO v_reason
      FROM unnest(v_noted) n;
    END IF;
  END IF;
  WITH sold AS (
    UPDATE event_seats s
    SET state = 'sold', sold_at = v_now, hold_id = NULL, held_until = NULL, locked_at = NULL, hold_type = p_hold_type,
        version = s.version + CASE s.state WHEN 'held' THEN 2 ELSE 1 END
    FROM (SELECT o FROM unnest(p_ordinals) o ORDER BY o) w
    JOIN events e ON e.organization_id = p_org AND e.id = p_event AND e.status IN ('published', 'live')
    WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = w.o
      AND (s.state = 'available' OR (s.state = 'held' AND s.held_until <= v_now))
    RETURNING new.ordinal, new.zone_no, new.version, old.hold_id AS old_hold, old.hold_type AS old_type
  )
  SELECT array_agg(ordinal), array_agg(zone_no), array_agg(version), count(*), array_agg(old_hold), array_agg(old_type)
    INTO v_ordinal, v_zone, v_version, v_n, v_old_hold, v_old_type FROM sold;
  IF v_n > 0 THEN
    PERFORM end_lapsed_holds(p_org, v_now, array_agg(p_event), array_agg(c.ordinal), array_agg(c.zone_no),
      array_agg(c.version - 1), array_agg(c.old_hold), array_agg(c.old_type))
    FROM unnest(v_ordinal, v_zone, v_version, v_old_hold, v_old_type) AS c (ordinal, zone_no, version, old_hold, old_type)
    WHERE c.old_hold IS NOT NULL HAVING count(*) > 0;
    PERFORM record_moves(p_org, 'direct_sale', v_now, p_actor, p_user, p_session, p_ip, p_agent, p_trace, v_reason,
      array_fill(p_event, ARRAY[v_n]), v_ordinal, v_zone, array_fill(1, ARRAY[v_n]),
      array_fill('available'::seat_state, ARRAY[v_n]), array_fill('sold'::seat_state, ARRAY[v_n]), v_version,
      array_fill(p_hold_type, ARRAY[v_n]), array_fill(NULL::uuid, ARRAY[v_n]), array_fill(p_session, ARRAY[v_n]));
  END IF;
  RETURN v_n;
END $$;

-- Not where a valid ticket stands on one of them: whoever reverts a sale has voided its ticket, or moved it, before. It is
-- looked for when the seats are locked, because a ticket is issued by the transaction that sells its seat.
CREATE OR REPLACE FUNCTION revert_sold_seats(
  p_org uuid, p_event uuid, p_ordinals integer[], p_session text,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS integer LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off  -- the nested loop keeps the order of the locks
AS $$
DECLARE
  v_now timestamptz := holdfast_now();
  v_ordinal integer[]; v_zone smallint[]; v_version integer[]; v_type text[]; v_n integer;
BEGIN
  PERFORM FROM lock_seats(p_org, p_event, p_ordinals);
  IF EXISTS (SELECT FROM tickets t WHERE t.organization_id = p_org AND t.event_id = p_event AND t.ordinal = ANY (p_ordinals)
             AND t.status = 'valid') THEN
    RETURN 0;
  END IF;
  v_now := holdfast_now();
  WITH reverted AS (
    UPDATE event_seats s SET state = 'available', sold_at = NULL, hold_type = NULL, version = s.version + 1
    FROM (SELECT o FROM unnest(p_ordinals) o ORDER BY o) w
    WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = w.o AND s.state = 'sold'
    RETURNING new.ordinal, new.zone_no, new.version, old.hold_type
  )
  SELECT array_agg(ordinal), array_agg(zone_no), array_agg(version), array_agg(hold_type), count(*)
    INTO v_ordinal, v_zone, v_version, v_type, v_n FROM reverted;
  IF v_n > 0 THEN
    PERFORM record_moves(p_org, 'revert_sale', v_now, p_actor, p_user, p_session, p_ip, p_agent, p_trace, p_reason,
      array_fill(p_event, ARRAY[v_n]), v_ordinal, v_zone, array_fill(1, ARRAY[v_n]), array_fill('sold'::seat_state, ARRAY[v_n]),
      array_fill('available'::seat_state, ARRAY[v_n]), v_version, v_type, array_fill(NULL::uuid, ARRAY[v_n]),
      array_fill(p_session, ARRAY[v_n]));
  END IF;
  RETURN v_n;
END $$;

-- General admission ------------------------------------------------------------------------------------------

-- Takes p_quantity places out of this session's live holds in one zone, oldest first, splitting the last where it is larger
-- than needed, and marks what it took. What is in a checkout is not drawn on. The caller holds the zone's lock. Null: the
-- session does not hold that many.
CREATE OR REPLACE FUNCTION draw_session_places(
  p_org uuid, p_event uuid, p_zone smallint, p_quantity integer, p_session text, p_status hold_status, p_now timestamptz,
  OUT holds uuid[], OUT quantities integer[], OUT hold_types text[]
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_left integer := p_quantity;
  v_hold holds;
  v_part integer;
  v_id   uuid;
BEGIN
  FOR v_hold IN
    SELECT * FROM holds h
    WHERE h.organization_id = p_org AND h.event_id = p_event AND h.zone_no = p_zone AND h.ordinal IS NULL
      AND h.status = 'active' AND h.session_id = p_session AND (h.held_until IS NULL OR h.held_until > p_now)
      AND h.checkout_id IS NULL
    ORDER BY h.created_at, h.id
  LOOP
    EXIT WHEN v_left = 0;
    v_part := least(v_left, v_hold.quantity);
    v_id := v_hold.id;
    IF v_part < v_hold.quantity THEN
      v_id := uuidv7();
      UPDATE holds h SET quantity = h.quantity - v_part WHERE h.organization_id = p_org AND h.id = v_hold.id;
      INSERT INTO holds (organization_id, id, event_id, zone_no, quantity, user_id, session_id, ip, hold_type, status, actor,
        source, held_until, created_at, ended_at)
      VALUES (p_org, v_id, p_event, p_zone, v_part, v_hold.user_id, v_hold.session_id, v_hold.ip, v_hold.hold_type, p_status,
        v_hold.actor, v_hold.source, v_hold.held_until, v_hold.created_at, p_now);
    ELSE
      UPDATE holds h SET status = p_status, ended_at = p_now WHERE h.organization_id = p_org AND h.id = v_hold.id;
    END IF;
    holds := holds || v_id;
    quantities := quantities || v_part;
    hold_types := hold_types || v_hold.hold_type;
    v_left := v_left - v_part;
  END LOOP;
  IF v_left > 0 THEN
    holds := NULL;
  END IF;
END $$;

-- One move of places in one GA zone: 'convert' and 'release' draw on the session's holds, 'direct_sale' on free places,
-- 'revert_sale' on sold ones for which there is no valid ticket (any more). False: not enough in the expected state; the
-- caller rolls back.
DROP FUNCTION IF EXISTS move_session_places(uuid, uuid, smallint, integer, text, text, text, text, uuid, text, text, text);
CREATE OR REPLACE FUNCTION move_session_places(
  p_org uuid, p_event uuid, p_zone smallint, p_quantity integer, p_verb text, p_session text, p_hold_type text,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text DEFAULT NULL
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now  timestamptz;
  v_zone event_zones;
  v_hold uuid[]; v_quantity integer[] := ARRAY[p_quantity]; v_type text[] := ARRAY[p_hold_type];
  v_held integer := 0;
  v_sold integer := 0;
  v_old  seat_state;
  v_new  seat_state;
BEGIN
  SELECT * INTO v_zone FROM event_zones z
  WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = p_zone FOR UPDATE;
  v_now := holdfast_now();
  IF p_verb IN ('convert', 'direct_sale') AND NOT event_on_sale(p_org, p_event) THEN
    RETURN false;
  END IF;
  IF p_verb = 'direct_sale' AND v_zone.disabled THEN
    RETURN false;
  END IF;
  IF p_verb IN ('convert', 'release') THEN
    SELECT d.holds, d.quantities, d.hold_types INTO v_hold, v_quantity, v_type
    FROM draw_session_places(p_org, p_event, p_zone, p_quantity, p_session,
      CASE p_verb WHEN 'convert' THEN 'converted' ELSE 'cancelled' END::hold_status, v_now) d;
    IF v_hold IS NULL THEN
      RETURN false;
    END IF;
    v_held := -p_quantity;
    v_old := 'held';
    v_sold := CASE p_verb WHEN 'convert' THEN p_quantity ELSE 0 END;
    v_new := CASE p_verb WHEN 'convert' THEN 'sold' ELSE 'available' END;
  ELSIF p_verb = 'direct_sale' THEN
    IF v_zone.capacity - v_zone.held - v_zone.sold - v_zone.blocked < p_quantity THEN
      PERFORM end_zone_holds(p_org, p_event, p_zone, 'expire', NULL, 'SYSTEM', NULL, NULL, NULL, NULL, NULL,
        'taken over by the next buyer');
    END IF;
    v_sold := p_quantity;
    v_old := 'available';
    v_new := 'sold';
    v_hold := ARRAY[NULL::uuid];
  ELSE
    IF v_zone.sold - p_quantity < (
      SELECT count(*) FROM tickets t
      WHERE t.organization_id = p_org AND t.event_id = p_event AND t.zone_no = p_zone AND t.ordinal IS NULL
        AND t.status = 'valid') THEN
      RETURN false;
    END IF;
    v_sold := -p_quantity;
    v_old := 'sold';
    v_new := 'available';
    v_hold := ARRAY[NULL::uuid];
  END IF;
  UPDATE event_zones z SET held = z.held + v_held, sold = z.sold + v_sold, version = z.version + cardinality(v_quantity)
  WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = p_zone
    AND z.held + v_held >= 0 AND z.sold + v_sold >= 0 AND z.held + v_held + z.sold + v_sold + z.blocked <= z.capacity
  RETURNING z.* INTO v_zone;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM record_zone_moves(p_org, p_event, p_zone, p_verb, v_now, p_actor, p_user, p_session, p_ip, p_agent, p_trace,
    p_reason, v_old, v_new, v_zone.version - cardinality(v_quantity), v_hold, v_quantity, v_type);
  RETURN true;
END $$;

-- Checkout ---------------------------------------------------------------------------------------------------

-- Sells what these holds hold, seats and whole GA quantities, whoever they belong to: the caller has locked the checkout
-- they are in, and shares the event. Only while they live by the database's clock; the caller rolls back unless it was all
-- of them. A hold that outlived the checkout may be in another one by now: that one's it is. Answers those converted.
DROP FUNCTION IF EXISTS convert_holds(uuid, uuid, uuid[], text[], text, text, uuid, text, text, text);
CREATE OR REPLACE FUNCTION convert_holds(
  p_org uuid, p_event uuid, p_checkout uuid, p_holds uuid[], p_types_when_sold text[], p_session text,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text
) RETURNS uuid[] LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off  -- the nested loop keeps the order of the locks
AS $$
DECLARE
  v_now timestamptz := holdfast_now();
  v_ordinal integer[]; v_zone smallint[]; v_version integer[]; v_type text[]; v_hold uuid[]; v_after text[]; v_n integer;
  v_done uuid[] := '{}';
  v_pool record;
  v_base integer;
  v_quantity integer[];
BEGIN
  IF NOT event_on_sale(p_org, p_event) THEN
    RETURN '{}';
  END IF;
  WITH sold AS (
    UPDATE event_seats s
    SET state = 'sold', sold_at = v_now, hold_id = NULL, held_until = NULL, locked_at = NULL, version = s.version + 1,
        hold_type = CASE WHEN s.hold_type = ANY (p_types_when_sold) THEN s.hold_type END
    FROM (SELECT h.id, h.ordinal FROM holds h
          WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.event_id = p_event AND h.status = 'active'
            AND h.ordinal IS NOT NULL AND coalesce(h.checkout_id, p_checkout) = p_checkout
          ORDER BY h.ordinal) w
    WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = w.ordinal
      AND s.state = 'held' AND s.hold_id = w.id AND (s.held_until IS NULL OR s.held_until > holdfast_now())
    RETURNING new.ordinal, new.zone_no, new.version, old.hold_type, old.hold_id, new.hold_type AS after
  )
  SELECT array_agg(ordinal), array_agg(zone_no), array_agg(version), array_agg(hold_type), array_agg(hold_id),
         array_agg(after), count(*)
    INTO v_ordinal, v_zone, v_version, v_type, v_hold, v_after, v_n FROM sold;
  IF v_n > 0 THEN
    UPDATE holds h SET status = 'converted', ended_at = v_now
    WHERE h.organization_id = p_org AND h.id = ANY (v_hold) AND h.status = 'active';
    PERFORM record_moves(p_org, 'convert', v_now, p_actor, p_user, p_session, p_ip, p_agent, p_trace, NULL,
      array_fill(p_event, ARRAY[v_n]), v_ordinal, v_zone, array_fill(1, ARRAY[v_n]), array_fill('held'::seat_state, ARRAY[v_n]),
      array_fill('sold'::seat_state, ARRAY[v_n]), v_version, v_type, v_hold, array_fill(p_session, ARRAY[v_n]), v_after);
    v_done := v_hold;
  END IF;
  FOR v_pool IN
    SELECT h.zone_no, array_agg(h.id) AS ids FROM holds h
    WHERE h.organization_id = p_org AND h.id = ANY (p_holds) AND h.event_id = p_event AND h.status = 'active'
      AND h.ordinal IS NULL AND coalesce(h.checkout_id, p_checkout) = p_checkout
    GROUP BY 1 ORDER BY 1
  LOOP
    SELECT z.version INTO v_base FROM event_zones z
    WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = v_pool.zone_no FOR UPDATE;
    v_now := holdfast_now();
    WITH sold AS (
      UPDATE holds h SET status = 'converted', ended_at = v_now
      WHERE h.organization_id = p_org AND h.id = ANY (v_pool.ids) AND h.status = 'active'
        AND (h.held_until IS NULL OR h.held_until > v_now)
      RETURNING h.id, h.quantity, h.hold_type
    )
    SELECT array_agg(id), array_agg(quantity), array_agg(hold_type), count(*) INTO v_hold, v_quantity, v_type, v_n FROM sold;
    CONTINUE WHEN v_n = 0;
    UPDATE event_zones z
    SET held = z.held - (SELECT sum(q) FROM unnest(v_quantity) q), sold = z.sold + (SELECT sum(q) FROM unnest(v_quantity) q),
        version = z.version + v_n
    WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = v_pool.zone_no;
    PERFORM record_zone_moves(p_org, p_event, v_pool.zone_no, 'convert', v_now, p_actor, p_user, p_session, p_ip, p_agent,
      p_trace, NULL, 'held', 'sold', v_base, v_hold, v_quantity, v_type);
    v_done := v_done || v_hold;
  END LOOP;
  RETURN v_done;
END $$;
