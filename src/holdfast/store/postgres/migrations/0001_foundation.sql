-- The foundation: who may act (tenants, organizations, users), what can be sold (layouts, events, inventory),
-- what happened to it (holds, the state log, audit, outbox).
--
-- Keys begin with organization_id, so that a row's owner is part of its name and the tables can be sharded by it.
-- Row-level security is the second wall behind the explicit predicates: forced, and closed while no organization
-- is set for the transaction.

-- Roles -------------------------------------------------------------------------------------------------------
-- holdfast_app serves requests and owns nothing. holdfast_engine may look across organizations, read only and only
-- where a background duty must find whose turn it is; the work itself is then done as holdfast_app for one organization.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'holdfast_app') THEN
    CREATE ROLE holdfast_app LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'holdfast_engine') THEN
    CREATE ROLE holdfast_engine NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
  END IF;
END $$;
GRANT holdfast_engine TO holdfast_app WITH INHERIT FALSE, SET TRUE;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO holdfast_app, holdfast_engine;

-- Whose transaction is this -----------------------------------------------------------------------------------
CREATE FUNCTION current_organization() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('holdfast.organization_id', true), '')::uuid;

CREATE FUNCTION current_tenant() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('holdfast.tenant_id', true), '')::uuid;

-- The engine's only clock. Tests replace this one function to move time.
CREATE FUNCTION holdfast_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
  RETURN clock_timestamp();

CREATE TYPE seat_state AS ENUM ('available', 'held', 'sold', 'blocked');
CREATE TYPE hold_status AS ENUM ('active', 'converted', 'expired', 'cancelled');
CREATE TYPE event_status AS ENUM ('draft', 'published', 'live', 'cancelled', 'archived');

-- Accounts ----------------------------------------------------------------------------------------------------
CREATE TABLE tenants (
  tenant_id  uuid PRIMARY KEY,
  name       text NOT NULL,
  config     jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE organizations (
  organization_id uuid PRIMARY KEY,
  tenant_id       uuid NOT NULL REFERENCES tenants,
  name            text NOT NULL,
  config          jsonb NOT NULL DEFAULT '{}',
  policy          jsonb,                                  -- null: the organization has stated no policy
  created_at      timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
  organization_id uuid NOT NULL REFERENCES organizations,
  id              uuid NOT NULL,
  email           text,
  display_name    text,
  password_hash   text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  deactivated_at  timestamptz,
  PRIMARY KEY (organization_id, id)
);
CREATE UNIQUE INDEX users_email ON users (organization_id, lower(email)) WHERE email IS NOT NULL;

CREATE TABLE memberships (
  organization_id uuid NOT NULL,
  id              uuid NOT NULL,
  user_id         uuid NOT NULL,
  role            text NOT NULL CHECK (role IN ('customer', 'scanner', 'organizer', 'admin', 'superadmin')),
  tiers           text[] NOT NULL DEFAULT '{}',
  active          boolean NOT NULL DEFAULT true,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, id),
  UNIQUE (organization_id, user_id),
  FOREIGN KEY (organization_id, user_id) REFERENCES users
);

CREATE TABLE api_keys (
  organization_id uuid NOT NULL REFERENCES organizations,
  id              uuid NOT NULL,
  name            text NOT NULL,
  secret_hash     bytea NOT NULL,
  scopes          text[] NOT NULL DEFAULT '{*}',
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz,
  revoked_at      timestamptz,
  PRIMARY KEY (organization_id, id)
);

CREATE TABLE tenant_api_keys (
  tenant_id   uuid NOT NULL REFERENCES tenants,
  id          uuid NOT NULL,
  name        text NOT NULL,
  secret_hash bytea NOT NULL,
  scopes      text[] NOT NULL DEFAULT '{*}',
  created_at  timestamptz NOT NULL DEFAULT now(),
  expires_at  timestamptz,
  revoked_at  timestamptz,
  PRIMARY KEY (tenant_id, id)
);

-- Seating -----------------------------------------------------------------------------------------------------
CREATE TABLE venues (
  organization_id uuid NOT NULL REFERENCES organizations,
  id              uuid NOT NULL,
  name            text NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, id)
);

CREATE TABLE layouts (
  organization_id uuid NOT NULL,
  id              uuid NOT NULL,
  venue_id        uuid NOT NULL,
  name            text NOT NULL,
  latest_version  integer NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, venue_id) REFERENCES venues
);

