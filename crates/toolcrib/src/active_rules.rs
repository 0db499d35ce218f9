//! The rules in force, which the operator may change while the runtime is in use.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use toolcrib_policy::{Policy, Rules};

/// Where the rules come from, if they may change while the runtime is in use.
pub trait RulesSource: Send + Sync {
    /// The rules as they are now, or why they are unusable. `None` if they have not changed since the last time.
    fn changed(&self) -> Option<Result<Rules, String>>;
}

/// The rules in force, for all tools and for each of them.
pub(crate) struct ActiveRules {
    policy: RwLock<Arc<Policy>>,
    /// The rules for calls of one tool, if any rule names a tool, with the rules that they were made of.
    by_tool: Mutex<HashMap<String, (Arc<Policy>, Arc<Policy>)>>,
    source: Option<Arc<dyn RulesSource>>,
    /// Why the latest change of the rules is not in force. Locked while the source is asked.
    problem: Mutex<Option<String>>,
}

impl ActiveRules {
    pub(crate) fn new(policy: Policy, source: Option<Arc<dyn RulesSource>>) -> ActiveRules {
        ActiveRules {
            policy: RwLock::new(Arc::new(policy)),
            by_tool: Mutex::default(),
            source,
            problem: Mutex::default(),
        }
    }

    /// The rules for all tools.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy.read().clone()
    }

    /// The rules for calls of one tool. `tool` is a name in the tool table, which bounds the cache.
    pub(crate) fn of_tool(&self, tool: &str) -> Arc<Policy> {
        let base = self.policy();
        if !base.depends_on_tool() {
            return base;
        }
        let mut by_tool = self.by_tool.lock();
        if let Some((made_of, policy)) = by_tool.get(tool)
            && Arc::ptr_eq(made_of, &base)
        {
            return policy.clone();
        }
        let policy = Arc::new(base.for_tool(tool));
        by_tool.insert(tool.to_owned(), (base, policy.clone()));
        policy
    }

    /// Applies changed rules. Unusable ones are not applied: those from before stay in force. Returns a problem that is new.
    pub(crate) fn refresh(
        &self,
        usable: impl FnOnce(Rules) -> Result<Rules, String>,
    ) -> Option<String> {
        let source = self.source.as_ref()?;
        let mut problem = self.problem.lock();
        match source.changed()?.and_then(usable) {
            Ok(rules) => {
                let mut policy = self.policy.write();
                *policy = Arc::new(Policy::clone(&policy).rules(rules));
                *problem = None;
            }
            Err(error) => *problem = Some(error),
        }
        problem.clone()
    }

    /// Why the latest change of the rules is not in force.
    pub(crate) fn problem(&self) -> Option<String> {
        self.source.as_ref().and_then(|_| self.problem.lock().clone())
    }
}

impl std::fmt::Debug for ActiveRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActiveRules").field("policy", &self.policy()).finish_non_exhaustive()
    }
}
