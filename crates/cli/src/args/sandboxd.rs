//! Arguments of `sandboxd`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::ListenAt;

#[derive(Debug, ClapArgs)]
pub(crate) struct SandboxdArgs {
    /// Address for files: a port, or an address such as 0.0.0.0:8080 [default: $SANDBOXD_REST_ADDR, or localhost:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) rest: Option<ListenAt>,

    /// Address for processes [default: $SANDBOXD_GRPC_ADDR, or localhost:9090]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) grpc: Option<ListenAt>,

    /// File with the bearer token [default: http-token in the state directory]
    #[arg(long, value_name = "FILE", conflicts_with = "trust_network")]
    pub(crate) token_file: Option<PathBuf>,

    /// Require no token: whoever can reach the addresses may run commands. Something else must decide who can, such as a
    /// network policy
    #[arg(long)]
    pub(crate) trust_network: bool,

    /// Beginning of the names of variables that /v1/metadata shows
    #[arg(long, value_name = "TEXT", default_value = "SANDBOX_")]
    pub(crate) metadata_prefix: String,

    /// Open no monitor socket for `toolcrib page` and `toolcrib watch`
    #[arg(long)]
    pub(crate) no_monitor: bool,
}

pub(super) const SANDBOXD: &str = "\
Serve the runtime interface of Kubernetes' agent-sandbox (KEP-539.2), which is called sandboxd there, until SIGTERM.

Files are at /v1/files/PATH over REST, and processes are those of process.v1.ProcessService over gRPC. Each request is an \
operation of one session: policy, sandbox and journal are those of the tools. A path is relative to the first --root, and \
paths outside the roots are refused.

Each request, except /v1/health, needs `Authorization: Bearer TOKEN`, and only this machine can be served. The clients of \
agent-sandbox send no token: for them, and for other machines, use --trust-network in a pod. docs/kubernetes.md describes \
how to run it there.";
