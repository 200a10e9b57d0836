-- Counted places that are not offered: some taken out by hand, or a whole zone by the event's overlay. Moves like any other.

-- available → blocked. False: there are not so many free places, or the zone is disabled. The caller shares the event's lock.
CREATE OR REPLACE FUNCTION block_places(
  p_org uuid, p_event uuid, p_zone smallint, p_quantity integer,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_version integer;
BEGIN
  -- Places whose hold is over are free, swept or not; this locks the zone as well.
  PERFORM end_zone_holds(p_org, p_event, p_zone, 'expire', NULL, 'SYSTEM', NULL, NULL, NULL, NULL, NULL, NULL);
  UPDATE event_zones z SET blocked = z.blocked + p_quantity, version = z.version + 1
  WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = p_zone AND NOT z.disabled
    AND z.capacity - z.held - z.sold - z.blocked >= p_quantity
  RETURNING z.version INTO v_version;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM record_zone_moves(p_org, p_event, p_zone, 'block', holdfast_now(), p_actor, p_user, NULL, p_ip, p_agent, p_trace,
    p_reason, 'available', 'blocked', v_version - 1, ARRAY[NULL::uuid], ARRAY[p_quantity], ARRAY[NULL::text]);
  RETURN true;
END $$;

-- blocked → available, of what was taken out by hand. False: not so many were, or the zone is disabled.
CREATE OR REPLACE FUNCTION unblock_places(
  p_org uuid, p_event uuid, p_zone smallint, p_quantity integer,
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_version integer;
BEGIN
  UPDATE event_zones z SET blocked = z.blocked - p_quantity, version = z.version + 1
  WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = p_zone AND NOT z.disabled
    AND z.blocked - z.overlay_blocked >= p_quantity
  RETURNING z.version INTO v_version;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM record_zone_moves(p_org, p_event, p_zone, 'unblock', holdfast_now(), p_actor, p_user, NULL, p_ip, p_agent, p_trace,
    p_reason, 'blocked', 'available', v_version - 1, ARRAY[NULL::uuid], ARRAY[p_quantity], ARRAY[NULL::text]);
  RETURN true;
END $$;

-- What is held of these zones is given back, and all that is free is blocked. Places that are sold stay sold: the caller has
-- looked for those and leaves it, if there are any. The caller owns the event's lock.
CREATE OR REPLACE FUNCTION disable_zones(
  p_org uuid, p_event uuid, p_zones smallint[],
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_zone smallint;
  v_free integer;
BEGIN
  FOR v_zone IN SELECT z FROM unnest(p_zones) z ORDER BY z LOOP
    PERFORM end_zone_holds(p_org, p_event, v_zone, 'expire', NULL, 'SYSTEM', NULL, NULL, NULL, NULL, NULL, NULL);
    PERFORM end_zone_holds(p_org, p_event, v_zone, 'release', NULL, p_actor, p_user, NULL, p_ip, p_agent, p_trace, p_reason);
    SELECT z.capacity - z.held - z.sold - z.blocked INTO v_free FROM event_zones z
    WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = v_zone AND NOT z.disabled;
    CONTINUE WHEN NOT FOUND;
    IF v_free > 0 THEN
      PERFORM block_places(p_org, p_event, v_zone, v_free, p_actor, p_user, p_ip, p_agent, p_trace, p_reason);
    END IF;
    UPDATE event_zones z SET disabled = true, overlay_blocked = v_free
    WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = v_zone;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION enable_zones(
  p_org uuid, p_event uuid, p_zones smallint[],
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_zone smallint;
  v_back integer;
BEGIN
  FOR v_zone IN SELECT z FROM unnest(p_zones) z ORDER BY z LOOP
    UPDATE event_zones z SET disabled = false, overlay_blocked = 0
    WHERE z.organization_id = p_org AND z.event_id = p_event AND z.zone_no = v_zone AND z.disabled
    RETURNING old.overlay_blocked INTO v_back;
    IF FOUND AND v_back > 0 THEN
      PERFORM unblock_places(p_org, p_event, v_zone, v_back, p_actor, p_user, p_ip, p_agent, p_trace, p_reason);
    END IF;
  END LOOP;
END $$;
