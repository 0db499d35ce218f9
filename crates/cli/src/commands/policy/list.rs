//! `toolcrib policy list` and `toolcrib policy presets`: the rules in force, and what presets allow.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::{LocatedRule, Rules, visible_name};

use crate::args::Common;
use crate::config::{self, Config};
use crate::{network_presets, output, rules};

/// A rule, and the place that it comes from.
pub(super) struct ListedRule {
    pub(super) rule: LocatedRule,
    /// The file. `None` for a rule of a preset.
    pub(super) file: Option<PathBuf>,
}

impl ListedRule {
    /// The file and the line, or the preset.
    pub(super) fn from(&self) -> String {
        match &self.file {
            Some(file) => format!("{}:{}", file.display(), self.rule.first_line),
            None => "network_presets in config.toml".to_owned(),
        }
    }

    /// The decision, the kind and the patterns.
    pub(super) fn words(&self) -> String {
        let LocatedRule { decision, kind, patterns, .. } = &self.rule;
        format!("{} {kind} {}", decision.name(), patterns.join(", "))
    }
}

/// Lists the rules in force.
pub(crate) fn list(common: &Common) -> Result<ExitCode, String> {
    let config = Config::of(common)?;
    // Fails like the start of a server.
    rules::read(common, &config)?;
    let listed = in_force(common, &config)?;
    if !output::for_people(common) {
        let rules: Vec<Value> = listed.iter().enumerate().map(object).collect();
        let profile = config.profile(common)?.name();
        let object = json!({"profile": profile, "network": config.network_name(), "rules": rules});
        output::line(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::answer(&format!(
        "profile {}, network {}: docs/profiles.md says what they allow without a rule",
        config.profile(common)?,
        config.network_name()
    ));
    if listed.is_empty() {
        output::answer("No rules. `toolcrib policy allow --help` says how to add one.");
    }
    for (at, listed) in listed.iter().enumerate() {
        let ListedRule { rule, .. } = listed;
        let (decision, kind) = (rule.decision.name(), rule.kind);
        let patterns: Vec<String> =
            rule.patterns.iter().map(|pattern| visible_name(pattern.as_bytes())).collect();
        let tools = match rule.tools.as_slice() {
            [] => String::new(),
            tools => format!(", for {}", tools.join(", ")),
        };
        let (patterns, from) = (patterns.join(", "), listed.from());
        let number = at + 1;
        output::answer(&format!(
            "{number:>3}  {decision:5} {kind} {patterns}{tools}  ({}, {from})",
            rule.name
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn object((at, listed): (usize, &ListedRule)) -> Value {
    let ListedRule { rule, .. } = listed;
    json!({
        "number": at + 1,
        "name": rule.name,
        "decision": rule.decision.name(),
        "kind": rule.kind,
        "patterns": rule.patterns,
        "tools": rule.tools,
        "from": listed.from(),
    })
}

/// The user's rules, those of presets, and those of the project.
pub(super) fn in_force(common: &Common, config: &Config) -> Result<Vec<ListedRule>, String> {
    let located = |text: &str, file: Option<&PathBuf>| -> Result<_, String> {
        let rules = Rules::locate(text).map_err(|error| match file {
            Some(file) => format!("{}: {error}", file.display()),
            None => error.to_string(),
        })?;
        let listed = rules.into_iter().map(|rule| ListedRule { rule, file: file.cloned() });
        Ok(listed.collect::<Vec<_>>())
    };
    let mut all = Vec::new();
    for (file, text) in rules::texts(common, config)? {
        all.extend(located(&text, Some(&file))?);
    }
    let presets = network_presets::rules_text(common, &config.network_presets)?;
    all.extend(located(&presets, None)?);
    Ok(all)
}

/// Lists the presets, and the hosts that each allows on this machine.
pub(crate) fn presets(common: &Common) -> Result<ExitCode, String> {
    let config = Config::of(common)?;
    let all = network_presets::all(common, &config.network_presets)?;
    if !output::for_people(common) {
        let preset = |preset: &network_presets::PresetHosts| {
            json!({
                "name": preset.name,
                "enabled": preset.is_enabled,
                "hosts": preset.hosts,
                "requests": preset.requests,
            })
        };
        let presets: Vec<Value> = all.iter().map(preset).collect();
        let object = json!({"network": config.network_name(), "presets": presets});
        output::line(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    for preset in &all {
        let enabled = if preset.is_enabled { "on " } else { "off" };
        let hosts = match preset.hosts.as_slice() {
            [] => preset.missing().to_owned(),
            hosts => hosts.join(", "),
        };
        let requests = match preset.requests.as_slice() {
            [] => String::new(),
            requests => format!("; only {}", requests.join(", ")),
        };
        output::answer(&format!("{:<9} {enabled}  {hosts}{requests}", preset.name));
    }
    let settings = config::hints(common);
    let turn_on = settings.command(&["add", "network_presets", "NAME"]);
    output::answer(&format!("To turn one on: {turn_on}"));
    if config.network_name() != "list" {
        output::answer(&format!(
            "They have an effect with: {} (now {})",
            settings.what_sets("network", "list"),
            config.network_name()
        ));
    }
    Ok(ExitCode::SUCCESS)
}
