//! The MCP Inspector, as a client of a server.

use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::node::Packages;
use crate::process;

const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// Starts the server from the Inspector, with the arguments and variables of this command. Fails if the Inspector rejects
/// a schema, or gets no answer in one of the protocol eras or under load.
pub fn inspect(packages: &Packages, server: &Command, workspace: &Path) -> Result<()> {
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
