//! `toolcrib sandboxd`: serves the runtime interface of Kubernetes' agent-sandbox.

use std::net::TcpListener;
use std::process::ExitCode;

use toolcrib_mcp::Listener;
use toolcrib_sandboxd::{Access, Listeners, SandboxdOptions};

use super::monitor_socket::MonitorSocket;
use super::serve::{token, token_file};
use crate::args::{Common, ListenAt, SandboxdArgs};
use crate::output;

/// The variables in which clients in the pod find the addresses, each with the usual one.
const REST: (&str, &str) = ("SANDBOXD_REST_ADDR", "localhost:8080");
const GRPC: (&str, &str) = ("SANDBOXD_GRPC_ADDR", "localhost:9090");

pub(crate) fn sandboxd(common: &Common, args: &SandboxdArgs) -> Result<ExitCode, String> {
    let (rest, grpc) = (address(args.rest.as_ref(), REST)?, address(args.grpc.as_ref(), GRPC)?);
    for at in [&rest, &grpc] {
        if at.is_reachable() && !args.trust_network {
            return Err(format!(
                "other machines could reach {at}, and the token would be sent to it in clear text: listen on localhost, or use \
                 --trust-network in a pod whose network policy limits who can reach it"
            ));
        }
    }
    let token_file = if args.trust_network {
        None
    } else {
        Some(token_file(common, args.token_file.as_deref())?)
    };
    let monitor = MonitorSocket::new(common, "sandboxd", args.no_monitor)?;
    // Tools never access the token file, wherever it is.
    let own: Vec<_> = token_file.iter().cloned().collect();
    let runtime = super::runtime_for_program(common, &own, &monitor)?;
    let (access, who) = match &token_file {
        None => (Access::Network, "everybody who can reach them may run commands".to_owned()),
        Some(file) => (
            Access::Token(token::read_or_make(file)?),
            format!("the token is in {}", file.display()),
        ),
    };
    let (rest, rest_at) = listen(&rest)?;
    let (grpc, grpc_at) = listen(&grpc)?;
    monitor.open(&runtime);
    output::note(&format!("serving files at {rest_at}/v1/files and processes at {grpc_at}; {who}"));
    let options = SandboxdOptions {
        listeners: Listeners { rest, grpc },
        access,
        monitor: monitor.monitor().clone(),
        variables: variables(),
        prefix: args.metadata_prefix.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    toolcrib_sandboxd::serve(runtime, options).map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// An address of a flag, of a variable or the usual one.
fn address(flag: Option<&ListenAt>, (variable, usual): (&str, &str)) -> Result<ListenAt, String> {
    if let Some(flag) = flag {
        return Ok(flag.clone());
    }
    let found = std::env::var(variable).ok().filter(|value| !value.is_empty());
    let text = found.as_deref().unwrap_or(usual);
    text.parse().map_err(|problem| format!("{variable}={text}: {problem}"))
}

fn listen(at: &ListenAt) -> Result<(TcpListener, String), String> {
    match at.listen("")? {
        (Listener::Tcp(tcp), address) => Ok((tcp, address)),
        _ => Err(format!("{at} is a path: the clients of this interface need an address")),
    }
}

/// The environment, without variables that are not text.
fn variables() -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}
