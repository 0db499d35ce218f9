//! `torture fleet`: a simulation of the protocol that docs/fleet.md describes for many nodes: leases, failover and copying behind.
//! Nodes die, restart, hang and lose the network, clocks differ, messages are late or lost. Every event is followed by a
//! check of the invariants. The same check must find the errors of protocols without one of the safeguards.

mod database;
mod node;
mod object_store;
mod oracle;
mod protocol;
mod scenario;
mod timeline;

use toolcrib_devtools::error::Result;

use self::protocol::Protocol;
use self::scenario::{Outcome, Scenario};
use super::Effort;
use super::report::{Report, Row};

/// The number of node deaths in a run.
const DEATHS: usize = 1_000_000;

/// The same in a short run.
const SMOKE_DEATHS: usize = 3_000;

/// After how many scenarios an error must have been found in a protocol without a safeguard.
const MAX_SCENARIOS_TO_FIND: u64 = 2_000;

pub(super) fn run(effort: Effort) -> Result<()> {
    let usual = if effort.smoke { SMOKE_DEATHS } else { DEATHS };
    let deaths = effort.rounds.unwrap_or(usual) as u64;
    let mut report = Report::default();
    report.add(survives(deaths));
    for protocol in Protocol::MUTATIONS {
        report.add(is_found(protocol));
    }
    report.finish("fleet")
}

/// The protocol of the documentation: no violation in so many deaths.
fn survives(deaths: u64) -> Row {
    let mut row = Row::new("protocol", "no workspace is lost, and none has two writers");
    let (mut seed, mut seen) = (0, 0);
    while seen < deaths {
        seed += 1;
        let outcome = Scenario::new(seed, Protocol::DOCUMENTED).run();
        count(&mut row, &outcome);
        seen += outcome.deaths;
        if let Some(what) = outcome.violation {
            row.violate(format!("scenario {seed}: {what}"), "cargo xtask torture fleet");
            break;
        }
    }
    row
}

/// A protocol without a safeguard: the simulation must find what goes wrong.
fn is_found(protocol: Protocol) -> Row {
    let mut row = Row::new("mutation", format!("{}: finds {}", protocol.name, protocol.expected));
    for seed in 1..=MAX_SCENARIOS_TO_FIND {
        let outcome = Scenario::new(seed, protocol).run();
        row.tally.add_many("deaths", outcome.deaths);
        if outcome.violation.is_some_and(|what| what.starts_with(protocol.expected)) {
            return row;
        }
    }
    row.violate("the simulation found no error", "cargo xtask torture fleet");
    row
}

fn count(row: &mut Row, outcome: &Outcome) {
    for (name, number) in [
        ("deaths", outcome.deaths),
        ("hangs", outcome.hangs),
        ("partitions", outcome.partitions),
        ("failovers", outcome.failovers),
        ("refused commits", outcome.refused_commits),
        ("committed writes", outcome.committed),
        ("writes lost with their node", outcome.lost_tail),
    ] {
        row.tally.add_many(name, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_can_be_repeated() {
        let run = |seed| {
            let outcome = Scenario::new(seed, Protocol::DOCUMENTED).run();
            (outcome.deaths, outcome.committed, outcome.events, outcome.violation)
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn the_documented_protocol_has_no_violation() {
        for seed in 1..20 {
            let outcome = Scenario::new(seed, Protocol::DOCUMENTED).run();
            assert_eq!(outcome.violation, None, "scenario {seed}");
            assert!(outcome.deaths > 0 && outcome.failovers > 0 && outcome.committed > 0);
        }
    }
}
