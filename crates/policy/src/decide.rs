//! From what a call touches to allow, ask or deny, with the rule that decided and its why.

mod script;

use std::path::{Path, PathBuf};

use crate::access::{Access, Effect};
use crate::approval_scope::{ApprovalScope, SessionApprovals};
use crate::command::{CommandAnalysis, Surroundings, understand};
use crate::outside_access::{Outside, opened_by_writing};
use crate::profile::Profile;
use crate::protected_names::Protection;
use crate::rule::{Kind, Rule, Rules, hosts_in};
use crate::rule_proposal::Proposal;

/// What may happen. The strictest of several wins: deny beats ask beats allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Goes ahead.
    Allow,
    /// Goes ahead if somebody says so.
    Ask,
    /// Does not happen.
    Deny,
}

impl Decision {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}

/// A decision with what a reader needs to understand it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What may happen.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: String,
    /// Why that rule says so.
    pub why: String,
    /// What an operator can do to allow it, as an imperative; empty where nothing is refused.
    pub remedy: String,
    /// All that is asked about: what an answer is remembered for.
    pub asks: SessionApprovals,
    /// Whether a command looks like a syntax error. Only the shell can tell; until then it counts as unparsed.
    pub looks_broken: bool,
}

/// What is decided on one command, file or variable of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    /// The command, redirection or variable.
    pub about: String,
    /// What may happen.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: String,
    /// Why that rule says so.
    pub why: String,
}

/// The rules in force.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    profile: Profile,
    rules: Rules,
    home: Option<PathBuf>,
    roots: Vec<PathBuf>,
    protection: Protection,
    confined: bool,
    outside: Option<Outside>,
    /// The directories that are not outside; if there are none, nothing is.
    inside: Vec<PathBuf>,
}

impl Policy {
    /// The rules of a profile.
    pub fn new(profile: Profile) -> Self {
        Policy { profile, ..Policy::default() }
    }

    /// With a user's rules.
    #[must_use]
    pub fn rules(self, rules: Rules) -> Self {
        Policy { rules, ..self }
    }

    /// The rules for calls of one tool.
    #[must_use]
    pub fn for_tool(&self, tool: &str) -> Policy {
        Policy { rules: self.rules.for_tool(tool), ..self.clone() }
    }

    /// Whether rules differ between tools.
    pub fn depends_on_tool(&self) -> bool {
        self.rules.name_tools()
    }

    /// With the directories of the workspace, and the user's home where it is known: what patterns of
    /// paths and commands are read by.
    #[must_use]
    pub fn places(self, roots: Vec<PathBuf>, home: Option<PathBuf>) -> Self {
        Policy { roots, home, ..self }
    }

    /// The user's home, where it is known.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// With the files that are not written.
    #[must_use]
    pub fn protection(self, protection: Protection) -> Self {
        Policy { protection, ..self }
    }

    /// With what file tools may do outside, where it is not what the profile says.
    #[must_use]
    pub fn outside(self, outside: Outside) -> Self {
        Policy { outside: Some(outside), ..self }
    }

    /// With directories that do not lie outside: the roots by every name, and the session's own.
    #[must_use]
    pub fn inside(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.inside.extend(directories);
        self
    }

    /// The profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// What file tools may do outside.
    pub fn on_outside(&self) -> Outside {
        self.outside.unwrap_or(Outside::of(self.profile))
    }

    /// Whether commands run in a sandbox that keeps them inside the workspace. It is then the sandbox that
    /// holds, not their text: the profile `workspace` asks about no command but those that rules ask
    /// about.
    #[must_use]
    pub fn confined(self, confined: bool) -> Self {
        Policy { confined, ..self }
    }

    /// Decides on a call by all that it touches. `remembered` holds what somebody has allowed for the
    /// whole session: it turns an ask into an allow, never a deny. Commands start in the first root.
    pub fn decide(&self, accesses: &[Access], remembered: &SessionApprovals) -> Verdict {
        let directory = self.roots.first().cloned().unwrap_or_default();
        self.decide_from(&directory, accesses, remembered)
    }

