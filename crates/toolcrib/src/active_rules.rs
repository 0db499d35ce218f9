//! The rules in force, which the operator may change while the runtime is in use.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use toolcrib_policy::{Policy, Rules};

/// Characters of a problem with the rules in a reply.
const MAX_PROBLEM_CHARS: usize = 300;

/// Where the rules come from, if they may change while the runtime is in use.
pub trait RulesSource: Send + Sync {
    /// Looks whether the rules have changed. It is called before each call, so it must be quick.
    fn look(&self) -> RulesState;
}

/// The rules of a source.
#[derive(Debug, Default)]
pub struct RulesState {
    /// All rules, if they have changed since the last look.
    pub rules: Option<Rules>,
    /// Why a change is not among them.
    pub problem: Option<String>,
    /// Whether a change was made just now, and may not be complete.
    pub is_unfinished: bool,
}

/// The rules in force, for all tools and for each of them.
pub(crate) struct ActiveRules {
    policy: RwLock<Arc<Policy>>,
    /// The rules for calls of one tool, if any rule names a tool.
    by_tool: Mutex<HashMap<String, ToolRules>>,
    source: Option<Arc<dyn RulesSource>>,
    /// Locked while the source is asked.
    pending: Mutex<Pending>,
}

/// The rules for calls of one tool.
struct ToolRules {
    /// The rules for all tools that they were made of.
    base: Arc<Policy>,
    policy: Arc<Policy>,
}

/// Changes of the rules that are not in force.
#[derive(Default)]
struct Pending {
    /// Why the latest rules of the source cannot be used here.
    unusable: Option<String>,
    problem: Option<Arc<str>>,
    is_unfinished: bool,
}

impl ActiveRules {
    pub(crate) fn new(policy: Policy, source: Option<Arc<dyn RulesSource>>) -> ActiveRules {
        ActiveRules {
            policy: RwLock::new(Arc::new(policy)),
            by_tool: Mutex::default(),
            source,
            pending: Mutex::default(),
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
        if let Some(known) = by_tool.get(tool).filter(|known| Arc::ptr_eq(&known.base, &base)) {
            return known.policy.clone();
        }
        let policy = Arc::new(base.for_tool(tool));
        by_tool.insert(tool.to_owned(), ToolRules { base, policy: policy.clone() });
        policy
    }

    /// Applies changed rules, unless they are not `usable`: then the previous ones stay in force. Returns a problem that is
    /// new.
    pub(crate) fn refresh(
        &self,
        usable: impl FnOnce(Rules) -> Result<Rules, String>,
    ) -> Option<Arc<str>> {
        let source = self.source.as_ref()?;
        let mut pending = self.pending.lock();
        let RulesState { rules, problem, is_unfinished } = source.look();
        if let Some(rules) = rules {
            pending.unusable = None;
            match usable(rules) {
                Ok(rules) => {
                    let mut policy = self.policy.write();
                    *policy = Arc::new(Policy::clone(&policy).rules(rules));
                }
                Err(problem) => pending.unusable = Some(problem),
            }
        }
        pending.is_unfinished = is_unfinished;
        let problem = pending.unusable.clone().or(problem).map(|problem| in_one_line(&problem));
        if problem.as_deref() == pending.problem.as_deref() {
            return None;
        }
        pending.problem = problem.map(Arc::from);
        pending.problem.clone()
    }

    /// Why a change of the rules is not in force.
    pub(crate) fn problem(&self) -> Option<Arc<str>> {
        self.source.as_ref().and_then(|_| self.pending.lock().problem.clone())
    }

    /// Whether a change of the rules was made just now, and is not in force yet.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.source.is_some() && self.pending.lock().is_unfinished
    }
}

/// The first line, which has the place, and the last one, which has the reason. The lines between show a part of the
/// file.
fn in_one_line(problem: &str) -> String {
    let lines: Vec<&str> = problem.lines().collect();
    let text = match lines.as_slice() {
        [place, .., reason] => format!("{place}: {reason}"),
        _ => problem.to_owned(),
    };
    match text.char_indices().nth(MAX_PROBLEM_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl std::fmt::Debug for ActiveRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActiveRules").field("policy", &self.policy()).finish_non_exhaustive()
    }
}
