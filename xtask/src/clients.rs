//! `cargo xtask clients`: tests `toolcrib serve` with third-party MCP clients, including real coding agents,
//! and with the protocol's conformance suite. The scripts are in xtask/oracles.

use std::path::Path;
use std::process::Command;

use crate::error::{Result, no_arguments};
use crate::node::{self, Packages};
use crate::{oracle, process, product, python};

const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";
const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("clients", arguments)?;
    check()?;
    let packages = node::install("agents.json")?;
    let script = python::oracles().join("agents.py");
    let binary = product::build_debug()?;
    process::run(Command::new("python3").arg(script).arg(binary).arg(packages.modules()))
}

/// The part for CI: all clients except the agents, which are large. Stops at the first failure.
pub(crate) fn check() -> Result<()> {
    oracle::judge("mcp_client.py")?;
    let binary = product::build_debug()?;
    let packages = node::install("judges.json")?;
    let script = python::oracles().join("conformance.mjs");
    let fixtures = product::build_example_for("toolcrib-mcp", "conformance", true)?;
    let judge = [&binary, &fixtures, &packages.file(SUITE)];
    process::run(packages.run(&script).args(judge))?;
    let top = tempfile::tempdir()?;
    let workspace = top.path().join("ws");
    std::fs::create_dir(&workspace)?;
    let mut server = Command::new(binary);
    server.arg("serve").arg("--root").arg(&workspace).arg("--state").arg(top.path().join("state"));
    inspect(&packages, &server, &workspace)
}

/// The Inspector starts the server with its words and variables. It finds nothing in our schemas that another client could
/// stumble over, and gets answers in both eras, also many at once.
pub(crate) fn inspect(packages: &Packages, server: &Command, workspace: &Path) -> Result<()> {
    std::fs::write(workspace.join("a.txt"), "one\n")?;
    let inspect = |words: &[&str]| {
        let mut command = packages.run(&packages.file(INSPECTOR));
        command.args(["--cli", "-q"]).arg(server.get_program()).args(server.get_args()).args(words);
        for (name, value) in server.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        process::capture(&mut command)
    };
    let listed = inspect(&["--method", "tools/list", "--strict", "--format", "json"])?;
    if !listed.contains("\"Read\"") {
        return Err(format!("the Inspector does not see Read: {listed}").into());
    }
    let call = ["--method", "tools/call", "--tool-name", "Read"];
    let file = ["--tool-args-json", r#"{"file_path": "a.txt"}"#];
    for era in ["legacy", "modern"] {
        let words = [&["--protocol-era", era][..], &call, &file, &["--format", "json"]].concat();
        let answer = inspect(&words)?;
        if !answer.contains(r"1\tone") {
            return Err(format!("the Inspector, {era}, does not get the file: {answer}").into());
        }
    }
    let many = ["--load", "--load-requests", "500", "--load-concurrency", "16"];
    inspect(&[&call[..], &file, &many].concat())?;
    println!("the Inspector: fine");
    Ok(())
}
