//! Explains the decision on a call without making the call.

use toolcrib_net::RequestPath;
use toolcrib_policy::{
    Access, Command, CommandAnalysis, Decision, PartDecision, RedirectedFile, RequestSubject,
    RequestVerdict, SessionApprovals, Verdict, contacts_only_loopback, is_loopback,
};

use crate::authorize::command_directory;
use crate::decode::decode;
use crate::deny_syntax_errors::{BROKEN, confirmed};
use crate::error::Error;
use crate::message_names::SHELL_TOOL;
use crate::path_access::Grant;
use crate::request::Call;
use crate::runtime::Runtime;
use crate::session::Session;

/// The rule of a host that no rule names.
const UNLISTED: &str = "network:list";

/// The rule of the loopback of commands.
const LOOPBACK: &str = "network:loopback";

/// Decision that a call would get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// Name of the rule.
    pub rule: String,
    /// Reason that the rule gives.
    pub why: String,
    /// How the operator can allow the call, as an imperative. Empty if it is allowed. For a destructive command, what
    /// to do instead, if anything.
    pub remedy: String,
    /// Decision on each command, file and variable in its scripts.
    pub bases: Vec<PartDecision>,
    /// Analysis of the commands that it would run.
    pub commands: Vec<CommandAnalysis>,
    /// Files that it would write, including redirections of commands.
    pub writes: Vec<String>,
    /// Files that it would read.
    pub reads: Vec<String>,
}

impl Runtime {
    /// Decides on a call without making it. The approver is not asked, and nothing is recorded.
    ///
    /// # Errors
    ///
    /// Fails like [`Runtime::call`] if the tool does not exist, the arguments do not fit its schema, or a path
    /// cannot be resolved.
    pub fn explain(&self, session: &Session, call: Call) -> Result<Explanation, Error> {
        let row = self.table().find(&call.tool)?;
        let tool = decode(&row.entry, row.schema(), call.args)?.tool;
        let grant = Grant::resolve(&self.services().paths, session, tool.access())?;
        Ok(self.explain_accesses(session, row.entry.name, grant.accesses(), grant.requested()))
    }

    /// Decides on a shell command without running it.
    pub fn explain_command(&self, session: &Session, text: &str) -> Explanation {
        let accesses = vec![Access::Command(text.to_owned())];
        self.explain_accesses(session, SHELL_TOOL, accesses, Vec::new())
    }

    /// Whether a host is the loopback of commands, and not that of this machine.
    pub fn is_own_loopback(&self, host: &str) -> bool {
        is_loopback(host) && self.services().policy.has_own_loopback()
    }

    /// Whether a command connects only to its own loopback, as far as its words tell.
    pub fn contacts_only_own_loopback(&self, command: &Command) -> bool {
        contacts_only_loopback(command) && self.services().policy.has_own_loopback()
    }

    /// Decides on a connection of a command to a host, without making it.
    pub fn explain_host(&self, session: &Session, host: &str, port: u16) -> Explanation {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let accesses = vec![Access::Connect(host.clone(), port)];
        let policy = self.services().policy.for_call(session, SHELL_TOOL, &accesses);
        let mut explanation = self.explain_accesses(session, SHELL_TOOL, accesses, Vec::new());
        explanation.bases.extend(policy.request_decisions(&host, port));
        if explanation.rule == UNLISTED && self.is_own_loopback(&host) {
            let (decision, rule) = (Decision::Allow, LOOPBACK.to_owned());
            let why = "commands have their own loopback: it leads to servers of commands, and to none of this machine";
            let (why, remedy) = (why.to_owned(), String::new());
            return Explanation { decision, rule, why, remedy, ..explanation };
        }
        explanation
    }

    /// Decides on a request of a command to a host, without making it. `target` is the path, with the query.
    pub fn explain_request(
        &self,
        session: &Session,
        (host, port): (&str, u16),
        method: &str,
        target: &str,
    ) -> Explanation {
        let explanation =
            Explanation { bases: Vec::new(), ..self.explain_host(session, host, port) };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let policy = self.services().policy.for_call(session, SHELL_TOOL, &[]);
        if explanation.decision == Decision::Deny || !policy.inspects(&host, port) {
            return explanation;
        }
        let path = match RequestPath::parse(target) {
            Ok(path) => path,
            Err(problem) => {
                let (decision, rule) = (Decision::Deny, "network:inspect".to_owned());
                let (why, remedy) = (format!("the path {problem}"), String::new());
                return Explanation { decision, rule, why, remedy, ..explanation };
            }
        };
        let (path, query, is_upgrade) = (path.path(), path.query(), false);
        let request = RequestSubject { method, path, query, is_upgrade };
        let verdict = policy.decide_request(&host, port, &request);
        if verdict.is_allowed && explanation.decision == Decision::Ask {
            return explanation;
        }
        let decision = if verdict.is_allowed { Decision::Allow } else { Decision::Deny };
        let RequestVerdict { rule, why, remedy, .. } = verdict;
        Explanation { decision, rule, why, remedy, ..explanation }
    }

    /// Decides on accesses of a tool, without the answers of a session. Only the text of a command counts: bash is not
    /// asked about its syntax.
    pub fn decide(&self, session: &Session, tool: &str, accesses: &[Access]) -> Decision {
        let directory = command_directory(session, accesses);
        let policy = self.services().policy.for_call(session, tool, accesses);
        policy.decide_from(&directory, accesses, &SessionApprovals::default()).decision
    }

    fn explain_accesses(
        &self,
        session: &Session,
        tool: &str,
        accesses: Vec<Access>,
        requested: Vec<Access>,
    ) -> Explanation {
        let directory = command_directory(session, &accesses);
        let policy = self.services().policy.for_call(session, tool, &accesses);
        let all = [accesses.as_slice(), requested.as_slice()].concat();
        let remembered = session.remembered();
        let verdict = policy.decide_from(&directory, &all, &remembered);
        let verdict = confirmed(self.services().policy.commands(), &accesses, verdict);
        let always = policy.proposal(&directory, &all, &verdict, Decision::Allow);
        let always = always.filter(|_| verdict.decision == Decision::Ask);
        let Verdict { decision, rule, why, remedy, .. } = verdict;
        let remedy = always.map_or(remedy, |rules| format!("run `{}`", rules.command()));
        let scripts = accesses.iter().filter_map(|access| match access {
            Access::Command(script) => Some(script),
            _ => None,
        });
        let (mut commands, mut bases) = (Vec::new(), Vec::new());
        for script in scripts {
            commands.push(policy.analyze_command(&directory, script));
            // bash runs no part of a command with a syntax error.
            if rule != BROKEN {
                bases.extend(policy.decisions_by_part(&directory, script, &remembered));
            }
        }
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for access in &accesses {
            match access {
                Access::Write(path) => {
                    writes.push(self.services().paths.show(session.directory(), path));
                }
                Access::Read(path) => {
                    reads.push(self.services().paths.show(session.directory(), path));
                }
                Access::WriteAny => {
                    writes.push("files that are known only when the call runs".to_owned());
                }
                Access::Reach(_) | Access::Connect(..) | Access::Command(_) => {}
            }
        }
        let shown = |file: &RedirectedFile| file.word.shown().to_owned();
        writes.extend(commands.iter().flat_map(|seen| &seen.writes).map(shown));
        reads.extend(commands.iter().flat_map(|seen| &seen.reads).map(shown));
        Explanation { decision, rule, why, remedy, bases, commands, writes, reads }
    }
}
