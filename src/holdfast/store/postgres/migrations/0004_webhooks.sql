-- Webhooks: where an organization wants to be told of what happens, what was told, and how it went.
--
-- Messages come out of the outbox, each exactly once: the place up to which the outbox was read (feed_cursors), the
-- deliveries and their jobs are written by one transaction. That transaction writes rows of many organizations. It needs
-- no wider policy for that: it reads as the engine, then leaves the engine's role and enters one organization after the
-- other, as the setting `holdfast.organization_id` may change within a transaction. A cursor an organization would be a
-- row and a scan of the outbox for each; a policy that lets the engine write would be a way around the wall.

-- How far a reader of the outbox has come (a pg_snapshot). Whoever locks the row reads on; the others skip it.
CREATE TABLE feed_cursors (
  name     text PRIMARY KEY,
  cursor   text NOT NULL,
  moved_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
INSERT INTO feed_cursors (name, cursor) VALUES ('webhooks', pg_current_snapshot()::text);
GRANT SELECT, UPDATE ON feed_cursors TO holdfast_engine;

CREATE TABLE webhook_endpoints (
  organization_id  uuid NOT NULL REFERENCES organizations,
  id               uuid NOT NULL,
  url              text NOT NULL,
  description      text,
  kinds            text[] NOT NULL DEFAULT '{}',           -- empty: all
  event_id         uuid,                                  -- null: of all events
  enabled          boolean NOT NULL DEFAULT true,
  disabled_reason  text,                                  -- why the engine disabled it
  secret           bytea NOT NULL,                        -- as it is: it must sign
  old_secret       bytea,                                 -- signs too, until
  old_secret_until timestamptz,
  failing_since    timestamptz,                           -- the first failed attempt after the last that succeeded
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, event_id) REFERENCES events
);

-- One message, however many endpoints it goes to; `body` is what is sent, to the letter.
CREATE TABLE webhook_messages (
  organization_id uuid NOT NULL REFERENCES organizations,
  id              uuid NOT NULL,
  kind            text NOT NULL,
  event_id        uuid,
  body            bytea NOT NULL,
  outbox_id       bigint,                                 -- null: derived, or a test
  part            smallint NOT NULL DEFAULT 0,
  created_at      timestamptz NOT NULL,
  PRIMARY KEY (organization_id, id),
  UNIQUE (organization_id, outbox_id, part)
);
CREATE INDEX webhook_messages_age ON webhook_messages (organization_id, created_at);

CREATE TABLE webhook_deliveries (
  organization_id uuid NOT NULL,
  id              uuid NOT NULL,
  endpoint_id     uuid NOT NULL,
  message_id      uuid NOT NULL,
  status          text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
  run             integer NOT NULL DEFAULT 1,             -- a replay begins the next; a job of an earlier run does nothing
  tries           integer NOT NULL DEFAULT 0,             -- of this run
  attempts        integer NOT NULL DEFAULT 0,             -- of all runs
  next_attempt_at timestamptz,
  status_code     smallint,                               -- of the last attempt
  error           text,
  created_at      timestamptz NOT NULL,
  ended_at        timestamptz,
  PRIMARY KEY (organization_id, id),
  UNIQUE (organization_id, message_id, endpoint_id),
  FOREIGN KEY (organization_id, endpoint_id) REFERENCES webhook_endpoints ON DELETE CASCADE,
  FOREIGN KEY (organization_id, message_id) REFERENCES webhook_messages ON DELETE CASCADE
);
CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (organization_id, endpoint_id, id);
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (organization_id, endpoint_id, created_at)
  WHERE status = 'failed';
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_attempt_at) WHERE status = 'pending';

CREATE TABLE webhook_attempts (
  organization_id uuid NOT NULL,
  delivery_id     uuid NOT NULL,
  n               integer NOT NULL,
  at              timestamptz NOT NULL,
  duration_ms     integer NOT NULL,
  status_code     smallint,
  error           text,
  answer          text,                                   -- the first kilobyte
  PRIMARY KEY (organization_id, delivery_id, n),
  FOREIGN KEY (organization_id, delivery_id) REFERENCES webhook_deliveries ON DELETE CASCADE
);

-- Events whose last place is gone and of which that was told; the row goes when a place comes free.
CREATE TABLE sold_out_events (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  at              timestamptz NOT NULL,
  PRIMARY KEY (organization_id, event_id),
  FOREIGN KEY (organization_id, event_id) REFERENCES events
);

DO $$
DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['webhook_endpoints', 'webhook_messages', 'webhook_deliveries', 'webhook_attempts',
    'sold_out_events']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY of_organization ON %I TO holdfast_app
      USING (organization_id = (SELECT current_organization()))
      WITH CHECK (organization_id = (SELECT current_organization()))', t);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_endpoints, webhook_deliveries TO holdfast_app;
GRANT SELECT, INSERT, DELETE ON webhook_messages, webhook_attempts, sold_out_events TO holdfast_app;

-- What the engine may see across organizations: who wants to be told, and how many deliveries wait.
CREATE POLICY listening ON webhook_endpoints FOR SELECT TO holdfast_engine USING (enabled);
GRANT SELECT (organization_id, enabled) ON webhook_endpoints TO holdfast_engine;
CREATE POLICY waiting ON webhook_deliveries FOR SELECT TO holdfast_engine USING (status = 'pending');
GRANT SELECT (status, next_attempt_at) ON webhook_deliveries TO holdfast_engine;