    /// The same, for commands that start in `directory`.
    pub fn decide_from(
        &self,
        directory: &Path,
        accesses: &[Access],
        remembered: &SessionApprovals,
    ) -> Verdict {
        let around = self.around(directory);
        let parts = accesses.iter().flat_map(|access| self.parts(access, &around));
        strictest(parts, remembered).unwrap_or_else(|| {
            Part::harmless("touches-nothing", "the call touches nothing outside itself").verdict
        })
    }

    /// What is decided on each command, file and variable of a script.
    pub fn bases(
        &self,
        directory: &Path,
        script: &str,
        remembered: &SessionApprovals,
    ) -> Vec<Basis> {
        let parts = script::parts(self, script, &self.around(directory)).into_iter();
        parts.map(|part| part.with_answers(remembered).basis()).collect()
    }

    /// The rules that would decide so on all that a verdict asks about, from then on. Nothing, where rules
    /// cannot: no rule allows what another one asks about, or what is not understood.
    pub fn proposal(
        &self,
        directory: &Path,
        accesses: &[Access],
        verdict: &Verdict,
        decision: Decision,
    ) -> Option<Proposal> {
        let proposal = Proposal::new(&verdict.asks, accesses, decision)?;
        self.decides(directory, accesses, &proposal, decision).then_some(proposal)
    }

    /// The same for the directories of the files that a proposal is about. A directory lies beneath a root.
    pub fn directory_proposal(
        &self,
        directory: &Path,
        accesses: &[Access],
        proposal: &Proposal,
        decision: Decision,
    ) -> Option<Proposal> {
        let wider = proposal.for_directories(&self.roots)?;
        self.decides(directory, accesses, &wider, decision).then_some(wider)
    }

    /// Whether the proposed rules would decide so.
    fn decides(
        &self,
        directory: &Path,
        accesses: &[Access],
        proposal: &Proposal,
        decision: Decision,
    ) -> bool {
        let then = self.clone().with(proposal);
        then.decide_from(directory, accesses, &SessionApprovals::new()).decision == decision
    }

    /// With rules that were proposed, and that a person has agreed to.
    #[must_use]
    pub fn with(self, agreed: &Proposal) -> Self {
        match Rules::parse(&agreed.text()) {
            Ok(rules) => Policy { rules: self.rules.and(rules), ..self },
            Err(_) => self,
        }
    }

    /// Whether a rule keeps a file back that a call did not name: one that it comes upon beneath a
    /// directory, where nobody can be asked about each.
    pub fn keeps_back(&self, path: &Path) -> bool {
        let around = self.around(Path::new(""));
        let outside = || self.rules.for_path(Kind::External, path, &around);
        let outside = (!self.is_inside(path)).then(outside).flatten();
        let rule = self.rules.for_path(Kind::Read, path, &around);
        rule.into_iter().chain(outside).any(|rule| rule.decision != Decision::Allow)
    }

    /// Whether a rule denies files to be read, or to be written.
    pub fn denies_files(&self, effect: Effect) -> bool {
        Kind::of_files(effect).is_some_and(|kind| self.rules.denials(kind).next().is_some())
    }

    /// Whether a rule denies this file to be read, or to be written.
    pub fn denies_file(&self, effect: Effect, path: &Path) -> bool {
        let around = self.around(Path::new(""));
        let rule = Kind::of_files(effect).and_then(|kind| self.rules.for_path(kind, path, &around));
        rule.is_some_and(|rule| rule.decision == Decision::Deny)
    }

    /// The paths that rules deny to read by their name, wherever they lie.
    pub fn unreadable_outside(&self) -> Vec<PathBuf> {
        let denied = self.rules.denials(Kind::Read).flat_map(Rule::absolute_paths);
        denied.filter_map(|pattern| pattern.only_path(self.home.as_deref())).collect()
    }

    /// Whether there are rules on files that are read at all.
    pub fn has_rules_on_reading(&self) -> bool {
        self.rules.has(Kind::Read) || self.rules.has(Kind::External)
    }

    /// What is seen in a command that starts in `directory`.
    pub fn understand(&self, directory: &Path, text: &str) -> CommandAnalysis {
        understand(text, &self.around(directory))
    }

    fn around(&self, directory: &Path) -> Surroundings {
        Surroundings {
            directory: directory.to_owned(),
            home: self.home.clone(),
            roots: self.roots.clone(),
        }
    }

