-- Version 2: approval questions that any machine can answer.

CREATE TABLE toolcrib.approvals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL CHECK (pg_catalog.octet_length(workspace) BETWEEN 1 AND 1024),
    -- Of the tool, its arguments, the workspace, the caller, and everything that the question shows.
    digest text NOT NULL CHECK (digest ~ '^[0-9a-f]{64}$'),
    -- A name of the machine that asked first, and of the caller, for people.
    node text NOT NULL CHECK (pg_catalog.octet_length(node) <= 200),
    caller text CHECK (pg_catalog.octet_length(caller) <= 1024),
    question text NOT NULL CHECK (pg_catalog.octet_length(question) <= 131072),
    -- The rule that would always allow the call.
    rule text CHECK (pg_catalog.octet_length(rule) <= 4096),
    asked timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    expires timestamptz NOT NULL,
    answer text CHECK (answer IN ('yes', 'no')),
    answered timestamptz,
    answered_by text CHECK (pg_catalog.octet_length(answered_by) <= 200),
    message text CHECK (pg_catalog.octet_length(message) <= 8192),
    -- The call that has used the answer. There is one at most.
    used_by text CHECK (pg_catalog.octet_length(used_by) <= 64),
    used timestamptz,
    -- Whether the same call gets this row. It does not after the answer was used, nor after the end of the question.
    is_current boolean NOT NULL DEFAULT true
);
CREATE UNIQUE INDEX approvals_current ON toolcrib.approvals (tenant, workspace, digest) WHERE is_current;
CREATE INDEX approvals_expires ON toolcrib.approvals (tenant, expires);

ALTER TABLE toolcrib.approvals ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_own ON toolcrib.approvals FOR SELECT TO toolcrib_runtime USING (tenant = session_user);
GRANT SELECT ON toolcrib.approvals TO toolcrib_runtime;

-- The channel that tells of answers for this tenant.
CREATE FUNCTION toolcrib.approvals_channel() RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT 'toolcrib_' || left(encode(sha256(convert_to(session_user::text, 'UTF8')), 'hex'), 32)
$$;

-- Asks a question. The same question that is open, or whose answer was not used, is not asked again.
CREATE FUNCTION toolcrib.ask(
    for_workspace text, for_digest text, from_node text, for_caller text, with_question text, with_rule text, seconds integer
)
    RETURNS TABLE (id bigint, is_answered boolean)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF seconds NOT BETWEEN 1 AND 3600 THEN
        RAISE EXCEPTION 'a question has 1 to 3600 seconds' USING ERRCODE = 'TC003';
    END IF;
    DELETE FROM toolcrib.approvals a WHERE a.id IN (
        SELECT o.id FROM toolcrib.approvals o
            WHERE o.tenant = session_user AND o.expires < clock_timestamp() - interval '30 days' LIMIT 100);
    FOR attempt IN 1 .. 5 LOOP
        UPDATE toolcrib.approvals a SET is_current = false
            WHERE a.tenant = session_user AND a.workspace = for_workspace AND a.digest = for_digest
                AND a.is_current AND a.expires <= clock_timestamp();
        IF NOT EXISTS (SELECT FROM toolcrib.approvals a
            WHERE a.tenant = session_user AND a.workspace = for_workspace AND a.digest = for_digest AND a.is_current)
        THEN
            IF (SELECT count(*) FROM (SELECT FROM toolcrib.approvals a
                WHERE a.tenant = session_user AND a.expires > clock_timestamp() AND a.answer IS NULL LIMIT 1000) AS open) >= 1000
            THEN
                RAISE EXCEPTION 'the tenant has 1000 open questions' USING ERRCODE = 'TC004';
            END IF;
            INSERT INTO toolcrib.approvals (tenant, workspace, digest, node, caller, question, rule, expires)
                VALUES (session_user, for_workspace, for_digest, from_node, for_caller, with_question, with_rule,
                    clock_timestamp() + make_interval(secs => seconds))
                ON CONFLICT (tenant, workspace, digest) WHERE is_current DO NOTHING;
        END IF;
        RETURN QUERY SELECT a.id, a.answer IS NOT NULL FROM toolcrib.approvals a
            WHERE a.tenant = session_user AND a.workspace = for_workspace AND a.digest = for_digest AND a.is_current;
        EXIT WHEN FOUND;
    END LOOP;
END
$$;

-- Gives an answer, unless there is one, and with a call also uses the answer for it. Without an answer it only uses the one
-- that was given. for_digest may be the beginning of the digest. Returns what holds then; no row if there is no such question.
CREATE FUNCTION toolcrib.answer(
    for_id bigint, for_digest text, with_answer text, by text, with_message text, for_call text
)
    RETURNS TABLE (has_won boolean, is_over boolean, answer text, answered_by text, message text, used_by text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    won boolean := false;
BEGIN
    IF length(for_digest) < 8 THEN
        RAISE EXCEPTION 'an answer names at least 8 digits of the digest' USING ERRCODE = 'TC003';
    END IF;
    IF with_answer IS NOT NULL THEN
        UPDATE toolcrib.approvals a
            SET answer = with_answer, answered = clock_timestamp(), answered_by = by, message = with_message
            WHERE a.id = for_id AND a.tenant = session_user AND starts_with(a.digest, for_digest)
                AND a.answer IS NULL AND a.expires > clock_timestamp();
        won := FOUND;
        IF won THEN
            -- Every role can listen, so the message has nothing but the number.
            PERFORM pg_notify(toolcrib.approvals_channel(), for_id::text);
        END IF;
    END IF;
    IF for_call IS NOT NULL THEN
        UPDATE toolcrib.approvals a SET used_by = for_call, used = clock_timestamp(), is_current = false
            WHERE a.id = for_id AND a.tenant = session_user AND starts_with(a.digest, for_digest)
                AND a.answer IS NOT NULL AND a.used_by IS NULL AND a.expires > clock_timestamp();
    END IF;
    RETURN QUERY SELECT won, a.expires <= clock_timestamp(), a.answer, a.answered_by, a.message, a.used_by
        FROM toolcrib.approvals a
        WHERE a.id = for_id AND a.tenant = session_user AND starts_with(a.digest, for_digest);
END
$$;

-- A call that was cancelled has not used its answer: the same call gets it.
CREATE FUNCTION toolcrib.give_back_answer(for_id bigint, for_call text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE toolcrib.approvals a SET used_by = NULL, used = NULL, is_current = true
        WHERE a.id = for_id AND a.tenant = session_user AND a.used_by = for_call AND a.expires > clock_timestamp();
    RETURN FOUND;
END
$$;

-- Ends a question that needs no answer any more.
CREATE FUNCTION toolcrib.withdraw(for_id bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE toolcrib.approvals a SET expires = clock_timestamp(), is_current = false
        WHERE a.id = for_id AND a.tenant = session_user AND a.answer IS NULL AND a.expires > clock_timestamp();
    RETURN FOUND;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA toolcrib FROM PUBLIC;
GRANT EXECUTE ON FUNCTION toolcrib.take_lease, toolcrib.release_lease, toolcrib.approvals_channel, toolcrib.ask,
    toolcrib.answer, toolcrib.give_back_answer, toolcrib.withdraw TO toolcrib_runtime;