-- The queue: pgqueuer's own schema, as pgqueuer 1.6.0 writes it (durability “balanced”: its log need not survive a
-- crash). A job names an organization and a delivery, and nothing of what is delivered. Left out is the trigger that
-- notifies of every change: workers look for themselves, and transactions that notify wait for each other to commit.
CREATE TYPE pgqueuer_status AS ENUM ('queued', 'picked', 'successful', 'exception', 'canceled', 'deleted', 'failed');

CREATE TABLE pgqueuer (
    id bigserial NOT NULL PRIMARY KEY,
    priority integer NOT NULL,
    queue_manager_id uuid,
    created timestamp with time zone NOT NULL DEFAULT now(),
    updated timestamp with time zone NOT NULL DEFAULT now(),
    heartbeat timestamp with time zone NOT NULL DEFAULT now(),
    execute_after timestamp with time zone NOT NULL DEFAULT now(),
    status pgqueuer_status NOT NULL,
    entrypoint text NOT NULL,
    dedupe_key text,
    payload bytea,
    headers jsonb,
    attempts integer NOT NULL DEFAULT 0,
    slot bigint
);

CREATE UNLOGGED TABLE pgqueuer_log (
    id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL PRIMARY KEY,
    created timestamp with time zone NOT NULL DEFAULT now(),
    job_id bigint NOT NULL,
    status pgqueuer_status NOT NULL,
    priority integer NOT NULL,
    entrypoint text NOT NULL,
    traceback jsonb,
    aggregated boolean DEFAULT false
);

CREATE TABLE pgqueuer_schedules (
    id bigserial NOT NULL PRIMARY KEY,
    expression text NOT NULL,
    entrypoint text NOT NULL,
    heartbeat timestamp with time zone NOT NULL DEFAULT now(),
    created timestamp with time zone NOT NULL DEFAULT now(),
    updated timestamp with time zone NOT NULL DEFAULT now(),
    next_run timestamp with time zone NOT NULL DEFAULT now(),
    last_run timestamp with time zone,
    status pgqueuer_status DEFAULT 'queued'::pgqueuer_status,
    UNIQUE (expression, entrypoint)
);

CREATE UNLOGGED TABLE pgqueuer_statistics (
    id bigserial NOT NULL PRIMARY KEY,
    created timestamp with time zone NOT NULL DEFAULT date_trunc('sec'::text, now()),
    count bigint NOT NULL,
    priority integer NOT NULL,
    status pgqueuer_status NOT NULL,
    entrypoint text NOT NULL
);

CREATE INDEX pgqueuer_ep_ea_idx ON pgqueuer USING btree (entrypoint, execute_after) WHERE (status = 'queued'::pgqueuer_status);

CREATE INDEX pgqueuer_ep_prio_id_idx ON pgqueuer USING btree (entrypoint, priority DESC, id) WHERE (status = 'queued'::pgqueuer_status);

CREATE INDEX pgqueuer_log_created ON pgqueuer_log USING btree (created);

CREATE INDEX pgqueuer_log_job_id_status ON pgqueuer_log USING btree (job_id, created DESC);

CREATE INDEX pgqueuer_log_not_aggregated ON pgqueuer_log USING btree ((1)) WHERE (NOT aggregated);

CREATE INDEX pgqueuer_log_status ON pgqueuer_log USING btree (status);

CREATE INDEX pgqueuer_picked_heartbeat_idx ON pgqueuer USING btree (heartbeat) WHERE (status = 'picked'::pgqueuer_status);

CREATE UNIQUE INDEX pgqueuer_picked_slot_idx ON pgqueuer USING btree (entrypoint, slot) WHERE ((status = 'picked'::pgqueuer_status) AND (slot IS NOT NULL));

CREATE INDEX pgqueuer_priority_id_id1_idx ON pgqueuer USING btree (priority, id DESC) INCLUDE (id) WHERE (status = 'queued'::pgqueuer_status);

CREATE INDEX pgqueuer_queue_manager_id_idx ON pgqueuer USING btree (queue_manager_id) WHERE (queue_manager_id IS NOT NULL);

CREATE UNIQUE INDEX pgqueuer_statistics_unique_count ON pgqueuer_statistics USING btree (priority, date_trunc('sec'::text, timezone('UTC'::text, created)), status, entrypoint);

CREATE UNIQUE INDEX pgqueuer_unique_dedupe_key ON pgqueuer USING btree (dedupe_key) WHERE ((status = ANY (ARRAY['queued'::pgqueuer_status, 'picked'::pgqueuer_status])) AND (dedupe_key IS NOT NULL));

CREATE INDEX pgqueuer_updated_id_id1_idx ON pgqueuer USING btree (updated, id DESC) INCLUDE (id) WHERE (status = 'picked'::pgqueuer_status);

GRANT SELECT, INSERT, UPDATE, DELETE ON pgqueuer, pgqueuer_log, pgqueuer_schedules, pgqueuer_statistics TO holdfast_app;
GRANT USAGE ON SEQUENCE pgqueuer_id_seq, pgqueuer_schedules_id_seq, pgqueuer_statistics_id_seq TO holdfast_app;
