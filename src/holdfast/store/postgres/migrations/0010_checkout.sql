-- From a hold to a person in the house: checkouts, payments, refunds, tickets, admissions.

-- Checkout ------------------------------------------------------------------------------------------------------
CREATE TYPE checkout_status AS ENUM ('open', 'paying', 'completed', 'expired', 'cancelled');

-- A buyer's holds on their way to being sold. Their lives end with it: whatever changes `expires_at` changes the holds'
-- `held_until` in the same transaction. Locked after events and before seats.
CREATE TABLE checkouts (
  organization_id   uuid NOT NULL,
  id                uuid NOT NULL,
  event_id          uuid NOT NULL,
  user_id           uuid,                                 -- the buyer; null: holds that are nobody's (an API key's)
  session_id        text,
  status            checkout_status NOT NULL DEFAULT 'open',
  source            text NOT NULL,                        -- web, scanner, api, box_office
  actor             text NOT NULL,                        -- who opened it
  expires_at        timestamptz NOT NULL,
  heartbeat_s       integer CHECK (heartbeat_s > 0),      -- null: the holds live as long as the session. Otherwise how long they
                                                          -- live after a heartbeat, never past the session's end
  last_heartbeat_at timestamptz,
  currency          text,
  payment_id        uuid,                                 -- that it was completed with; null: nothing was to be paid
  created_at        timestamptz NOT NULL,
  ended_at          timestamptz,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, event_id) REFERENCES events
);
CREATE INDEX checkouts_of_user ON checkouts (organization_id, user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX checkouts_of_event ON checkouts (organization_id, event_id, id);
CREATE INDEX checkouts_due ON checkouts (expires_at) WHERE status IN ('open', 'paying');
CREATE INDEX checkouts_by_id ON checkouts (id);           -- a payment provider's message names nothing else

-- What is in it, at the price of the moment it came in. What was dropped stays, for disputes, and does not count.
CREATE TABLE checkout_lines (
  organization_id  uuid NOT NULL,
  checkout_id      uuid NOT NULL,
  hold_id          uuid NOT NULL,
  quantity         integer NOT NULL CHECK (quantity > 0),
  price_minor      bigint,                                -- of one place; null: the event's price list has none
  payment_required boolean NOT NULL,                      -- as the hold's type said
  added_at         timestamptz NOT NULL,
  dropped_at       timestamptz,
  PRIMARY KEY (organization_id, checkout_id, hold_id),
  FOREIGN KEY (organization_id, checkout_id) REFERENCES checkouts
);

-- Set while, and after, a hold is in a checkout; taken off again where a hold without an end outlives it.
ALTER TABLE holds ADD COLUMN checkout_id uuid;
CREATE INDEX holds_of_checkout ON holds (organization_id, checkout_id) WHERE checkout_id IS NOT NULL;

-- Money ---------------------------------------------------------------------------------------------------------
CREATE TABLE payment_providers (
  organization_id uuid NOT NULL REFERENCES organizations,
  name            text NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('webhook', 'test')),
  secret          text NOT NULL,
  previous_secret text,                                   -- still good until then: rotation without a gap
  previous_until  timestamptz,
  enabled         boolean NOT NULL DEFAULT true,
  created_at      timestamptz NOT NULL,
  updated_at      timestamptz NOT NULL,
  PRIMARY KEY (organization_id, name)
);

-- One row a payment: begun (pending), money there (received), and what came of it. Received is never the end: such a row
-- is settled by whoever received it, or by the next worker.
CREATE TABLE payments (
  organization_id uuid NOT NULL,
  id              uuid NOT NULL,
  checkout_id     uuid NOT NULL,
  event_id        uuid NOT NULL,
  provider        text NOT NULL,                          -- manual, or a provider's name
  reference       text NOT NULL,                          -- the provider's own name for it
  amount_minor    bigint CHECK (amount_minor >= 0),       -- null: stated by hand for places without a price
  currency        text,
  status          text NOT NULL CHECK (status IN ('pending', 'received', 'applied', 'refund_due', 'failed')),
  actor           text NOT NULL,
  user_id         uuid,
  created_at      timestamptz NOT NULL,
  received_at     timestamptz,
  settled_at      timestamptz,
  detail          jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (organization_id, id),
  UNIQUE (organization_id, provider, reference),
  FOREIGN KEY (organization_id, checkout_id) REFERENCES checkouts,
  CHECK ((status IN ('applied', 'refund_due')) = (settled_at IS NOT NULL))
);
CREATE INDEX payments_of_checkout ON payments (organization_id, checkout_id);
CREATE INDEX payments_unsettled ON payments (received_at) WHERE status = 'received';
-- A checkout is paid for once; whatever else arrives for it is to be refunded.
CREATE UNIQUE INDEX payments_one_applied ON payments (organization_id, checkout_id) WHERE status = 'applied';

