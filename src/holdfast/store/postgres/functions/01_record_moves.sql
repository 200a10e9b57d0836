-- What every move leaves behind: its row in the state log, its audit entry, its outbox message.
-- The caller has changed the seats (or GA zones) in this same transaction and passes what changed, one element a move.

CREATE OR REPLACE FUNCTION audit_action(p_verb text) RETURNS text LANGUAGE sql IMMUTABLE RETURN
  CASE p_verb WHEN 'hold' THEN 'seat_reserved' WHEN 'release' THEN 'seat_released' WHEN 'expire' THEN 'seat_hold_expired'
    WHEN 'convert' THEN 'seat_sold' WHEN 'direct_sale' THEN 'seat_sold' WHEN 'revert_sale' THEN 'sale_reverted'
    WHEN 'block' THEN 'seat_blocked' WHEN 'unblock' THEN 'seat_unblocked' END;

CREATE OR REPLACE FUNCTION message_kind(p_verb text) RETURNS text LANGUAGE sql IMMUTABLE RETURN
  CASE p_verb WHEN 'hold' THEN 'SeatReserved' WHEN 'release' THEN 'SeatReleased' WHEN 'expire' THEN 'SeatHoldExpired'
    WHEN 'convert' THEN 'SeatSold' WHEN 'direct_sale' THEN 'SeatSold' WHEN 'revert_sale' THEN 'SaleReverted'
    WHEN 'block' THEN 'SeatBlocked' WHEN 'unblock' THEN 'SeatUnblocked' END;

CREATE OR REPLACE FUNCTION record_moves(
  p_org uuid, p_verb text, p_at timestamptz,
  p_actor text, p_user uuid, p_session text, p_ip text, p_agent text, p_request text, p_reason text,
  m_event uuid[], m_ordinal integer[], m_zone smallint[], m_quantity integer[],
  m_old seat_state[], m_new seat_state[], m_version integer[], m_hold_type text[], m_hold uuid[], m_session text[]
) RETURNS void LANGUAGE sql VOLATILE AS $$
  WITH logged AS (
    INSERT INTO seat_state_events (organization_id, event_id, at, verb, ordinal, zone_no, quantity, old_state, new_state,
      version, hold_type, hold_id, session_id, actor, user_id, reason)
    SELECT p_org, m.event_id, p_at, p_verb, m.ordinal, m.zone_no, m.quantity, m.old_state, m.new_state,
      m.version, m.hold_type, m.hold_id, coalesce(m.session_id, p_session), p_actor, p_user, p_reason
    FROM unnest(m_event, m_ordinal, m_zone, m_quantity, m_old, m_new, m_version, m_hold_type, m_hold, m_session)
      AS m (event_id, ordinal, zone_no, quantity, old_state, new_state, version, hold_type, hold_id, session_id)
    RETURNING event_id, id, ordinal, zone_no, quantity, hold_id
  ), audited AS (
    INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, event_id, actor, user_id, ip, user_agent,
      request_id, reason, changes)
    SELECT p_org, p_at, audit_action(p_verb), CASE WHEN hold_id IS NULL THEN 'Seat' ELSE 'SeatHold' END, hold_id, event_id,
      p_actor, p_user, p_ip, p_agent, p_request, p_reason,
      jsonb_build_object('ordinal', ordinal, 'zone_no', zone_no, 'quantity', quantity, 'log_id', id)
    FROM logged
  )
  INSERT INTO outbox (organization_id, at, kind, event_id, log_id)
  SELECT p_org, p_at, message_kind(p_verb), event_id, id FROM logged;
$$;
