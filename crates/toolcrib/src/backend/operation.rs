//! An operation of the raw API as a call of the tool whose raw form it is.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolcrib_policy::Access;

use super::Backend;
use crate::cx::Cx;
use crate::decode::Decoded;
use crate::edit_checks::Reader;
use crate::error::{Error, ErrorKind};
use crate::reply::Reply;
use crate::request::Call;
use crate::tool::AnyTool;

/// An operation of the raw API.
pub(super) trait Operation: Clone + Send {
    /// The tool whose raw form this is. Its rules hold, and records name it.
    const TOOL: &'static str;
    type Output: Send;

    /// The arguments for records, without contents.
    fn arguments(&self) -> Value;

    /// See [`crate::Tool::access`].
    fn access(&self) -> Vec<Access>;

    /// Performs the operation. An approver sees the reply of a dry run.
    fn run(self, cx: &Cx<'_>) -> Result<(Self::Output, Reply), Error>;
}

/// Makes the call of an operation. Returns the output of the operation instead of the reply.
pub(super) fn perform<O: Operation>(
    backend: &Backend<'_>,
    operation: O,
) -> Result<O::Output, Error> {
    let output = Arc::new(Mutex::new(None));
    let call = Call::new(O::TOOL, operation.arguments());
    let decode = |_: &_| {
        let tool = Captured {
            operation: operation.clone(),
            output: output.clone(),
            roots_only: backend.roots_only,
        };
        Ok(Decoded { tool: Box::new(tool), notes: Vec::new() })
    };
    backend.runtime.call_decoded(
        backend.session,
        &call,
        backend.options,
        &decode,
        Reader::Program,
    )?;
    let output = output.lock().take();
    output.ok_or_else(|| {
        let message = "this needs approval, so a dry run does not show its result";
        Error::new(ErrorKind::Denied, message)
    })
}

/// An operation that stores its output.
struct Captured<O: Operation> {
    operation: O,
    output: Arc<Mutex<Option<O::Output>>>,
    roots_only: bool,
}

impl<O: Operation> AnyTool for Captured<O> {
    fn access(&self) -> Vec<Access> {
        self.operation.access()
    }

    fn description(&self) -> Option<String> {
        None
    }

    fn run(self: Box<Self>, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let Captured { operation, output, roots_only } = *self;
        for access in operation.access() {
            let Some(path) = access.path() else { continue };
            cx.require_literal(path)?;
            if roots_only {
                cx.require_in_root(path)?;
            }
        }
        let (value, reply) = operation.run(cx)?;
        *output.lock() = Some(value);
        Ok(reply)
    }
}
