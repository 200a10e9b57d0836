-- Taking an event to another version of its layout: the plan, which is confirmed or thrown away, and what was done.
CREATE TABLE layout_migrations (
  organization_id uuid NOT NULL,
  id              uuid NOT NULL,
  event_id        uuid NOT NULL,
  layout_id       uuid NOT NULL,
  from_version    integer NOT NULL,
  to_version      integer NOT NULL,
  status          text NOT NULL DEFAULT 'planned' CHECK (status IN ('planned', 'applied', 'discarded')),
  plan            jsonb NOT NULL,
  fingerprint     text NOT NULL,                          -- of all that the plan was made from
  created_at      timestamptz NOT NULL,
  created_by      uuid,                                   -- null: an API key
  ended_at        timestamptz,                            -- applied or discarded
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, event_id) REFERENCES events,
  FOREIGN KEY (organization_id, layout_id, from_version) REFERENCES layout_versions,
  FOREIGN KEY (organization_id, layout_id, to_version) REFERENCES layout_versions
);
CREATE INDEX layout_migrations_of_event ON layout_migrations (organization_id, event_id, id);

-- Where, in the log and in the outbox, ordinals and zone numbers of an event began to mean something else. Nobody moves a
-- seat of the event beside a migration, so every row up to `log_id` (every message before `outbox_id`) is in terms of
-- from_version, and every later one in terms of to_version.
CREATE TABLE event_layout_changes (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  log_id          bigint NOT NULL,
  outbox_id       bigint NOT NULL,
  xid             xid8 NOT NULL DEFAULT pg_current_xact_id(),
  migration_id    uuid NOT NULL,
  from_version    integer NOT NULL,
  to_version      integer NOT NULL,
  base_version    integer NOT NULL,                       -- what every seat's version begins with from here on
  capacities      jsonb NOT NULL,                         -- of the counted zones, by zone number, up to here
  last_booking_id integer NOT NULL,                       -- the highest that was ever given: none is given twice
  at              timestamptz NOT NULL,
  PRIMARY KEY (organization_id, event_id, migration_id),
  FOREIGN KEY (organization_id, event_id) REFERENCES events,
  FOREIGN KEY (organization_id, migration_id) REFERENCES layout_migrations
);

-- Set where a hold that is over was on a seat, or in a zone, that the event's layout has no more: the version in which
-- its ordinal and zone number are meant. Null: the version that the event has now.
ALTER TABLE holds ADD COLUMN layout_version integer;

DO $$
DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['layout_migrations', 'event_layout_changes']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY of_organization ON %I TO holdfast_app
      USING (organization_id = (SELECT current_organization()))
      WITH CHECK (organization_id = (SELECT current_organization()))', t);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE ON layout_migrations TO holdfast_app;
GRANT SELECT, INSERT ON event_layout_changes TO holdfast_app;

-- A migration writes an event's inventory anew. Otherwise seats and zones are never deleted: only the transaction that says
-- which event it migrates may, and of no other event.
GRANT DELETE ON event_seats, event_zones TO holdfast_app;
CREATE FUNCTION migrating_event() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('holdfast.migrating', true), '')::uuid;
CREATE POLICY only_by_migration ON event_seats AS RESTRICTIVE FOR DELETE TO holdfast_app
  USING (event_id = (SELECT migrating_event()));
CREATE POLICY only_by_migration ON event_zones AS RESTRICTIVE FOR DELETE TO holdfast_app
  USING (event_id = (SELECT migrating_event()));
