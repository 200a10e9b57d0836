-- The change feed and the counters of occupancy.
--
-- A message now says what became of a set of seats, not of one: all that one transaction did to one event in one way is
-- one row. It carries the number of its transaction, by which a reader tells what it has not seen yet: ids are given
-- before the commit, and may appear behind one already read; whether a transaction was over at an earlier instant is
-- certain (pg_visible_in_snapshot). Rows of one seat are ordered by the seat's version.
ALTER TABLE outbox
  ADD COLUMN xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
  ADD COLUMN actor        text,
  ADD COLUMN source       text,
  ADD COLUMN state        seat_state,                     -- what the seats came to
  ADD COLUMN hold_type    text,                           -- and with which type: of the hold, or of the sale
  ADD COLUMN held_until   timestamptz,
  ADD COLUMN ordinals     integer[],                      -- the seats; null where it is about a GA zone
  ADD COLUMN versions     integer[],                      -- by ordinal, of the seats after the move
  ADD COLUMN hold_ids     uuid[],                         -- the holds that began or ended
  ADD COLUMN user_ids     uuid[],                         -- whose holds began
  ADD COLUMN quantities   integer[],                      -- GA: places by hold
  ADD COLUMN zone_no      smallint,                       -- GA: the zone, and its counters after the move
  ADD COLUMN zone_version integer,
  ADD COLUMN zone_held    integer,
  ADD COLUMN zone_sold    integer,
  DROP COLUMN log_id;
CREATE INDEX outbox_feed ON outbox (xid);

-- Whoever follows the feed follows it for all organizations at once, and may throw away what is a week old.
CREATE POLICY feed ON outbox FOR SELECT TO holdfast_engine USING (true);
CREATE POLICY outdated ON outbox FOR DELETE TO holdfast_engine USING (at < now() - interval '7 days');
GRANT SELECT, DELETE ON outbox TO holdfast_engine;

-- Occupancy is exact at every instant without a row that everybody waits for: what a transaction changed is a row of its
-- own, and a background duty adds these rows up. Free places are what is left of the capacity, so they are not counted.
CREATE TABLE occupancy_counts (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  zone_no         smallint NOT NULL,
  state           seat_state NOT NULL CHECK (state <> 'available'),
  hold_type       text NOT NULL,                          -- of what is held; '' otherwise
  places          integer NOT NULL,
  PRIMARY KEY (organization_id, event_id, zone_no, state, hold_type),
  FOREIGN KEY (organization_id, event_id) REFERENCES events
) WITH (fillfactor = 50);

CREATE TABLE occupancy_changes (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  id              bigint GENERATED ALWAYS AS IDENTITY,
  zone_no         smallint NOT NULL,
  state           seat_state NOT NULL,
  hold_type       text NOT NULL,
  change          integer NOT NULL,
  PRIMARY KEY (organization_id, event_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- How full an event was, minute by minute.
CREATE TABLE occupancy_snapshots (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  at              timestamptz NOT NULL,                   -- the minute
  available       integer NOT NULL,
  held            integer NOT NULL,
  sold            integer NOT NULL,
  blocked         integer NOT NULL,
  total           integer NOT NULL,
  by_zone         jsonb NOT NULL,
  by_hold_type    jsonb NOT NULL,
  PRIMARY KEY (organization_id, event_id, at),
  FOREIGN KEY (organization_id, event_id) REFERENCES events
);

DO $$
DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['occupancy_counts', 'occupancy_changes', 'occupancy_snapshots']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY of_organization ON %I TO holdfast_app
      USING (organization_id = (SELECT current_organization()))
      WITH CHECK (organization_id = (SELECT current_organization()))', t);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE ON occupancy_counts TO holdfast_app;
GRANT SELECT, INSERT, DELETE ON occupancy_changes TO holdfast_app;
GRANT SELECT, INSERT ON occupancy_snapshots TO holdfast_app;

-- Whose changes are to be added up, and which events are on sale: the engine sees that much of all organizations.
CREATE POLICY changed_events ON occupancy_changes FOR SELECT TO holdfast_engine USING (true);
GRANT SELECT (organization_id, event_id) ON occupancy_changes TO holdfast_engine;

-- What stands in the inventory already is counted once, here: for this the wall must let the owner through.
ALTER TABLE event_seats NO FORCE ROW LEVEL SECURITY;
ALTER TABLE event_zones NO FORCE ROW LEVEL SECURITY;
ALTER TABLE holds NO FORCE ROW LEVEL SECURITY;
ALTER TABLE occupancy_counts NO FORCE ROW LEVEL SECURITY;
INSERT INTO occupancy_counts (organization_id, event_id, zone_no, state, hold_type, places)
SELECT organization_id, event_id, zone_no, state, CASE state WHEN 'held' THEN hold_type ELSE '' END, count(*)
FROM event_seats WHERE state <> 'available' GROUP BY 1, 2, 3, 4, 5;
INSERT INTO occupancy_counts (organization_id, event_id, zone_no, state, hold_type, places)
SELECT organization_id, event_id, zone_no, 'held', hold_type, sum(quantity)
FROM holds WHERE status = 'active' AND ordinal IS NULL GROUP BY 1, 2, 3, 5;
INSERT INTO occupancy_counts (organization_id, event_id, zone_no, state, hold_type, places)
SELECT organization_id, event_id, zone_no, 'sold', '', sold FROM event_zones WHERE sold > 0;
ALTER TABLE event_seats FORCE ROW LEVEL SECURITY;
ALTER TABLE event_zones FORCE ROW LEVEL SECURITY;
ALTER TABLE holds FORCE ROW LEVEL SECURITY;
ALTER TABLE occupancy_counts FORCE ROW LEVEL SECURITY;
