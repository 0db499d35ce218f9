//! The rules that decide on calls, with those of one session.

use std::sync::Arc;

use toolcrib_policy::{Access, Effect, Policy};

use crate::active_rules::ActiveRules;
use crate::command_state::ShellHost;
use crate::session::{PolicyVariant, Session};

/// The rules of a runtime.
pub(crate) struct CallPolicy {
    rules: Arc<ActiveRules>,
    commands: Option<Arc<ShellHost>>,
}

impl CallPolicy {
    pub(crate) fn new(rules: Arc<ActiveRules>, commands: Option<Arc<ShellHost>>) -> CallPolicy {
        CallPolicy { rules, commands }
    }

    /// The rules in force.
    pub(crate) fn rules(&self) -> &ActiveRules {
        &self.rules
    }

    /// The rules for calls of one tool.
    pub(crate) fn of_tool(&self, tool: &str) -> Arc<Policy> {
        self.rules.of_tool(tool)
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
