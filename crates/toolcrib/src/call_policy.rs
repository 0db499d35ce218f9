//! The rules that decide on calls, with those of one session.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_policy::{Access, Effect, Policy};

use crate::command_state::ShellHost;
use crate::session::{PolicyVariant, Session};

/// The rules of a runtime.
pub(crate) struct CallPolicy {
    policy: Arc<Policy>,
    /// The rules for calls of one tool, if any rule names a tool.
    by_tool: Mutex<HashMap<String, Arc<Policy>>>,
    commands: Option<Arc<ShellHost>>,
}

impl CallPolicy {
    pub(crate) fn new(policy: Arc<Policy>, commands: Option<Arc<ShellHost>>) -> CallPolicy {
        CallPolicy { policy, by_tool: Mutex::default(), commands }
    }

    /// The rules for calls of one tool. `tool` is a name in the tool table, which bounds the cache.
    pub(crate) fn of_tool(&self, tool: &str) -> Arc<Policy> {
        if !self.policy.depends_on_tool() {
            return self.policy.clone();
        }
        let mut by_tool = self.by_tool.lock();
        let known = by_tool.entry(tool.to_owned());
        known.or_insert_with(|| Arc::new(self.policy.for_tool(tool))).clone()
    }

    /// The rules that decide on a call, with the rules that the session has accepted. Whether commands are confined
    /// is found out by trying, so only for calls that run one.
    pub(crate) fn for_call(
        &self,
        session: &Session,
        tool: &str,
        accesses: &[Access],
    ) -> Arc<Policy> {
        let runs = accesses.iter().any(|access| access.effect() == Effect::Command);
        let confines = |host: &ShellHost| host.confines() || host.outer_wall().is_some();
        let is_confined = runs && self.commands.as_deref().is_some_and(confines);
        let has_own_loopback = runs && self.has_own_loopback();
        let variant = PolicyVariant { tool: tool.to_owned(), is_confined, has_own_loopback };
        session.policy(variant, self.of_tool(tool))
    }

    /// Whether the loopback of commands is not that of this machine.
    pub(crate) fn has_own_loopback(&self) -> bool {
        self.commands.as_deref().is_some_and(ShellHost::has_own_loopback)
    }

    /// What runs commands, to check the syntax of one.
    pub(crate) fn commands(&self) -> Option<&ShellHost> {
        self.commands.as_deref()
    }
}
