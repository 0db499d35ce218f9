//! Who made a call, for logs and telemetry.

use rmcp::RoleServer;
use rmcp::model::{Implementation, RequestId};
use rmcp::service::RequestContext;
use toolcrib::CallOrigin;

use crate::caller::Caller;
use crate::client_session::Client;

/// The maximum length of each text, in characters. A traceparent has 55.
const MAX_CHARS: usize = 512;

/// The origin of a request.
pub(crate) fn of(context: &RequestContext<RoleServer>) -> CallOrigin {
    let is_http = Client::of(context).is_some();
    let request_id = match &context.id {
        RequestId::Number(number) => number.to_string(),
        RequestId::String(text) => bounded(text),
    };
    CallOrigin {
        client: client_name(context),
        principal: Caller::of(context).map(|caller| caller.principal.clone()),
        transport: Some(if is_http { "tcp" } else { "pipe" }),
        protocol_version: context.protocol_version().map(|version| bounded(version.as_str())),
        request_id: Some(request_id),
        trace_parent: context.meta.get_traceparent().map(bounded),
        trace_state: context.meta.get_tracestate().map(bounded),
    }
}

/// The name and the version of the client. A request over HTTP may have none; rmcp then gives its own.
pub(crate) fn client_name(context: &RequestContext<RoleServer>) -> Option<String> {
    let client = context.client_info().filter(|client| *client != Implementation::default())?;
    Some(bounded(&format!("{} {}", client.name, client.version)))
}

fn bounded(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}
