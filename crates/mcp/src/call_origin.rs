//! Who made a call, for logs and telemetry.

use rmcp::RoleServer;
use rmcp::model::RequestId;
use rmcp::service::RequestContext;
use toolcrib::CallOrigin;

use crate::caller::Caller;
use crate::client_session::Client;

/// The maximum length of each text, in characters. A traceparent has 55.
const MAX_CHARS: usize = 512;

/// The origin of a request.
pub(crate) fn of(context: &RequestContext<RoleServer>) -> CallOrigin {
    let name = context.client_info().map(|client| format!("{} {}", client.name, client.version));
    let is_http = Client::of(context).is_some();
    let request_id = match &context.id {
        RequestId::Number(number) => number.to_string(),
        RequestId::String(text) => bounded(text),
    };
    CallOrigin {
        client: name.as_deref().map(bounded),
        principal: Caller::of(context).map(|caller| caller.principal.clone()),
        transport: Some(if is_http { "tcp" } else { "pipe" }),
        protocol_version: context.protocol_version().map(|version| bounded(version.as_str())),
        request_id: Some(request_id),
        trace_parent: context.meta.get_traceparent().map(bounded),
        trace_state: context.meta.get_tracestate().map(bounded),
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}
