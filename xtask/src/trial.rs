//! `cargo xtask trial`: how good the product is at something that has no right answer, on files that
//! somebody else made, against programs that do the same. The files are not ours to keep here: a trial
//! is given a directory of them.

mod pdf;
mod score;

use std::path::Path;

use crate::error::{Result, Usage};
use crate::nearest;

struct Trial {
    name: &'static str,
    what: &'static str,
    run: fn(&Path) -> Result<()>,
}

const TRIALS: &[Trial] =
    &[Trial { name: "pdf", what: "the words of PDFs, against pdftotext and pypdf", run: pdf::run }];

/// The task.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        for trial in TRIALS {
            println!("  {:<14}{}", trial.name, trial.what);
        }
        return Ok(());
    };
    let Some(trial) = TRIALS.iter().find(|trial| trial.name == name) else {
        return Err(nearest::unknown("trial", name, TRIALS.iter().map(|trial| trial.name)).into());
    };
    match rest {
        [directory] => (trial.run)(Path::new(directory)),
        _ => Err(Usage(format!("`trial {name}` takes one directory of files")).into()),
    }
}
