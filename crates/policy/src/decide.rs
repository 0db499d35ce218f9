//! Decides on a call: allow, ask or deny, with the deciding rule and its reason.

mod request;
mod script;

pub use self::request::RequestVerdict;

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::access::{Access, Effect};
use crate::approval_subject::{ApprovalScope, SessionApprovals};
use crate::command::{CommandAnalysis, ShellContext, analyze_command};
use crate::contacted_hosts::{hosts_in, target};
use crate::decision::Decision;
use crate::new_rule::{NewRule, shell_word};
use crate::outside_access::{Outside, write_approval_scope};
use crate::profile::Profile;
use crate::protected_names::Protection;
use crate::rule::{Kind, Rule, Rules};
use crate::rule_proposal::Proposal;
use crate::setting_hints::SettingHints;

/// The rule that denies commands that damage the system.
pub const DANGER: &str = "danger";

/// The reason of a rule that denies and gives none.
pub const A_RULE_DENIES: &str = "a rule denies it";

/// A decision with its explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: String,
    /// The reason of that rule.
    pub why: String,
    /// How an operator can allow the call, as an imperative; empty if the call is allowed. For the rule [`DANGER`],
    /// which no setting lifts: what to do instead, if anything.
    pub remedy: String,
    /// Everything that needs approval. An approval is remembered for these scopes.
    pub asks: SessionApprovals,
    /// Whether a command looks like a syntax error. Only the shell can decide; until then it counts as unparsed.
    pub looks_like_syntax_error: bool,
}

/// The decision on one command, file or variable of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartDecision {
    /// The command, redirection or variable.
    pub subject: String,
    /// The decision.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: String,
    /// The reason of that rule.
    pub why: String,
}

/// A rule that denies, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The name of the rule.
    pub rule: String,
    /// The reason of that rule.
    pub why: String,
}

/// The rules in force.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    profile: Profile,
    rules: Rules,
    /// The file that rules are added to, if that is not the usual one.
    rules_file: Option<String>,
    settings: SettingHints,
    home: Option<PathBuf>,
    roots: Vec<PathBuf>,
    protection: Protection,
    confined: bool,
    outside: Option<Outside>,
    /// Whether commands connect only to hosts that rules allow.
    network_by_name: bool,
    /// Whether the loopback of commands is not that of this machine.
    has_own_loopback: bool,
    /// The directories that are not outside. If empty, no path is outside.
    inside: Vec<PathBuf>,
}

impl Policy {
    /// Creates a policy with a profile and no rules.
    pub fn new(profile: Profile) -> Self {
        Policy { profile, ..Policy::default() }
    }

    /// Sets the user's rules.
    #[must_use]
    pub fn rules(self, rules: Rules) -> Self {
        Policy { rules, ..self }
    }

    /// Sets the file that rules are added to, if that is not the usual one. Proposed commands name it.
    #[must_use]
    pub fn rules_file(self, file: Option<String>) -> Self {
        Policy { rules_file: file, ..self }
    }

