-- What every move leaves behind: its row in the state log, its audit entry, what it changed in the counters of occupancy;
-- and one outbox message for all that this call did to an event in one way.
-- The caller has changed the seats (or GA zones) in this same transaction and passes what changed, one element a move.

CREATE OR REPLACE FUNCTION audit_action(p_verb text) RETURNS text LANGUAGE sql IMMUTABLE RETURN
  CASE p_verb WHEN 'hold' THEN 'seat_reserved' WHEN 'release' THEN 'seat_released' WHEN 'expire' THEN 'seat_hold_expired'
    WHEN 'convert' THEN 'seat_sold' WHEN 'direct_sale' THEN 'seat_sold' WHEN 'revert_sale' THEN 'sale_reverted'
    WHEN 'block' THEN 'seat_blocked' WHEN 'unblock' THEN 'seat_unblocked' END;

CREATE OR REPLACE FUNCTION message_kind(p_verb text) RETURNS text LANGUAGE sql IMMUTABLE RETURN
  CASE p_verb WHEN 'hold' THEN 'SeatReserved' WHEN 'release' THEN 'SeatReleased' WHEN 'expire' THEN 'SeatHoldExpired'
    WHEN 'convert' THEN 'SeatSold' WHEN 'direct_sale' THEN 'SeatSold' WHEN 'revert_sale' THEN 'SaleReverted'
    WHEN 'block' THEN 'SeatBlocked' WHEN 'unblock' THEN 'SeatUnblocked' END;

-- m_after: the type a sold seat is left with, where that is not the type of the hold it had.
CREATE OR REPLACE FUNCTION record_moves(
  p_org uuid, p_verb text, p_at timestamptz,
  p_actor text, p_user uuid, p_session text, p_ip text, p_agent text, p_request text, p_reason text,
  m_event uuid[], m_ordinal integer[], m_zone smallint[], m_quantity integer[],
  m_old seat_state[], m_new seat_state[], m_version integer[], m_hold_type text[], m_hold uuid[], m_session text[],
  m_after text[] DEFAULT NULL
) RETURNS void LANGUAGE sql VOLATILE AS $$
  WITH m AS (
    SELECT * FROM unnest(m_event, m_ordinal, m_zone, m_quantity, m_old, m_new, m_version, m_hold_type, m_hold, m_session,
        m_after)
      AS m (event_id, ordinal, zone_no, quantity, old_state, new_state, version, hold_type, hold_id, session_id, after)
  ), logged AS (
    INSERT INTO seat_state_events (organization_id, event_id, at, verb, ordinal, zone_no, quantity, old_state, new_state,
      version, hold_type, hold_id, session_id, actor, user_id, reason)
    SELECT p_org, m.event_id, p_at, p_verb, m.ordinal, m.zone_no, m.quantity, m.old_state, m.new_state,
      m.version, m.hold_type, m.hold_id, coalesce(m.session_id, p_session), p_actor, p_user, p_reason
    FROM m
    RETURNING event_id, id, ordinal, zone_no, quantity, hold_id
  ), audited AS (
    INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, event_id, actor, user_id, ip, user_agent,
      request_id, reason, changes)
    SELECT p_org, p_at, audit_action(p_verb), CASE WHEN hold_id IS NULL THEN 'Seat' ELSE 'SeatHold' END, hold_id, event_id,
      p_actor, p_user, p_ip, p_agent, p_request, p_reason,
      jsonb_build_object('ordinal', ordinal, 'zone_no', zone_no, 'quantity', quantity, 'log_id', id)
    FROM logged
  ), counted AS (
    INSERT INTO occupancy_changes (organization_id, event_id, zone_no, state, hold_type, change)
    SELECT p_org, c.event_id, c.zone_no, c.state, c.hold_type, sum(c.change) FROM (
      SELECT m.event_id, m.zone_no, m.old_state AS state, CASE m.old_state WHEN 'held' THEN m.hold_type ELSE '' END AS hold_type,
        -m.quantity AS change FROM m WHERE m.old_state <> 'available'
      UNION ALL
      SELECT m.event_id, m.zone_no, m.new_state, CASE m.new_state WHEN 'held' THEN m.hold_type ELSE '' END,
        m.quantity FROM m WHERE m.new_state <> 'available') c
    GROUP BY c.event_id, c.zone_no, c.state, c.hold_type
  ), told_of_seats AS (
    INSERT INTO outbox (organization_id, at, kind, event_id, actor, state, hold_type, ordinals, versions, hold_ids)
    SELECT p_org, p_at, message_kind(p_verb), s.event_id, p_actor, s.new_state, s.after,
      array_agg(s.ordinal), array_agg(s.version), array_agg(s.hold_id)
    FROM (SELECT m.event_id, m.new_state, m.ordinal, m.version, m.hold_id,
            CASE WHEN m.new_state <> 'sold' THEN NULL WHEN p_verb = 'convert' THEN m.after ELSE m.hold_type END AS after
          FROM m WHERE m.ordinal IS NOT NULL) s
    GROUP BY s.event_id, s.new_state, s.after
  )
  INSERT INTO outbox (organization_id, at, kind, event_id, actor, state, hold_ids, quantities,
    zone_no, zone_version, zone_held, zone_sold, zone_blocked)
  SELECT p_org, p_at, message_kind(p_verb), g.event_id, p_actor, g.new_state, g.hold_ids, g.quantities,
    z.zone_no, z.version, z.held, z.sold, z.blocked
  FROM (SELECT m.event_id, m.zone_no, m.new_state, array_agg(m.hold_id) AS hold_ids, array_agg(m.quantity) AS quantities
        FROM m WHERE m.ordinal IS NULL GROUP BY m.event_id, m.zone_no, m.new_state) g
  JOIN event_zones z ON z.organization_id = p_org AND z.event_id = g.event_id AND z.zone_no = g.zone_no;
$$;