-- Every message of a provider that was accepted: the same bytes never count twice.
CREATE TABLE payment_messages (
  organization_id uuid NOT NULL,
  provider        text NOT NULL,
  signature       bytea NOT NULL,                         -- of these very bytes at their time
  message_id      text NOT NULL,
  payment_id      uuid,
  at              timestamptz NOT NULL,
  PRIMARY KEY (organization_id, provider, signature)
);
CREATE INDEX payment_messages_age ON payment_messages (at);

CREATE TABLE refunds (
  organization_id uuid NOT NULL,
  id              uuid NOT NULL,
  payment_id      uuid,                                   -- null: money that no payment here tells of
  checkout_id     uuid NOT NULL,
  event_id        uuid NOT NULL,
  ticket_id       uuid,                                   -- whose sale was reverted; null: money that bought nothing
  amount_minor    bigint,
  currency        text,
  reason          text NOT NULL,
  status          text NOT NULL DEFAULT 'due' CHECK (status IN ('due', 'done')),
  created_at      timestamptz NOT NULL,
  done_at         timestamptz,
  done_by         uuid,
  reference       text,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, payment_id) REFERENCES payments,
  FOREIGN KEY (organization_id, checkout_id) REFERENCES checkouts,
  CHECK ((status = 'done') = (done_at IS NOT NULL))
);
CREATE INDEX refunds_of_checkout ON refunds (organization_id, checkout_id);
CREATE INDEX refunds_due ON refunds (organization_id, id) WHERE status = 'due';
CREATE UNIQUE INDEX refunds_one_per_payment ON refunds (organization_id, payment_id) WHERE ticket_id IS NULL;

-- Tickets -------------------------------------------------------------------------------------------------------
CREATE TABLE ticket_keys (
  organization_id uuid NOT NULL REFERENCES organizations,
  id              text NOT NULL,                          -- named in every code it signed
  private_key     bytea NOT NULL,
  public_key      bytea NOT NULL,
  created_at      timestamptz NOT NULL,
  retired_at      timestamptz,                            -- signs no more; what it signed stays good
  PRIMARY KEY (organization_id, id)
);

CREATE TABLE tickets (
  organization_id          uuid NOT NULL,
  id                       uuid NOT NULL,
  event_id                 uuid NOT NULL,
  checkout_id              uuid NOT NULL,
  hold_id                  uuid,                          -- that was converted; null: sold directly
  ordinal                  integer,                       -- the seat; null: a place of the zone
  zone_no                  smallint NOT NULL,
  layout_version           integer,                       -- as in holds: set where it is void and its seat is no more
  hold_type                text,
  user_id                  uuid,                          -- whose purchase it is
  attendee_user_id         uuid,
  attendee_name            text,
  associated_membership_id uuid,
  price_minor              bigint,
  currency                 text,
  valid_days               date[] NOT NULL,               -- empty: any day
  entitlement              text NOT NULL
    CHECK (entitlement IN ('single_entry', 'limited_reentry_per_day', 'unlimited_multi_day')),
  max_daily_entries        integer CHECK (max_daily_entries > 0),
  status                   text NOT NULL DEFAULT 'valid' CHECK (status IN ('valid', 'void')),
  code_version             integer NOT NULL DEFAULT 1,    -- codes of earlier versions are refused
  issued_at                timestamptz NOT NULL,
  voided_at                timestamptz,
  void_reason              text,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, event_id) REFERENCES events,
  FOREIGN KEY (organization_id, checkout_id) REFERENCES checkouts,
  CHECK ((entitlement = 'limited_reentry_per_day') = (max_daily_entries IS NOT NULL)),
  CHECK ((status = 'void') = (voided_at IS NOT NULL))
);
-- A seat is sold once: this index would refuse the second ticket even if everything before it had failed.
CREATE UNIQUE INDEX tickets_one_valid_per_seat ON tickets (organization_id, event_id, ordinal) WHERE status = 'valid';
CREATE INDEX tickets_of_checkout ON tickets (organization_id, checkout_id);
CREATE INDEX tickets_of_event ON tickets (organization_id, event_id, id);
CREATE INDEX tickets_of_user ON tickets (organization_id, user_id, id) WHERE user_id IS NOT NULL;

