-- At the gate. Locks: the scan's id (advisory), the event (shared), the ticket, and last of all the zone's attendance.

-- The first step of every scan: alone with the scan's id, beside others at the event, which stays what it is until the commit.
CREATE OR REPLACE FUNCTION open_gate(p_org uuid, p_event uuid, p_scan uuid) RETURNS void LANGUAGE sql VOLATILE AS $$
  SELECT pg_advisory_xact_lock(hashtextextended('scan:' || p_org || p_event || p_scan, 0));
  SELECT share_events(ARRAY[p_event]);
$$;

-- One more person in a zone, unless it is full; p_anyway: they are there, full or not. Null: it is full.
CREATE OR REPLACE FUNCTION count_in(
  p_org uuid, p_event uuid, p_day date, p_zone smallint, p_first boolean, p_capacity integer, p_anyway boolean
) RETURNS integer LANGUAGE sql VOLATILE AS $$
  INSERT INTO zone_attendance (organization_id, event_id, day, zone_no, present, entered)
  SELECT p_org, p_event, p_day, p_zone, 1, p_first::integer WHERE p_anyway OR p_capacity IS NULL OR p_capacity > 0
  ON CONFLICT (organization_id, event_id, day, zone_no) DO UPDATE
  SET present = zone_attendance.present + 1, entered = zone_attendance.entered + p_first::integer
  WHERE p_anyway OR p_capacity IS NULL OR zone_attendance.present < p_capacity
  RETURNING present
$$;

-- Decides a scan and writes it down, once; the caller has opened the gate and found that the scan is new.
-- p_version: of the code; null where the ticket is named by its id. p_refusal: what was found wrong before anybody asked about
-- the ticket. p_passed: a gate without a connection let them pass, which is a fact; it is written down as one and, where it
-- should not have been, as a conflict. Null: the gate waits for the answer.
CREATE OR REPLACE FUNCTION admit(
  p_org uuid, p_event uuid, p_scan uuid, p_ticket uuid, p_version integer, p_direction text, p_day date,
  p_scanned_at timestamptz, p_now timestamptz, p_exit_scans boolean, p_passed boolean, p_refusal text,
  p_gate text, p_source text, p_actor text, p_user uuid
) RETURNS admissions LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_ticket tickets; v_day ticket_days; v_scan admissions;
  v_reason text := p_refusal;
  v_event events; v_capacity integer; v_present integer; v_prior uuid;
  v_passes boolean; v_another boolean; v_late boolean := false;
