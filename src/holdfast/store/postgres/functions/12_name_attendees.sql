-- Who will sit on what is held. No move: the seats stay held, by the same buyer, for as long as before.
--
-- Called right after the holds were placed, by the same transaction. Those it placed are under its locks already; a seat
-- that the buyer had from before is locked here, because a hold row is only written under the lock of its seat.
CREATE OR REPLACE FUNCTION name_attendees(
  p_org uuid, p_holds uuid[], p_users uuid[], p_names text[], p_memberships uuid[]
) RETURNS void LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
BEGIN
  PERFORM FROM event_seats s
  JOIN holds h ON h.organization_id = p_org AND h.event_id = s.event_id AND h.ordinal = s.ordinal
  WHERE s.organization_id = p_org AND h.id = ANY (p_holds) AND s.hold_id = h.id
  ORDER BY s.event_id, s.ordinal FOR UPDATE OF s;

  UPDATE holds h
  SET attendee_user_id = a.user_id, attendee_name = a.name, associated_membership_id = a.membership_id
  FROM unnest(p_holds, p_users, p_names, p_memberships) AS a (hold_id, user_id, name, membership_id)
  WHERE h.organization_id = p_org AND h.id = a.hold_id AND h.status = 'active';
END $$;
