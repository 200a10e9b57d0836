-- What the gates need beside the tables of 0010.

-- One key signs at a time, however many ask for the first one at once.
CREATE UNIQUE INDEX ticket_keys_one_current ON ticket_keys (organization_id) WHERE retired_at IS NULL;

-- Where somebody is counted as inside stays where they came in, whatever becomes of the ticket meanwhile.
ALTER TABLE ticket_days ADD COLUMN zone_no smallint;
-- People a gate without a connection let in on the same ticket, beside the one it is good for.
ALTER TABLE ticket_days ADD COLUMN others_inside integer NOT NULL DEFAULT 0 CHECK (others_inside >= 0);
CREATE INDEX ticket_days_of_event ON ticket_days (organization_id, event_id, day);

ALTER TABLE admissions
  ADD COLUMN layout_version integer,                      -- in which zone_no and ordinal are meant
  ADD COLUMN code_version integer,                        -- null: the ticket was named by its id
  ADD COLUMN entries integer,                             -- of the ticket on that day, with this scan
  ADD COLUMN inside boolean,                              -- after it
  ADD COLUMN conflict boolean NOT NULL DEFAULT false,     -- a gate without a connection let pass whom the engine would not have
  ADD COLUMN prior_scan_id uuid;                          -- the scan that this one is refused for, or in conflict with
CREATE INDEX tickets_of_attendee ON tickets (organization_id, attendee_user_id, id) WHERE attendee_user_id IS NOT NULL;
