//! Runs one target until a limit or a finding.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command};
use std::time::{Duration, Instant};

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::LineProcess;

use super::Limit;
use super::mutate::Mutator;

/// The maximum number of inputs to mutate: the seeds, and the first input with each outcome.
const MAX_POOL: usize = 200;

/// A target with its seeds.
pub(super) struct TargetRun {
    command: Command,
    seeds: Vec<Vec<u8>>,
}

/// The result of running a target.
#[derive(Default)]
pub(super) struct TargetResult {
    pub(super) executions: u64,
    pub(super) elapsed: Duration,
    pub(super) slowest: Duration,
    /// The number of executions by outcome.
    pub(super) outcomes: BTreeMap<String, u64>,
    pub(super) finding: Option<Finding>,
}

/// An input that breaks the target.
pub(super) struct Finding {
    pub(super) input: Vec<u8>,
    pub(super) what: String,
}

enum Answer {
    Outcome(String),
    Panic(String),
    /// The process has exited or stopped responding.
    Gone,
}

impl TargetRun {
    pub(super) fn new(target: &str, seeds: PathBuf, program: &Path) -> Result<TargetRun> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(seeds)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        // Sorted by name, so that runs are reproducible.
        files.sort();
        let seeds = files.iter().map(|file| Ok(fs::read(file)?)).collect::<Result<_>>()?;
        let mut command = Command::new(program);
        command.arg(target);
        Ok(TargetRun { command, seeds })
    }

    /// Runs the target on the seeds, then on mutated inputs.
    pub(super) fn run(self, seed: u64, limit: Limit) -> Result<TargetResult> {
        let mut conversation = LineProcess::start(self.command)?;
        let mut to = conversation.take_input().ok_or("the process has no input")?;
        let (mut mutator, mut pool) = (Mutator::new(seed), self.seeds.clone());
        let mut seeds = self.seeds.into_iter();
        let mut result = TargetResult::default();
        let started = Instant::now();
        while !is_reached(limit, &result) {
            let input = seeds.next().unwrap_or_else(|| mutator.next(&pool));
            let asked = Instant::now();
            let answer = ask(&mut conversation, &mut to, &input)?;
            result.slowest = result.slowest.max(asked.elapsed());
            result.elapsed = started.elapsed();
            result.executions += 1;
            match answer {
                Answer::Outcome(outcome) => {
                    if !result.outcomes.contains_key(&outcome) && pool.len() < MAX_POOL {
                        pool.push(input);
                    }
                    *result.outcomes.entry(outcome).or_default() += 1;
                }
                Answer::Panic(what) => {
                    result.finding = Some(Finding { input, what });
                    break;
                }
                Answer::Gone => {
                    drop(to);
                    let ending = conversation.end()?;
                    let what = if ending.hung {
                        "it did not end and was killed".to_owned()
                    } else {
                        format!("the process ended: {}", ending.status)
                    };
                    result.finding = Some(Finding { input, what });
                    return Ok(result);
                }
            }
        }
        drop(to);
        conversation.end()?;
        Ok(result)
    }
}

fn is_reached(limit: Limit, result: &TargetResult) -> bool {
    match limit {
        Limit::Elapsed(time) => result.elapsed >= time,
        Limit::Executions(count) => result.executions >= count,
    }
}

fn ask(conversation: &mut LineProcess, to: &mut ChildStdin, input: &[u8]) -> Result<Answer> {
    let length = u32::try_from(input.len())?.to_le_bytes();
    // Writing fails if the process has died; reading below reports that.
    let _ = to.write_all(&[&length, input].concat());
    let Some(line) = conversation.line()? else { return Ok(Answer::Gone) };
    let answer: Value = serde_json::from_str(&line)?;
    let text = |key| answer.get(key).and_then(Value::as_str).map(str::to_owned);
    match (text("outcome"), text("panic")) {
        (Some(outcome), _) => Ok(Answer::Outcome(outcome)),
        (_, Some(panic)) => Ok(Answer::Panic(panic)),
        _ => Err(format!("the fuzzer's answer is not understood: {line}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_exit_is_a_finding_with_its_input() {
        let seeds = tempfile::tempdir().unwrap();
        fs::write(seeds.path().join("seed"), "odd").unwrap();
        let target_run =
            TargetRun::new("any", seeds.path().to_owned(), Path::new("false")).unwrap();
        let result = target_run.run(1, Limit::Executions(5)).unwrap();
        let finding = result.finding.unwrap();
        assert_eq!((result.executions, finding.input.as_slice()), (1, &b"odd"[..]));
        assert_eq!(finding.what, "the process ended: exit status: 1");
    }
}
