-- Checkouts: the session's row is locked after the event (shared) and before any seat. See 02_locks.sql.

-- Null: there is none. Whoever has this lock decides what becomes of the checkout; its holds may still end beside it, under
-- the locks of their seats.
CREATE OR REPLACE FUNCTION lock_checkout(p_org uuid, p_checkout uuid) RETURNS checkouts LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_checkout checkouts;
BEGIN
  PERFORM share_events(ARRAY(SELECT c.event_id FROM checkouts c WHERE c.organization_id = p_org AND c.id = p_checkout));
  SELECT c.* INTO v_checkout FROM checkouts c WHERE c.organization_id = p_org AND c.id = p_checkout FOR UPDATE;
  RETURN v_checkout;
END $$;
