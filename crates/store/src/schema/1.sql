-- Version 1: the audit log and the placement leases.
--
-- A tenant is a role that may sign in and is a member of toolcrib_runtime. Policies compare with session_user, the role that
-- has signed in: unlike a setting, no statement of that role changes it.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'toolcrib_runtime') THEN
        CREATE ROLE toolcrib_runtime NOLOGIN;
    END IF;
END
$$;

CREATE SCHEMA toolcrib;
GRANT USAGE ON SCHEMA toolcrib TO toolcrib_runtime;

-- One row: which store this is.
CREATE TABLE toolcrib.store (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    id text NOT NULL,
    version integer NOT NULL
);
INSERT INTO toolcrib.store (id, version) VALUES (pg_catalog.gen_random_uuid()::text, 1);
GRANT SELECT ON toolcrib.store TO toolcrib_runtime;

CREATE TABLE toolcrib.records (
    tenant text NOT NULL DEFAULT session_user,
    workspace text NOT NULL CHECK (pg_catalog.octet_length(workspace) BETWEEN 1 AND 1024),
    -- The local log that the record is from: a workspace may have been served by several machines.
    log text NOT NULL CHECK (log ~ '^[0-9a-f]{32}$'),
    seq bigint NOT NULL CHECK (seq > 0),
    hash bytea NOT NULL,
    received timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    line text NOT NULL CHECK (pg_catalog.octet_length(line) <= 65536),
    PRIMARY KEY (tenant, workspace, log, seq)
);
CREATE INDEX records_received ON toolcrib.records (received);

-- Accepts a record only with its right hash and number, and only after the last one of its log. The same record again is
-- ignored, so that it can be sent again after a lost connection. Another one in its place is refused.
CREATE FUNCTION toolcrib.append_record() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last_seq bigint;
    known bytea;
    after_prev text := '","seq":' || NEW.seq || ',';
BEGIN
    -- {"hash":"H","prev":"P","seq":N,…}: H is over the line without its member hash.
    NEW.hash := sha256(convert_to('{' || substr(NEW.line, 76), 'UTF8'));
    IF left(NEW.line, 75) <> '{"hash":"' || encode(NEW.hash, 'hex') || '",'
        OR substr(NEW.line, 76, 8) <> '"prev":"'
        OR substr(NEW.line, 84, 64) !~ '^[0-9a-f]{64}$'
        OR substr(NEW.line, 148, length(after_prev)) <> after_prev
    THEN
        RAISE EXCEPTION 'record % does not have its hash and its number', NEW.seq USING ERRCODE = 'TC001';
    END IF;
    SELECT r.seq INTO last_seq FROM toolcrib.records r
        WHERE r.tenant = NEW.tenant AND r.workspace = NEW.workspace AND r.log = NEW.log
        ORDER BY r.seq DESC LIMIT 1;
    IF last_seq >= NEW.seq THEN
        SELECT r.hash INTO known FROM toolcrib.records r
            WHERE r.tenant = NEW.tenant AND r.workspace = NEW.workspace AND r.log = NEW.log AND r.seq = NEW.seq;
        IF known = NEW.hash THEN
            RETURN NULL;
        END IF;
        RAISE EXCEPTION 'the log has another record %', NEW.seq USING ERRCODE = 'TC002';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER append_record BEFORE INSERT ON toolcrib.records
    FOR EACH ROW EXECUTE FUNCTION toolcrib.append_record();

ALTER TABLE toolcrib.records ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_own ON toolcrib.records FOR SELECT TO toolcrib_runtime USING (tenant = session_user);
CREATE POLICY add_own ON toolcrib.records FOR INSERT TO toolcrib_runtime WITH CHECK (tenant = session_user);
-- No UPDATE, DELETE or TRUNCATE, and neither the tenant nor the time can be given.
GRANT SELECT, INSERT (workspace, log, seq, line) ON toolcrib.records TO toolcrib_runtime;

-- Which machine may write a workspace. Rows are never deleted, so that the fence only grows.
CREATE TABLE toolcrib.leases (
    tenant text NOT NULL,
    workspace text NOT NULL CHECK (pg_catalog.octet_length(workspace) BETWEEN 1 AND 1024),
    holder text NOT NULL CHECK (pg_catalog.octet_length(holder) BETWEEN 1 AND 200),
    -- A name of the machine, for people.
    node text NOT NULL CHECK (pg_catalog.octet_length(node) <= 200),
    fence bigint NOT NULL,
    held_until timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace)
);
ALTER TABLE toolcrib.leases ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_own ON toolcrib.leases FOR SELECT TO toolcrib_runtime USING (tenant = session_user);
GRANT SELECT ON toolcrib.leases TO toolcrib_runtime;

-- Takes or renews a lease. The fence grows when the lease passes to another holder, or had ended in between.
CREATE FUNCTION toolcrib.take_lease(for_workspace text, for_holder text, from_node text, seconds integer)
    RETURNS TABLE (is_held boolean, fence bigint, node text, seconds_left double precision)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF seconds NOT BETWEEN 1 AND 3600 THEN
        RAISE EXCEPTION 'a lease has 1 to 3600 seconds' USING ERRCODE = 'TC003';
    END IF;
    INSERT INTO toolcrib.leases AS l (tenant, workspace, holder, node, fence, held_until)
        VALUES (session_user, for_workspace, for_holder, from_node, 1, clock_timestamp() + make_interval(secs => seconds))
        ON CONFLICT ON CONSTRAINT leases_pkey DO UPDATE SET
            holder = excluded.holder,
            node = excluded.node,
            held_until = clock_timestamp() + make_interval(secs => seconds),
            fence = l.fence + CASE WHEN l.holder = excluded.holder AND l.held_until > clock_timestamp() THEN 0 ELSE 1 END
        WHERE l.holder = excluded.holder OR l.held_until <= clock_timestamp();
    RETURN QUERY SELECT l.holder = for_holder, l.fence, l.node,
            extract(epoch FROM l.held_until - clock_timestamp())::double precision
        FROM toolcrib.leases l WHERE l.tenant = session_user AND l.workspace = for_workspace;
END
$$;

-- Ends a lease, if this holder still has it.
CREATE FUNCTION toolcrib.release_lease(for_workspace text, for_holder text, with_fence bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE toolcrib.leases l SET held_until = clock_timestamp()
        WHERE l.tenant = session_user AND l.workspace = for_workspace
            AND l.holder = for_holder AND l.fence = with_fence AND l.held_until > clock_timestamp();
    RETURN FOUND;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA toolcrib FROM PUBLIC;
GRANT EXECUTE ON FUNCTION toolcrib.take_lease, toolcrib.release_lease TO toolcrib_runtime;
