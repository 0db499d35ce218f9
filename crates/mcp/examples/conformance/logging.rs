//! Tools that send log messages: in older protocol versions to every client, in newer ones to clients that request
//! them in the call.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

/// The tools.
pub(crate) const TOOLS: &[&str] = &["test_tool_with_logging", "test_logging_tool"];

/// The pause between two messages.
const PAUSE: Duration = Duration::from_millis(50);

/// Sends three messages, if they are requested.
pub(crate) async fn run(context: &RequestContext<RoleServer>) -> Value {
    let is_wanted = context.meta.protocol_version().is_none() || context.meta.log_level().is_some();
    for message in ["It began.", "It is at work.", "It is done."] {
        if is_wanted {
            let param = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
            // The test does not need messages that a client does not receive.
            let _ = context.peer.notify_logging_message(param).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
    json!([{"type": "text", "text": "Three messages were sent, to who wants them."}])
}
