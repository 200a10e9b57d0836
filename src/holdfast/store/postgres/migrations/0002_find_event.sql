-- A guest has no credential yet: whose event it is that they ask for must be found across organizations. The engine
-- may look at events on sale for that, and see no more of them than their owner.
CREATE POLICY events_on_sale ON events FOR SELECT TO holdfast_engine USING (status IN ('published', 'live'));
GRANT SELECT (organization_id, id, status) ON events TO holdfast_engine;
CREATE INDEX events_on_sale ON events (id) WHERE status IN ('published', 'live');

-- A tenant's hold types reach every organization of the tenant: the engine tells which those are, so that the change is
-- written to the audit of each.
GRANT SELECT (tenant_id) ON organizations TO holdfast_engine;
CREATE INDEX organizations_of_tenant ON organizations (tenant_id);

-- A node is ready when the schema is the one it was built for.
GRANT SELECT ON schema_migrations TO holdfast_app;
