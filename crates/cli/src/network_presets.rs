//! The hosts of package managers, for `network = "list"`. They come from the configuration of the tools on this
//! machine, so that mirrors work. Configuration in a workspace does not count: an agent could write it.

mod git_hosts;
mod machine_config;
mod package_managers;

use toolcrib::Rules;

use crate::args::Common;

use self::machine_config::MachineConfig;
use self::package_managers::PRESETS;

/// Fails if a preset does not exist.
pub(crate) fn check(names: &[String]) -> Result<(), String> {
    names.iter().try_for_each(|name| package_managers::find(name).map(drop))
}

/// The hosts of each of these presets, with their ports. None are known for a tool without a configuration.
pub(crate) fn hosts<'a>(
    common: &Common,
    names: &'a [String],
) -> Result<Vec<(&'a str, Vec<String>)>, String> {
    let machine = MachineConfig::this(common);
    names
        .iter()
        .map(|name| Ok((name.as_str(), package_managers::find(name)?.hosts(&machine))))
        .collect()
}

/// A preset on this machine.
pub(crate) struct PresetHosts {
    /// Its name, with the host if one is named.
    pub(crate) name: String,
    /// Whether the configuration names it.
    pub(crate) is_enabled: bool,
    /// The hosts, with their ports.
    pub(crate) hosts: Vec<String>,
    /// The methods and paths that are allowed. If there are none, all.
    pub(crate) requests: Vec<String>,
}

impl PresetHosts {
    /// Why it has no hosts, and what to do.
    pub(crate) fn missing(&self) -> &'static str {
        if self.requests.is_empty() {
            "no hosts: no registry is configured for it; run the tool once: the reply names each host that it refused, and `toolcrib policy allow network HOST:443` allows one"
        } else {
            "no hosts: git is configured with none; name one, as in git-read:HOST"
        }
    }
}

/// All presets, and those with a named host that the configuration has.
pub(crate) fn all(common: &Common, enabled: &[String]) -> Result<Vec<PresetHosts>, String> {
    let machine = MachineConfig::this(common);
    let with_host = enabled.iter().filter(|name| name.contains(':')).cloned();
    let names = PRESETS.iter().map(|preset| preset.name.to_owned()).chain(with_host);
    let preset = |name: String| {
        let selected = package_managers::find(&name)?;
        let requests = selected.preset.requests.iter();
        let requests = requests.map(|(method, path)| format!("{method} {path}")).collect();
        let hosts = selected.hosts(&machine);
        Ok(PresetHosts { is_enabled: enabled.contains(&name), hosts, requests, name })
    };
    names.map(preset).collect()
}

/// The rules of each preset, which allow its hosts, or some requests to them.
pub(crate) fn rules(common: &Common, names: &[String]) -> Result<Rules, String> {
    parse(&rules_text(common, names)?)
}

/// The same, as text.
pub(crate) fn rules_text(common: &Common, names: &[String]) -> Result<String, String> {
    rules_text_on(&MachineConfig::this(common), names)
}

fn parse(text: &str) -> Result<Rules, String> {
    Rules::parse(text).map_err(|error| format!("network_presets: {error}"))
}

fn rules_text_on(machine: &MachineConfig, names: &[String]) -> Result<String, String> {
    let mut text = String::new();
    for name in names {
        let selected = package_managers::find(name)?;
        let hosts = selected.hosts(machine);
        if hosts.is_empty() {
            continue;
        }
        let rule = format!(
            "[[rule]]\nname = \"preset-{}\"\ndecision = \"allow\"\nkind = \"network\"\nhosts = {hosts:?}\n",
            selected.preset.name
        );
        let requests = selected.preset.requests.iter();
        let requests: Vec<String> = requests
            .map(|(method, path)| format!("{rule}methods = [{method:?}]\npaths = [{path:?}]\n"))
            .collect();
        text += &if requests.is_empty() { rule } else { requests.concat() };
    }
    Ok(text)
}

/// The names of all presets.
fn names() -> String {
    PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_on(machine: &MachineConfig, names: &[String]) -> Result<Rules, String> {
        parse(&rules_text_on(machine, names)?)
    }

    #[test]
    fn each_preset_is_a_valid_rule() {
        let machine = MachineConfig {
            root: "/nonexistent".into(),
            home: None,
            variable: Box::new(|_| None),
            workspace: Vec::new(),
        };
        for preset in PRESETS {
            assert!(rules_on(&machine, &[preset.name.to_owned()]).is_ok(), "{}", preset.name);
        }
        assert!(check(&["nix".to_owned()]).unwrap_err().contains("npm, pip, uv"));
        assert_eq!(rules_on(&machine, &[]).unwrap().count(), 0);
        let fetch = rules_on(&machine, &["git-read:forge.example".to_owned()]).unwrap();
        assert!(fetch.count() == 2 && fetch.name_requests());
        for odd in ["npm:a.example", "git-read:", "git-read:a/b", "git-read:a b"] {
            assert!(check(&[odd.to_owned()]).is_err(), "{odd}");
        }
    }
}
