//! `toolcrib policy allow`, `ask` and `deny`: add a rule to the user's rules file.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::json;
use toolcrib::{Decision, Network, NewRule, Profile, Rules};

use super::LIST_SETTING;
use crate::args::{Common, NewRuleArgs, RuleKind};
use crate::config::Config;
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
    let (added, exists) = if common.dry_run {
        let new = rules::with(&rules::user_text(common)?.1, &text);
        (false, new.map_err(|problem| format!("{shown}: {problem}"))?.is_none())
    } else {
        let added = rules::add(&file, &text)?;
        (added, !added)
    };
    if !output::for_people(common) {
        let object =
            json!({"file": shown.to_string(), "rule": text, "added": added, "exists": exists});
        writeln!(io::stdout(), "{object}").map_err(|error| error.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    output::answer(&match (exists, added) {
        (true, _) => format!("{shown} has this rule already; nothing was changed."),
        (_, true) => format!(
            "Added to {shown}:\n\n{text}\nServers that run already use it after their next start."
        ),
        _ => format!("This would be added to {shown}:\n\n{text}\nNothing was written."),
    });
    note(common, args.kind)?;
    if let Some(pattern) = exact_command(&rule) {
        output::note(&format!(
            "note: `{pattern}` allows only exactly these words; '{pattern} **' also allows more arguments"
        ));
    }
    Ok(ExitCode::SUCCESS)
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
        match config.sandbox()?.network {
            Network::List => {}
            Network::None => output::warning(&format!(
                "the network is off, so commands still reach no host; {LIST_SETTING}"
            )),
            Network::All => output::warning(&format!(
                "with network = \"all\" the rule applies only to hosts in the text of a command; {LIST_SETTING}"
            )),
        }
    }
    Ok(())
}

/// The problem without the line of the rule, which is in no file yet.
fn without_line(problem: &str) -> String {
    problem.strip_prefix("line 1: ").unwrap_or(problem).to_owned()
}