    /// Sets how messages say that a setting is changed.
    #[must_use]
    pub fn setting_hints(self, settings: SettingHints) -> Self {
        Policy { settings, ..self }
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

    /// Sets the roots of the workspace and the user's home. Path patterns and commands are resolved against
    /// them.
    #[must_use]
    pub fn locations(self, roots: Vec<PathBuf>, home: Option<PathBuf>) -> Self {
        Policy { roots, home, ..self }
    }

    /// The user's home, if known.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Sets the protected files.
    #[must_use]
    pub fn protection(self, protection: Protection) -> Self {
        Policy { protection, ..self }
    }

    /// Sets the access of file tools outside the workspace, instead of the profile's default.
    #[must_use]
    pub fn outside(self, outside: Outside) -> Self {
        Policy { outside: Some(outside), ..self }
    }

    /// Adds directories that are not outside: the roots under every path, and the session's own directories.
    #[must_use]
    pub fn inside(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.inside.extend(directories);
        self
    }

    /// The profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The access of file tools outside the workspace.
    pub fn outside_access(&self) -> Outside {
        self.outside.unwrap_or(Outside::of(self.profile))
    }

    /// Sets whether commands run in a sandbox that confines them to the workspace. If they do, the profile
    /// `workspace` asks only about commands that rules ask about.
    #[must_use]
    pub fn confined(self, confined: bool) -> Self {
        Policy { confined, ..self }
    }

    /// Sets whether commands connect only to hosts that rules allow. Then hosts that a command names are
    /// decided on before it starts.
    #[must_use]
    pub fn network_by_name(self, by_name: bool) -> Self {
        Policy { network_by_name: by_name, ..self }
    }

    /// Whether commands connect only to hosts that rules allow.
    pub fn is_network_by_name(&self) -> bool {
        self.network_by_name
    }

    /// Sets whether commands have a network namespace of their own. Then a command that names loopback reaches only
    /// servers of commands, which needs no rule.
    #[must_use]
    pub fn own_loopback(self, own: bool) -> Self {
        Policy { has_own_loopback: own, ..self }
    }

    /// The decision on connecting to an address, if a rule names it as an address. Patterns of names, such as `*`,
    /// do not count.
    pub fn decide_address(&self, address: IpAddr, port: u16) -> Option<(Decision, bool)> {
        self.rules.for_address(&address.to_canonical().to_string(), port)
    }

    /// Decides on a call by its accesses. `remembered` has the approvals of the session; they turn an ask
    /// into an allow, never a deny. Commands start in the first root.
    pub fn decide(&self, accesses: &[Access], remembered: &SessionApprovals) -> Verdict {
        let directory = self.roots.first().cloned().unwrap_or_default();
        self.decide_from(&directory, accesses, remembered)
    }

    /// Decides like [`Policy::decide`], for commands that start in `directory`.
    pub fn decide_from(
        &self,
        directory: &Path,
        accesses: &[Access],
        remembered: &SessionApprovals,
    ) -> Verdict {
        let context = self.context(directory);
        let parts = accesses.iter().flat_map(|access| self.parts(access, &context));
        strictest(parts, remembered).unwrap_or_else(|| {
            Part::harmless("touches-nothing", "the call accesses no files and runs no commands")
                .into_verdict()
        })
    }

    /// The decisions on each command, file and variable of a script.
    pub fn decisions_by_part(
        &self,
        directory: &Path,
        script: &str,
        remembered: &SessionApprovals,
    ) -> Vec<PartDecision> {
        let context = self.context(directory);
        let analysis = analyze_command(script, &context);
        let parts = script::parts(self, script, &analysis, &context, Subjects::Shown).into_iter();
        let parts = parts.map(|part| part.with_approvals(remembered).into_decision());
        parts.chain(self.request_decisions_of(&analysis)).collect()
    }

    /// Proposes rules that would make `decision` permanent for everything that a verdict asks about. `None`
    /// if rules cannot: no rule allows what another rule asks about, or an unparsed command.
    pub fn proposal(
        &self,
        directory: &Path,
        accesses: &[Access],
        verdict: &Verdict,
        decision: Decision,
    ) -> Option<Proposal> {
        let proposal = Proposal::new(&verdict.asks, accesses, decision)?;
        let proposal = proposal.in_file(self.rules_file.as_ref());
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
        let wider = proposal.for_directories(&self.roots)?.in_file(self.rules_file.as_ref());
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
        let then = self.clone().with_proposal(proposal);
        then.decide_from(directory, accesses, &SessionApprovals::new()).decision == decision
    }

    /// Adds proposed rules that a person has accepted.
    #[must_use]
    pub fn with_proposal(self, accepted: &Proposal) -> Self {
        match Rules::parse(&accepted.text()) {
            Ok(rules) => Policy { rules: self.rules.merged_with(rules), ..self },
            Err(_) => self,
        }
    }

    /// Whether a rule excludes a file that a call did not name but found beneath a directory. Approval is
    /// not asked for each such file, so ask counts as deny.
    pub fn excludes_from_results(&self, path: &Path) -> bool {
        let context = self.context(Path::new(""));
        let outside = || self.rules.for_path(Kind::External, path, &context);
        let outside = (!self.is_inside(path)).then(outside).flatten();
        let rule = self.rules.for_path(Kind::Read, path, &context);
        rule.into_iter().chain(outside).any(|rule| rule.decision != Decision::Allow)
    }

    /// Whether any rule denies this effect on files.
    pub fn denies_files(&self, effect: Effect) -> bool {
        Kind::of_files(effect).is_some_and(|kind| self.rules.denials(kind).next().is_some())
    }

    /// Whether a rule denies this effect on this file.
    pub fn denies_file(&self, effect: Effect, path: &Path) -> bool {
        self.denying_rule(effect, path).is_some()
    }

    /// The rule that denies this effect on this file.
    pub fn denial_of_file(&self, effect: Effect, path: &Path) -> Option<Denial> {
        let rule = self.denying_rule(effect, path)?;
        let why = if rule.why.is_empty() { A_RULE_DENIES } else { &rule.why };
        Some(Denial { rule: rule.name.clone(), why: why.to_owned() })
    }

    fn denying_rule(&self, effect: Effect, path: &Path) -> Option<&Rule> {
        let context = self.context(Path::new(""));
        let rule = self.rules.for_path(Kind::of_files(effect)?, path, &context);
        rule.filter(|rule| rule.decision == Decision::Deny)
    }

    /// The paths outside the workspace that rules deny to read, if a pattern names a single path.
    pub fn unreadable_outside(&self) -> Vec<PathBuf> {
        let denied = self.rules.denials(Kind::Read).flat_map(Rule::absolute_paths);
        denied.filter_map(|pattern| pattern.only_path(self.home.as_deref())).collect()
    }

    /// Whether any rule applies to reading files.
    pub fn has_rules_on_reading(&self) -> bool {
        self.rules.has(Kind::Read) || self.rules.has(Kind::External)
    }

    /// Analyzes a command that starts in `directory`.
    pub fn analyze_command(&self, directory: &Path, text: &str) -> CommandAnalysis {
        analyze_command(text, &self.context(directory))
    }

    fn context(&self, directory: &Path) -> ShellContext {
        ShellContext {
            directory: directory.to_owned(),
            home: self.home.clone(),
            roots: self.roots.clone(),
        }
    }

    fn parts(&self, access: &Access, context: &ShellContext) -> Vec<Part<'_>> {
        let part = match access {
            Access::Read(path) => {
                let rule = self.rules.for_path(Kind::Read, path, context);
                self.file_part(rule, Effect::Read, path, context)
            }
            Access::Write(path) => {
                // Editing includes reading, so a rule against reading forbids editing too. A rule that allows
                // reading does not allow editing.
                let read = self.rules.for_path(Kind::Read, path, context);
                let read = read.filter(|rule| rule.decision != Decision::Allow);
                let edit = self.rules.for_path(Kind::Edit, path, context);
                let strictest = edit.into_iter().chain(read).max_by_key(|rule| rule.decision);
                self.file_part(strictest, Effect::Write, path, context)
            }
            Access::WriteAny => self.profile_part(Effect::Write),
            Access::Reach(words) => {
                let hosts = hosts_in([words.as_str()].into_iter());
                let rule =
                    hosts.iter().filter_map(|host| self.rules.for_host(&host.name, host.port));
                let rule = rule.max_by_key(|rule| rule.decision);
                self.rule_or_profile_part(rule, Effect::Reach, None)
            }
            Access::Connect(host, port) => self.host_part(host, Some(*port)),
            Access::Command(text) => {
                let analysis = analyze_command(text, context);
                return script::parts(self, text, &analysis, context, Subjects::Hidden);
            }
        };
        vec![part]
    }

