//! `toolcrib policy`: explains decisions without running anything, and shows, adds and removes rules.

pub(super) mod add;
pub(super) mod list;
pub(super) mod remove;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use toolcrib::{
    Call, Decision, Explanation, Network, PartDecision, Profile, Runtime, SettingHints,
    ShellCommand, parse_json, to_json,
};

use super::call::example;
use crate::args::Common;
use crate::config::{self, Config};
use crate::{output, rules};

/// The beginning of the names of rules that allow commands because they only read. These need no network.
const HARMLESS: &str = "command:";

const HTTPS: u16 = 443;

/// `policy check FILE`
pub(crate) fn check(common: &Common, file: &Path) -> Result<ExitCode, String> {
    let outcome = rules::check(file);
    let people = output::for_people(common);
    let text = match &outcome {
        Ok(rules) if people => {
            let count = rules.count();
            let s = if count == 1 { "" } else { "s" };
            format!("{}: {count} rule{s}, OK", file.display())
        }
        Ok(rules) => json!({"valid": true, "rules": rules.count()}).to_string(),
        Err(error) if people => return Err(error.clone()),
        Err(error) => json!({"valid": false, "error": error}).to_string(),
    };
    output::line(&text)?;
    Ok(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// `policy explain TOOL JSON`
pub(crate) fn explain(
    common: &Common,
    runtime: &Runtime,
    tool: &str,
    args: &str,
) -> Result<ExitCode, String> {
    let is_shell = runtime.tool_named(tool).is_some_and(|tool| tool.name == "Bash");
    let parsed = match parse_json(args.as_bytes()) {
        // A command as it is typed.
        Err(_) if is_shell && !args.trim_start().starts_with('{') => Ok(json!({"command": args})),
        parsed => parsed.map_err(|error| error.hint(example(runtime, tool, args))),
    };
    let explained =
        parsed.and_then(|args| runtime.explain(&runtime.session(), Call::new(tool, args)));
    match explained {
        Ok(explanation) => {
            let offline = offline(common, runtime, &explanation)?;
            show_with(common, &explanation, offline.as_deref())
        }
        Err(error) => {
            let printed = if output::for_people(common) {
                output::error(&error)
            } else {
                writeln!(io::stdout(), "{}", Value::Object(to_json(&Err(error))))
            };
            output::printed(printed)?;
            Ok(ExitCode::from(1))
        }
    }
}

/// `policy test COMMAND`
pub(crate) fn test(common: &Common, runtime: &Runtime, command: &str) -> Result<ExitCode, String> {
    let explanation = runtime.explain_command(&runtime.session(), command);
    let offline = offline(common, runtime, &explanation)?;
    show_with(common, &explanation, offline.as_deref())
}

/// `policy host HOST:PORT`, or `policy host 'METHOD URL'`
pub(crate) fn host(common: &Common, runtime: &Runtime, target: &str) -> Result<ExitCode, String> {
    show_with(common, &host_explanation(common, runtime, target)?, None)
}

/// The text of `policy explain`, without colours.
pub(crate) fn explain_text(
    common: &Common,
    runtime: &Runtime,
    tool: &str,
    args: Value,
) -> Result<String, String> {
    let explained = runtime.explain(&runtime.session(), Call::new(tool, args));
    let explanation = explained.map_err(|error| error.text())?;
    let offline = offline(common, runtime, &explanation)?;
    Ok(plain_text(&explanation, offline.as_deref()))
}

/// The text of `policy test`, without colours.
pub(crate) fn test_text(
    common: &Common,
    runtime: &Runtime,
    command: &str,
) -> Result<String, String> {
    let explanation = runtime.explain_command(&runtime.session(), command);
    let offline = offline(common, runtime, &explanation)?;
    Ok(plain_text(&explanation, offline.as_deref()))
}

/// The text of `policy host`, without colours.
pub(crate) fn host_text(
    common: &Common,
    runtime: &Runtime,
    target: &str,
) -> Result<String, String> {
    Ok(plain_text(&host_explanation(common, runtime, target)?, None))
}

fn plain_text(explanation: &Explanation, offline: Option<&str>) -> String {
    anstream::adapter::strip_str(&for_people(explanation, offline)).to_string()
}

/// What turns the network on, if an allowed command would reach no host that it may need.
fn offline(
    common: &Common,
    runtime: &Runtime,
    explanation: &Explanation,
) -> Result<Option<String>, String> {
    let config = Config::of(common)?;
    let commands = explanation.commands.iter().flat_map(|seen| &seen.commands);
    let local = commands.filter(|command| runtime.contacts_only_own_loopback(command));
    let local: Vec<String> = local.map(|command| command.shown().join(" ")).collect();
    let is_local =
        |basis: &PartDecision| basis.rule.starts_with(HARMLESS) || local.contains(&basis.subject);
    let is_offline = explanation.decision == Decision::Allow
        && config.profile(common)? != Profile::Open
        && config.sandbox()?.network == Network::None
        && !explanation.bases.iter().all(is_local);
    Ok(is_offline.then(|| config::hints(common).what_sets("network", "list")))
}

fn host_explanation(
    common: &Common,
    runtime: &Runtime,
    target: &str,
) -> Result<Explanation, String> {
    let session = runtime.session();
    let request = match target.split_once(' ') {
        Some((method, url)) => Some((method, url.trim())),
        None => target.contains("://").then_some(("GET", target)),
    };
    let (host, explanation) = match request {
        Some((method, url)) => {
            let (host, port, path) = url_parts(url)
                .ok_or_else(|| format!("{url} is not a URL such as https://example.com/x"))?;
            (host, runtime.explain_request(&session, (host, port), method, path))
        }
        None => {
            let (host, port) = host_and_port(target)?;
            (host, runtime.explain_host(&session, host, port))
        }
    };
    // It needs no network.
    if runtime.is_own_loopback(host) {
        return Ok(explanation);
    }
    let config = Config::of(common)?;
    let (profile, network) = (config.profile(common)?, config.sandbox()?.network);
    Ok(with_network_setting(explanation, profile, network, &config::hints(common)))
}

/// `HOST:PORT`. The port of HTTPS if there is none.
fn host_and_port(target: &str) -> Result<(&str, u16), String> {
    let (host, port) = match target.rsplit_once(':') {
        // The last part of an IPv6 address is no port.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, port),
            Err(_) => return Err(format!("{port} is not a port; write it as in example.com:443")),
        },
        _ => (target, HTTPS),
    };
    if host.is_empty() {
        return Err(format!("{target:?} has no host; write it as in example.com:443"));
    }
    Ok((host, port))
}

/// The decision on a host with the network setting: rules for hosts decide on connections only with `list`.
fn with_network_setting(
    explanation: Explanation,
    profile: Profile,
    network: Network,
    settings: &SettingHints,
) -> Explanation {
    let is_by_rule = explanation.rule.starts_with("rule:");
    let (decision, rule, why) = match (profile, network) {
        (Profile::Open, _) => (
            Decision::Allow,
            "profile:open",
            "commands are not confined: they reach every host that you can reach",
        ),
        (_, Network::List) => return explanation,
        (_, Network::None) => {
            (Decision::Deny, "network:none", "the network is off: commands reach no host")
        }
        (_, Network::All) => (
            Decision::Allow,
            "network:all",
            "network = \"all\": commands reach every host that you can reach",
        ),
    };
    let remedy = match (decision, explanation.decision) {
        (Decision::Deny, Decision::Allow) => settings.to_set("network", "list"),
        (Decision::Deny, _) => {
            format!("{}, and {}", settings.to_set("network", "list"), explanation.remedy)
        }
        _ => String::new(),
    };
    let mut why = why.to_owned();
    if is_by_rule && decision == Decision::Allow && explanation.decision != Decision::Allow {
        why += &format!("; {} applies only to hosts in the text of a command", explanation.rule);
    }
    let (rule, bases) = (rule.to_owned(), Vec::new());
    Explanation { decision, rule, why, remedy, bases, ..explanation }
}

/// The host, the port, and the path with the query.
fn url_parts(url: &str) -> Option<(&str, u16, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "https" | "wss" => 443,
        "http" | "ws" => 80,
        _ => return None,
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    Some((host, port, if path.is_empty() { "/" } else { path }))
}

/// Shows an explanation. With `offline`, which turns the network on, the command may run, but reaches no host.
fn show_with(
    common: &Common,
    explanation: &Explanation,
    offline: Option<&str>,
) -> Result<ExitCode, String> {
    let text = if output::for_people(common) {
        for_people(explanation, offline)
    } else {
        let mut object = as_json(explanation);
        if offline.is_some() {
            object["network"] = "none".into();
        }
        object.to_string() + "\n"
    };
    output::printed(anstream::stdout().write_all(text.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(explanation: &Explanation) -> Value {
    let seen = &explanation.commands;
    let commands: Vec<Vec<&str>> =
        seen.iter().flat_map(|one| &one.commands).map(ShellCommand::shown).collect();
    let why_not = seen.iter().find_map(|one| one.unparsed.as_ref());
    let mut object = json!({
        "decision": explanation.decision.name(),
        "rule": explanation.rule,
        "why": explanation.why,
        "commands": commands,
        "writes": explanation.writes,
        "understood": why_not.is_none(),
        "reads": explanation.reads,
        "bases": explanation.bases.iter().map(basis).collect::<Vec<_>>(),
    });
    if let Some(why_not) = why_not {
        object["why_not"] = why_not.reason.clone().into();
    }
    if !explanation.remedy.is_empty() {
        object["remedy"] = explanation.remedy.clone().into();
    }
    object
}

fn basis(basis: &PartDecision) -> Value {
    let PartDecision { subject: about, decision, rule, why } = basis;
    json!({"about": about, "decision": decision.name(), "rule": rule, "why": why})
}

fn for_people(explanation: &Explanation, offline: Option<&str>) -> String {
    let style: Style = match explanation.decision {
        Decision::Allow => output::ADDED,
        Decision::Ask => AnsiColor::Yellow.on_default(),
        Decision::Deny => output::REMOVED,
    };
    let decision = explanation.decision.name();
    let mut text = format!("{style}{decision}{style:#} by {}\n", output::plain(&explanation.rule));
    let _ = writeln!(text, "  because {}", output::plain(&explanation.why));
    if !explanation.remedy.is_empty() {
        // No setting allows a destructive command.
        let lead = if explanation.rule == "danger" { "instead," } else { "to allow it," };
        let _ = writeln!(text, "  {lead} {}", output::plain(&explanation.remedy));
    }
    if let Some(setting) = offline {
        let _ = writeln!(
            text,
            "  but the network is off; `{setting}` turns it on for hosts that rules allow"
        );
    }
    for seen in &explanation.commands {
        for command in &seen.commands {
            let set = command.assignments.iter();
            let set = set.map(|one| format!("{}={}", one.name, one_word(one.value.shown())));
            let words: Vec<String> = set.chain(command.shown().into_iter().map(one_word)).collect();
            let _ = writeln!(text, "runs     {}", words.join(" "));
        }
        for one in &seen.assignments {
            let _ = writeln!(text, "sets     {}={}", one.name, one_word(one.value.shown()));
        }
    }
    for (does, files) in [("writes", &explanation.writes), ("reads", &explanation.reads)] {
        for file in files {
            let _ = writeln!(text, "{does:8} {}", one_word(file));
        }
    }
    for why_not in explanation.commands.iter().filter_map(|seen| seen.unparsed.as_ref()) {
        let _ = writeln!(text, "not parsed: {}", output::plain(&why_not.reason));
    }
    // A part that would be allowed alone does not matter if another is denied.
    let bases = explanation
        .bases
        .iter()
        .filter(|basis| explanation.decision != Decision::Deny || basis.decision == Decision::Deny);
    let mut reasons: Vec<(&PartDecision, Vec<&str>)> = Vec::new();
    for basis in bases {
        let is_same = |(known, _): &&mut (&PartDecision, Vec<&str>)| {
            (known.decision, &known.rule, &known.why) == (basis.decision, &basis.rule, &basis.why)
        };
        match reasons.iter_mut().find(is_same) {
            Some((_, subjects)) => subjects.push(&basis.subject),
            None => reasons.push((basis, vec![&basis.subject])),
        }
    }
    // A single reason is that of the whole, which is shown above.
    let is_whole =
        |part: &PartDecision| (&part.rule, &part.why) == (&explanation.rule, &explanation.why);
    if reasons.len() == 1 {
        reasons.retain(|(part, _)| !is_whole(part));
    }
    for (PartDecision { decision, rule, why, .. }, subjects) in reasons {
        let line = format!("{}: {why} ({rule})", subjects.join("; ")).replace('\n', "\\n");
        let _ = writeln!(text, "{:8} {}", decision.name(), output::plain(&line));
    }
    text
}

/// A word on one line, quoted if it is empty or contains whitespace.
fn one_word(word: &str) -> String {
    let shown = output::plain(word).replace('\n', "\\n");
    if shown.is_empty() || shown.contains(char::is_whitespace) {
        format!("'{shown}'")
    } else {
        shown
    }
}