-- A version is written once. `config` is what the organiser sent, to the letter; `columns` is the same parsed into
-- columns by ordinal, which is what the engine loads.
CREATE TABLE layout_versions (
  organization_id uuid NOT NULL,
  layout_id       uuid NOT NULL,
  version         integer NOT NULL CHECK (version > 0),
  status          text NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'active', 'archived')),
  config          json NOT NULL,
  columns         bytea NOT NULL,
  seat_count      integer NOT NULL,
  total_capacity  integer NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, layout_id, version),
  FOREIGN KEY (organization_id, layout_id) REFERENCES layouts
);

CREATE TABLE events (
  organization_id uuid NOT NULL REFERENCES organizations,
  id              uuid NOT NULL,
  name            text NOT NULL,
  layout_id       uuid,
  layout_version  integer,
  own_zones       json,                                   -- an event without a layout lists its GA zones itself
  own_columns     bytea,
  status          event_status NOT NULL DEFAULT 'draft',
  sale_start      timestamptz,
  sale_end        timestamptz,
  days            date[] NOT NULL DEFAULT '{}',
  currency        text,
  prices          jsonb NOT NULL DEFAULT '[]',
  overrides       jsonb NOT NULL DEFAULT '{}',
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  published_at    timestamptz,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, layout_id, layout_version) REFERENCES layout_versions,
  CHECK ((layout_id IS NULL) <> (own_zones IS NULL)),
  CHECK (sale_start IS NULL OR sale_end IS NULL OR sale_start < sale_end)
);

CREATE TABLE event_whitelist (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  user_id         uuid NOT NULL,
  added_at        timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, event_id, user_id),
  FOREIGN KEY (organization_id, event_id) REFERENCES events
);

