//! Tools that change a list, and notifications about it.

use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::service::SubscriptionContext;
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};

/// The tools.
pub(crate) const TOOLS: &[&str] = &[TOOL_CHANGE, PROMPT_CHANGE];

const TOOL_CHANGE: &str = "test_trigger_tool_change";
const PROMPT_CHANGE: &str = "test_trigger_prompt_change";

/// The tool that is added and removed.
pub(crate) const NEW_TOOL: &str = "test_new_tool";

/// More changes than are made before they are reported.
const WAITING: usize = 16;

/// The changes, and the clients to notify.
pub(crate) struct Changes {
    pub(crate) tools: AtomicBool,
    pub(crate) prompts: AtomicBool,
    news: broadcast::Sender<Change>,
}

#[derive(Clone, Copy)]
enum Change {
    Tools,
    Prompts,
}

impl Changes {
    pub(crate) fn new() -> Changes {
        let (news, _) = broadcast::channel(WAITING);
        Changes { tools: false.into(), prompts: false.into(), news }
    }

    /// Changes the list of a tool.
    pub(crate) fn make(&self, tool: &str) -> Value {
        let (list, change) = match tool {
            PROMPT_CHANGE => (&self.prompts, Change::Prompts),
            _ => (&self.tools, Change::Tools),
        };
        list.fetch_not(Ordering::Relaxed);
        // There may be no receiver.
        let _ = self.news.send(change);
        json!([{"type": "text", "text": "It was changed."}])
    }

    /// Notifies a client until it stops listening.
    pub(crate) async fn tell(&self, listener: SubscriptionContext) {
        let mut news = self.news.subscribe();
        loop {
            let change = tokio::select! {
                change = news.recv() => change,
                () = listener.cancelled() => return,
            };
            // The sink drops notifications without a subscription.
            let _ = match change {
                Ok(Change::Tools) => listener.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => listener.sink().notify_prompt_list_changed().await,
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            };
        }
    }
}