    fn parts(&self, access: &Access, around: &Surroundings) -> Vec<Part> {
        let part = match access {
            Access::Read(path) => {
                let rule = self.rules.for_path(Kind::Read, path, around);
                self.on_file(rule, Effect::Read, path, around)
            }
            Access::Write(path) => {
                // To edit is to read, so what may not be read may not be edited; but who may read may
                // not yet edit.
                let read = self.rules.for_path(Kind::Read, path, around);
                let read = read.filter(|rule| rule.decision != Decision::Allow);
                let edit = self.rules.for_path(Kind::Edit, path, around);
                let strictest = edit.into_iter().chain(read).max_by_key(|rule| rule.decision);
                self.on_file(strictest, Effect::Write, path, around)
            }
            Access::WriteAny => self.by_profile(Effect::Write),
            Access::Reach(words) => {
                let hosts = hosts_in([words.as_str()].into_iter());
                let rule = hosts.iter().filter_map(|host| self.rules.for_host(host));
                let rule = rule.max_by_key(|rule| rule.decision);
                self.by_rule_or_profile(rule, Effect::Reach, None)
            }
            Access::Command(text) => return script::parts(self, text, around),
        };
        vec![part]
    }

    /// A file of the workspace, or one that lies outside.
    fn on_file(
        &self,
        rule: Option<&Rule>,
        effect: Effect,
        path: &Path,
        around: &Surroundings,
    ) -> Part {
        if self.is_inside(path) {
            return self.by_rule_or_profile(rule, effect, Some(path));
        }
        let outside = self.by_outside(effect, path);
        let external = self.rules.for_path(Kind::External, path, around);
        // Commands that are allowed to name a directory are still held by the sandbox; tools that write are not.
        let external =
            external.filter(|rule| effect == Effect::Read || rule.decision != Decision::Allow);
        match (rule.into_iter().chain(external).max_by_key(|rule| rule.decision), &outside.asked) {
            (Some(rule), Some(asked)) if outside.verdict.decision != Decision::Deny => {
                Part::by(rule, asked.clone())
            }
            _ => outside,
        }
    }

    /// Whether a path does not lie outside the workspace.
    pub fn is_inside(&self, path: &Path) -> bool {
        self.inside.is_empty() || self.inside.iter().any(|inside| path.starts_with(inside))
    }

    /// What is said about a file outside that no rule is about.
    fn by_outside(&self, effect: Effect, path: &Path) -> Part {
        let (setting, shown) = (self.on_outside(), path.display());
        let decision = setting.decision(self.profile, effect);
        let held: Vec<&Path> = self.roots.iter().chain(&self.home).map(PathBuf::as_path).collect();
        let opened = match effect {
            Effect::Read => path.to_owned(),
            _ => opened_by_writing(path, &held),
        };
        let profile = self.profile;
        let why = match (decision, effect) {
            (Decision::Allow, _) => {
                format!("{shown} is outside the workspace, which the profile `{profile}` allows")
            }
            (Decision::Deny, _) => format!("{shown} is outside the workspace"),
            (_, Effect::Read) => format!("{shown} is outside the workspace"),
            _ => format!(
                "{shown} is outside the workspace; yes opens {} to file tools for this session",
                opened.display()
            ),
        };
        let remedy = match (decision, effect) {
            (Decision::Allow, _) => String::new(),
            (_, Effect::Read) => "set outside = \"read\"".to_owned(),
            _ => format!("add --root {}", path.parent().unwrap_or(path).display()),
        };
        let rule = format!("outside:{}", effect.name());
        Part::new(decision, &rule, &why, &remedy).asking(ApprovalScope::Outside(effect, opened))
    }

    fn by_rule_or_profile(&self, rule: Option<&Rule>, effect: Effect, path: Option<&Path>) -> Part {
        let profile = self.by_profile(effect);
        match rule {
            Some(rule) if profile.verdict.decision != Decision::Deny => {
                let asked = path.map(|path| ApprovalScope::Path(effect, path.to_owned()));
                Part::by(rule, asked.unwrap_or(ApprovalScope::Effect(effect)))
            }
            _ => profile,
        }
    }

