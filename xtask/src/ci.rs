//! `cargo xtask ci`: all checks that a change must pass, the cheapest first.
//!
//! No step asserts on time, because a slow machine is not an error.

use std::process::Command;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, product, system_packages};

use crate::{
    backup, book, clients, definitions, deny, generated_docs, gvisor, identity, language_servers,
    layering, notebooks, packages, page, sandboxd, task_programs, telemetry, tidy, tool_formats,
};

/// A step, in the order of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// The code is formatted by rustfmt
    Fmt,
    /// The source files follow the style rules
    Tidy,
    /// No crate has a forbidden dependency
    Layering,
    /// Dependencies have a permissive licence, a known source and one version
    Deny,
    /// No warnings, including tests and examples
    Clippy,
    /// The tests pass
    Test,
    /// The examples in doc comments run
    Doctest,
    /// Rustdoc has no warnings
    Doc,
    /// A release could be made: versions, changelog, metadata, packages, workflow
    Dist,
    /// The embedding examples run
    Examples,
    /// The generated pages of docs/ are current
    Docs,
    /// MdBook builds docs/
    Book,
    /// The APIs' client libraries accept our tool definitions
    Formats,
    /// Jupyter's library accepts edited notebooks
    Notebooks,
    /// Replies to edits have the errors of real language servers, and definitions are those of two servers
    Servers,
    /// OpenTelemetry's protocol definitions accept our spans and metrics
    Telemetry,
    /// A client gets tokens from an issuer, and the server accepts them
    Identity,
    /// The client of Kubernetes' agent-sandbox works with `toolcrib sandboxd`
    Sandboxd,
    /// Commands run in gVisor if it is declared, and replies say so; skipped where gVisor cannot be started
    Gvisor,
    /// A workspace is restored from a server with the interface of S3, after kills and failures of the network
    Backup,
    /// Third-party MCP clients work with both protocol eras, also behind HAProxy, and the conformance suite passes
    Clients,
    /// The Python and npm packages work
    Packages,
    /// The app of `toolcrib page` works in a browser, and its committed files are current
    Page,
    /// The fuzz targets pass on some thousands of fixed inputs
    FuzzSmoke,
    /// A sample of every race, fault and crash: no file is torn, lost or leaked
    TortureSmoke,
    /// The benchmarks run with right results; times do not matter
    BenchSmoke,
}

