//! `cargo xtask trial`: evaluates results without a single right answer against other programs, on third-party
//! files. The files cannot be part of this repository, so a trial takes a directory of them.

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
