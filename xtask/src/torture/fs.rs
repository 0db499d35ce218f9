//! `torture fs`: no access outside the workspace, no torn file, no lost change.

mod editors;
mod full_disk;
mod injection;
mod kills;
mod racers;

use std::path::Path;

use super::Effort;
use super::report::Report;
use crate::error::Result;
use crate::nearest;

struct Part {
    name: &'static str,
    run: fn(&Path, Effort, &mut Report) -> Result<()>,
}

const PARTS: &[Part] = &[
    Part { name: "racers", run: racers::run },
    Part { name: "injection", run: injection::run },
    Part { name: "kills", run: kills::run },
    Part { name: "full-disk", run: full_disk::run },
    Part { name: "editors", run: editors::run },
];

/// Runs all parts, or the named ones.
pub(super) fn run(names: &[String], effort: Effort) -> Result<()> {
    let parts = chosen(names)?;
    let binary = effort.build()?;
    let mut report = Report::default();
    for part in parts {
        let started = std::time::Instant::now();
        (part.run)(&binary, effort, &mut report)?;
        println!("   {}: {:.1} s", part.name, started.elapsed().as_secs_f64());
    }
    report.finish("fs")
}

fn chosen(names: &[String]) -> Result<Vec<&'static Part>> {
    if names.is_empty() {
        return Ok(PARTS.iter().collect());
    }
    let all_names = || PARTS.iter().map(|part| part.name);
    names
        .iter()
        .map(|name| {
            let part = PARTS.iter().find(|part| part.name == name);
            part.ok_or_else(|| nearest::unknown("part", name, all_names()).into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_names_all_parts_run_and_an_unknown_one_gets_a_suggestion() {
        assert_eq!(chosen(&[]).unwrap().len(), PARTS.len());
        let error = chosen(&["racer".to_owned()]).err().unwrap().to_string();
        assert_eq!(error, "no part `racer`; did you mean racers?");
    }
}
