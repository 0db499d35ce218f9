//! Limits of tenants: counted on each machine, summed in the store, and set by its owner only.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use toolcrib::{CommandPlace, Quota};
use toolcrib_store::{QuotaName, Quotas, StoreUrl, TenantQuota, initialize, quotas, set_quotas};
use toolcrib_testkit::PostgresServer;

use crate::{DATABASE, StoreServer, wait_until};

/// A process that keeps the limits of a tenant.
struct Counter {
    quotas: Quotas,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Counter {
    fn new(url: &StoreUrl) -> Counter {
        let notices: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = notices.clone();
        let notice = move |text: &str| sink.lock().push(text.to_owned());
        Counter { quotas: Quotas::start(url.clone(), notice).unwrap(), notices }
    }

    fn of(&self, workspace: &str) -> Arc<dyn Quota> {
        self.quotas.of_workspace(workspace)
    }

    fn has_notice(&self, words: &str) -> bool {
        self.notices.lock().iter().any(|notice| notice.contains(words))
    }
}

impl StoreServer {
    fn set(&self, tenant: &str, workspace: Option<&str>, values: &[(QuotaName, u64)]) {
        set_quotas(&self.admin(), (tenant, workspace), false, values).unwrap();
    }

    fn minute(&self) -> String {
        self.as_admin("SELECT floor(extract(epoch FROM clock_timestamp()) / 60)::bigint")
    }

    /// Reports the use of a process that is not there, as the tenant.
    fn report(&self, tenant: &str, process: char, used: &str) -> Result<String, String> {
        let process = process.to_string().repeat(32);
        let statement = format!("SELECT toolcrib.report_usage('{process}', '{used}') > 0");
        self.as_tenant(tenant, &statement)
    }
}

/// Takes as many places for commands as there are.
fn places(quota: &Arc<dyn Quota>) -> Vec<Box<dyn CommandPlace>> {
    std::iter::from_fn(|| quota.begin_command().ok()).take(50).collect()
}

#[test]
fn calls_are_refused_until_the_next_minute() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let counter = Counter::new(&acme);
    let (a, b) = (counter.of("a"), counter.of("b"));
    assert!(!a.is_limited());
    for _ in 0..100 {
        a.begin_call().unwrap();
    }
    store.set("acme", None, &[(QuotaName::CallsPerMinute, 3)]);
    wait_until(|| a.is_limited());
    // Of two minutes at most.
    let made = (0..100).take_while(|_| b.begin_call().is_ok()).count();
    assert!(made <= 6, "{made}");
    let over = b.check_call(&|| false).unwrap_err();
    assert_eq!(over.limit, "calls-per-minute");
    assert!((1..=60).contains(&over.retry_seconds()), "{over:?}");
    assert!(over.message.starts_with("the tenant has reached its limit calls-per-minute=3"));
    assert!(a.begin_call().is_err());
    // Commands are not limited.
    assert!(a.begin_command().is_ok());
    // The minute passes.
    wait_until(|| a.begin_call().is_ok());
    // A limit that is removed holds no longer.
    set_quotas(&store.admin(), ("acme", None), true, &[]).unwrap();
    wait_until(|| !a.is_limited());
    for _ in 0..10 {
        b.begin_call().unwrap();
    }
}

#[test]
fn machines_share_the_limit_of_a_tenant() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    store.set("acme", None, &[(QuotaName::Commands, 3), (QuotaName::CallsPerMinute, 50)]);
    store.set("acme", Some("a"), &[(QuotaName::Commands, 2)]);
    let (one, two) = (Counter::new(&acme), Counter::new(&acme));
    let other = Counter::new(&store.tenant("other"));
    assert!(one.of("a").is_limited() && !other.of("a").is_limited());
    let held = places(&one.of("a"));
    assert_eq!(held.len(), 2);
    let over = one.of("a").begin_command().err().unwrap();
    assert!(over.message.starts_with("the workspace has reached its limit commands=2"), "{over:?}");
    wait_until(|| places(&two.of("b")).len() == 1);
    assert!(two.of("a").begin_command().is_err());
    assert_eq!(places(&other.of("a")).len(), 50);
    // The other machine ends its commands.
    drop(held);
    wait_until(|| places(&two.of("b")).len() == 3);
    // Those of a machine that has died count for a while.
    let report = r#"[{"workspace":"c","minute":99999999999,"calls":0,"day":99999999,"command_ms":0,"commands":2}]"#;
    store.report("acme", 'a', report).unwrap();
    wait_until(|| places(&two.of("b")).len() == 1);
    store.as_admin(
        "UPDATE toolcrib.usage SET seen = now() - interval '31 seconds' WHERE workspace = 'c'",
    );
    wait_until(|| places(&two.of("b")).len() == 3);
    // Calls of both machines, in one minute.
    let total = loop {
        let minute = store.minute();
        let calls = (0..30).take_while(|_| one.of("a").begin_call().is_ok()).count();
        if calls == 30 {
            let more = (0..100).take_while(|_| {
                std::thread::sleep(Duration::from_millis(300));
                two.of("b").begin_call().is_ok()
            });
            let more = more.count();
            if store.minute() == minute {
                assert!((20..50).contains(&more), "{more}");
                break calls + more;
            }
        }
        // Some calls of the present minute are used up.
        let begun = store.minute();
        wait_until(|| store.minute() != begun);
    };
    // The list shows the sum, or nothing of it in the next minute.
    let used = |url: &StoreUrl| {
        let listed = quotas(url).unwrap();
        listed.iter().find(|one| one.name == QuotaName::CallsPerMinute).unwrap().used
    };
    let total = total as u64;
    wait_until(|| [0, total].contains(&used(&acme)) && [0, total].contains(&used(&store.admin())));
}