    fn by_profile(&self, effect: Effect) -> Part {
        let profile = self.profile;
        if effect == Effect::Command && self.confined && profile == Profile::Workspace {
            let why = "it runs in the sandbox, which keeps it inside the workspace";
            return Part::new(Decision::Allow, "sandbox", why, "");
        }
        let decision = self.decision_in(profile, effect);
        let what = match effect {
            Effect::Read => "reading in the workspace",
            Effect::Write => "changing files of the workspace",
            Effect::Reach => "acting outside the workspace",
            Effect::Command if self.confined => "running a command",
            Effect::Command => "running a command that nothing confines",
        };
        let does = match decision {
            Decision::Allow => "allows",
            Decision::Ask => "asks before",
            Decision::Deny => "does not allow",
        };
        let rule = format!("profile:{profile}:{}", effect.name());
        let why = format!("the profile `{profile}` {does} {what}");
        Part::new(decision, &rule, &why, &self.remedy(decision, effect))
            .asking(ApprovalScope::Effect(effect))
    }

    /// What a profile says about an effect, where a sandbox confines commands too.
    fn decision_in(&self, profile: Profile, effect: Effect) -> Decision {
        match (profile, effect) {
            (Profile::Workspace, Effect::Command) if self.confined => Decision::Allow,
            _ => profile.decision(effect),
        }
    }

    /// The narrowest change of the settings that allows an effect. The profile `open` is none: it removes
    /// every limit.
    fn remedy(&self, decision: Decision, effect: Effect) -> String {
        if decision == Decision::Allow {
            return String::new();
        }
        let order = Profile::ALL.into_iter().filter(|profile| *profile != Profile::Open);
        let looser = order.skip_while(|other| *other != self.profile).skip(1);
        let allows = |profile: &Profile| self.decision_in(*profile, effect) == Decision::Allow;
        if let Some(profile) = looser.into_iter().find(allows) {
            return format!("set profile = \"{profile}\"");
        }
        let subject = match effect {
            Effect::Command => "the command",
            Effect::Reach => "the host",
            Effect::Read | Effect::Write => "the file",
        };
        let rule = format!("add a rule that allows {subject} to rules.toml");
        match decision {
            Decision::Deny => format!("set profile = \"{}\" and {rule}", Profile::Workspace),
            _ => rule,
        }
    }
}

/// What is decided on one thing that a call touches.
struct Part {
    verdict: Verdict,
    /// What an answer would be remembered for.
    asked: Option<ApprovalScope>,
    /// The part of a script that it is decided on.
    about: String,
    /// Whether it is allowed because it changes nothing, and so says nothing about the rest of the call.
    is_harmless: bool,
}

impl Part {
    /// What changes nothing is allowed in every profile.
    fn harmless(rule: &str, why: &str) -> Part {
        Part { is_harmless: true, ..Part::new(Decision::Allow, rule, why, "") }
    }

    fn new(decision: Decision, rule: &str, why: &str, remedy: &str) -> Part {
        let (rule, why, remedy) = (rule.to_owned(), why.to_owned(), remedy.to_owned());
        let (asks, looks_broken) = (SessionApprovals::new(), false);
        let verdict = Verdict { decision, rule, why, remedy, asks, looks_broken };
        Part { verdict, asked: None, about: String::new(), is_harmless: false }
    }

    fn asking(self, asked: ApprovalScope) -> Part {
        Part { asked: Some(asked), ..self }
    }

    fn about(self, about: String) -> Part {
        Part { about, ..self }
    }

    /// With what was answered before: it turns an ask into an allow.
    fn with_answers(mut self, remembered: &SessionApprovals) -> Part {
        let asked = self.asked.as_ref().filter(|asked| asked.is_covered_by(remembered));
        let Some(asked) = asked.filter(|_| self.verdict.decision == Decision::Ask) else {
            return self;
        };
        self.verdict.rule = match asked {
            ApprovalScope::Effect(effect) => format!("session:{}", effect.name()),
            _ => "session".to_owned(),
        };
        self.verdict.why = "allowed for this session by an earlier answer".to_owned();
        self.verdict.decision = Decision::Allow;
        self.verdict.remedy = String::new();
        self
    }

    fn basis(self) -> Basis {
        let Verdict { decision, rule, why, .. } = self.verdict;
        Basis { about: self.about, decision, rule, why }
    }

    /// How much it says about the call as a whole.
    fn weight(&self) -> (Decision, bool) {
        (self.verdict.decision, !self.is_harmless)
    }

