-- Signing in to the dashboard with a password: who may, who is, and who tried too often.

-- The address somebody signs in with. Whoever signs in names no organization, so the engine's role looks for this one
-- value across all of them; it is there only where there is a password, and nowhere else does the engine see a user.
ALTER TABLE users ADD COLUMN sign_in_email text;
ALTER TABLE users ADD CONSTRAINT users_sign_in_email
  CHECK (sign_in_email IS NOT DISTINCT FROM CASE WHEN password_hash IS NOT NULL THEN lower(email) END);
-- A column of its own instead of an index on lower(email): behind row-level security an index is used for what cannot
-- leak, which lower() is not declared to be.
CREATE INDEX users_sign_in ON users (sign_in_email) WHERE sign_in_email IS NOT NULL;
CREATE POLICY with_password ON users FOR SELECT TO holdfast_engine USING (sign_in_email IS NOT NULL);
GRANT SELECT (organization_id, id, sign_in_email) ON users TO holdfast_engine;

-- One row a browser that is signed in. Its cookie holds the secret, this row only the secret's hash. Ended: deleted.
CREATE TABLE sign_ins (
  organization_id uuid NOT NULL,
  id              uuid NOT NULL,
  user_id         uuid NOT NULL,
  secret_hash     bytea NOT NULL,
  created_at      timestamptz NOT NULL,
  last_used_at    timestamptz NOT NULL,                   -- to the minute
  ip              text,
  user_agent      text,
  PRIMARY KEY (organization_id, id),
  UNIQUE (organization_id, secret_hash),
  FOREIGN KEY (organization_id, user_id) REFERENCES users
) WITH (fillfactor = 80);
CREATE INDEX sign_ins_of_user ON sign_ins (organization_id, user_id, created_at);

ALTER TABLE sign_ins ENABLE ROW LEVEL SECURITY;
ALTER TABLE sign_ins FORCE ROW LEVEL SECURITY;
CREATE POLICY of_organization ON sign_ins TO holdfast_app
  USING (organization_id = (SELECT current_organization()))
  WITH CHECK (organization_id = (SELECT current_organization()));
GRANT SELECT, INSERT, UPDATE, DELETE ON sign_ins TO holdfast_app;

-- Attempts of the last minutes, by the hash of an address or a network. Nobody knows yet whose they are: an attempt counts
-- whether or not there is such a user, or the count would tell. An attempt is entered as pending before the password is
-- looked at, so that a hundred at once cannot all be the tenth.
CREATE TABLE sign_in_failures (
  subject   bytea PRIMARY KEY,
  failed_at timestamptz[] NOT NULL,
  pending   timestamptz[] NOT NULL
) WITH (fillfactor = 70);
GRANT SELECT, INSERT, UPDATE, DELETE ON sign_in_failures TO holdfast_app;
