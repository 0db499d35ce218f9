//! What a sandbox refused to a command, in words: each with the operator's setting that would allow it.

use serde_json::{Value, json};
use toolcrib_exec::{Deed, REFUSALS_TOLD, Refusal, Unwritable};
use toolcrib_text::visible_name;

use crate::words::first_of;

/// So many lines tell of refusals.
pub(crate) const MAX_LINES: usize = 3;

/// So many refusals are named in a line. Most programs name all of them.
const NAMED: usize = 3;

/// What to say of it, one line for each setting, at most as many lines as that.
pub(crate) fn notes(refusals: &[Refusal], most_lines: usize) -> Vec<String> {
    let mut lines: Vec<(Kind, Vec<String>)> = Vec::new();
    for (kind, what) in refusals.iter().take(REFUSALS_TOLD).map(told) {
        match lines.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, whats)) => whats.push(what),
            None => lines.push((kind, vec![what])),
        }
    }
    let is_more = refusals.len() > REFUSALS_TOLD || lines.len() > most_lines;
    let shown = if is_more { most_lines.saturating_sub(1) } else { most_lines };
    let note = |(kind, whats): (Kind, Vec<String>)| {
        let whats = first_of(&whats, NAMED, String::clone);
        format!("{}: {whats} ({})", kind.refused, kind.remedy)
    };
    let mut notes: Vec<String> = lines.into_iter().take(shown).map(note).collect();
    if is_more && most_lines > 0 {
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
            let remedy = "sockets of programs outside are hidden, and no setting but profile = \"open\" shows them";
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
            "a repository that was there before this session: nothing of it was removed or renamed, and only the user can do that; allow_protected in config.toml"
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
            notes(&refusals, MAX_LINES),
            [
                "network is off: look up a name at 10.0.0.2:53, connect 93.184.216.34:443 (network = \"all\" in config.toml allows it)",
                "refused by the sandbox: write /etc/hosts (outside the roots; --root DIR adds one, caches in config.toml those of build tools)",
            ]
        );
        assert_eq!(notes(&[], MAX_LINES), Vec::<String>::new());
        assert_eq!(facts(&[]), None);
    }

    #[test]
    fn there_is_an_end_to_it() {
        let all = notes(&written(21), MAX_LINES);
        assert!(all[0].contains("/etc/2 and 17 more ("), "{all:?}");
        assert_eq!(all[1], "the sandbox refused more than that");
        assert_eq!(notes(&written(20), MAX_LINES).len(), 1);
        let mut many = written(2);
        many.push(Refusal::AnySocket);
        many.push(Refusal::Write("/a".into(), Unwritable::ReadOnly));
        many.push(Refusal::Write("/b".into(), Unwritable::Protected));
        assert_eq!(notes(&many, MAX_LINES).len(), MAX_LINES);
        assert_eq!(facts(&written(21)).unwrap().as_array().unwrap().len(), 20);
    }
}
