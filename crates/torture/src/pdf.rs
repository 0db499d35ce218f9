//! Compares the words that we and pypdf extract from PDFs with those of pdftotext.
//!
//! Every engine runs in a child process with the same limits, one file at a time. pdftotext is the reference
//! because it is well known, not because it is always right.

mod score;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, product, python};

use self::score::Words;

/// Files with fewer words in the reference are not scored.
const MIN_WORDS: usize = 20;

/// The number of our worst files that are listed for inspection.
const WORST: usize = 10;

struct Engine {
    name: &'static str,
    command: Vec<PathBuf>,
}

/// The result of one engine on one file.
enum Outcome {
    Words(Words),
    /// It reported an error.
    Error,
    TimedOut,
    /// A signal, or too much memory or output.
    Crash,
}

/// One file with the results of the reference and the engines.
struct Row {
    path: PathBuf,
    reference: Outcome,
    engines: Vec<Outcome>,
}

/// Runs the trial. Fails if our median score is below pypdf's.
pub(super) fn run(directory: &Path) -> Result<()> {
    let files = pdfs_beneath(directory)?;
    if files.is_empty() {
        return Err(format!("there is no PDF in {}", directory.display()).into());
    }
    let limited = product::build_dist_example("toolcrib-exec", "limited")?;
    let ours = product::build_dist_example("toolcrib-media", "pdf_text")?;
    let pdftotext = obtain_pdftotext()?;
    let python = python::with_libraries("pdf-requirements.txt", "pdf-venv")?;
    let script = python::oracles().join("pdf_text.py");
    let reference = Engine { name: "pdftotext", command: vec![pdftotext, "-".into(), "-".into()] };
    let engines = [
        Engine { name: "ours", command: vec![ours] },
        Engine { name: "pypdf", command: vec![python, "-B".into(), script] },
    ];
    let rows = read_all(&limited, files, &reference, &engines);
    report(&rows, &reference, &engines)
}

fn report(rows: &[Row], reference: &Engine, engines: &[Engine]) -> Result<()> {
    let scored: Vec<&Row> =
        rows.iter().filter(|row| scored_words(&row.reference).is_some()).collect();
    println!(
        "{} files; {} gives at least {MIN_WORDS} words for {}, and those are scored\n",
        rows.len(),
        reference.name,
        scored.len()
    );
    println!("| engine | errors | timeouts | crashes | empty | median F1 | mean F1 |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    println!("{} | – | – |", tally(reference.name, rows.iter().map(|row| &row.reference)));
    let mut medians = Vec::new();
    for (at, engine) in engines.iter().enumerate() {
        let outcomes = rows.iter().filter_map(|row| row.engines.get(at));
        let mut scores: Vec<f64> = scored.iter().map(|row| row.f1(at)).collect();
        scores.sort_by(f64::total_cmp);
        let median = scores.get(scores.len() / 2).copied().unwrap_or_default();
        let mean = scores.iter().sum::<f64>() / scores.len().max(1) as f64;
        println!("{} | {median:.4} | {mean:.4} |", tally(engine.name, outcomes));
        medians.push(median);
    }
    let mut worst = scored;
    worst.sort_by(|a, b| a.f1(0).total_cmp(&b.f1(0)));
    println!("\nworth a look, since ours and {}'s differ most:", reference.name);
    for row in worst.iter().take(WORST) {
        println!("  {:.3} (pypdf {:.3}) {}", row.f1(0), row.f1(1), row.path.display());
    }
    match medians[..] {
        [ours, pypdf] if ours < pypdf => {
            Err(format!("our median, {ours:.4}, is below pypdf's, {pypdf:.4}").into())
        }
        _ => Ok(()),
    }
}

impl Row {
    /// The score; 0 if the engine failed.
    fn f1(&self, engine: usize) -> f64 {
        match (scored_words(&self.reference), self.engines.get(engine)) {
            (Some(reference), Some(Outcome::Words(words))) => score::f1(words, reference),
            _ => 0.0,
        }
    }
}

fn scored_words(outcome: &Outcome) -> Option<&Words> {
    match outcome {
        Outcome::Words(words) if score::count(words) >= MIN_WORDS => Some(words),
        _ => None,
    }
}

/// The beginning of a row of the table.
fn tally<'a>(name: &str, outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> String {
    let count = |is: fn(&Outcome) -> bool| outcomes.clone().filter(|outcome| is(outcome)).count();
    let errors = count(|outcome| matches!(outcome, Outcome::Error));
    let timeouts = count(|outcome| matches!(outcome, Outcome::TimedOut));
    let crashes = count(|outcome| matches!(outcome, Outcome::Crash));
    let empty = count(|outcome| matches!(outcome, Outcome::Words(words) if words.is_empty()));
    format!("| {name} | {errors} | {timeouts} | {crashes} | {empty}")
}

/// Runs on all processors. Returns the rows in the order of the files.
fn read_all(
    limited: &Path,
    files: Vec<PathBuf>,
    reference: &Engine,
    engines: &[Engine],
) -> Vec<Row> {
    let todo = Mutex::new(files.into_iter());
    let done = Mutex::new(Vec::new());
    // No thread panics while it holds one of these locks.
    let next = || todo.lock().ok()?.next();
    let work = || {
        while let Some(path) = next() {
            let read = |engine: &Engine| read(limited, engine, &path);
            let (reference, engines) = (read(reference), engines.iter().map(read).collect());
            if let Ok(mut done) = done.lock() {
                done.push(Row { path, reference, engines });
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut rows = done.into_inner().unwrap_or_default();
    rows.sort_by(|a, b| a.path.cmp(&b.path));
    rows
}

/// Interprets the exit codes of the example `limited`.
fn read(limited: &Path, engine: &Engine, path: &Path) -> Outcome {
    let Ok(file) = File::open(path) else {
        return Outcome::Error;
    };
    let mut command = Command::new(limited);
    command.args(&engine.command).stdin(file).stderr(Stdio::null());
    match command.output() {
        Ok(output) => match output.status.code() {
            Some(0) => Outcome::Words(score::words(&String::from_utf8_lossy(&output.stdout))),
            Some(1) => Outcome::Error,
            Some(124) => Outcome::TimedOut,
            _ => Outcome::Crash,
        },
        Err(_) => Outcome::Crash,
    }
}

fn pdfs_beneath(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(pdfs_beneath(&path)?);
        } else if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pdf")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Finds pdftotext, or installs it from the system packages. Fails if neither is possible.
fn obtain_pdftotext() -> Result<PathBuf> {
    let path = || {
        let directories = std::env::var_os("PATH")?;
        std::env::split_paths(&directories).map(|at| at.join("pdftotext")).find(|at| at.is_file())
    };
    if let Some(path) = path() {
        return Ok(path);
    }
    println!("pdftotext is not installed: trying apt-get");
    let install = ["install", "--yes", "--quiet", "poppler-utils"].map(OsStr::new);
    let _ = process::probe(Command::new("apt-get").arg("update"));
    let _ = process::probe(Command::new("apt-get").args(install));
    path().ok_or_else(|| "pdftotext is not installed, and apt-get cannot install it".into())
}
