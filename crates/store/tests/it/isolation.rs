//! What the role of a tenant can do, tried with psql.

use toolcrib_store::{StoreUrl, add_tenant, check_all, initialize};

use crate::{Node, StoreServer};

#[test]
fn a_tenant_only_adds_and_reads_its_own_records() {
    let Some(store) = StoreServer::start() else { return };
    let (acme, other) = (store.tenant("acme"), store.tenant("other"));
    let (one, two) = (Node::new(), Node::new());
    one.add(3);
    two.add(2);
    let _sending = (one.send(&acme), two.send(&other));
    one.wait_for(&acme, 3);
    two.wait_for(&other, 2);
    let count = "SELECT count(*) FROM toolcrib.records";
    assert_eq!(store.as_tenant("acme", count).unwrap(), "3");
    assert_eq!(store.as_tenant("other", count).unwrap(), "2");
    assert_eq!(store.as_admin(count), "5");
    // Nothing that the role can set makes it another tenant.
    for statements in [
        "SET ROLE other",
        "SET SESSION AUTHORIZATION other",
        "SET row_security = off; SELECT count(*) FROM toolcrib.records",
        "UPDATE toolcrib.records SET line = 'x'",
        "DELETE FROM toolcrib.records",
        "TRUNCATE toolcrib.records",
        "ALTER TABLE toolcrib.records DISABLE TRIGGER append_record",
        "DROP TABLE toolcrib.records",
        "INSERT INTO toolcrib.records (tenant, workspace, log, seq, line) SELECT 'other', workspace, log, 9, line FROM toolcrib.records",
        "INSERT INTO toolcrib.records (workspace, log, seq, line, received) SELECT workspace, log, 9, line, now() FROM toolcrib.records",
        "INSERT INTO toolcrib.leases VALUES ('acme', 'ws', 'h', 'n', 1, now())",
        "UPDATE toolcrib.leases SET fence = 0",
        "UPDATE toolcrib.store SET id = 'x'",
        "CREATE TABLE toolcrib.mine (x integer)",
    ] {
        assert!(store.as_tenant("acme", statements).is_err(), "{statements}");
    }
    let of_group = "SET ROLE toolcrib_runtime; SELECT count(*) FROM toolcrib.records";
    assert_eq!(
        store.as_tenant("acme", of_group).unwrap(),
        "3",
        "the role that has signed in counts"
    );
    assert_eq!(store.as_admin(count), "5");
    // A role of the same server that is no tenant.
    store.as_admin("CREATE ROLE guest LOGIN PASSWORD 'guest-secret'");
    assert!(store.as_tenant("guest", count).is_err());
}

/// The database itself checks each record.
#[test]
fn records_without_their_hash_or_in_the_place_of_others_are_refused() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let node = Node::new();
    node.add(3);
    let sending = node.send(&acme);
    node.wait_for(&acme, 3);
    drop(sending);
    let insert = |expression: &str, seq: &str| {
        let statement = format!(
            "INSERT INTO toolcrib.records (workspace, log, seq, line) SELECT workspace, log, {seq}, {expression} FROM toolcrib.records WHERE seq = 3"
        );
        store.as_tenant("acme", &statement)
    };
    for (expression, seq) in [
        ("replace(line, 'call', 'cell')", "4"),
        ("line", "4"),
        ("'x'", "4"),
        ("''", "4"),
        ("repeat('x', 70000)", "4"),
        ("line", "0"),
    ] {
        assert!(insert(expression, seq).is_err(), "{expression}, {seq}");
    }
    // The same record again is ignored, another one with its number is not.
    assert!(insert("line", "3").is_ok());
    let forged = r#"{"prev":"' || repeat('0', 64) || '","seq":2,"event":"x"}"#;
    let forged = format!(
        "(SELECT '{{\"hash\":\"' || encode(sha256(convert_to(t, 'UTF8')), 'hex') || '\",' || substr(t, 2) FROM (SELECT '{forged}' AS t) AS f)"
    );
    let refusal = insert(&forged, "2").unwrap_err();
    assert!(refusal.contains("the log has another record 2"), "{refusal}");
    // A function of the role's own does not take the place of sha256, even if the role may make one.
    store.as_admin("GRANT CREATE ON SCHEMA public TO acme");
    store.as_tenant("acme", "CREATE FUNCTION public.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT ''\\x00''::bytea'").unwrap();
    let statement = "SET search_path = public, pg_catalog; INSERT INTO toolcrib.records (workspace, log, seq, line) \
         SELECT workspace, log, 4, '{\"hash\":\"00\",' FROM toolcrib.records WHERE seq = 3";
    assert!(store.as_tenant("acme", statement).is_err());
    assert_eq!(store.as_admin("SELECT count(*) FROM toolcrib.records"), "3");
    assert_eq!(check_all(&store.admin()).unwrap()[0].chain.broken, None);
    // The owner of the tables can change them, and the check finds it.
    store.as_admin("UPDATE toolcrib.records SET line = replace(line, '\"id\":\"1\"', '\"id\":\"7\"') WHERE seq = 2");
    let checked = check_all(&store.admin()).unwrap();
    assert_eq!((checked.len(), checked[0].tenant.as_str()), (1, "acme"));
    assert_eq!(checked[0].chain.broken.as_ref().unwrap().to_string(), "record 2 was edited");
    let found = node.compare(&acme).unwrap();
    assert!(found.problem().unwrap().contains("in the store, record 2 was edited"), "{found:?}");
}

#[test]
fn a_store_is_made_once_and_tenants_are_checked() {
    let Some(store) = StoreServer::start() else { return };
    let again = initialize(&store.admin()).unwrap();
    assert_eq!(again.before, again.now);
    let acme = store.tenant("acme");
    assert_eq!(acme.user(), "acme");
    // A new password for an existing tenant.
    let url = add_tenant(&store.admin(), "acme", "another").unwrap();
    assert!(check_all(&url).unwrap().is_empty());
    assert!(check_all(&acme).unwrap_err().to_string().contains("28P01"));
    for name in ["", "Acme", "a b", "pg_x", "toolcrib_runtime", "1a", "x;y", &"x".repeat(64)] {
        assert!(add_tenant(&store.admin(), name, "x").is_err(), "{name}");
    }
    assert!(
        add_tenant(&store.admin(), "admin", "x").unwrap_err().to_string().contains("no tenant")
    );
    assert!(add_tenant(&url, "new", "x").unwrap_err().to_string().contains("42501"));
    // Errors name the store without its password.
    let guest =
        StoreUrl::parse(&store.server.url("nobody_knows", "pw-secret", crate::DATABASE)).unwrap();
    let refusal = check_all(&guest).unwrap_err().to_string();
    assert!(refusal.contains("nobody_knows") && !refusal.contains("pw-secret"), "{refusal}");
    let empty = StoreUrl::parse(&store.server.admin_url("postgres")).unwrap();
    assert!(check_all(&empty).unwrap_err().to_string().contains("store init"));
    store.as_admin("UPDATE toolcrib.store SET version = 99");
    assert!(initialize(&store.admin()).unwrap_err().to_string().contains("newer Toolcrib"));
    assert!(check_all(&url).unwrap_err().to_string().contains("newer Toolcrib"));
}
