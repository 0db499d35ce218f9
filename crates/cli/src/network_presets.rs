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

/// The rules of each preset, which allow its hosts, or some requests to them.
pub(crate) fn rules(common: &Common, names: &[String]) -> Result<Rules, String> {
    let machine = MachineConfig::this(common);
    rules_on(&machine, names)
}

fn rules_on(machine: &MachineConfig, names: &[String]) -> Result<Rules, String> {
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
    Rules::parse(&text).map_err(|error| format!("network_presets: {error}"))
}

/// The names of all presets.
fn names() -> String {
    PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
