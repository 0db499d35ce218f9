//! What a sandbox refused to a command, in words: each with the operator's setting that would allow it.

use serde_json::{Value, json};
use toolcrib_exec::{Deed, REFUSALS_TOLD, Refusal, Unwritable};
use toolcrib_text::visible_name;

/// Of a command that did what it was to do in spite of it, so many are named: most likely it had another way.
const NAMED_IN_PASSING: usize = 3;

/// What to say of it, one line for each setting; `failed` says that the command did.
pub(crate) fn notes(refusals: &[Refusal], failed: bool) -> Vec<String> {
    let most = if failed { REFUSALS_TOLD } else { NAMED_IN_PASSING };
    let mut lines: Vec<(Kind, Vec<String>)> = Vec::new();
    for (kind, what) in refusals.iter().take(most).map(told) {
        match lines.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, whats)) => whats.push(what),
            None => lines.push((kind, vec![what])),
        }
    }
    let mut notes: Vec<String> = lines
        .into_iter()
        .map(|(kind, whats)| format!("{}: {} ({})", kind.refused, whats.join(", "), kind.remedy))
        .collect();
    if refusals.len() > most {
        notes.push("the sandbox refused more than that".to_owned());
    }
    notes
}

/// The same, for programs.
pub(crate) fn facts(refusals: &[Refusal]) -> Option<Value> {
    let facts: Vec<Value> = refusals.iter().take(REFUSALS_TOLD).map(fact).collect();
    (!facts.is_empty()).then(|| facts.into())
}

#[derive(PartialEq, Eq)]
struct Kind {
    refused: &'static str,
    remedy: &'static str,
}

const BY_SANDBOX: &str = "refused by the sandbox";
const NO_NETWORK: Kind =
    Kind { refused: "network is off", remedy: "network = \"all\" in config.toml allows it" };

fn told(refusal: &Refusal) -> (Kind, String) {
    let shown = |path: &std::path::Path| visible_name(path.as_os_str().as_encoded_bytes());
    match refusal {
        Refusal::Write(path, why) => {
            let kind = Kind { refused: BY_SANDBOX, remedy: remedy(*why) };
            (kind, format!("write {}", shown(path)))
        }
        Refusal::Change(deed, path, why) => {
            let kind = Kind { refused: BY_SANDBOX, remedy: remedy(*why) };
            (kind, format!("{} {}", verb(*deed), shown(path)))
        }
        Refusal::Connect(address) => (NO_NETWORK, format!("connect {address}")),
        Refusal::LookUp(server) => (NO_NETWORK, format!("look up a name at {server}")),
        Refusal::AnySocket => (NO_NETWORK, "make a socket".to_owned()),
        Refusal::Socket(path) => {
            let remedy = "sockets of programs outside are hidden from commands";
            (Kind { refused: BY_SANDBOX, remedy }, format!("connect {}", shown(path)))
        }
    }
}

/// What would allow it.
fn remedy(why: Unwritable) -> &'static str {
    match why {
        Unwritable::Outside => {
            "outside the roots; --root DIR adds one, caches in config.toml those of build tools"
        }
        Unwritable::ReadOnly => {
            "may be read only; a root given as DIR:ro is written when given as DIR"
        }
        Unwritable::Protected => {
            "protected: it can make programs run code, or a rule says so; allow_protected in config.toml, or the rule"
        }
        Unwritable::Repository => {
            "part of a repository that no command of this session made; only git removes from it, or you; allow_protected in config.toml"
        }
        Unwritable::Hidden => "hidden from commands",
        Unwritable::Holding => {
            "holds something protected, and stays where it is; allow_protected in config.toml, or the rule"
        }
    }
}

fn verb(deed: Deed) -> &'static str {
    match deed {
        Deed::Make => "make",
        Deed::Remove => "remove",
        Deed::Rename => "rename",
        Deed::Change => "change",
    }
}

fn fact(refusal: &Refusal) -> Value {
    let shown = |path: &std::path::Path| visible_name(path.as_os_str().as_encoded_bytes());
    match refusal {
        Refusal::Write(path, why) => {
            json!({"what": "write", "path": shown(path), "why": reason(*why)})
        }
        Refusal::Change(deed, path, why) => {
            json!({"what": verb(*deed), "path": shown(path), "why": reason(*why)})
        }
        Refusal::Connect(address) => json!({"what": "connect", "address": address.to_string()}),
        Refusal::LookUp(server) => json!({"what": "look_up", "address": server.to_string()}),
        Refusal::AnySocket => json!({"what": "socket"}),
        Refusal::Socket(path) => json!({"what": "connect", "path": shown(path)}),
    }
}

fn reason(why: Unwritable) -> &'static str {
    match why {
        Unwritable::Outside => "outside",
        Unwritable::ReadOnly => "read_only",
        Unwritable::Protected => "protected",
        Unwritable::Repository => "repository",
        Unwritable::Hidden => "hidden",
        Unwritable::Holding => "holds_protected",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(count: usize) -> Vec<Refusal> {
        (0..count)
            .map(|number| Refusal::Write(format!("/etc/{number}").into(), Unwritable::Outside))
            .collect()
    }

    #[test]
    fn each_setting_has_a_line_and_what_it_would_allow() {
        let refusals = [
            Refusal::LookUp("10.0.0.2:53".parse().unwrap()),
            Refusal::Write("/etc/hosts".into(), Unwritable::Outside),
            Refusal::Connect("93.184.216.34:443".parse().unwrap()),
        ];
        assert_eq!(
            notes(&refusals, true),
            [
                "network is off: look up a name at 10.0.0.2:53, connect 93.184.216.34:443 (network = \"all\" in config.toml allows it)",
                "refused by the sandbox: write /etc/hosts (outside the roots; --root DIR adds one, caches in config.toml those of build tools)",
            ]
        );
        assert_eq!(notes(&[], true), Vec::<String>::new());
        assert_eq!(facts(&[]), None);
    }

    #[test]
    fn there_is_an_end_to_it() {
        let all = notes(&written(21), true);
        assert!(all[0].contains("/etc/19") && !all[0].contains("/etc/20"), "{all:?}");
        assert_eq!(all[1], "the sandbox refused more than that");
        assert_eq!(notes(&written(20), true).len(), 1);
        assert_eq!(notes(&written(4), false).len(), 2);
        assert_eq!(facts(&written(21)).unwrap().as_array().unwrap().len(), 20);
    }
}