impl Step {
    fn run(self) -> Result<()> {
        match self {
            Step::Fmt => cargo(&["fmt", "--all", "--check"]),
            Step::Tidy => tidy::check(),
            Step::Layering => layering::check(),
            Step::Deny => deny::check(),
            Step::Clippy => cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--locked",
                "--",
                "-D",
                "warnings",
            ]),
            Step::Test => test(),
            Step::Doctest => cargo(&["test", "--workspace", "--doc", "--locked"]),
            Step::Doc => doc(),
            Step::Dist => task_programs::dist(&["--check"]),
            Step::Examples => examples(),
            Step::Docs => generated_docs::check(),
            Step::Book => book::build(),
            Step::Formats => tool_formats::check(),
            Step::Notebooks => notebooks::check(),
            Step::Servers => language_servers::check().and_then(|()| definitions::smoke()),
            Step::Telemetry => telemetry::check(),
            Step::Identity => identity::check(),
            Step::Sandboxd => sandboxd::check(),
            Step::Gvisor => gvisor::check(),
            Step::Backup => backup::check(backup::SMOKE_ROUNDS, 1),
            Step::Clients => clients::check(),
            Step::Packages => packages::check(),
            Step::Page => page::check(),
            Step::FuzzSmoke => task_programs::fuzz(&["--smoke"]),
            Step::TortureSmoke => task_programs::torture(&["--smoke"]),
            Step::BenchSmoke => task_programs::bench(&["--smoke"]),
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

fn examples() -> Result<()> {
    for example in ["embed", "agent"] {
        process::run(&mut Command::new(product::build_debug_example(example)?))?;
    }
    Ok(())
}

/// Runs these steps, or all. Goes on after a failed step, so that one run shows all failures.
pub(crate) fn run(steps: &[Step]) -> Result<()> {
    let steps = if steps.is_empty() { Step::value_variants() } else { steps };
    let mut ended = Vec::new();
    for step in steps {
        let name = step.name();
        println!("── {name}");
        let started = Instant::now();
        let failure = step.run().err().map(|error| error.to_string());
        let time = started.elapsed();
        if let Some(failure) = &failure {
            println!("error: {failure}");
        }
        println!("   {}\n", seconds(time));
        ended.push(EndedStep { name, time, failure });
    }
    print_summary(&ended);
    let failed: Vec<&EndedStep> = ended.iter().filter(|step| step.failure.is_some()).collect();
    match failed.as_slice() {
        [] => Ok(()),
        [EndedStep { name, failure: Some(failure), .. }] => Err(format!(
            "{failure}\nci failed at step `{name}`; to run it alone: cargo xtask ci {name}"
        )
        .into()),
        failed => {
            let names: Vec<&str> = failed.iter().map(|step| step.name.as_str()).collect();
            let names = names.join(" ");
            Err(format!("{} steps failed; to run them alone: cargo xtask ci {names}", failed.len())
                .into())
        }
    }
}

struct EndedStep {
    name: String,
    time: Duration,
    failure: Option<String>,
}

/// Prints one line per step.
fn print_summary(ended: &[EndedStep]) {
    for EndedStep { name, time, failure } in ended {
        let outcome = if failure.is_some() { "FAILED" } else { "ok" };
        println!("  {name:<14}{outcome:<9}{:>9}", seconds(*time));
    }
    let time = ended.iter().map(|step| step.time).sum();
    println!("  {:<14}{:<9}{:>9}", "in all", "", seconds(time));
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn cargo(words: &[&str]) -> Result<()> {
    process::run(&mut process::cargo(words))
}

/// The arguments of nextest. One run shows all failures. A failed test is repeated once, and is reported as flaky if it then
/// passes: a defect to fix, but other work on the machine does not fail the run.
pub(crate) const NEXTEST: [&str; 5] =
    ["--workspace", "--locked", "--no-fail-fast", "--retries", "1"];

/// Uses nextest if it is installed: it is faster and runs each test in its own process.
fn test() -> Result<()> {
    let needs = obtain_test_programs();
    if process::probe(&mut process::cargo(&["nextest", "--version"])).is_some() {
        let mut tests = process::cargo(&["nextest", "run"]);
        tests.args(NEXTEST).args(["--test-threads", &test_threads()]);
        process::run(tests.envs(needs))
    } else {
        let words = ["test", "--workspace", "--locked", "--all-targets"];
        process::run(process::cargo(&words).envs(needs))
    }
}

/// The number of tests that run at once. Many of them wait for processes and timers.
pub(crate) fn test_threads() -> String {
    let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    threads.to_string()
}

/// Installs programs without which tests pass but skip the parts that need them. Returns variables for the tests.
pub(crate) fn obtain_test_programs() -> Option<(&'static str, &'static str)> {
    let packages =
        [system_packages::BUBBLEWRAP, system_packages::OPENSSH_SERVER, system_packages::PYTEST];
    for package in packages {
        if let Err(why) = package.obtain() {
            println!("   {why}");
        }
    }
    let postgres = system_packages::POSTGRESQL.obtain().inspect_err(|why| println!("   {why}"));
    // The tests of the store fail instead of skipping themselves.
    postgres.is_ok().then_some(("TOOLCRIB_NEEDS_POSTGRES", "1"))
}

fn doc() -> Result<()> {
    let words = ["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"];
    process::run(process::cargo(&words).env("RUSTDOCFLAGS", "-D warnings"))
}
