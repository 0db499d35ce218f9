//! The protocol that is simulated, and the ones without a safeguard.

/// Milliseconds of simulated time.
pub(super) type Time = u64;

/// How long a lease is valid after the database granted or renewed it, by the clock of the database.
pub(super) const LEASE: Time = 10_000;

/// How often a node renews a lease.
pub(super) const RENEWAL: Time = 3_000;

/// How far the speed of a node's clock is from that of the database at most, in parts per thousand.
pub(super) const MAX_DRIFT: u64 = 10;

/// How much shorter a lease is for the node that has it: more than clocks differ during a lease, and the time between the
/// check of the lease and the reply of a call that is not held up.
pub(super) const MARGIN: Time = LEASE * 2 * MAX_DRIFT / 1_000 + 50;

/// How many acknowledged changes may not be copied yet. A node with more refuses changes until some are.
pub(super) const MAX_UNCOPIED: usize = 8;

/// Which safeguards there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Protocol {
    pub(super) name: &'static str,
    /// The database accepts a commit only with the epoch of the present lease.
    pub(super) is_fenced: bool,
    /// A commit is sent after the objects that it names were stored.
    pub(super) stores_first: bool,
    /// A node measures its lease with a clock that cannot be set, from before it asked. Otherwise it compares the time of
    /// the database with its own time of day.
    pub(super) measures_duration: bool,
    /// Objects are removed only if no lease can commit them any more. Otherwise by their age.
    pub(super) removes_by_epoch: bool,
    /// Processes of a node are numbered, and a late message of an earlier one is refused.
    pub(super) orders_processes: bool,
    /// What the simulation finds without a safeguard.
    pub(super) expected: &'static str,
}

impl Protocol {
    /// The protocol of docs/fleet.md.
    pub(super) const DOCUMENTED: Protocol = Protocol {
        name: "documented",
        is_fenced: true,
        stores_first: true,
        measures_duration: true,
        removes_by_epoch: true,
        orders_processes: true,
        expected: "",
    };

    /// Protocols without one safeguard each.
    pub(super) const MUTATIONS: [Protocol; 5] = [
        Protocol {
            name: "without fencing",
            is_fenced: false,
            expected: "two writers",
            ..Protocol::DOCUMENTED
        },
        Protocol {
            name: "commit before the objects",
            stores_first: false,
            expected: "lost workspace",
            ..Protocol::DOCUMENTED
        },
        Protocol {
            name: "leases by the time of day",
            measures_duration: false,
            expected: "two writers",
            ..Protocol::DOCUMENTED
        },
        Protocol {
            name: "objects removed by age",
            removes_by_epoch: false,
            expected: "lost workspace",
            ..Protocol::DOCUMENTED
        },
        Protocol {
            name: "processes without an order",
            orders_processes: false,
            expected: "stale reply",
            ..Protocol::DOCUMENTED
        },
    ];
}
