//! Faults at every system call: a call runs once to record its system calls, then again for each of them and each
//! possible fault, on fresh files.
//!
//! strace injects the fault: it makes the Nth system call with a name fail with an error, or kills the process just
//! before it. In every case a file is the old or the new one with its mode; several files are all old or all new at
//! the latest after the next start; the reply says which; the journal lists exactly the changes made; and no stray
//! file is left.

mod fault;
mod scenario;
mod strace;
mod verdict;

use std::collections::BTreeMap;
use std::path::Path;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::random::Random;

use self::fault::Fault;
use self::scenario::Scenario;
use self::strace::Run;
use self::verdict::RunCheck;
use super::super::Effort;
use super::super::report::{Report, Row};

const PART: &str = "injection";
/// The number of runs of one scenario in a smoke run.
const SMOKE: usize = 40;
const SEED: u64 = 31;

/// One fault at one system call.
struct Injection {
    system_call: String,
    /// The occurrence of the system call, from 1.
    occurrence: usize,
    fault: Fault,
}

pub(super) fn run(binary: &Path, effort: Effort, report: &mut Report) -> Result<()> {
    if let Err(why) = toolcrib_devtools::system_packages::STRACE.obtain() {
        report.add(Row::skipped(PART, "faults at every system call", why.to_string()));
        return Ok(());
    }
    for scenario in scenario::all(binary)? {
        scenario.prepare()?;
        let counts = strace::count(&scenario)?;
        let mut injections = injections(&counts);
        if effort.smoke {
            injections = sample(injections, SMOKE);
        }
        for row in inject_all(&scenario, &injections)? {
            report.add(row);
        }
    }
    Ok(())
}

/// All faults for a call that makes these system calls.
fn injections(counts: &BTreeMap<String, usize>) -> Vec<Injection> {
    let mut injections = Vec::new();
    for (system_call, &count) in counts {
        for occurrence in 1..=count {
            for fault in fault::faults_of(system_call) {
                let system_call = system_call.clone();
                injections.push(Injection { system_call, occurrence, fault });
            }
        }
    }
    injections
}

/// A random sample of about this size, the same in every run. A fixed stride would always meet the same errors,
/// because errors repeat in the list.
fn sample(injections: Vec<Injection>, about: usize) -> Vec<Injection> {
    let mut random = Random::new(SEED);
    let (all, about) = (injections.len() as u64, about as u64);
    injections.into_iter().filter(|_| random.below(all) < about).collect()
}

/// Runs all injections. Returns a row for each kind of fault.
fn inject_all(scenario: &Scenario, injections: &[Injection]) -> Result<Vec<Row>> {
    let mut rows: BTreeMap<Fault, Row> = BTreeMap::new();
    for injection in injections {
        let fault = injection.fault;
        let row = rows
            .entry(fault)
            .or_insert_with(|| Row::new(PART, format!("{}, {}", scenario.name, fault.name())));
        scenario.prepare()?;
        let run = strace::inject(scenario, injection)?;
        if !run.is_hit && !run.hung {
            // The number of system calls varies between runs.
            row.tally.add("not reached");
            continue;
        }
        let again = again(scenario, &run);
        let mut check = RunCheck::new(scenario, injection);
        check.check(&run)?;
        row.tally.add(check.outcome());
        for violation in check.violations {
            let Injection { system_call, occurrence, .. } = injection;
            let at = format!("{system_call} #{occurrence}, {}", fault.name());
            row.violate(format!("{at}: {violation}"), &again);
        }
    }
    Ok(rows.into_values().collect())
}

fn again(scenario: &Scenario, run: &Run) -> String {
    format!("{}; {}", scenario.preparation, run.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combines_each_occurrence_with_each_fault_and_samples_all_of_them() {
        let counts = BTreeMap::from([("linkat".to_owned(), 100), ("write".to_owned(), 300)]);
        let all = injections(&counts);
        let of_link = fault::faults_of("linkat").count();
        let of_write = fault::faults_of("write").count();
        assert_eq!(all.len(), 100 * of_link + 300 * of_write);
        let some = sample(all, 200);
        assert!((150..250).contains(&some.len()), "{}", some.len());
        for fault in fault::faults_of("write") {
            let is_there = |injection: &Injection| injection.fault == fault;
            assert!(some.iter().any(is_there), "{fault:?}");
        }
    }
}