BEGIN
  SELECT e.* INTO v_event FROM events e WHERE e.organization_id = p_org AND e.id = p_event;
  IF p_ticket IS NOT NULL THEN
    SELECT t.* INTO v_ticket FROM tickets t WHERE t.organization_id = p_org AND t.id = p_ticket FOR UPDATE;
    IF v_ticket.id IS NULL THEN
      v_reason := coalesce(v_reason, 'unknown_ticket');
    ELSIF v_ticket.event_id <> p_event THEN
      v_reason := coalesce(v_reason, 'other_event');
      v_ticket := NULL;
    END IF;
  END IF;

  IF v_ticket.id IS NOT NULL AND p_direction = 'in' THEN
    SELECT d.* INTO v_day FROM ticket_days d
    WHERE d.organization_id = p_org AND d.ticket_id = p_ticket AND d.day = p_day;
    SELECT z.capacity INTO v_capacity FROM event_zones z
    WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = v_ticket.zone_no;
    v_reason := coalesce(v_reason, CASE
      WHEN v_event.status = 'cancelled' THEN 'event_cancelled'
      WHEN v_event.status = 'archived' AND p_passed IS NULL THEN 'event_over'
      WHEN v_ticket.status = 'void' THEN 'void'
      WHEN p_version <> v_ticket.code_version THEN 'replaced_code'
      WHEN cardinality(v_ticket.valid_days) > 0 AND p_day <> ALL (v_ticket.valid_days) THEN 'wrong_day'
      WHEN v_ticket.associated_membership_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM memberships m
        JOIN users u ON u.organization_id = p_org AND u.id = m.user_id AND u.deactivated_at IS NULL
        WHERE m.organization_id = p_org AND m.id = v_ticket.associated_membership_id AND m.active) THEN 'membership_inactive'
      WHEN v_ticket.entitlement = 'single_entry' AND EXISTS (
        SELECT FROM ticket_days d
        WHERE d.organization_id = p_org AND d.ticket_id = p_ticket AND d.entries > 0) THEN 'already_used'
      WHEN p_exit_scans AND v_day.inside THEN 'already_inside'
      WHEN v_ticket.entitlement = 'limited_reentry_per_day' AND v_day.entries >= v_ticket.max_daily_entries
        THEN 'no_entries_left' END);
    v_passes := v_reason IS NULL OR coalesce(p_passed, false);
    -- Whoever is inside and comes in again has gone out unscanned: nobody more is inside. Unless that cannot be.
    v_another := coalesce(v_day.inside, false) AND v_reason IS NOT NULL
      AND (p_exit_scans OR v_reason IN ('already_used', 'replaced_code'));
    IF v_passes AND (v_another OR NOT coalesce(v_day.inside, false)) THEN
      v_present := count_in(p_org, p_event, p_day, CASE WHEN v_another THEN v_day.zone_no ELSE v_ticket.zone_no END,
        coalesce(v_day.entries, 0) = 0, v_capacity, coalesce(p_passed, false));
      IF v_present IS NULL OR v_present > v_capacity THEN
        v_reason := coalesce(v_reason, 'zone_full');
        v_passes := coalesce(p_passed, false);
      END IF;
    END IF;
    IF v_passes THEN
      INSERT INTO ticket_days (organization_id, ticket_id, event_id, day, entries, inside, last_scan_at, zone_no)
      VALUES (p_org, p_ticket, p_event, p_day, 1, true, p_scanned_at, v_ticket.zone_no)
      ON CONFLICT (organization_id, ticket_id, day) DO UPDATE
      SET entries = ticket_days.entries + 1, inside = true, last_scan_at = greatest(ticket_days.last_scan_at, p_scanned_at),
          zone_no = CASE WHEN ticket_days.inside THEN ticket_days.zone_no ELSE v_ticket.zone_no END,
          others_inside = ticket_days.others_inside + v_another::integer
      RETURNING ticket_days.* INTO v_day;
    END IF;
  ELSIF v_ticket.id IS NOT NULL THEN
    -- Out: of today, or of the night before. Whoever is inside may go, whatever has become of the ticket.
    SELECT d.* INTO v_day FROM ticket_days d
    WHERE d.organization_id = p_org AND d.ticket_id = p_ticket AND d.day IN (p_day, p_day - 1)
    ORDER BY d.inside DESC, d.day DESC LIMIT 1;
    IF v_reason IS NULL AND NOT coalesce(v_day.inside, false) THEN
      v_reason := 'not_inside';
    END IF;
    v_passes := v_reason IS NULL OR coalesce(p_passed, false);
    -- Told late of somebody who left, and has come in since: they are inside.
    v_late := v_reason IS NULL AND p_passed IS NOT NULL AND p_scanned_at < v_day.last_scan_at AND v_day.others_inside = 0;
    IF v_late THEN
      v_reason := 'superseded';
    ELSIF v_reason IS NULL THEN
      UPDATE ticket_days d
      SET inside = d.others_inside > 0, others_inside = greatest(d.others_inside - 1, 0),
          last_scan_at = greatest(d.last_scan_at, p_scanned_at)
      WHERE d.organization_id = p_org AND d.ticket_id = p_ticket AND d.day = v_day.day RETURNING d.* INTO v_day;
      UPDATE zone_attendance a SET present = a.present - 1
      WHERE a.organization_id = p_org AND a.event_id = p_event AND a.day = v_day.day AND a.zone_no = v_day.zone_no;
    END IF;
  ELSE
    v_passes := coalesce(p_passed, false);
  END IF;

  IF v_ticket.id IS NOT NULL AND v_reason IN ('already_used', 'already_inside', 'no_entries_left', 'replaced_code', 'not_inside')
  THEN
    SELECT a.scan_id INTO v_prior FROM admissions a
    WHERE a.organization_id = p_org AND a.ticket_id = p_ticket AND a.outcome = 'admit'
      AND a.direction = CASE v_reason WHEN 'not_inside' THEN 'out' ELSE 'in' END
    ORDER BY a.id DESC LIMIT 1;
  END IF;
  INSERT INTO admissions (organization_id, event_id, scan_id, ticket_id, direction, outcome, reason, day, zone_no, ordinal,
    gate, source, scanned_at, at, actor, user_id, layout_version, code_version, entries, inside, conflict, prior_scan_id)
  VALUES (p_org, p_event, p_scan, v_ticket.id, p_direction, CASE WHEN v_passes THEN 'admit' ELSE 'refuse' END, v_reason, p_day,
    v_ticket.zone_no, v_ticket.ordinal, p_gate, p_source, p_scanned_at, p_now, p_actor, p_user, v_event.layout_version, p_version,
    CASE WHEN v_ticket.id IS NOT NULL THEN coalesce(v_day.entries, 0) END,
    CASE WHEN v_ticket.id IS NOT NULL THEN coalesce(v_day.inside, false) END,
    v_passes AND v_reason IS NOT NULL AND NOT v_late, v_prior)
  RETURNING * INTO v_scan;
  RETURN v_scan;
END $$;

-- Attendance anew out of who is inside, by the zones that tickets are in now: for whoever has renumbered the zones, alone with
-- the event. Of a ticket whose place is no more nobody is counted.
CREATE OR REPLACE FUNCTION recount_attendance(p_org uuid, p_event uuid) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE ticket_days d SET zone_no = CASE WHEN t.layout_version IS NULL THEN t.zone_no END
  FROM tickets t
  WHERE d.organization_id = p_org AND d.event_id = p_event AND t.organization_id = p_org AND t.id = d.ticket_id;
  UPDATE zone_attendance a SET present = 0, entered = 0 WHERE a.organization_id = p_org AND a.event_id = p_event;
  INSERT INTO zone_attendance (organization_id, event_id, day, zone_no, present, entered)
  SELECT p_org, p_event, d.day, d.zone_no, sum(d.inside::integer + d.others_inside), count(*) FILTER (WHERE d.entries > 0)
  FROM ticket_days d WHERE d.organization_id = p_org AND d.event_id = p_event AND d.zone_no IS NOT NULL
  GROUP BY d.day, d.zone_no
  ON CONFLICT (organization_id, event_id, day, zone_no) DO UPDATE SET present = excluded.present, entered = excluded.entered;
END $$;