    fn file_part<'p>(
        &'p self,
        rule: Option<&'p Rule>,
        effect: Effect,
        path: &Path,
        context: &ShellContext,
    ) -> Part<'p> {
        if self.is_inside(path) {
            return self.rule_or_profile_part(rule, effect, Some(path));
        }
        let outside = self.outside_part(effect, path);
        let external = self.rules.for_path(Kind::External, path, context);
        // Commands that may name a directory are still confined by the sandbox; file tools that write are not.
        let external =
            external.filter(|rule| effect == Effect::Read || rule.decision != Decision::Allow);
        match rule.into_iter().chain(external).max_by_key(|rule| rule.decision) {
            Some(rule) if outside.decision != Decision::Deny => {
                Part::from_rule(rule, || self.outside_scope(effect, path))
            }
            _ => outside,
        }
    }

    /// The decision on a host that a command connects to.
    fn host_part(&self, host: &str, port: Option<u16>) -> Part<'_> {
        let target = target(host, port);
        if let Some(rule) = self.rules.for_connection(host, port) {
            return Part::from_rule(rule, || ApprovalScope::Host(target));
        }
        let decision = self.profile.decision(Effect::Reach);
        let why = format!("no rule allows {target}");
        let remedy = match decision {
            Decision::Allow => String::new(),
            _ => self.allow_remedy(target.clone()),
        };
        Part::new(decision, "network:list", why, remedy).with_scope(|| ApprovalScope::Host(target))
    }

    /// How an operator can allow an address that a host has, as an imperative.
    pub fn address_remedy(&self, address: IpAddr, port: u16) -> String {
        self.allow_remedy(target(&address.to_string(), Some(port)))
    }

    fn allow_remedy(&self, target: String) -> String {
        let rule = NewRule::new(Decision::Allow, "network", target);
        format!("run `{}`", NewRule { file: self.rules_file.clone(), ..rule }.command())
    }

    /// Whether a path is inside the workspace or another allowed directory.
    pub fn is_inside(&self, path: &Path) -> bool {
        self.inside.is_empty() || self.inside.iter().any(|inside| path.starts_with(inside))
    }

    /// The decision on a file outside that no rule matches.
    fn outside_part(&self, effect: Effect, path: &Path) -> Part<'_> {
        let (setting, shown) = (self.outside_access(), path.display());
        let decision = setting.decision(self.profile, effect);
        let profile = self.profile;
        let why = match (decision, effect) {
            (Decision::Allow, _) => {
                format!("{shown} is outside the workspace, which the profile `{profile}` allows")
            }
            _ => format!("{shown} is outside the workspace"),
        };
        let remedy = match (decision, effect) {
            (Decision::Allow, _) => String::new(),
            (_, Effect::Read) => self.settings.to_set("outside", "read"),
            _ => format!("add --root {}", path.parent().unwrap_or(path).display()),
        };
        let rule = format!("outside:{}", effect.name());
        Part::new(decision, rule, why, remedy).with_scope(|| self.outside_scope(effect, path))
    }

    /// What an approval of a file outside covers.
    fn outside_scope(&self, effect: Effect, path: &Path) -> ApprovalScope {
        let homes_and_roots: Vec<&Path> =
            self.roots.iter().chain(&self.home).map(PathBuf::as_path).collect();
        let approved_path = match effect {
            Effect::Read => path.to_owned(),
            _ => write_approval_scope(path, &homes_and_roots),
        };
        ApprovalScope::Outside(effect, approved_path)
    }

    fn rule_or_profile_part<'p>(
        &'p self,
        rule: Option<&'p Rule>,
        effect: Effect,
        path: Option<&Path>,
    ) -> Part<'p> {
        match rule {
            Some(rule) if self.decision_in(self.profile, effect) != Decision::Deny => {
                Part::from_rule(rule, || match path {
                    Some(path) => ApprovalScope::Path(effect, path.to_owned()),
                    None => ApprovalScope::Effect(effect),
                })
            }
            _ => self.profile_part(effect),
        }
    }

    fn profile_part(&self, effect: Effect) -> Part<'_> {
        self.profile_part_for(effect, || ApprovalScope::Effect(effect))
    }

    /// The decision of the profile on an effect; an approval would cover only `asked`.
    fn profile_part_for(&self, effect: Effect, asked: impl FnOnce() -> ApprovalScope) -> Part<'_> {
        let profile = self.profile;
        let decision = self.decision_in(profile, effect);
        if effect == Effect::Command && self.confined && profile == Profile::Workspace {
            let why = "it runs in the sandbox, which keeps it inside the workspace";
            return Part::new(decision, "sandbox", why, "");
        }
        let what = match effect {
            Effect::Read => "reading files in the workspace",
            Effect::Write => "changing files in the workspace",
            Effect::Reach => "acting outside the workspace",
            Effect::Command if self.confined => "running a command",
            Effect::Command => "running an unconfined command",
        };
        let does = match decision {
            Decision::Allow => "allows",
            Decision::Ask => "asks before",
            Decision::Deny => "does not allow",
        };
        let rule = format!("profile:{profile}:{}", effect.name());
        let why = format!("the profile `{profile}` {does} {what}");
        Part::new(decision, rule, why, self.remedy(decision, effect)).with_scope(asked)
    }

    /// The decision of a profile on an effect, with or without a sandbox.
    fn decision_in(&self, profile: Profile, effect: Effect) -> Decision {
        match (profile, effect) {
            (Profile::Workspace, Effect::Command) if self.confined => Decision::Allow,
            _ => profile.decision(effect),
        }
    }

    /// The smallest change of the settings that allows an effect. The profile `open` is never suggested,
    /// because it removes every limit.
    fn remedy(&self, decision: Decision, effect: Effect) -> String {
        if decision == Decision::Allow {
            return String::new();
        }
        let order = Profile::ALL.into_iter().filter(|profile| *profile != Profile::Open);
        let looser = order.skip_while(|other| *other != self.profile).skip(1);
        let allows = |profile: &Profile| self.decision_in(*profile, effect) == Decision::Allow;
        if let Some(profile) = looser.into_iter().find(allows) {
            return self.use_profile(profile);
        }
        let subject = match effect {
            Effect::Command => "the command",
            Effect::Reach => "the host",
            Effect::Read | Effect::Write => "the file",
        };
        let file = self.rules_file.as_deref().unwrap_or("rules.toml");
        let rule = format!("add a rule that allows {subject} to {file}");
        match decision {
            Decision::Deny => format!("{}, and {rule}", self.use_profile(Profile::Workspace)),
            _ => rule,
        }
    }

    /// How to use another profile.
    fn use_profile(&self, profile: Profile) -> String {
        let to_set = self.settings.to_set("profile", profile.name());
        if self.settings.is_flag("profile") {
            to_set
        } else {
            format!("use --profile {profile}, or {to_set}")
        }
    }
}