    fn by(rule: &Rule, asked: ApprovalScope) -> Part {
        let why = match (rule.why.as_str(), rule.decision) {
            ("", Decision::Allow) => "a rule of yours allows it",
            ("", Decision::Ask) => "a rule of yours asks about it",
            ("", Decision::Deny) => "a rule of yours forbids it",
            (why, _) => why,
        };
        let remedy = match rule.decision {
            Decision::Allow => String::new(),
            Decision::Ask | Decision::Deny => format!("change {} in rules.toml", rule.name),
        };
        Part::new(rule.decision, &rule.name, why, &remedy).asking(asked)
    }
}

/// The first of the strictest parts, with everything that is asked about besides.
fn strictest(parts: impl Iterator<Item = Part>, remembered: &SessionApprovals) -> Option<Verdict> {
    let mut strictest: Option<Part> = None;
    let mut asks = SessionApprovals::new();
    let mut looks_broken = false;
    for part in parts {
        let mut part = part.with_answers(remembered);
        looks_broken |= part.verdict.looks_broken;
        if part.verdict.decision == Decision::Ask {
            asks.extend(part.asked.take());
        }
        if strictest.as_ref().is_none_or(|before| before.weight() < part.weight()) {
            strictest = Some(part);
        }
    }
    strictest.map(|part| Verdict { asks, looks_broken, ..part.verdict })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(profile: Profile, accesses: &[Access]) -> Decision {
        Policy::new(profile).decide(accesses, &SessionApprovals::new()).decision
    }

    #[test]
    fn each_profile_decides_as_its_row_of_the_table_says() {
        use Decision::{Allow, Ask, Deny};
        let table = [
            (Profile::ReadOnly, [Allow, Deny, Deny, Deny]),
            (Profile::Cautious, [Ask, Ask, Ask, Ask]),
            (Profile::Workspace, [Allow, Allow, Ask, Ask]),
            (Profile::Open, [Allow, Allow, Allow, Allow]),
        ];
        let accesses = [
            Access::Read("a".into()),
            Access::Write("a".into()),
            Access::Reach("x".into()),
            Access::Command("make".into()),
        ];
        for (profile, row) in table {
            let decided = accesses.clone().map(|access| decide(profile, &[access]));
            assert_eq!(decided, row, "{profile}");
        }
    }

    #[test]
    fn the_strictest_access_decides() {
        let accesses = [Access::Read("a".into()), Access::Write("b".into())];
        assert_eq!(decide(Profile::ReadOnly, &accesses), Decision::Deny);
        assert_eq!(decide(Profile::ReadOnly, &[]), Decision::Allow);
    }

    #[test]
    fn a_remembered_answer_turns_ask_into_allow_but_not_deny() {
        let remembered = SessionApprovals::from([ApprovalScope::Effect(Effect::Write)]);
        let write = [Access::Write("a".into())];
        let verdict = |profile| Policy::new(profile).decide(&write, &remembered).decision;
        assert_eq!(verdict(Profile::Cautious), Decision::Allow);
        assert_eq!(verdict(Profile::ReadOnly), Decision::Deny);
    }

    #[test]
    fn a_refusal_names_the_rule_and_what_would_allow_it() {
        let verdict = Policy::new(Profile::ReadOnly)
            .decide(&[Access::Write("a".into())], &SessionApprovals::new());
        assert_eq!(verdict.rule, "profile:read-only:write");
        assert_eq!(verdict.remedy, "set profile = \"workspace\"");
    }

    #[test]
    fn no_remedy_is_to_remove_every_limit() {
        for profile in [Profile::ReadOnly, Profile::Cautious, Profile::Workspace] {
            for confined in [false, true] {
                for access in [
                    Access::Read("a".into()),
                    Access::Write("a".into()),
                    Access::Reach("https://example.com".into()),
                    Access::Command("make".into()),
                    Access::Command("eval \"$x\"".into()),
                    Access::Command("rm -rf /".into()),
                ] {
                    let policy = Policy::new(profile).confined(confined);
                    let verdict = policy.decide(&[access], &SessionApprovals::new());
                    assert!(!verdict.remedy.contains("open"), "{verdict:?}");
                    let is_refused = verdict.decision != Decision::Allow;
                    assert_eq!(is_refused, !verdict.remedy.is_empty(), "{verdict:?}");
                }
            }
        }
    }
}
