//! Audit logs on their way to the store, while either side fails: nothing is lost, nothing is there twice.

use std::time::Instant;

use toolcrib_store::compare;

use crate::{Node, StoreServer, WORKSPACE, rewrite, wait_until};

const COUNT: &str = "SELECT count(*), count(DISTINCT seq), max(seq) FROM toolcrib.records";

#[test]
fn records_arrive_in_order_and_are_compared() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let node = Node::new();
    assert_eq!(node.compare(&acme), None);
    node.add(1_203);
    let sending = node.send(&acme);
    let found = node.wait_for(&acme, 1_203);
    assert_eq!((found.unsent, found.other_logs, found.chain.first), (0, 0, 1));
    assert_eq!(store.as_admin(COUNT), "1203|1203|1203");
    node.add(7);
    node.wait_for(&acme, 1_210);
    drop(sending);
    node.add(2);
    assert_eq!(node.compare(&acme).unwrap().unsent, 2);
    // Another process of this machine goes on.
    let sending = node.send(&acme);
    node.wait_for(&acme, 1_212);
    drop(sending);
    // A lost position is found out from the store.
    std::fs::read_dir(node.state().join("audit")).unwrap().flatten().for_each(|entry| {
        if entry.path().extension().is_some_and(|extension| extension == "store") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    });
    node.add(1);
    let sending = node.send(&acme);
    node.wait_for(&acme, 1_213);
    drop(sending);
    assert_eq!(store.as_admin(COUNT), "1213|1213|1213");
    assert!(node.notices.lock().is_empty(), "{:?}", node.notices.lock());
}

#[test]
fn a_killed_a_stopped_and_a_full_server_lose_nothing() {
    let Some(mut store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let node = Node::new();
    let _sending = node.send(&acme);
    node.add(20);
    node.wait_for(&acme, 20);
    // Killed while records come.
    store.server.kill();
    node.add(30);
    store.server.restart();
    node.wait_for(&acme, 50);
    // Stopped: it accepts connections and does not answer. Appending does not wait for it.
    store.server.freeze(true);
    let began = Instant::now();
    node.add(40);
    let took = began.elapsed();
    store.server.freeze(false);
    node.wait_for(&acme, 90);
    eprintln!("40 records while the server was stopped: {took:?}");
    // Full.
    store.as_admin(
        "CREATE FUNCTION public.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full'; END $$;
         CREATE TRIGGER is_full BEFORE INSERT ON toolcrib.records EXECUTE FUNCTION public.full();",
    );
    node.add(5);
    wait_until(|| node.has_notice("no space (53100)"));
    store.as_admin("DROP TRIGGER is_full ON toolcrib.records");
    node.wait_for(&acme, 95);
    wait_until(|| node.has_notice("sent to the store again"));
    // A server that is restored from an old backup gets the records again.
    store.as_admin("DELETE FROM toolcrib.records WHERE seq > 60");
    node.add(1);
    store.server.kill();
    store.server.restart();
    node.wait_for(&acme, 96);
    wait_until(|| node.has_notice("has lost records 61 to"));
    assert_eq!(store.as_admin(COUNT), "96|96|96");
}

/// The connection is cut at many moments, and two processes send the same log.
#[test]
fn cut_connections_and_two_senders_duplicate_nothing() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let node = Node::new();
    let _both = (node.send(&acme), node.send(&acme));
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'acme'";
    std::thread::scope(|scope| {
        scope.spawn(|| (0..30).for_each(|_| node.add(50)));
        for _ in 0..10 {
            store.as_admin(cut);
            std::thread::sleep(std::time::Duration::from_millis(40));
        }
    });
    node.wait_for(&acme, 1_500);
    assert_eq!(store.as_admin(COUNT), "1500|1500|1500");
}

#[test]
fn a_changed_local_log_is_noticed() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let node = Node::new();
    node.add(10);
    let sending = node.send(&acme);
    node.wait_for(&acme, 10);
    drop(sending);
    let file = node.log_file();
    let original = std::fs::read_to_string(&file).unwrap();
    // The end is cut off: only the store shows it.
    rewrite(&file, |text| text.split_inclusive('\n').take(7).collect());
    let found = node.compare(&acme).unwrap();
    assert_eq!(found.cut_here, Some((8, 10)));
    assert!(found.problem().unwrap().contains("records 8 to 10 are in the store, but not here"));
    // The whole log is written anew.
    std::fs::remove_file(&file).unwrap();
    node.add(10);
    assert_eq!(node.compare(&acme).unwrap().differs, Some(1));
    // It is sent as another log, and the store keeps the first.
    let sending = node.send(&acme);
    wait_until(|| {
        node.compare(&acme)
            .is_some_and(|found| found.chain.records == 10 && found.problem().is_none())
    });
    drop(sending);
    assert!(node.has_notice("is sent as another log"));
    assert_eq!(node.compare(&acme).unwrap().other_logs, 1);
    assert_eq!(store.as_admin("SELECT count(*) FROM toolcrib.records"), "20");
    let kept = store.as_admin("SELECT line FROM toolcrib.records WHERE log = (SELECT log FROM toolcrib.records ORDER BY received LIMIT 1) ORDER BY seq");
    assert_eq!(kept, original.trim());
}

/// Records of workspaces that are not open any more are sent later, and old records that were removed here stay there.
#[test]
fn left_records_are_sent_and_removed_ones_stay() {
    let Some(mut store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let node = Node::new();
    let sending = node.send(&acme);
    node.add(4);
    node.wait_for(&acme, 4);
    store.server.kill();
    node.add(3);
    wait_until(|| node.has_notice("is not being sent"));
    drop(sending);
    store.server.restart();
    // A server of another workspace.
    let sender = node.sender(&acme);
    let _other = sender.follow(node.journal.audit_outbox("/other"), "other");
    node.add_to("/other", 1);
    node.wait_for(&acme, 7);
    let other = || compare(&acme, &mut node.journal.audit_outbox("/other"), "other").unwrap();
    wait_until(|| other().is_some_and(|found| found.chain.records == 1));
    drop(sender);
    // The local log begins later now, as after a removal of its oldest file.
    rewrite(&node.log_of(WORKSPACE), |text| text.split_inclusive('\n').skip(5).collect());
    let found = node.compare(&acme).unwrap();
    assert_eq!((found.problem(), found.chain.records, found.unsent), (None, 7, 0));
}
