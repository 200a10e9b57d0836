-- General-admission zones that an event's overlay takes out, or offers again. The caller owns the event's lock.

-- Nothing more can be taken of these zones; what is held of them is given back, in the log as any release. Places that are
-- sold stay sold: the caller asks for those first (sold_places) and leaves it, if there are any.
CREATE OR REPLACE FUNCTION disable_zones(
  p_org uuid, p_event uuid, p_zones smallint[],
  p_actor text, p_user uuid, p_ip text, p_agent text, p_trace text, p_reason text
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_zone smallint;
BEGIN
  FOR v_zone IN SELECT z FROM unnest(p_zones) z ORDER BY z LOOP
    UPDATE event_zones p SET disabled = true
    WHERE p.organization_id = p_org AND p.event_id = p_event AND p.zone_no = v_zone;
    PERFORM end_zone_holds(p_org, p_event, v_zone, 'expire', NULL, 'SYSTEM', NULL, NULL, NULL, NULL, NULL, NULL);
    PERFORM end_zone_holds(p_org, p_event, v_zone, 'release', NULL, p_actor, p_user, NULL, p_ip, p_agent, p_trace, p_reason);
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION enable_zones(p_org uuid, p_event uuid, p_zones smallint[])
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_zone smallint;
BEGIN
  FOR v_zone IN SELECT z FROM unnest(p_zones) z ORDER BY z LOOP
    UPDATE event_zones p SET disabled = false
    WHERE p.organization_id = p_org AND p.event_id = p_event AND p.zone_no = v_zone;
  END LOOP;
END $$;
