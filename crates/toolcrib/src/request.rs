//! A call, and how it is to be made.

use std::sync::Arc;

use serde_json::Value;

use crate::approve::{Approver, NoApprover};
use crate::cancel_and_progress::{Cancel, Progress};
use crate::dialect::Dialect;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Name of the tool. Case and `_` are ignored.
    pub tool: String,
    /// Arguments, as a JSON object.
    pub args: Value,
}

impl Call {
    /// Creates a call of `tool` with the arguments `args`.
    pub fn new(tool: impl Into<String>, args: Value) -> Self {
        Call { tool: tool.into(), args }
    }
}

/// Who made a call, as an identity provider says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    /// The provider.
    pub issuer: String,
    /// Who it is, in the words of the provider.
    pub subject: String,
}

/// Who made a call, and how it reached the runtime: for logs and telemetry. It decides nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallOrigin {
    /// Name and version of the program that made the call, as it says.
    pub client: Option<String>,
    /// Who made the call, if the transport has identified them.
    pub principal: Option<Arc<Principal>>,
    /// How the call came: `pipe` or `tcp`.
    pub transport: Option<&'static str>,
    /// Version of the protocol.
    pub protocol_version: Option<String>,
    /// Id of the request in the protocol.
    pub request_id: Option<String>,
    /// `traceparent` of the request, in the format of W3C Trace Context.
    pub trace_parent: Option<String>,
    /// `tracestate` of the request.
    pub trace_state: Option<String>,
}

/// Settings of one call. The default is a real run without approver, cancellation or progress.
///
/// Cancellation from another thread:
///
/// ```
/// # fn main() -> Result<(), toolcrib::Error> {
/// use toolcrib::{Call, Cancel, ErrorKind, Options, Runtime};
///
/// let runtime = Runtime::builder().root(env!("CARGO_MANIFEST_DIR")).build()?;
/// let session = runtime.session();
/// let cancel = Cancel::new();
/// cancel.cancel();
/// let call = Call::new("LS", serde_json::json!({"path": "."}));
/// let options = Options { cancel: &cancel, ..Options::default() };
/// let error = runtime.call(&session, call, options).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Cancelled);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Check the call and report what it would change, without changing anything.
    pub dry_run: bool,
    /// Cancels the call.
    pub cancel: &'a Cancel,
    /// Is asked if the policy requires approval.
    pub approver: &'a dyn Approver,
    /// How names of tools and fields are spelled in the reply.
    pub dialect: Dialect,
    /// Who made the call.
    pub origin: &'a CallOrigin,
    /// Receives progress.
    pub progress: &'a (dyn Fn(Progress<'_>) + Sync),
}

impl Default for Options<'_> {
    fn default() -> Self {
        static NEVER: Cancel = Cancel::new();
        static NOBODY: CallOrigin = CallOrigin {
            client: None,
            principal: None,
            transport: None,
            protocol_version: None,
            request_id: None,
            trace_parent: None,
            trace_state: None,
        };
        Options {
            dry_run: false,
            cancel: &NEVER,
            approver: &NoApprover,
            dialect: Dialect::default(),
            origin: &NOBODY,
            progress: &|_| {},
        }
    }
}