-- Inventory ---------------------------------------------------------------------------------------------------
-- One row a seat. Nothing that a hold changes is indexed, and pages keep room: every update stays heap-only (HOT),
-- which is what makes a hold cheap.
CREATE TABLE event_seats (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  ordinal         integer NOT NULL,
  zone_no         smallint NOT NULL,
  booking_id      integer NOT NULL,
  state           seat_state NOT NULL DEFAULT 'available',
  version         integer NOT NULL DEFAULT 0,
  hold_id         uuid,
  hold_type       text,
  held_until      timestamptz,
  locked_at       timestamptz,
  sold_at         timestamptz,                            -- kept while a sold seat is blocked: unblocking returns it
  block_reason    text,
  PRIMARY KEY (organization_id, event_id, ordinal),
  UNIQUE (organization_id, event_id, booking_id),
  FOREIGN KEY (organization_id, event_id) REFERENCES events,
  CHECK ((state = 'held') = (hold_id IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- One row a general-admission zone: a pool of places guarded like a seat.
CREATE TABLE event_zones (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  zone_no         smallint NOT NULL,
  booking_id      integer NOT NULL,
  capacity        integer NOT NULL CHECK (capacity > 0),
  held            integer NOT NULL DEFAULT 0 CHECK (held >= 0),
  sold            integer NOT NULL DEFAULT 0 CHECK (sold >= 0),
  version         integer NOT NULL DEFAULT 0,
  PRIMARY KEY (organization_id, event_id, zone_no),
  UNIQUE (organization_id, event_id, booking_id),
  FOREIGN KEY (organization_id, event_id) REFERENCES events,
  CHECK (held + sold <= capacity)
) WITH (fillfactor = 20);

-- A hold covers one seat (ordinal) or a quantity of a GA zone (ordinal null). Its rows are only written while the
-- writer holds the lock of that seat or zone, which is why no statement ever locks a hold first.
CREATE TABLE holds (
  organization_id uuid NOT NULL,
  id              uuid NOT NULL,
  event_id        uuid NOT NULL,
  ordinal         integer,
  zone_no         smallint NOT NULL,
  quantity        integer NOT NULL DEFAULT 1 CHECK (quantity > 0),
  user_id         uuid,
  session_id      text,
  ip              text,                                   -- kept only where the policy limits holds per ip
  hold_type       text NOT NULL,
  status          hold_status NOT NULL DEFAULT 'active',
  actor           text NOT NULL,
  source          text NOT NULL,
  held_until      timestamptz,                            -- null: until released
  created_at      timestamptz NOT NULL,
  ended_at        timestamptz,
  PRIMARY KEY (organization_id, id)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);
CREATE UNIQUE INDEX holds_one_active_per_seat ON holds (organization_id, event_id, ordinal) WHERE status = 'active';
CREATE INDEX holds_due ON holds (held_until, organization_id) WHERE status = 'active';
CREATE INDEX holds_of_user ON holds (organization_id, user_id, created_at) WHERE user_id IS NOT NULL;
CREATE INDEX holds_of_ip ON holds (organization_id, ip, created_at) WHERE ip IS NOT NULL;
CREATE INDEX holds_of_zone ON holds (organization_id, event_id, zone_no, held_until)
  WHERE status = 'active' AND ordinal IS NULL;

-- What happened -----------------------------------------------------------------------------------------------
-- One row a move, written by the transaction that made it; append-only for the application.
CREATE TABLE seat_state_events (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  id              bigint GENERATED ALWAYS AS IDENTITY,
  at              timestamptz NOT NULL,
  verb            text NOT NULL,
  ordinal         integer,
  zone_no         smallint NOT NULL,
  quantity        integer NOT NULL,
  old_state       seat_state NOT NULL,
  new_state       seat_state NOT NULL,
  version         integer NOT NULL,
  hold_type       text,
  hold_id         uuid,
  session_id      text,
  actor           text NOT NULL,
  user_id         uuid,
  reason          text,
  PRIMARY KEY (organization_id, event_id, id)
);

CREATE TABLE audit_entries (
  organization_id uuid NOT NULL,
  id              bigint GENERATED ALWAYS AS IDENTITY,
  at              timestamptz NOT NULL,
  action          text NOT NULL,
  entity_type     text NOT NULL,
  entity_id       uuid,
  event_id        uuid,
  actor           text NOT NULL,
  user_id         uuid,
  ip              text,
  user_agent      text,
  request_id      text,
  reason          text,
  changes         jsonb,
  PRIMARY KEY (organization_id, id)
);

-- Messages for everybody else, in the order of their ids; a seat's message points at its row of the state log.
CREATE TABLE outbox (
  organization_id uuid NOT NULL,
  id              bigint GENERATED ALWAYS AS IDENTITY,
  at              timestamptz NOT NULL,
  kind            text NOT NULL,
  event_id        uuid,
  log_id          bigint,
  payload         jsonb,
  PRIMARY KEY (organization_id, id)
);

CREATE TABLE idempotency_keys (
  organization_id uuid NOT NULL,
  principal       text NOT NULL,
  key             text NOT NULL,
  request_hash    bytea NOT NULL,
  status          smallint NOT NULL,
  answer          bytea NOT NULL,
  created_at      timestamptz NOT NULL,
  PRIMARY KEY (organization_id, principal, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- The second wall ---------------------------------------------------------------------------------------------
DO $$
DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['organizations', 'users', 'memberships', 'api_keys', 'venues', 'layouts',
    'layout_versions', 'events', 'event_whitelist', 'event_seats', 'event_zones', 'holds', 'seat_state_events',
    'audit_entries', 'outbox', 'idempotency_keys']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY of_organization ON %I TO holdfast_app
      USING (organization_id = (SELECT current_organization()))
      WITH CHECK (organization_id = (SELECT current_organization()))', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['tenants', 'tenant_api_keys']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY of_tenant ON %I TO holdfast_app
      USING (tenant_id = (SELECT current_tenant())) WITH CHECK (tenant_id = (SELECT current_tenant()))', t);
  END LOOP;
END $$;

-- What the engine may see across organizations: whose holds are due, and nothing about them.
CREATE POLICY due_holds ON holds FOR SELECT TO holdfast_engine USING (status = 'active');
GRANT SELECT (organization_id, held_until, status) ON holds TO holdfast_engine;
CREATE POLICY every_organization ON organizations FOR SELECT TO holdfast_engine USING (true);
GRANT SELECT (organization_id) ON organizations TO holdfast_engine;

GRANT SELECT, INSERT, UPDATE ON tenants, organizations, users, memberships, api_keys, tenant_api_keys, venues,
  layouts, layout_versions, events, event_seats, event_zones, holds TO holdfast_app;
GRANT SELECT, INSERT, DELETE ON event_whitelist, idempotency_keys TO holdfast_app;
GRANT SELECT, INSERT ON seat_state_events, audit_entries, outbox TO holdfast_app;
