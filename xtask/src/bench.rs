//! `cargo xtask bench`: benchmarks, printed as Markdown. No benchmark fails because of its times. Each fails
//! at a wrong result, because the time of a wrong result means nothing.

mod exec;
mod files;
mod mcp;
mod patch;
mod policy;
mod search;
mod start;
mod table;
mod text;
mod times;

use std::path::PathBuf;

use crate::error::{Result, Usage};
use crate::{nearest, product};

struct Bench {
    name: &'static str,
    what: &'static str,
    run: fn(Rounds) -> Result<()>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "start",
        what: "one `toolcrib call Read` from spawn to exit, compared with cat and node",
        run: start::run,
    },
    Bench {
        name: "files",
        what: "a change, a long listing and an edit, compared with fsync and rename, ls -f, sed -i",
        run: files::run,
    },
    Bench {
        name: "text",
        what: "large files read and edited, small Reads, compared with wc -l, tail, cp and fsync, cat",
        run: text::run,
    },
    Bench {
        name: "patch",
        what: "a patch over 500 files, compared with git apply, in memory and on disk",
        run: patch::run,
    },
    Bench {
        name: "exec",
        what: "`true` through Bash compared with a bare spawn, a flood compared with cat, a large server",
        run: exec::run,
    },
    Bench {
        name: "search",
        what: "Grep and Glob compared with ripgrep and fd, on the kernel's sources and on this repository",
        run: search::run,
    },
    Bench {
        name: "policy",
        what: "a decision on a call, from a file to a script of 20 kB",
        run: policy::run,
    },
    Bench {
        name: "mcp",
        what: "the MCP server compared with the official one for Node, rust-mcp-filesystem and Desktop Commander",
        run: mcp::run,
    },
];

/// The number of rounds.
#[derive(Clone, Copy)]
struct Rounds {
    /// Rounds that only fill the caches and are not counted.
    warm_up: usize,
    measured: usize,
}

const DEFAULT: Rounds = Rounds { warm_up: 20, measured: 300 };
const SMOKE: Rounds = Rounds { warm_up: 1, measured: 3 };

impl Rounds {
    /// Whether this run only checks the results.
    fn is_smoke(self) -> bool {
        self.measured <= SMOKE.measured
    }

    /// Builds the program to measure.
    fn build(self) -> Result<PathBuf> {
        if self.is_smoke() { product::build_debug() } else { product::build_dist() }
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Some((name, options)) = arguments.split_first() else {
        for bench in BENCHES {
            println!("  {:<14}{}", bench.name, bench.what);
        }
        return Ok(());
    };
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == name) else {
        let names = BENCHES.iter().map(|bench| bench.name);
        return Err(nearest::unknown("bench", name, names).into());
    };
    (bench.run)(rounds(options)?)
}

/// Runs all benchmarks with few rounds and checks their results.
pub(crate) fn smoke() -> Result<()> {
    BENCHES.iter().try_for_each(|bench| (bench.run)(SMOKE))
}

fn rounds(options: &[String]) -> Result<Rounds> {
    match options {
        [] => Ok(DEFAULT),
        [flag, count] if flag == "--rounds" => match count.parse() {
            Ok(measured) if measured > 0 => Ok(Rounds { measured, ..DEFAULT }),
            _ => Err(Usage(format!("--rounds needs a number above 0, not `{count}`")).into()),
        },
        _ => Err(Usage(format!("`{}`: only --rounds N is known", options.join(" "))).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(options: &[&str]) -> Option<usize> {
        let options: Vec<String> = options.iter().map(|&word| word.to_owned()).collect();
        rounds(&options).ok().map(|rounds| rounds.measured)
    }

    #[test]
    fn parses_rounds_or_uses_the_default() {
        assert_eq!(measured(&[]), Some(DEFAULT.measured));
        assert_eq!(measured(&["--rounds", "7"]), Some(7));
    }

    #[test]
    fn rejects_invalid_options() {
        for bad in [&["--rounds"][..], &["--rounds", "0"], &["--rounds", "x"], &["7"]] {
            assert_eq!(measured(bad), None, "{bad:?}");
        }
    }
}