#[test]
fn the_last_known_limits_hold_without_the_store() {
    let Some(mut store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    store.set("acme", None, &[(QuotaName::Commands, 1)]);
    let counter = Counter::new(&acme);
    let a = counter.of("a");
    let held = a.begin_command().unwrap();
    wait_until(|| store.as_admin("SELECT sum(commands) FROM toolcrib.usage") == "1");
    store.server.kill();
    wait_until(|| counter.has_notice("The last known ones hold."));
    assert!(a.begin_command().is_err());
    drop(held);
    assert_eq!(places(&a).len(), 1);
    // A process that is started meanwhile knows of no limit, and says so.
    let late = Counter::new(&acme);
    wait_until(|| late.has_notice("Nothing is limited until they are known."));
    assert!(!late.of("a").is_limited());
    store.server.restart();
    wait_until(|| late.of("a").is_limited() && counter.has_notice("being read from the store"));
    store.set("acme", None, &[(QuotaName::Commands, 2)]);
    wait_until(|| places(&a).len() == 2);
    wait_until(|| store.as_admin("SELECT sum(commands) FROM toolcrib.usage") == "0");
    // The end of a process reports the rest.
    a.begin_call().unwrap();
    drop(counter);
    assert_eq!(store.as_admin("SELECT max(calls) FROM toolcrib.usage"), "1");
}

#[test]
fn a_tenant_does_not_change_its_limits() {
    let Some(store) = StoreServer::start() else { return };
    let (acme, other) = (store.tenant("acme"), store.tenant("other"));
    store.set("acme", None, &[(QuotaName::CallsPerMinute, 7), (QuotaName::Commands, 9)]);
    store.set("other", Some("w"), &[(QuotaName::CommandSecondsPerDay, 60)]);
    let own = TenantQuota {
        tenant: "acme".to_owned(),
        workspace: None,
        name: QuotaName::CallsPerMinute,
        value: 7,
        used: 0,
    };
    assert_eq!(quotas(&acme).unwrap()[0], own);
    assert_eq!((quotas(&acme).unwrap().len(), quotas(&other).unwrap().len()), (2, 1));
    assert_eq!(quotas(&store.admin()).unwrap().len(), 3);
    for (clears, values) in [(true, &[][..]), (false, &[(QuotaName::Commands, 1_000)])] {
        let refusal = set_quotas(&acme, ("acme", None), clears, values).unwrap_err().to_string();
        assert!(refusal.contains("only the owner"), "{refusal}");
    }
    for tenant in ["nobody", "admin", "toolcrib_runtime_", ""] {
        let refusal = set_quotas(&store.admin(), (tenant, None), true, &[]).unwrap_err();
        assert!(refusal.to_string().contains("no such tenant"), "{refusal}");
    }
    let report = |calls: i64, ms: i64| {
        let minute = store.minute();
        let day = minute.parse::<i64>().unwrap() / 1_440;
        let used = format!(
            r#"[{{"workspace":"w","minute":{minute},"calls":{calls},"day":{day},"command_ms":{ms},"commands":1}}]"#
        );
        (minute, store.report("acme", 'a', &used))
    };
    report(5, 5_000).1.unwrap();
    for statements in [
        "UPDATE toolcrib.quotas SET value = 1000",
        "DELETE FROM toolcrib.quotas",
        "TRUNCATE toolcrib.quotas",
        "INSERT INTO toolcrib.quotas VALUES ('acme', 'w', 'commands', 5)",
        "INSERT INTO toolcrib.quotas VALUES ('acme', '', 'commands', 5) ON CONFLICT (tenant, workspace, name) DO UPDATE SET value = 5",
        "UPDATE toolcrib.usage SET calls = 0",
        "DELETE FROM toolcrib.usage",
        "INSERT INTO toolcrib.usage VALUES ('acme', repeat('b', 32), 'w', 1, 0, 1, 0, 0, now())",
        "ALTER TABLE toolcrib.quotas DISABLE ROW LEVEL SECURITY",
        "DROP TABLE toolcrib.usage",
        "SET ROLE other; SELECT count(*) FROM toolcrib.quotas",
        "CREATE OR REPLACE FUNCTION toolcrib.report_usage(text, json) RETURNS double precision LANGUAGE sql AS 'SELECT 1'",
        "SELECT toolcrib.report_usage(repeat('a', 32), (SELECT json_agg(json_build_object('workspace', n::text)) FROM generate_series(1, 1001) n))",
        "SELECT toolcrib.report_usage('x', '[{\"workspace\":\"w\",\"minute\":1,\"calls\":1,\"day\":1,\"command_ms\":1,\"commands\":1}]')",
    ] {
        assert!(store.as_tenant("acme", statements).is_err(), "{statements}");
    }
    assert!(report(-1, 0).1.is_err());
    assert_eq!(store.as_tenant("other", "SELECT count(*) FROM toolcrib.usage").unwrap(), "0");
    let of_group = "SET ROLE toolcrib_runtime; SELECT count(*) FROM toolcrib.quotas";
    assert_eq!(store.as_tenant("other", of_group).unwrap(), "1");
    // What was used in a minute and in a day does not become less, and neither does a minute of the future.
    let (minute, _) = report(9, 9_000);
    report(1, 1_000).1.unwrap();
    let lasted = "SELECT command_ms FROM toolcrib.usage WHERE tenant = 'acme'";
    assert_eq!(store.as_admin(lasted), "9000");
    if store.minute() == minute {
        assert_eq!(store.as_admin("SELECT calls FROM toolcrib.usage WHERE tenant = 'acme'"), "9");
    }
    let future = r#"[{"workspace":"w","minute":99999999999,"calls":0,"day":99999999,"command_ms":0,"commands":0}]"#;
    store.report("acme", 'a', future).unwrap();
    assert_eq!(store.as_admin(lasted), "9000");
    // Another tenant with the same name of a process has a row of its own.
    store.report("other", 'a', future).unwrap();
    assert_eq!(store.as_admin("SELECT count(*) FROM toolcrib.usage"), "2");
    // Rows of earlier days are removed by the next report.
    store.as_admin("UPDATE toolcrib.usage SET day = day - 2 WHERE tenant = 'acme'");
    let next = future.replace("\"w\"", "\"v\"");
    store.report("acme", 'b', &next).unwrap();
    assert_eq!(
        store.as_admin("SELECT string_agg(workspace, ',' ORDER BY workspace) FROM toolcrib.usage"),
        "v,w"
    );
}

#[test]
fn a_store_of_version_2_gets_the_tables_and_keeps_its_rows() {
    let Some(server) = PostgresServer::start() else { return };
    server.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    server.psql(DATABASE, include_str!("../../src/schema/1.sql"));
    server.psql(DATABASE, include_str!("../../src/schema/2.sql"));
    server.psql(DATABASE, "UPDATE toolcrib.store SET version = 2");
    let lease = "INSERT INTO toolcrib.leases VALUES ('acme', 'ws', 'h', 'n', 4, now())";
    server.psql(DATABASE, lease);
    let id = server.psql(DATABASE, "SELECT id FROM toolcrib.store");
    let store = StoreServer { server };
    let refusal = quotas(&store.admin()).unwrap_err().to_string();
    assert!(refusal.contains("needs version 3") && refusal.contains("store init"), "{refusal}");
    let made = initialize(&store.admin()).unwrap();
    assert_eq!((made.before, made.now), (2, 3));
    assert_eq!(store.as_admin("SELECT id FROM toolcrib.store"), id);
    assert_eq!(store.as_admin("SELECT fence FROM toolcrib.leases"), "4");
    let acme = store.tenant("acme");
    store.set("acme", None, &[(QuotaName::Commands, 1)]);
    assert_eq!(quotas(&acme).unwrap().len(), 1);
}