-- How an event lets people in: entitlement, days, time zone, by zone where they differ. Fixed on a ticket when it is issued.
ALTER TABLE events ADD COLUMN admission jsonb NOT NULL DEFAULT '{}';

-- Admission -----------------------------------------------------------------------------------------------------
-- What a gate must know of a ticket's day; written under the lock of the ticket.
CREATE TABLE ticket_days (
  organization_id uuid NOT NULL,
  ticket_id       uuid NOT NULL,
  event_id        uuid NOT NULL,
  day             date NOT NULL,
  entries         integer NOT NULL DEFAULT 0,
  inside          boolean NOT NULL DEFAULT false,
  last_scan_at    timestamptz NOT NULL,
  PRIMARY KEY (organization_id, ticket_id, day),
  FOREIGN KEY (organization_id, ticket_id) REFERENCES tickets
);

-- Who is inside, by zone and day; counted zones are held against their capacity. Locked after the ticket.
CREATE TABLE zone_attendance (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  day             date NOT NULL,
  zone_no         smallint NOT NULL,
  present         integer NOT NULL DEFAULT 0 CHECK (present >= 0),
  entered         integer NOT NULL DEFAULT 0,             -- different tickets of the day
  PRIMARY KEY (organization_id, event_id, day, zone_no),
  FOREIGN KEY (organization_id, event_id) REFERENCES events
) WITH (fillfactor = 20);

-- Every scan, admitted or refused; append-only.
CREATE TABLE admissions (
  organization_id uuid NOT NULL,
  event_id        uuid NOT NULL,
  id              bigint GENERATED ALWAYS AS IDENTITY,
  scan_id         uuid NOT NULL,                          -- the gate's own: uploading it twice counts once
  ticket_id       uuid,                                   -- null: the code names no ticket of this event
  direction       text NOT NULL CHECK (direction IN ('in', 'out')),
  outcome         text NOT NULL CHECK (outcome IN ('admit', 'refuse')),
  reason          text,
  day             date,
  zone_no         smallint,
  ordinal         integer,
  gate            text,
  source          text NOT NULL,                          -- scanner, web, api, offline_sync
  scanned_at      timestamptz NOT NULL,                   -- at the gate
  at              timestamptz NOT NULL,                   -- here
  actor           text NOT NULL,
  user_id         uuid,
  PRIMARY KEY (organization_id, event_id, id),
  UNIQUE (organization_id, event_id, scan_id),
  FOREIGN KEY (organization_id, event_id) REFERENCES events
);
CREATE INDEX admissions_of_ticket ON admissions (organization_id, ticket_id, id) WHERE ticket_id IS NOT NULL;

-- The second wall -----------------------------------------------------------------------------------------------
DO $$
DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['checkouts', 'checkout_lines', 'payment_providers', 'payments', 'payment_messages', 'refunds',
    'ticket_keys', 'tickets', 'ticket_days', 'zone_attendance', 'admissions']
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY of_organization ON %I TO holdfast_app
      USING (organization_id = (SELECT current_organization()))
      WITH CHECK (organization_id = (SELECT current_organization()))', t);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE ON checkouts, checkout_lines, payments, refunds, ticket_keys, tickets, ticket_days,
  zone_attendance TO holdfast_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON payment_providers TO holdfast_app;
GRANT SELECT, INSERT, DELETE ON payment_messages TO holdfast_app;
GRANT SELECT, INSERT ON admissions TO holdfast_app;

-- What the engine may see across organizations: whose checkouts are over, whose money waits, and whose a checkout is that a
-- payment provider names.
CREATE POLICY every_checkout ON checkouts FOR SELECT TO holdfast_engine USING (true);
GRANT SELECT (organization_id, id, status, expires_at) ON checkouts TO holdfast_engine;
CREATE POLICY unsettled ON payments FOR SELECT TO holdfast_engine USING (status = 'received');
GRANT SELECT (organization_id, id, status, received_at) ON payments TO holdfast_engine;
