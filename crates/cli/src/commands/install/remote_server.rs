//! The entry of a server on another machine, which the client starts over ssh.

use serde_json::Value;

use super::NAME;
use super::clients::ServerCommand;
use super::record;
use crate::args::{Common, HostArgs, RemoteHost};
use crate::commands::program_there;
use crate::ssh;

/// The server that an entry starts.
pub(super) struct Server {
    /// Its name in the configuration of the client.
    pub(super) name: String,
    /// The host, unless it is this machine.
    destination: Option<String>,
}

impl Server {
    pub(super) fn of(host: Option<&RemoteHost>) -> Result<Server, String> {
        Ok(match host {
            Some(host) => {
                Server { name: host.server_name()?, destination: Some(host.destination.clone()) }
            }
            None => Server { name: NAME.to_owned(), destination: None },
        })
    }

    /// The name of the record of its installation.
    pub(super) fn record_name(&self, client: &str) -> String {
        match self.destination {
            Some(_) => record::name_on_host(client, &self.name),
            None => client.to_owned(),
        }
    }

    /// The words after `toolcrib install` and `toolcrib uninstall`.
    pub(super) fn words(&self, client: &str) -> String {
        match &self.destination {
            Some(destination) => format!("{client} --host {destination}"),
            None => client.to_owned(),
        }
    }
}

/// The command line of the client: ssh, which asks nothing.
pub(super) fn start(
    args: &HostArgs,
    host: &RemoteHost,
    common: &Common,
    flags: &[String],
) -> Result<ServerCommand, String> {
    let is_root = |flag: &String| flag == "--root" || flag.starts_with("--root=");
    if host.directory.is_none() && common.named_roots().is_empty() && !flags.iter().any(is_root) {
        return Err(format!(
            "name the directory that the agent may change on {0}, for example --host {0}:project",
            host.destination
        ));
    }
    let line = program_there::line(args, host, common, "serve", flags)?;
    let mut words = ssh::words(host, &line, false).into_iter();
    Ok(ServerCommand { program: words.next().unwrap_or_default(), arguments: words.collect() })
}

/// Whether the profile there confines agents, so that the client need not ask. The configuration is there.
pub(super) fn is_confined(
    args: &HostArgs,
    host: &RemoteHost,
    common: &Common,
    flags: &[String],
) -> Result<bool, String> {
    let may_choose = |flag: &String| flag.starts_with("--profile") || flag.starts_with("--config");
    if flags.iter().any(may_choose) {
        return Ok(false);
    }
    let line = program_there::line(args, host, common, "doctor", &["--json".to_owned()])?;
    let output = ssh::run_line(host, &line, b"")?;
    let object = |line: &str| serde_json::from_str::<Value>(line).ok().filter(Value::is_object);
    let found = output.stdout.lines().find_map(object);
    let profile = found.as_ref().and_then(|object| object["profile"].as_str());
    // Without an answer the handshake fails, and says why.
    Ok(profile.is_some_and(|profile| profile != "open"))
}

/// The next step after the problem of a server that did not answer.
pub(super) fn next_step(host: &RemoteHost, problem: &str) -> String {
    let missing = ["not found", "No such file or directory", "Unknown command", "does not exist"];
    // Lines of the program itself begin with `error`: then it is there.
    let mut of_shell = problem.lines().filter(|line| !line.starts_with("error"));
    if of_shell.any(|line| missing.iter().any(|words| line.contains(words))) {
        format!("\n{}", program_there::push_hint(host))
    } else if problem.ends_with(super::handshake::NO_MESSAGES) {
        "\nIf a startup file of the login shell there prints something, let it do so only on a terminal."
            .to_owned()
    } else {
        String::new()
    }
}
