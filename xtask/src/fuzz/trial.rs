//! One target, tried until it is enough or something is found.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Until;
use super::mutate::Mutator;
use crate::conversation::Conversation;
use crate::error::Result;

/// Inputs to make others of. Beyond the seeds these are the first ones that had some outcome.
const MOST_IN_POOL: usize = 200;

/// A target, and what to try it with.
pub(super) struct Trial {
    command: Command,
    seeds: Vec<Vec<u8>>,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Tried {
    pub(super) executions: u64,
    pub(super) elapsed: Duration,
    pub(super) slowest: Duration,
    /// How often the target said what.
    pub(super) outcomes: BTreeMap<String, u64>,
    pub(super) finding: Option<Finding>,
}

/// Something that does not hold.
pub(super) struct Finding {
    pub(super) input: Vec<u8>,
    pub(super) what: String,
}

enum Answer {
    Outcome(String),
    Panic(String),
    /// The process is there no more, or no longer says anything.
    Gone,
}

impl Trial {
    pub(super) fn new(target: &str, seeds: PathBuf, program: &Path) -> Result<Trial> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(seeds)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        // In the order of their names: a directory has none, and runs are to be the same.
        files.sort();
        let seeds = files.iter().map(|file| Ok(fs::read(file)?)).collect::<Result<_>>()?;
        let mut command = Command::new(program);
        command.arg(target);
        Ok(Trial { command, seeds })
    }

    /// The seeds as they are, and then what becomes of them.
    pub(super) fn run(self, seed: u64, until: Until) -> Result<Tried> {
        let mut conversation = Conversation::start(self.command)?;
        let mut to = conversation.take_input().ok_or("the process has no input")?;
        let (mut mutator, mut pool) = (Mutator::new(seed), self.seeds.clone());
        let mut seeds = self.seeds.into_iter();
        let mut tried = Tried::default();
        let started = Instant::now();
        while !is_enough(until, &tried) {
            let input = seeds.next().unwrap_or_else(|| mutator.next(&pool));
            let asked = Instant::now();
            let answer = ask(&mut conversation, &mut to, &input)?;
            tried.slowest = tried.slowest.max(asked.elapsed());
            tried.elapsed = started.elapsed();
            tried.executions += 1;
            match answer {
                Answer::Outcome(outcome) => {
                    if !tried.outcomes.contains_key(&outcome) && pool.len() < MOST_IN_POOL {
                        pool.push(input);
                    }
                    *tried.outcomes.entry(outcome).or_default() += 1;
                }
                Answer::Panic(what) => {
                    tried.finding = Some(Finding { input, what });
                    break;
                }
                Answer::Gone => {
                    drop(to);
                    let ending = conversation.end()?;
                    let what = match ending.hung {
                        true => "it did not come to an end, and was killed".to_owned(),
                        false => format!("the process ended: {}", ending.status),
                    };
                    tried.finding = Some(Finding { input, what });
                    return Ok(tried);
                }
            }
        }
        drop(to);
        conversation.end()?;
        Ok(tried)
    }
}

fn is_enough(until: Until, tried: &Tried) -> bool {
    match until {
        Until::Elapsed(time) => tried.elapsed >= time,
        Until::Executions(count) => tried.executions >= count,
    }
}

fn ask(conversation: &mut Conversation, to: &mut ChildStdin, input: &[u8]) -> Result<Answer> {
    let length = u32::try_from(input.len())?.to_le_bytes();
    // One that has died does not read; that it is gone shows below.
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
    fn a_process_that_ends_is_a_finding_with_its_input() {
        let seeds = tempfile::tempdir().unwrap();
        fs::write(seeds.path().join("seed"), "odd").unwrap();
        let trial = Trial::new("any", seeds.path().to_owned(), Path::new("false")).unwrap();
        let tried = trial.run(1, Until::Executions(5)).unwrap();
        let finding = tried.finding.unwrap();
        assert_eq!((tried.executions, finding.input.as_slice()), (1, &b"odd"[..]));
        assert_eq!(finding.what, "the process ended: exit status: 1");
    }
}
