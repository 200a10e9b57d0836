-- An event goes to another version of its layout: the inventory is written anew, in the numbers of that version.
--
-- The caller owns the event and has locked its whole inventory (own_inventory), so that nothing of it moves meanwhile. Old
-- numbers and new ones never meet: each seat that is not free leaves its old number in the log (X → available), and takes
-- its new one (available → X), and between the two a row of event_layout_changes says that numbers have another meaning
-- from there on. What the event's overlay takes out of a counted zone is left to the caller, who applies the overlay to the
-- new version. Every version begins above all that there ever were: a message about an old number is always the older one.

CREATE OR REPLACE FUNCTION own_inventory(p_org uuid, p_event uuid) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM own_event(p_event);
  PERFORM FROM (SELECT FROM event_seats s WHERE s.organization_id = p_org AND s.event_id = p_event
                ORDER BY s.ordinal FOR UPDATE) seats;
  PERFORM FROM (SELECT FROM event_zones z WHERE z.organization_id = p_org AND z.event_id = p_event
                ORDER BY z.zone_no FOR UPDATE) zones;
END $$;

-- All that a plan is made from: the event with prices, overrides and state, every seat, every zone, and whose tickets stand
-- on seats. An extended hold is the same hold, and a ticket whose code was made anew the same ticket.
CREATE OR REPLACE FUNCTION inventory_fingerprint(p_org uuid, p_event uuid) RETURNS text LANGUAGE sql STABLE RETURN md5(
  (SELECT to_jsonb(e)::text FROM events e WHERE e.organization_id = p_org AND e.id = p_event)
  || coalesce((SELECT string_agg(concat_ws(',', s.ordinal, s.state, s.version, s.hold_id), ';' ORDER BY s.ordinal)
     FROM event_seats s WHERE s.organization_id = p_org AND s.event_id = p_event), '')
  || '/' || coalesce((SELECT string_agg(concat_ws(',', z.zone_no, z.capacity, z.held, z.sold, z.blocked, z.disabled, z.version), ';' ORDER BY z.zone_no)
     FROM event_zones z WHERE z.organization_id = p_org AND z.event_id = p_event), '')
  || '/' || coalesce((SELECT string_agg(concat_ws(',', t.ordinal, t.id, t.user_id, t.attendee_user_id), ';' ORDER BY t.ordinal)
     FROM tickets t WHERE t.organization_id = p_org AND t.event_id = p_event AND t.status = 'valid' AND t.ordinal IS NOT NULL), ''));