/// Whether the parts of a script are named for display. A decision on the whole script does not show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subjects {
    Shown,
    Hidden,
}

/// The decision on one access, or on one part of a script. Texts are borrowed where possible: a long script has
/// hundreds of parts, and one of them explains the decision.
struct Part<'p> {
    decision: Decision,
    rule: Cow<'p, str>,
    why: Cow<'p, str>,
    remedy: Cow<'p, str>,
    looks_like_syntax_error: bool,
    /// The scope that an approval would cover, if the decision is to ask.
    scope: Option<ApprovalScope>,
    /// The part of the script, if it is shown.
    about: String,
    /// Whether it is allowed only because it changes nothing. It then does not explain the decision on the call.
    is_harmless: bool,
}

impl<'p> Part<'p> {
    /// A part that changes nothing. Every profile allows it.
    fn harmless(rule: &'p str, why: &'p str) -> Part<'p> {
        Part { is_harmless: true, ..Part::new(Decision::Allow, rule, why, "") }
    }

    fn new(
        decision: Decision,
        rule: impl Into<Cow<'p, str>>,
        why: impl Into<Cow<'p, str>>,
        remedy: impl Into<Cow<'p, str>>,
    ) -> Part<'p> {
        Part {
            decision,
            rule: rule.into(),
            why: why.into(),
            remedy: remedy.into(),
            looks_like_syntax_error: false,
            scope: None,
            about: String::new(),
            is_harmless: false,
        }
    }

    /// Sets what an approval would cover, if the decision is to ask.
    fn with_scope(self, asked: impl FnOnce() -> ApprovalScope) -> Part<'p> {
        let scope = (self.decision == Decision::Ask).then(asked);
        Part { scope, ..self }
    }

    fn about(self, about: String) -> Part<'p> {
        Part { about, ..self }
    }

    /// Turns an ask that an earlier approval covers into an allow.
    fn with_approvals(mut self, remembered: &SessionApprovals) -> Part<'p> {
        let asked = self.scope.as_ref().filter(|asked| asked.is_covered_by(remembered));
        let Some(asked) = asked.filter(|_| self.decision == Decision::Ask) else {
            return self;
        };
        self.rule = match asked {
            ApprovalScope::Effect(effect) => format!("session:{}", effect.name()).into(),
            _ => "session".into(),
        };
        self.why = "an earlier answer allows it for this session".into();
        self.decision = Decision::Allow;
        self.remedy = "".into();
        self
    }

    fn into_decision(self) -> PartDecision {
        let (rule, why) = (self.rule.into_owned(), self.why.into_owned());
        PartDecision { subject: self.about, decision: self.decision, rule, why }
    }

    fn into_verdict(self) -> Verdict {
        Verdict {
            decision: self.decision,
            rule: self.rule.into_owned(),
            why: self.why.into_owned(),
            remedy: self.remedy.into_owned(),
            asks: SessionApprovals::new(),
            looks_like_syntax_error: self.looks_like_syntax_error,
        }
    }

    /// The rank of this part when one part explains the whole call.
    fn weight(&self) -> (Decision, bool) {
        (self.decision, !self.is_harmless)
    }

    fn from_rule(rule: &'p Rule, asked: impl FnOnce() -> ApprovalScope) -> Part<'p> {
        let why = match (rule.why.as_str(), rule.decision) {
            ("", Decision::Allow) => "a rule allows it",
            ("", Decision::Ask) => "a rule asks about it",
            ("", Decision::Deny) => A_RULE_DENIES,
            (why, _) => why,
        };
        let remedy = match rule.decision {
            Decision::Allow => String::new(),
            Decision::Ask | Decision::Deny => {
                let file = rule.file.as_ref();
                let file = file.map(|file| format!(" --rules {}", shell_word(file)));
                let file = file.unwrap_or_default();
                format!("change {}, which `toolcrib policy list{file}` shows", rule.name)
            }
        };
        Part::new(rule.decision, &rule.name, why, remedy).with_scope(asked)
    }
}

