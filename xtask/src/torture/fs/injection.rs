//! Faults at every system call: a call is made once to see which system calls it makes, then again for
//! each of them and each thing that can go wrong there, on files made anew.
//!
//! strace does it: it makes the Nth system call of a name fail with an error, or kills the process just
//! before it. Whatever happens, a file is the old one or the new one with its mode; of several files
//! all are old or all are new at the latest after the next start; the reply tells which; the journal
//! lists just what was done; and nothing stray is left.

mod fault;
mod scenario;
mod strace;
mod verdict;

use std::collections::BTreeMap;
use std::path::Path;

use self::fault::Fault;
use self::scenario::Scenario;
use self::strace::Run;
use self::verdict::Judge;
use super::super::Effort;
use super::super::report::{Report, Row};
use crate::error::Result;
use crate::random::Random;

const PART: &str = "injection";
/// Runs of one scenario in a smoke run.
const SMOKE: usize = 250;
const SEED: u64 = 31;

/// One fault at one system call.
struct Injection {
    system_call: String,
    /// The first is 1.
    occurrence: usize,
    fault: Fault,
}

pub(super) fn run(binary: &Path, effort: Effort, report: &mut Report) -> Result<()> {
    if let Err(why) = crate::packages::STRACE.obtain() {
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

/// All that can go wrong in a call that makes these system calls.
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

/// About so many of them, the same in every run. Drawn by lot: every third, say, would always meet the
/// same errors, since these come in rows.
fn sample(injections: Vec<Injection>, about: usize) -> Vec<Injection> {
    let mut random = Random::new(SEED);
    let (all, about) = (injections.len() as u64, about as u64);
    injections.into_iter().filter(|_| random.below(all) < about).collect()
}

/// A row for each kind of fault.
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
            // Not every run makes just as many system calls.
            row.tally.add("not reached");
            continue;
        }
        let again = again(scenario, &run);
        let mut judge = Judge::new(scenario, injection);
        judge.see(&run)?;
        row.tally.add(judge.what_happened());
        for violation in judge.violations {
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
    fn each_occurrence_meets_each_fault_and_a_sample_has_some_of_all() {
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
