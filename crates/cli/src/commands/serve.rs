//! `toolcrib serve`: serves MCP.

mod token;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use toolcrib_mcp::{HttpOptions, ServeOptions, serve_http, serve_stdio};

use super::monitor_socket::MonitorSocket;
use crate::args::{Common, ListenAt, ServeArgs};
use crate::output;
use toolcrib::user_machine;

pub(crate) fn serve(common: &Common, args: &ServeArgs) -> Result<ExitCode, String> {
    let monitor = MonitorSocket::new(common, "serve", args.no_monitor)?;
    let options = ServeOptions {
        monitor: Some(monitor.monitor().clone()),
        dry_run: common.dry_run,
        program: (env!("CARGO_BIN_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        dialect: args.dialect,
        structured: args.structured,
        roots: common.roots().iter().map(|root| root.directory.display().to_string()).collect(),
    };
    let served = match &args.http {
        None => {
            let runtime = super::runtime_for_program(common, &[], &monitor)?;
            monitor.open(&runtime);
            if io::stdin().is_terminal() {
                output::note(
                    "Waiting for an MCP client on standard input. A client starts this command itself: \
                     `toolcrib install CLIENT` sets it up. Press Ctrl-D to end.",
                );
            }
            serve_stdio(runtime, options)
        }
        Some(at) => {
            let file = token_file(common, args)?;
            // Tools never access the token file, wherever it is.
            let runtime =
                super::runtime_for_program(common, std::slice::from_ref(&file), &monitor)?;
            monitor.open(&runtime);
            let http = http_options(at, &file, args)?;
            serve_http(runtime, options, http).map(|never| match never {})
        }
    };
    match served {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            output::usage_error(&error.to_string());
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The path of the token file. The token is not an argument or a variable, because other users can see those.
fn token_file(common: &Common, args: &ServeArgs) -> Result<PathBuf, String> {
    let usual = || {
        let state = common.state.clone().or_else(user_machine::state_directory);
        state.map(|state| state.join("http-token"))
    };
    let file = args.token_file.clone().or_else(usual);
    let file = file.ok_or("the state directory is unknown; name a token file with --token-file")?;
    std::path::absolute(&file).map_err(|error| format!("{}: {error}", file.display()))
}

fn http_options(at: &ListenAt, file: &Path, args: &ServeArgs) -> Result<HttpOptions, String> {
    let token = token::read_or_make(file)?;
    let (listener, address) = at.listen()?;
    output::note(&format!("serving MCP at {address}; the token is in {}", file.display()));
    Ok(HttpOptions { listener, token, hosts: args.allow_hosts.clone() })
}
