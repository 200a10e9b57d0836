-- What was sold comes back: a ticket is voided, or goes to another place, and the place it had is free again. Everybody here
-- shares the event, then locks tickets, then seats, then zones (02_locks.sql). A ticket is made void, or moved, before its
-- place is given back: revert_sold_seats and move_session_places take nothing back that a valid ticket stands on.

-- These tickets of the event, by id.
CREATE OR REPLACE FUNCTION lock_tickets(p_org uuid, p_event uuid, p_tickets uuid[]) RETURNS SETOF tickets
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM share_events(ARRAY[p_event]);
  RETURN QUERY SELECT t.* FROM tickets t
  WHERE t.organization_id = p_org AND t.event_id = p_event AND t.id = ANY (p_tickets) ORDER BY t.id FOR UPDATE;
END $$;

-- valid → void, with what others want to know of it. Money that was paid for a ticket is due back (p_refund): the ticket's
-- price, if a payment of its checkout was applied and its type asked for one; where no price was known, how much is for a
-- person to say. The caller gives the places back.
CREATE OR REPLACE FUNCTION void_tickets(
  p_org uuid, p_event uuid, p_tickets uuid[], p_refund boolean,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS void LANGUAGE sql VOLATILE AS $$
  WITH voided AS (
    UPDATE tickets t SET status = 'void', voided_at = holdfast_now(), void_reason = p_reason
    WHERE t.organization_id = p_org AND t.event_id = p_event AND t.id = ANY (p_tickets) AND t.status = 'valid'
    RETURNING t.*
  ), refunded AS (
    INSERT INTO refunds (organization_id, id, payment_id, checkout_id, event_id, ticket_id, amount_minor, currency, reason,
      created_at)
    SELECT p_org, uuidv7(), p.id, v.checkout_id, p_event, v.id, v.price_minor, p.currency, p_reason, v.voided_at
    FROM voided v
    JOIN payments p ON p.organization_id = p_org AND p.checkout_id = v.checkout_id AND p.status = 'applied'
    LEFT JOIN checkout_lines l ON l.organization_id = p_org AND l.checkout_id = v.checkout_id AND l.hold_id = v.hold_id
    WHERE p_refund AND v.price_minor IS DISTINCT FROM 0 AND coalesce(l.payment_required, true)
    RETURNING id, ticket_id, amount_minor, currency
  ), told AS (
    SELECT v.id, v.voided_at, r.id AS refund_id, r.amount_minor, v.checkout_id, r.currency,
      (row_number() OVER (ORDER BY v.id) - 1) / 500 AS part,
      EXISTS (SELECT FROM ticket_days d WHERE d.organization_id = p_org AND d.ticket_id = v.id AND d.inside) AS inside
    FROM voided v LEFT JOIN refunded r ON r.ticket_id = v.id
  ), audited AS (
    INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, event_id, actor, user_id, ip, user_agent,
      request_id, reason, changes)
    SELECT p_org, t.voided_at, 'ticket_voided', 'Ticket', t.id, p_event, p_actor, p_user, p_ip, p_agent, p_trace, p_reason,
      jsonb_build_object('checkout_id', t.checkout_id, 'refund_id', t.refund_id, 'amount_minor', t.amount_minor,
        'inside', t.inside)
    FROM told t
  )
  INSERT INTO outbox (organization_id, at, kind, event_id, actor, payload)
  SELECT p_org, min(t.voided_at), 'TicketVoided', p_event, p_actor, jsonb_build_object('reason', p_reason, 'tickets',
    jsonb_agg(jsonb_build_object('ticket_id', t.id, 'checkout_id', t.checkout_id, 'refund_id', t.refund_id,
      'amount_minor', t.amount_minor, 'currency', t.currency) ORDER BY t.id))
  FROM told t GROUP BY t.part;
$$;

