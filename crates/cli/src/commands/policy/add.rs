//! `toolcrib policy allow`, `ask` and `deny`: add a rule to the user's rules file.

use std::process::ExitCode;

use serde_json::json;
use toolcrib::{Decision, Network, NewRule, Profile, Rules};

use super::list::in_force;
use crate::args::{Common, NewRuleArgs, RuleKind};
use crate::config::{self, Config};
use crate::{output, rules};

/// Adds a rule, and shows it.
pub(crate) fn add(
    common: &Common,
    decision: Decision,
    args: &NewRuleArgs,
) -> Result<ExitCode, String> {
    let is_of_requests = !args.methods.is_empty() || !args.paths.is_empty() || args.upgrade;
    if is_of_requests && args.kind != RuleKind::Network {
        return Err("--method, --path and --upgrade are for rules of kind network".to_owned());
    }
    let rule = NewRule {
        decision,
        kind: args.kind.name(),
        patterns: args.patterns.clone(),
        methods: args.methods.clone(),
        request_paths: args.paths.clone(),
        upgrade: args.upgrade,
        why: args.why.clone().unwrap_or_default(),
        file: None,
    };
    let text = rule.text();
    Rules::parse(&text).map_err(|error| without_line(&error.to_string()))?;
    let file = rules::file_for_additions(common).ok_or(
        "the rules file is inside the workspace, where an agent could change it; name a project directory with --root",
    )?;
    let shown = file.display();
    let covering = covering_rules(common, &rule)?;
    let (added, exists) = if common.dry_run {
        let new = rules::with(&rules::user_text(common)?.1, &text);
        (false, new.map_err(|problem| format!("{shown}: {problem}"))?.is_none())
    } else {
        let added = rules::add(&file, &text)?;
        (added, !added)
    };
    if !output::for_people(common) {
        let object = json!({
            "file": shown.to_string(), "rule": text, "added": added, "exists": exists,
            "covered_by": covering.iter().map(|one| &one.rule).collect::<Vec<_>>(),
        });
        output::line(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::answer(&match (exists, added) {
        (true, _) => format!("{shown} has this rule already; nothing was changed."),
        (_, true) => format!(
            "Added to {shown}:\n\n{text}\nRunning servers apply it at the first call at least one second from now."
        ),
        _ => format!("This would be added to {shown}:\n\n{text}\nNothing was written."),
    });
    note(common, args.kind)?;
    if !exists {
        covering.iter().for_each(|one| one.report(decision));
    }
    if let Some(pattern) = exact_command(&rule) {
        output::note(&format!(
            "note: `{pattern}` allows only exactly these words; '{pattern} **' also allows more arguments"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// A rule because of which a pattern of the new one has no effect.
struct CoveringRule {
    pattern: String,
    rule: String,
    decision: Decision,
    /// Its file and line.
    from: String,
    /// The command that removes it, if it is in the user's file.
    removal: Option<String>,
}

/// The rules in force that decide on all that a pattern of the new rule matches, and are at least as strict.
fn covering_rules(common: &Common, rule: &NewRule) -> Result<Vec<CoveringRule>, String> {
    // An allow of the same kind does not keep another one from having an effect.
    let least = if rule.decision == Decision::Allow { Decision::Ask } else { rule.decision };
    let config = Config::of(common)?;
    let (file, text) = rules::user_text(common)?;
    let at = |problem: String| format!("{}: {problem}", file.display());
    let rules = rules::effective_with(&text, common, &config).map_err(at)?;
    let listed = in_force(common, &config)?;
    let covering = |pattern: &String| {
        let (name, decision) = rules.covering(rule.kind, pattern, least)?;
        let at = listed.iter().position(|one| one.rule.name == name)?;
        let is_own = listed[at].file.as_ref() == Some(&file);
        let flag = rules::flag(common);
        Some(CoveringRule {
            pattern: pattern.clone(),
            rule: name.to_owned(),
            decision,
            from: listed[at].from(),
            removal: is_own.then(|| format!("toolcrib policy remove{flag} {}", at + 1)),
        })
    };
    Ok(rule.patterns.iter().filter_map(covering).collect())
}

impl CoveringRule {
    /// Says why the new rule has no effect.
    fn report(&self, decision: Decision) {
        let CoveringRule { pattern, rule, from, .. } = self;
        let does = match self.decision {
            Decision::Allow => "allows it",
            Decision::Ask => "asks about it",
            Decision::Deny => "denies it",
        };
        if self.decision == decision {
            output::note(&format!("note: {rule} ({from}) {does} already: `{pattern}`"));
            return;
        }
        let removal = self.removal.as_ref();
        let removal = removal.map(|command| format!("; to remove that rule: {command}"));
        output::warning(&format!(
            "it has no effect on `{pattern}`: {rule} ({from}) {does}, and the strictest rule wins{}",
            removal.unwrap_or_default()
        ));
    }
}

/// A command that the rule allows without further arguments. Other decisions apply to every command that begins so.
fn exact_command(rule: &NewRule) -> Option<&String> {
    let is_of_commands = rule.kind == "command" && rule.decision == Decision::Allow;
    rule.patterns.iter().find(|pattern| is_of_commands && !pattern.contains('*'))
}

/// Says if a setting keeps the rule from having an effect.
fn note(common: &Common, kind: RuleKind) -> Result<(), String> {
    let config = Config::of(common)?;
    let profile = config.profile(common)?;
    if profile == Profile::ReadOnly && matches!(kind, RuleKind::Edit | RuleKind::Command) {
        output::warning("the profile `read-only` denies it, and a rule cannot change that");
    } else if kind == RuleKind::Network && profile != Profile::Open {
        let list = config::hints(common).to_set("network", "list");
        match config.sandbox()?.network {
            Network::List => {}
            Network::None => output::warning(&format!(
                "the network is off, so commands still reach no host; {list}"
            )),
            Network::All => output::warning(&format!(
                "with network = \"all\" the rule applies only to hosts in the text of a command; {list}"
            )),
        }
    }
    Ok(())
}

/// The problem without the line of the rule, which is in no file yet.
fn without_line(problem: &str) -> String {
    problem.strip_prefix("line 1: ").unwrap_or(problem).to_owned()
}
