-- The change feed, for whoever follows it: everything committed since an earlier look (a pg_snapshot) and nothing twice.
-- One row always: the new cursor, and the rows as an array. It looks across organizations, so it runs as the engine's role.
CREATE OR REPLACE FUNCTION read_news(p_cursor text) RETURNS TABLE (
  snapshot text, now timestamptz, organization_id uuid, id bigint, xid bigint, at timestamptz, kind text, event_id uuid,
  actor text, source text, state text, hold_type text, held_until timestamptz, ordinals integer[], versions integer[],
  hold_ids uuid[], user_ids uuid[], quantities integer[], zone_no smallint, zone_version integer, zone_held integer,
  zone_sold integer, zone_blocked integer, payload jsonb
) LANGUAGE sql STABLE
SET role = holdfast_engine SET enable_seqscan = off
AS $$
  SELECT s.snapshot, holdfast_now(), o.organization_id, o.id, o.xid::text::bigint, o.at, o.kind, o.event_id, o.actor,
    o.source, o.state::text, o.hold_type, o.held_until, o.ordinals, o.versions, o.hold_ids, o.user_ids, o.quantities,
    o.zone_no, o.zone_version, o.zone_held, o.zone_sold, o.zone_blocked,
    o.payload
  FROM (SELECT pg_current_snapshot()::text AS snapshot) s
  LEFT JOIN LATERAL (
    SELECT * FROM outbox o
    WHERE o.xid >= pg_snapshot_xmin(p_cursor::pg_snapshot) AND NOT pg_visible_in_snapshot(o.xid, p_cursor::pg_snapshot)
    ORDER BY o.xid, o.id) o ON true
$$;