/// The first of the strictest parts, with the approval scopes of all parts.
fn strictest<'p>(
    parts: impl Iterator<Item = Part<'p>>,
    remembered: &SessionApprovals,
) -> Option<Verdict> {
    let mut strictest: Option<Part<'p>> = None;
    let mut asks = SessionApprovals::new();
    let mut looks_broken = false;
    for part in parts {
        let mut part = part.with_approvals(remembered);
        looks_broken |= part.looks_like_syntax_error;
        if part.decision == Decision::Ask {
            asks.extend(part.scope.take());
        }
        if strictest.as_ref().is_none_or(|before| before.weight() < part.weight()) {
            strictest = Some(part);
        }
    }
    let verdict = strictest.map(Part::into_verdict);
    verdict.map(|verdict| Verdict { asks, looks_like_syntax_error: looks_broken, ..verdict })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(profile: Profile, accesses: &[Access]) -> Decision {
        Policy::new(profile).decide(accesses, &SessionApprovals::new()).decision
    }

    #[test]
    fn each_profile_decides_by_effect() {
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
    fn a_session_approval_turns_ask_into_allow_but_not_deny() {
        let remembered = SessionApprovals::from([ApprovalScope::Effect(Effect::Write)]);
        let write = [Access::Write("a".into())];
        let verdict = |profile| Policy::new(profile).decide(&write, &remembered).decision;
        assert_eq!(verdict(Profile::Cautious), Decision::Allow);
        assert_eq!(verdict(Profile::ReadOnly), Decision::Deny);
    }

    #[test]
    fn a_refusal_names_the_rule_and_the_remedy() {
        let verdict = Policy::new(Profile::ReadOnly)
            .decide(&[Access::Write("a".into())], &SessionApprovals::new());
        assert_eq!(verdict.rule, "profile:read-only:write");
        assert_eq!(
            verdict.remedy,
            "use --profile workspace, or run `toolcrib config set profile workspace`"
        );
    }

    #[test]
    fn no_remedy_suggests_the_open_profile() {
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
