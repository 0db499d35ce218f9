-- Version 3: limits of tenants and of their workspaces, and what is used of them.

CREATE TABLE toolcrib.quotas (
    tenant text NOT NULL,
    -- Empty for all workspaces of the tenant together.
    workspace text NOT NULL CHECK (pg_catalog.octet_length(workspace) <= 1024),
    name text NOT NULL CHECK (name IN ('calls-per-minute', 'commands', 'command-seconds-per-day')),
    value bigint NOT NULL CHECK (value BETWEEN 0 AND 1000000000000),
    PRIMARY KEY (tenant, workspace, name)
);
ALTER TABLE toolcrib.quotas ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_own ON toolcrib.quotas FOR SELECT TO toolcrib_runtime USING (tenant = session_user);
-- The owner sets them: a tenant that could would not be limited.
GRANT SELECT ON toolcrib.quotas TO toolcrib_runtime;

-- What a process has used in its present minute and day, in total: a report that is repeated changes nothing. Minutes and days
-- are counted since 1970, in UTC.
CREATE TABLE toolcrib.usage (
    tenant text NOT NULL,
    process text NOT NULL CHECK (process ~ '^[0-9a-f]{32}$'),
    workspace text NOT NULL CHECK (pg_catalog.octet_length(workspace) BETWEEN 1 AND 1024),
    minute bigint NOT NULL,
    calls bigint NOT NULL CHECK (calls BETWEEN 0 AND 1000000000000),
    day bigint NOT NULL,
    command_ms bigint NOT NULL CHECK (command_ms BETWEEN 0 AND 1000000000000000),
    -- Commands that run. They count while their process reports them.
    commands bigint NOT NULL CHECK (commands BETWEEN 0 AND 1000000),
    seen timestamptz NOT NULL,
    PRIMARY KEY (tenant, process, workspace)
);
CREATE INDEX usage_workspace ON toolcrib.usage (tenant, workspace);
CREATE INDEX usage_day ON toolcrib.usage (tenant, day);
ALTER TABLE toolcrib.usage ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_own ON toolcrib.usage FOR SELECT TO toolcrib_runtime USING (tenant = session_user);
GRANT SELECT ON toolcrib.usage TO toolcrib_runtime;

-- Takes what a process has used: a list of objects with the columns of toolcrib.usage. What was used in a minute or in a day only
-- grows, and a later minute or day than the present one is taken as the present one. Returns the time in seconds since 1970.
CREATE FUNCTION toolcrib.report_usage(from_process text, used json) RETURNS double precision
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    now_seconds double precision := extract(epoch FROM clock_timestamp());
    this_minute bigint := floor(now_seconds / 60);
    this_day bigint := floor(now_seconds / 86400);
BEGIN
    IF json_array_length(used) > 1000 THEN
        RAISE EXCEPTION 'a report has at most 1000 workspaces' USING ERRCODE = 'TC003';
    END IF;
    IF json_array_length(used) > 0 THEN
        DELETE FROM toolcrib.usage u WHERE (u.tenant, u.process, u.workspace) IN (
            SELECT o.tenant, o.process, o.workspace FROM toolcrib.usage o
                WHERE o.tenant = session_user AND o.day < this_day - 1 LIMIT 1000 FOR UPDATE SKIP LOCKED);
        INSERT INTO toolcrib.usage AS u (tenant, process, workspace, minute, calls, day, command_ms, commands, seen)
            SELECT session_user, from_process, r.workspace, least(r.minute, this_minute), r.calls,
                least(r.day, this_day), r.command_ms, r.commands, clock_timestamp()
            FROM json_to_recordset(used)
                AS r(workspace text, minute bigint, calls bigint, day bigint, command_ms bigint, commands bigint)
            ON CONFLICT (tenant, process, workspace) DO UPDATE SET
                minute = greatest(u.minute, excluded.minute),
                calls = CASE WHEN excluded.minute > u.minute THEN excluded.calls
                    WHEN excluded.minute = u.minute THEN greatest(u.calls, excluded.calls) ELSE u.calls END,
                day = greatest(u.day, excluded.day),
                command_ms = CASE WHEN excluded.day > u.day THEN excluded.command_ms
                    WHEN excluded.day = u.day THEN greatest(u.command_ms, excluded.command_ms) ELSE u.command_ms END,
                commands = excluded.commands,
                seen = excluded.seen;
    END IF;
    RETURN now_seconds;
END
$$;

REVOKE ALL ON FUNCTION toolcrib.report_usage FROM PUBLIC;
GRANT EXECUTE ON FUNCTION toolcrib.report_usage TO toolcrib_runtime;