-- sold → available. A seat that was blocked after it was sold forgets the sale and stays blocked: it goes through the same
-- moves as any other, blocked → sold → available → blocked. Answers how many sales were reverted.
CREATE OR REPLACE FUNCTION return_seats(
  p_org uuid, p_event uuid, p_ordinals integer[],
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_blocked integer[]; v_reason text[];
  v_part record;
  v_n integer;
BEGIN
  PERFORM FROM lock_seats(p_org, p_event, p_ordinals);
  SELECT array_agg(s.ordinal), array_agg(s.block_reason) INTO v_blocked, v_reason FROM event_seats s
  WHERE s.organization_id = p_org AND s.event_id = p_event AND s.ordinal = ANY (p_ordinals) AND s.state = 'blocked'
    AND s.sold_at IS NOT NULL;
  IF v_blocked IS NOT NULL THEN
    PERFORM unblock_seats(p_org, p_event, v_blocked, p_actor, p_user, p_ip, p_agent, p_trace, p_reason);
  END IF;
  v_n := revert_sold_seats(p_org, p_event, p_ordinals, NULL, p_actor, p_user, p_ip, p_agent, p_trace, p_reason);
  FOR v_part IN
    SELECT b.reason, array_agg(b.ordinal) AS ordinals FROM unnest(v_blocked, v_reason) AS b (ordinal, reason)
    GROUP BY b.reason ORDER BY min(b.ordinal)
  LOOP
    PERFORM block_seats(p_org, p_event, v_part.ordinals, false, p_actor, p_user, p_ip, p_agent, p_trace, v_part.reason);
  END LOOP;
  RETURN v_n;
END $$;

-- Voids those of the tickets that are valid, and gives their places back. Answers them.
CREATE OR REPLACE FUNCTION revert_tickets(
  p_org uuid, p_event uuid, p_tickets uuid[], p_refund boolean,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS uuid[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_ticket uuid[]; v_ordinal integer[];
  v_zone record;
BEGIN
  SELECT coalesce(array_agg(t.id), '{}'), coalesce(array_agg(t.ordinal) FILTER (WHERE t.ordinal IS NOT NULL), '{}')
    INTO v_ticket, v_ordinal
  FROM lock_tickets(p_org, p_event, p_tickets) t WHERE t.status = 'valid';
  PERFORM void_tickets(p_org, p_event, v_ticket, p_refund, p_actor, p_user, p_ip, p_agent, p_trace, p_reason);
  IF return_seats(p_org, p_event, v_ordinal, p_actor, p_user, p_ip, p_agent, p_trace, p_reason) < cardinality(v_ordinal) THEN
    RAISE EXCEPTION 'a valid ticket stands on a seat that is not sold: %', v_ticket;
  END IF;
  FOR v_zone IN
    SELECT t.zone_no, count(*)::integer AS places FROM tickets t
    WHERE t.organization_id = p_org AND t.event_id = p_event AND t.id = ANY (v_ticket) AND t.ordinal IS NULL
    GROUP BY 1 ORDER BY 1
  LOOP
    IF NOT move_session_places(p_org, p_event, v_zone.zone_no, v_zone.places, 'revert_sale', NULL, NULL, p_actor, p_user,
        p_ip, p_agent, p_trace, p_reason) THEN
      RAISE EXCEPTION 'fewer places of zone % are sold than there are tickets', v_zone.zone_no;
    END IF;
  END LOOP;
  RETURN v_ticket;
END $$;

-- Booking v2 knows seats, not tickets: where one of ours stands on what it takes back, that is voided.
CREATE OR REPLACE FUNCTION revert_booked_seats(
  p_org uuid, p_event uuid, p_ordinals integer[], p_session text,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text
) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_ticket uuid[];
BEGIN
  v_ticket := ARRAY(
    SELECT t.id FROM tickets t
    WHERE t.organization_id = p_org AND t.event_id = p_event AND t.ordinal = ANY (p_ordinals) AND t.status = 'valid'
    ORDER BY t.id FOR UPDATE);
  IF cardinality(v_ticket) > 0 THEN
    PERFORM void_tickets(p_org, p_event, v_ticket, true, p_actor, p_user, p_ip, p_agent, p_trace,
      'the sale was reverted through booking v2');
  END IF;
  RETURN revert_sold_seats(p_org, p_event, p_ordinals, p_session, p_actor, p_user, p_ip, p_agent, p_trace, NULL);
END $$;

-- A valid ticket goes from the place it has to another: a seat, or (p_to null) a place of p_to_zone. The caller has locked the
-- ticket, and both seats. False: the ticket or the new place is not as expected; the caller rolls back.
CREATE OR REPLACE FUNCTION exchange_ticket(
  p_org uuid, p_event uuid, p_ticket uuid, p_from integer, p_from_zone smallint, p_to integer, p_to_zone smallint,
  p_hold_type text, p_companions integer[], p_owner uuid,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE tickets t SET ordinal = p_to, zone_no = p_to_zone, code_version = t.code_version + 1
  WHERE t.organization_id = p_org AND t.event_id = p_event AND t.id = p_ticket AND t.status = 'valid'
    AND t.ordinal IS NOT DISTINCT FROM p_from AND t.zone_no = p_from_zone;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF p_from IS NOT NULL THEN
    IF return_seats(p_org, p_event, ARRAY[p_from], p_actor, p_user, p_ip, p_agent, p_trace, p_reason) < 1 THEN
      RETURN false;
    END IF;
  END IF;
  IF p_to IS NOT NULL THEN
    IF sell_seats_directly(p_org, p_event, ARRAY[p_to], p_hold_type, NULL, p_actor, p_user, p_ip, p_agent, p_trace,
        p_companions, p_reason, p_owner) < 1 THEN
      RETURN false;
    END IF;
  END IF;
  PERFORM FROM event_zones z
  WHERE z.organization_id = p_org AND z.event_id = p_event
    AND (z.zone_no = p_from_zone AND p_from IS NULL OR z.zone_no = p_to_zone AND p_to IS NULL)
  ORDER BY z.zone_no FOR UPDATE;
  IF p_from IS NULL THEN
    IF NOT move_session_places(p_org, p_event, p_from_zone, 1, 'revert_sale', NULL, NULL, p_actor, p_user, p_ip, p_agent,
        p_trace, p_reason) THEN
      RETURN false;
    END IF;
  END IF;
  IF p_to IS NULL THEN
    IF NOT move_session_places(p_org, p_event, p_to_zone, 1, 'direct_sale', NULL, p_hold_type, p_actor, p_user, p_ip, p_agent,
        p_trace, p_reason) THEN
      RETURN false;
    END IF;
  END IF;
  IF p_from_zone <> p_to_zone THEN
    PERFORM move_attendance(p_org, p_event, p_ticket, p_to_zone);
  END IF;
  RETURN true;
END $$;

-- Whoever was let in with the ticket counts in the zone it is for now, and leaves from there.
CREATE OR REPLACE FUNCTION move_attendance(p_org uuid, p_event uuid, p_ticket uuid, p_to smallint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  INSERT INTO zone_attendance (organization_id, event_id, day, zone_no)
  SELECT p_org, p_event, d.day, p_to FROM ticket_days d
  WHERE d.organization_id = p_org AND d.ticket_id = p_ticket AND d.zone_no IS NOT NULL
  ORDER BY d.day ON CONFLICT DO NOTHING;
  PERFORM FROM zone_attendance a
  JOIN ticket_days d ON d.organization_id = p_org AND d.ticket_id = p_ticket AND d.day = a.day
  WHERE a.organization_id = p_org AND a.event_id = p_event AND a.zone_no IN (d.zone_no, p_to)
  ORDER BY a.day, a.zone_no FOR UPDATE OF a;
  UPDATE zone_attendance a
  SET present = a.present + CASE WHEN a.zone_no = p_to THEN 1 ELSE -1 END * (d.inside::integer + d.others_inside),
      entered = greatest(0, a.entered + CASE WHEN d.entries = 0 THEN 0 WHEN a.zone_no = p_to THEN 1 ELSE -1 END)
  FROM ticket_days d
  WHERE d.organization_id = p_org AND d.ticket_id = p_ticket AND d.zone_no <> p_to
    AND a.organization_id = p_org AND a.event_id = p_event AND a.day = d.day AND a.zone_no IN (d.zone_no, p_to);
  UPDATE ticket_days d SET zone_no = p_to
  WHERE d.organization_id = p_org AND d.ticket_id = p_ticket AND d.zone_no IS NOT NULL;
END $$;