-- Tickets in the numbers of the new version: a valid one goes where its sale goes, a void one stays with its seat, or keeps
-- its number and the version it is meant in. Who is inside is counted anew, by the zones that the tickets are for now.
CREATE OR REPLACE FUNCTION renumber_tickets(
  p_org uuid, p_event uuid, p_from integer, n_zone smallint[], n_keep integer[], n_from integer[],
  z_zone smallint[], z_keep smallint[]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE tickets t SET ordinal = -1 - t.ordinal
  WHERE t.organization_id = p_org AND t.event_id = p_event AND t.ordinal IS NOT NULL AND t.layout_version IS NULL;
  UPDATE tickets t SET ordinal = n.n - 1, zone_no = n.zone_no
  FROM unnest(n_from, n_zone) WITH ORDINALITY AS n (was, zone_no, n)
  WHERE t.organization_id = p_org AND t.event_id = p_event AND t.status = 'valid' AND t.ordinal = -1 - n.was;
  UPDATE tickets t SET ordinal = n.n - 1, zone_no = n.zone_no
  FROM unnest(n_keep, n_zone) WITH ORDINALITY AS n (was, zone_no, n)
  WHERE t.organization_id = p_org AND t.event_id = p_event AND t.status = 'void' AND t.ordinal = -1 - n.was;
  UPDATE tickets t SET ordinal = -1 - t.ordinal, layout_version = p_from
  WHERE t.organization_id = p_org AND t.event_id = p_event AND t.ordinal < 0;
  UPDATE tickets t SET zone_no = coalesce(n.zone_no, t.zone_no), layout_version = CASE WHEN n.zone_no IS NULL THEN p_from END
  FROM event_zones z LEFT JOIN unnest(z_keep, z_zone) AS n (was, zone_no) ON n.was = z.zone_no
  WHERE z.organization_id = p_org AND z.event_id = p_event AND t.organization_id = p_org AND t.event_id = p_event
    AND t.ordinal IS NULL AND t.layout_version IS NULL AND t.zone_no = z.zone_no;
  PERFORM recount_attendance(p_org, p_event);
END $$;

-- n_…, by new ordinal: the zone; the old ordinal of the same seat (null: there was none), which gives it its booking id;
-- the old ordinal whose state it takes over (null: it is free). z_…: the same for counted zones, by position.
-- m_…: the seats that move to another, for the words in log and audit. p_cancel: holds that find no place.
CREATE OR REPLACE FUNCTION migrate_event(
  p_org uuid, p_event uuid, p_migration uuid, p_from integer, p_to integer,
  n_zone smallint[], n_keep integer[], n_from integer[],
  z_zone smallint[], z_keep smallint[], z_capacity integer[],
  m_old integer[], m_new integer[], m_reason text[], p_cancel uuid[], p_prices jsonb, p_told jsonb,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_now       timestamptz := holdfast_now();
  v_same      text := format('the same seat in version %s of the layout', p_to);
  v_seats     event_seats[];
  v_zones     event_zones[];
  v_base      integer;
  v_zone_base integer;
  v_booking   integer;
  v_log       bigint;
  v_outbox    bigint;
BEGIN
  PERFORM FROM release_holds(p_org, p_cancel, p_actor, p_user, NULL, p_ip, p_agent, p_trace,
    format('no place in version %s of the layout', p_to));

  -- Out of the old numbers.
  SELECT array_agg(s ORDER BY s.ordinal), max(s.version) + 1, max(s.booking_id) INTO v_seats, v_base, v_booking
  FROM event_seats s WHERE s.organization_id = p_org AND s.event_id = p_event;
  SELECT array_agg(z ORDER BY z.zone_no), greatest(v_booking, max(z.booking_id)) INTO v_zones, v_booking
  FROM event_zones z WHERE z.organization_id = p_org AND z.event_id = p_event;
  SELECT greatest(v_booking, max(c.last_booking_id)) INTO v_booking
  FROM event_layout_changes c WHERE c.organization_id = p_org AND c.event_id = p_event;
  v_base := coalesce(v_base, 0);

  INSERT INTO seat_state_events (organization_id, event_id, at, verb, ordinal, zone_no, quantity, old_state, new_state,
    version, hold_type, hold_id, actor, user_id, reason)
  SELECT p_org, p_event, v_now, 'migrate', s.ordinal, s.zone_no, 1, s.state, 'available', s.version + 1, s.hold_type,
    s.hold_id, p_actor, p_user, coalesce(m.reason, v_same)
  FROM unnest(v_seats) s LEFT JOIN unnest(m_old, m_reason) AS m (ordinal, reason) ON m.ordinal = s.ordinal
  WHERE s.state <> 'available' ORDER BY s.ordinal;

  WITH parts AS (
    SELECT h.zone_no, h.quantity, 'held'::seat_state AS state, h.hold_type, h.id AS hold_id FROM holds h
    WHERE h.organization_id = p_org AND h.event_id = p_event AND h.ordinal IS NULL AND h.status = 'active'
    UNION ALL SELECT z.zone_no, z.sold, 'sold', NULL, NULL FROM unnest(v_zones) z WHERE z.sold > 0
    UNION ALL SELECT z.zone_no, z.blocked, 'blocked', NULL, NULL FROM unnest(v_zones) z WHERE z.blocked > 0
  ), logged AS (
    INSERT INTO seat_state_events (organization_id, event_id, at, verb, zone_no, quantity, old_state, new_state, version,
      hold_type, hold_id, actor, user_id, reason)
    SELECT p_org, p_event, v_now, 'migrate', p.zone_no, p.quantity, p.state, 'available',
      z.version + row_number() OVER (PARTITION BY p.zone_no ORDER BY p.state, p.hold_id), p.hold_type, p.hold_id, p_actor,
      p_user, format('to version %s of the layout', p_to)
    FROM parts p JOIN unnest(v_zones) z ON z.zone_no = p.zone_no
    RETURNING version
  )
  SELECT greatest(max(l.version), (SELECT max(z.version) FROM unnest(v_zones) z), 0) + 1 INTO v_zone_base FROM logged l;

  SELECT coalesce(max(l.id), 0) INTO v_log FROM seat_state_events l
  WHERE l.organization_id = p_org AND l.event_id = p_event;

  -- Who is where, and who was: by way of negative numbers, since no two active holds may have one number even for a moment.
  UPDATE holds h SET ordinal = -1 - h.ordinal
  WHERE h.organization_id = p_org AND h.event_id = p_event AND h.ordinal IS NOT NULL AND h.layout_version IS NULL;
  UPDATE holds h SET ordinal = n.n - 1, zone_no = n.zone_no
  FROM unnest(n_from, n_zone) WITH ORDINALITY AS n (was, zone_no, n)
  WHERE h.organization_id = p_org AND h.event_id = p_event AND h.status = 'active' AND h.ordinal = -1 - n.was;
  UPDATE holds h SET ordinal = n.n - 1, zone_no = n.zone_no
  FROM unnest(n_keep, n_zone) WITH ORDINALITY AS n (was, zone_no, n)
  WHERE h.organization_id = p_org AND h.event_id = p_event AND h.status <> 'active' AND h.ordinal = -1 - n.was;
  UPDATE holds h SET ordinal = m.ordinal, zone_no = n_zone[m.ordinal + 1]  -- the hold that was sold goes with the sale
  FROM unnest(m_old, m_new) AS m (was, ordinal) JOIN unnest(v_seats) s ON s.ordinal = m.was
  WHERE h.organization_id = p_org AND h.event_id = p_event AND h.status = 'converted' AND h.ordinal = -1 - m.was
    AND h.ended_at = s.sold_at;
  UPDATE holds h SET ordinal = -1 - h.ordinal, layout_version = p_from     -- of a seat that is no more
  WHERE h.organization_id = p_org AND h.event_id = p_event AND h.ordinal < 0;
  UPDATE holds h SET zone_no = coalesce(n.zone_no, h.zone_no), layout_version = CASE WHEN n.zone_no IS NULL THEN p_from END
  FROM unnest(v_zones) z LEFT JOIN unnest(z_keep, z_zone) AS n (was, zone_no) ON n.was = z.zone_no
  WHERE h.organization_id = p_org AND h.event_id = p_event AND h.ordinal IS NULL AND h.layout_version IS NULL
    AND h.zone_no = z.zone_no;

  PERFORM renumber_tickets(p_org, p_event, p_from, n_zone, n_keep, n_from, z_zone, z_keep);

  -- What the counters of occupancy say of each zone number changes by the difference.
  INSERT INTO occupancy_changes (organization_id, event_id, zone_no, state, hold_type, change)
  SELECT p_org, p_event, c.zone_no, c.state, c.hold_type, sum(c.change) FROM (
    SELECT s.zone_no, s.state, CASE s.state WHEN 'held' THEN s.hold_type ELSE '' END AS hold_type, -1 AS change
    FROM unnest(v_seats) s WHERE s.state <> 'available'
    UNION ALL
    SELECT n.zone_no, s.state, CASE s.state WHEN 'held' THEN s.hold_type ELSE '' END, 1
    FROM unnest(n_from, n_zone) AS n (was, zone_no) JOIN unnest(v_seats) s ON s.ordinal = n.was WHERE s.state <> 'available'
    UNION ALL
    SELECT z.zone_no, 'sold', '', -z.sold FROM unnest(v_zones) z
    UNION ALL
    SELECT n.zone_no, 'sold', '', z.sold
    FROM unnest(z_keep, z_zone) AS n (was, zone_no) JOIN unnest(v_zones) z ON z.zone_no = n.was
    UNION ALL
    SELECT z.zone_no, 'blocked', '', -z.blocked FROM unnest(v_zones) z
    UNION ALL
    SELECT n.zone_no, 'blocked', '', z.blocked - z.overlay_blocked
    FROM unnest(z_keep, z_zone) AS n (was, zone_no) JOIN unnest(v_zones) z ON z.zone_no = n.was
    UNION ALL  -- the holds have their new numbers already
    SELECT coalesce(n.was, h.zone_no), 'held', h.hold_type, -h.quantity
    FROM holds h LEFT JOIN unnest(z_keep, z_zone) AS n (was, zone_no) ON n.zone_no = h.zone_no
    WHERE h.organization_id = p_org AND h.event_id = p_event AND h.ordinal IS NULL AND h.status = 'active'
    UNION ALL
    SELECT h.zone_no, 'held', h.hold_type, h.quantity FROM holds h
    WHERE h.organization_id = p_org AND h.event_id = p_event AND h.ordinal IS NULL AND h.status = 'active') c
  GROUP BY c.zone_no, c.state, c.hold_type HAVING sum(c.change) <> 0;

  -- Into the new ones.
  PERFORM set_config('holdfast.migrating', p_event::text, true);
  DELETE FROM event_seats s WHERE s.organization_id = p_org AND s.event_id = p_event;
  INSERT INTO event_seats (organization_id, event_id, ordinal, zone_no, booking_id, state, version, hold_id, hold_type,
    held_until, locked_at, sold_at, block_reason)
  SELECT p_org, p_event, n.n - 1, n.zone_no,
    coalesce(k.booking_id, v_booking + count(*) FILTER (WHERE k.booking_id IS NULL) OVER (ORDER BY n.n)),
    coalesce(f.state, 'available'), v_base + CASE WHEN coalesce(f.state, 'available') = 'available' THEN 0 ELSE 1 END,
    f.hold_id, f.hold_type, f.held_until, f.locked_at, f.sold_at, f.block_reason
  FROM unnest(n_zone, n_keep, n_from) WITH ORDINALITY AS n (zone_no, keep, was, n)
  LEFT JOIN unnest(v_seats) k ON k.ordinal = n.keep
  LEFT JOIN unnest(v_seats) f ON f.ordinal = n.was;
  SELECT greatest(v_booking, max(s.booking_id)) INTO v_booking FROM event_seats s
  WHERE s.organization_id = p_org AND s.event_id = p_event;

  DELETE FROM event_zones z WHERE z.organization_id = p_org AND z.event_id = p_event;
  PERFORM set_config('holdfast.migrating', '', true);
  INSERT INTO event_zones (organization_id, event_id, zone_no, booking_id, capacity, held, sold, blocked, version)
  SELECT p_org, p_event, n.zone_no,
    coalesce(k.booking_id, v_booking + count(*) FILTER (WHERE k.booking_id IS NULL) OVER (ORDER BY n.n)),
    n.capacity, coalesce(k.held, 0), coalesce(k.sold, 0), coalesce(k.blocked - k.overlay_blocked, 0),
    v_zone_base + h.holds + CASE WHEN k.sold > 0 THEN 1 ELSE 0 END + CASE WHEN k.blocked > k.overlay_blocked THEN 1 ELSE 0 END
  FROM unnest(z_zone, z_keep, z_capacity) WITH ORDINALITY AS n (zone_no, keep, capacity, n)
  LEFT JOIN unnest(v_zones) k ON k.zone_no = n.keep
  CROSS JOIN LATERAL (
    SELECT count(*)::integer AS holds FROM holds h WHERE h.organization_id = p_org AND h.event_id = p_event
      AND h.zone_no = n.zone_no AND h.ordinal IS NULL AND h.status = 'active') h;
  SELECT greatest(v_booking, max(z.booking_id)) INTO v_booking FROM event_zones z
  WHERE z.organization_id = p_org AND z.event_id = p_event;

  UPDATE events e SET layout_version = p_to, prices = p_prices, updated_at = v_now
  WHERE e.organization_id = p_org AND e.id = p_event;
  INSERT INTO outbox (organization_id, at, kind, event_id, actor, payload)
  VALUES (p_org, v_now, 'EventMigrated', p_event, p_actor, p_told) RETURNING id INTO v_outbox;
  INSERT INTO event_layout_changes (organization_id, event_id, log_id, outbox_id, migration_id, from_version, to_version,
    base_version, capacities, last_booking_id, at)
  VALUES (p_org, p_event, v_log, v_outbox, p_migration, p_from, p_to, v_base,
    coalesce((SELECT jsonb_object_agg(z.zone_no, z.capacity) FROM unnest(v_zones) z), '{}'), v_booking, v_now);

  INSERT INTO seat_state_events (organization_id, event_id, at, verb, ordinal, zone_no, quantity, old_state, new_state,
    version, hold_type, hold_id, actor, user_id, reason)
  SELECT p_org, p_event, v_now, 'migrate', s.ordinal, s.zone_no, 1, 'available', s.state, s.version, s.hold_type, s.hold_id,
    p_actor, p_user, coalesce(m.reason, v_same)
  FROM event_seats s LEFT JOIN unnest(m_new, m_reason) AS m (ordinal, reason) ON m.ordinal = s.ordinal
  WHERE s.organization_id = p_org AND s.event_id = p_event AND s.state <> 'available' ORDER BY s.ordinal;
  INSERT INTO seat_state_events (organization_id, event_id, at, verb, zone_no, quantity, old_state, new_state, version,
    hold_type, hold_id, actor, user_id, reason)
  SELECT p_org, p_event, v_now, 'migrate', p.zone_no, p.quantity, 'available', p.state,
    v_zone_base + row_number() OVER (PARTITION BY p.zone_no ORDER BY p.state, p.hold_id), p.hold_type, p.hold_id, p_actor,
    p_user, format('from version %s of the layout', p_from)
  FROM (
    SELECT h.zone_no, h.quantity, 'held'::seat_state AS state, h.hold_type, h.id AS hold_id FROM holds h
    WHERE h.organization_id = p_org AND h.event_id = p_event AND h.ordinal IS NULL AND h.status = 'active'
    UNION ALL SELECT z.zone_no, z.sold, 'sold', NULL, NULL FROM event_zones z
    WHERE z.organization_id = p_org AND z.event_id = p_event AND z.sold > 0
    UNION ALL SELECT z.zone_no, z.blocked, 'blocked', NULL, NULL FROM event_zones z
    WHERE z.organization_id = p_org AND z.event_id = p_event AND z.blocked > 0) p;

  -- The act as a whole is audited by the caller; here, who sits elsewhere because of it.
  INSERT INTO audit_entries (organization_id, at, action, entity_type, entity_id, event_id, actor, user_id, ip, user_agent,
    request_id, reason, changes)
  SELECT p_org, v_now, 'seat_migrated', CASE WHEN s.hold_id IS NULL THEN 'Seat' ELSE 'SeatHold' END, s.hold_id, p_event,
    p_actor, p_user, p_ip, p_agent, p_trace, m.reason,
    jsonb_build_object('from_version', p_from, 'from_ordinal', m.was, 'to_version', p_to, 'to_ordinal', m.ordinal,
      'state', s.state)
  FROM unnest(m_old, m_new, m_reason) AS m (was, ordinal, reason) JOIN unnest(v_seats) s ON s.ordinal = m.was;
END $$;
