//! Which rule decides a call, before it is made.

use toolcrib_policy::{Access, Basis, CommandAnalysis, Decision, Touched, Verdict};

use crate::authorize::command_directory;
use crate::call::Call;
use crate::decode::decode;
use crate::error::Error;
use crate::path_access::Grant;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::syntax_errors::{BROKEN, confirmed};
use crate::tool_selection::SHELL_TOOL;

/// What would be decided on a call, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What may happen.
    pub decision: Decision,
    /// The rule that decides.
    pub rule: String,
    /// Why that rule says so.
    pub why: String,
    /// What an operator can do to allow it, as an imperative; empty where nothing is refused.
    pub remedy: String,
    /// What is decided on each command, file and variable of its scripts.
    pub bases: Vec<Basis>,
    /// What was seen in the commands that it would run.
    pub commands: Vec<CommandAnalysis>,
    /// Files that it would write, redirections of commands among them.
    pub writes: Vec<String>,
    /// Files that it would read.
    pub reads: Vec<String>,
}

impl Runtime {
    /// Decides on a call and does not make it. Nobody is asked, and nothing is recorded.
    pub fn explain(&self, session: &Session, call: Call) -> Result<Explanation, Error> {
        let row = self.table().find(&call.tool)?;
        let tool = decode(&row.entry, row.schema(), call.args)?;
        let grant = Grant::resolve(self, session, tool.access())?;
        Ok(self.explain_accesses(session, row.entry.name, grant.accesses(), grant.requested()))
    }

    /// Decides on a shell command and does not run it.
    pub fn explain_command(&self, session: &Session, text: &str) -> Explanation {
        let accesses = vec![Access::Command(text.to_owned())];
        self.explain_accesses(session, SHELL_TOOL, accesses, Vec::new())
    }

    fn explain_accesses(
        &self,
        session: &Session,
        tool: &str,
        accesses: Vec<Access>,
        requested: Vec<Access>,
    ) -> Explanation {
        let directory = command_directory(session, &accesses);
        let policy = self.policy_for(session, tool, &accesses);
        let all = [accesses.as_slice(), requested.as_slice()].concat();
        let remembered = session.remembered();
        let verdict = policy.decide_from(&directory, &all, &remembered);
        let Verdict { decision, rule, why, remedy, .. } = confirmed(self, &accesses, verdict);
        let scripts = accesses.iter().filter_map(|access| match access {
            Access::Command(script) => Some(script),
            _ => None,
        });
        let (mut commands, mut bases) = (Vec::new(), Vec::new());
        for script in scripts {
            commands.push(policy.understand(&directory, script));
            // Of a command that bash rejects, no part is run.
            if rule != BROKEN {
                bases.extend(policy.bases(&directory, script, &remembered));
            }
        }
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for access in &accesses {
            match access {
                Access::Write(path) => writes.push(self.show_path(session.directory(), path)),
                Access::Read(path) => reads.push(self.show_path(session.directory(), path)),
                Access::WriteAny => writes.push("files that only the call finds out".to_owned()),
                Access::Reach(_) | Access::Command(_) => {}
            }
        }
        let shown = |file: &Touched| file.word.shown().to_owned();
        writes.extend(commands.iter().flat_map(|seen| &seen.writes).map(shown));
        reads.extend(commands.iter().flat_map(|seen| &seen.reads).map(shown));
        Explanation { decision, rule, why, remedy, bases, commands, writes, reads }
    }
}
