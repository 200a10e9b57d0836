-- any → blocked, and back. A held seat's hold is cancelled; a sold one keeps its sale and comes back to it.

CREATE OR REPLACE FUNCTION block_seats(
  p_org uuid, p_event uuid, p_ordinals integer[], p_force boolean,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS integer[] LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off  -- the nested loop keeps the order of the locks
AS $$
DECLARE
  v_now timestamptz := holdfast_now();
  v_ordinal integer[]; v_zone smallint[]; v_version integer[]; v_old seat_state[]; v_type text[]; v_hold uuid[]; v_n integer;
BEGIN
  WITH blocked AS (
    UPDATE event_seats s
    SET state = 'blocked', hold_id = NULL, hold_type = CASE WHEN s.state = 'sold' THEN s.hold_type END, held_until = NULL,
        locked_at = NULL, block_reason = p_reason, version = s.version + 1
    FROM (SELECT o FROM unnest(p_ordinals) o ORDER BY o) w
    WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = w.o
      AND (s.state IN ('available', 'held') OR (s.state = 'sold' AND p_force))
    RETURNING new.ordinal, new.zone_no, new.version, old.state, old.hold_type, old.hold_id
  )
  SELECT array_agg(ordinal), array_agg(zone_no), array_agg(version), array_agg(state), array_agg(hold_type),
         array_agg(hold_id), count(*)
    INTO v_ordinal, v_zone, v_version, v_old, v_type, v_hold, v_n FROM blocked;
  IF v_n = 0 THEN
    RETURN '{}';
  END IF;
  UPDATE holds h SET ended_at = v_now,
    status = CASE WHEN h.held_until <= v_now THEN 'expired' ELSE 'cancelled' END::hold_status
  WHERE h.organization_id = p_org AND h.id = ANY (v_hold) AND h.status = 'active';
  PERFORM record_moves(p_org, 'block', v_now, p_actor, p_user, NULL, p_ip, p_agent, p_trace, p_reason,
    array_fill(p_event, ARRAY[v_n]), v_ordinal, v_zone, array_fill(1, ARRAY[v_n]), v_old,
    array_fill('blocked'::seat_state, ARRAY[v_n]), v_version, v_type, v_hold, array_fill(NULL::text, ARRAY[v_n]));
  RETURN v_ordinal;
END $$;

CREATE OR REPLACE FUNCTION unblock_seats(
  p_org uuid, p_event uuid, p_ordinals integer[],
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS integer[] LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off  -- the nested loop keeps the order of the locks
AS $$
DECLARE
  v_now timestamptz := holdfast_now();
  v_ordinal integer[]; v_zone smallint[]; v_version integer[]; v_new seat_state[]; v_type text[]; v_n integer;
BEGIN
  WITH unblocked AS (
    UPDATE event_seats s
    SET state = CASE WHEN s.sold_at IS NULL THEN 'available' ELSE 'sold' END::seat_state, block_reason = NULL,
        version = s.version + 1
    FROM (SELECT o FROM unnest(p_ordinals) o ORDER BY o) w
    WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = w.o AND s.state = 'blocked'
    RETURNING new.ordinal, new.zone_no, new.version, new.state, new.hold_type
  )
  SELECT array_agg(ordinal), array_agg(zone_no), array_agg(version), array_agg(state), array_agg(hold_type), count(*)
    INTO v_ordinal, v_zone, v_version, v_new, v_type, v_n FROM unblocked;
  IF v_n = 0 THEN
    RETURN '{}';
  END IF;
  PERFORM record_moves(p_org, 'unblock', v_now, p_actor, p_user, NULL, p_ip, p_agent, p_trace, p_reason,
    array_fill(p_event, ARRAY[v_n]), v_ordinal, v_zone, array_fill(1, ARRAY[v_n]), array_fill('blocked'::seat_state, ARRAY[v_n]),
    v_new, v_version, v_type, array_fill(NULL::uuid, ARRAY[v_n]), array_fill(NULL::text, ARRAY[v_n]));
  RETURN v_ordinal;
END $$;

-- Inventory is made when the event is published: one row a seat, one a GA zone.
CREATE OR REPLACE FUNCTION make_inventory(
  p_org uuid, p_event uuid, p_zone_nos smallint[], z_zone smallint[], z_capacity integer[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_seats integer := cardinality(p_zone_nos);
BEGIN
  INSERT INTO event_seats (organization_id, event_id, ordinal, zone_no, booking_id)
  SELECT p_org, p_event, s.n - 1, s.zone_no, s.n FROM unnest(p_zone_nos) WITH ORDINALITY AS s (zone_no, n);
  INSERT INTO event_zones (organization_id, event_id, zone_no, booking_id, capacity)
  SELECT p_org, p_event, z.zone_no, v_seats + z.n, z.capacity
  FROM unnest(z_zone, z_capacity) WITH ORDINALITY AS z (zone_no, capacity, n);
END $$;
