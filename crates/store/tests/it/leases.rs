//! Leases of workspaces: at most one machine writes, also while machines and the server fail.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use toolcrib::WriteGate as _;
use toolcrib_store::{HeldLease, LeaseKeeper, StoreUrl};

use crate::{StoreServer, wait_until};

/// A machine that may write a workspace.
struct Writer {
    state: tempfile::TempDir,
    keeper: Option<LeaseKeeper>,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Writer {
    fn new(url: &StoreUrl, node: &str) -> Writer {
        Writer::in_state(tempfile::tempdir().unwrap(), url, node)
    }

    fn in_state(state: tempfile::TempDir, url: &StoreUrl, node: &str) -> Writer {
        let notices: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = notices.clone();
        let notice = move |text: &str| sink.lock().push(text.to_owned());
        let keeper = LeaseKeeper::start(url.clone(), state.path().join("s"), node, notice).unwrap();
        Writer { state, keeper: Some(keeper), notices }
    }

    fn hold(&self, workspace: &str) -> HeldLease {
        self.keeper.as_ref().unwrap().hold(workspace).unwrap()
    }
}

fn may_write(held: &HeldLease) -> bool {
    held.lease().check().is_ok()
}

fn why_not(held: &HeldLease) -> String {
    held.lease().check().unwrap_err()
}

const FENCE: &str = "SELECT fence FROM toolcrib.leases WHERE workspace = 'ws' AND tenant = 'acme'";

#[test]
fn one_machine_writes_and_another_takes_over_when_it_ends() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let (one, two) = (Writer::new(&acme, "node-1"), Writer::new(&acme, "node-2"));
    let first = one.hold("ws");
    assert!(may_write(&first), "{}", why_not(&first));
    let second = two.hold("ws");
    assert!(why_not(&second).contains("another machine, node-1, has it"), "{}", why_not(&second));
    // Other workspaces, and the same name of another tenant, are not concerned.
    assert!(may_write(&two.hold("other")));
    let other = Writer::new(&store.tenant("other"), "node-3");
    assert!(may_write(&other.hold("ws")));
    // A second process of the first machine shares its lease, which the last one gives back.
    let third = one.hold("ws");
    assert!(may_write(&third));
    let fence: u64 = store.as_admin(FENCE).parse().unwrap();
    drop(first);
    std::thread::sleep(Duration::from_millis(600));
    assert!(may_write(&third) && !may_write(&second));
    drop(third);
    // At once, not only after the time of the lease.
    wait_until(|| may_write(&second));
    assert_eq!(store.as_admin(FENCE).parse::<u64>().unwrap(), fence + 1);
    assert!(
        two.notices.lock().iter().any(|notice| notice.contains("fence")),
        "{:?}",
        two.notices.lock()
    );
    // The end of the program gives it back, too.
    let Writer { keeper, state, .. } = two;
    drop(keeper);
    assert!(!may_write(&second));
    assert_eq!(store.as_admin("SELECT held_until <= now() FROM toolcrib.leases WHERE workspace = 'ws' AND tenant = 'acme'"), "t");
    drop((second, state, one));
}

/// Many machines try at the same time, again and again.
#[test]
fn racing_machines_never_write_together() {
    let Some(store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let writers: Vec<Writer> =
        (0..4).map(|node| Writer::new(&acme, &format!("node-{node}"))).collect();
    let (writing, grants) = (Mutex::new(0_u32), Mutex::new(0_u32));
    std::thread::scope(|scope| {
        for writer in &writers {
            scope.spawn(|| {
                for _ in 0..5 {
                    let held = writer.hold("ws");
                    if may_write(&held) {
                        *grants.lock() += 1;
                        let mut together = writing.lock();
                        *together += 1;
                        assert_eq!(*together, 1, "two machines write");
                        drop(together);
                        std::thread::sleep(Duration::from_millis(20));
                        *writing.lock() -= 1;
                    }
                    drop(held);
                    std::thread::sleep(Duration::from_millis(30));
                }
            });
        }
    });
    let fence: u32 = store.as_admin(FENCE).parse().unwrap();
    assert!(*grants.lock() > 0 && fence >= *grants.lock() / 2, "{fence} {}", grants.lock());
}

/// Writing ends before the lease does, while the server does not answer, and another machine gets it only after that.
#[test]
fn writing_ends_before_a_lease_that_cannot_be_renewed() {
    let Some(mut store) = StoreServer::start() else { return };
    let acme = store.tenant("acme");
    let one = Writer::new(&acme, "node-1");
    let held = one.hold("ws");
    assert!(may_write(&held));
    // A killed server: the lease holds for its time, and is renewed by the next one.
    store.server.kill();
    assert!(may_write(&held));
    store.server.restart();
    let renewed = "SELECT extract(epoch FROM held_until - now()) > 25 FROM toolcrib.leases";
    wait_until(|| store.as_admin(renewed) == "t");
    assert!(may_write(&held));
    assert_eq!(store.as_admin(FENCE), "1");
    // The server is away for longer than the lease.
    let until = "SELECT extract(epoch FROM held_until) FROM toolcrib.leases";
    let until: f64 = store.as_admin(until).parse().unwrap();
    store.server.kill();
    wait_until(|| !may_write(&held));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(now.as_secs_f64() < until, "writing has ended before the lease");
    assert!(
        why_not(&held).contains("store") || why_not(&held).contains("renewed"),
        "{}",
        why_not(&held)
    );
    store.server.restart();
    // It was nobody else's in between.
    wait_until(|| may_write(&held));
}
