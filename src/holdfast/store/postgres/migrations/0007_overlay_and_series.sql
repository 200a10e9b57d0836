-- What an event changes of its layout, and the series whose events have layout, overlay and prices in common.

-- Sessions (matinée, evening) are events of one series. What they share stands here once and is copied into each of them,
-- so that whoever reads an event need not know of series at all.
CREATE TABLE series (
  organization_id uuid NOT NULL REFERENCES organizations,
  id              uuid NOT NULL,
  name            text NOT NULL,
  layout_id       uuid NOT NULL,
  layout_version  integer NOT NULL,
  currency        text,
  prices          jsonb NOT NULL DEFAULT '[]',
  overrides       jsonb NOT NULL DEFAULT '{}',
  overlay         jsonb NOT NULL DEFAULT '{}',
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, layout_id, layout_version) REFERENCES layout_versions
);
ALTER TABLE series ENABLE ROW LEVEL SECURITY;
ALTER TABLE series FORCE ROW LEVEL SECURITY;
CREATE POLICY of_organization ON series TO holdfast_app
  USING (organization_id = (SELECT current_organization()))
  WITH CHECK (organization_id = (SELECT current_organization()));
GRANT SELECT, INSERT, UPDATE ON series TO holdfast_app;

-- `overlay`: blocked_seat_ids, disabled_zones, zone_overrides, pricing_zones; fields that say nothing are left out.
ALTER TABLE events
  ADD COLUMN overlay   jsonb NOT NULL DEFAULT '{}',
  ADD COLUMN series_id uuid,
  ADD FOREIGN KEY (organization_id, series_id) REFERENCES series;
CREATE INDEX events_of_series ON events (organization_id, series_id) WHERE series_id IS NOT NULL;

-- Places of a general-admission zone that are not offered: some that somebody took out by hand, or all that were left when the
-- overlay disabled the zone. `disabled` is asserted by whatever would take places, and gives the refusal its words.
ALTER TABLE event_zones
  ADD COLUMN disabled        boolean NOT NULL DEFAULT false,
  ADD COLUMN blocked         integer NOT NULL DEFAULT 0 CHECK (blocked >= 0),
  ADD COLUMN overlay_blocked integer NOT NULL DEFAULT 0,  -- of those, the overlay's: they come back with the zone
  DROP CONSTRAINT event_zones_check,
  ADD CHECK (held + sold + blocked <= capacity),
  ADD CHECK (overlay_blocked BETWEEN 0 AND blocked);
ALTER TABLE outbox ADD COLUMN zone_blocked integer;
