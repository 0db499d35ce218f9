//! Describes the accesses that the sandbox denied, each with the setting that would allow it.

use std::path::Path;

use serde_json::{Value, json};
use toolcrib_exec::{DeniedAction, MAX_REFUSALS, Refusal, Unwritable};
use toolcrib_text::visible_name;

use crate::metadata_field::MetadataField;
use crate::phrases::{counted, first_of};

/// Lines about denied accesses.
pub(crate) const MAX_LINES: usize = 3;

/// Accesses named per line.
const MAX_NAMED: usize = 3;

/// One line per setting, at most `most_lines`, the network first. Paths that `output` contains, absolute or
/// relative to `directory`, are not repeated.
pub(crate) fn notes(
    refusals: &[Refusal],
    output: &str,
    directory: &Path,
    most_lines: usize,
) -> Vec<String> {
    let mut kinds: Vec<(Kind, Vec<&Refusal>)> = Vec::new();
    for refusal in refusals {
        let kind = kind(refusal);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, others)) => others.push(refusal),
            None => kinds.push((kind, vec![refusal])),
        }
    }
    kinds.sort_by_key(|(kind, _)| *kind != NO_NETWORK && *kind != UNLISTED);
    let is_shown =
        |refusal: &&Refusal| path(refusal).is_some_and(|path| shows(output, path, directory));
    let line = |(kind, refused): &(Kind, Vec<&Refusal>)| {
        let (above, others): (Vec<&Refusal>, Vec<&Refusal>) =
            refused.iter().copied().partition(is_shown);
        let names = match others.as_slice() {
            [] if above.len() == 1 => "the path shown above".to_owned(),
            [] => "the paths shown above".to_owned(),
            others => first_of(others, MAX_NAMED, |refusal| description(refusal)),
        };
        format!("{}: {names} ({})", kind.refused, kind.remedy)
    };
    if kinds.len() <= most_lines {
        return kinds.iter().map(line).collect();
    }
    let Some(whole) = most_lines.checked_sub(1) else { return Vec::new() };
    let (first, others) = kinds.split_at(whole);
    let more: usize = others.iter().map(|(_, refused)| refused.len()).sum();
    let more = counted(more as u64, "more attempt");
    first.iter().map(line).chain([format!("{BY_SANDBOX}: {more}, for other reasons")]).collect()
}

/// Whether the output contains a path.
fn shows(output: &str, path: &Path, directory: &Path) -> bool {
    let absolute = visible_name(path.as_os_str().as_encoded_bytes());
    let relative = path.strip_prefix(directory).ok();
    let relative = relative.map(|path| visible_name(path.as_os_str().as_encoded_bytes()));
    output.contains(&absolute)
        || relative.is_some_and(|relative| {
            !relative.is_empty() && output.contains(&format!("'{relative}'"))
        })
}

/// Metadata of a reply about a command with refused operations.
pub(crate) const REFUSED: &[MetadataField] = &[
    MetadataField::new(
        "refused",
        "array of object",
        "the sandbox refused an operation",
        "The refused operations.",
    ),
    MetadataField::new(
        "refused[].what",
        "string",
        "with its object",
        "The operation, such as `write`, `remove` or `connect`.",
    ),
    MetadataField::new("refused[].path", "string", "a file or a Unix socket", "The path."),
    MetadataField::new("refused[].address", "string", "the network", "The address."),
    MetadataField::new(
        "refused[].why",
        "string",
        "a file",
        "`outside`, `read_only`, `protected`, `repository`, `hidden` or `holds_protected`.",
    ),
];

/// The same, for programs.
pub(crate) fn facts(refusals: &[Refusal]) -> Option<Value> {
    let facts: Vec<Value> = refusals.iter().take(MAX_REFUSALS).map(fact).collect();
    (!facts.is_empty()).then(|| facts.into())
}

#[derive(PartialEq, Eq)]
struct Kind {
    refused: &'static str,
    remedy: &'static str,
}

const BY_SANDBOX: &str = "refused by the sandbox";
const NO_NETWORK: Kind = Kind {
    refused: "network is off, by network = \"none\"",
    remedy: "network = \"list\" with rules for hosts, or \"all\", in config.toml allows it",
};

const UNLISTED: Kind = Kind {
    refused: "network: not reached, by network = \"list\"",
    remedy: "commands reach hosts by name, with TCP; hosts = [\"ADDRESS:PORT\"] in a rule of kind network in rules.toml allows an address",
};

fn kind(refusal: &Refusal) -> Kind {
    match refusal {
        Refusal::Write(_, why) | Refusal::Change(_, _, why) => {
            Kind { refused: BY_SANDBOX, remedy: remedy(*why) }
        }
        Refusal::Connect(_) | Refusal::LookUp(_) | Refusal::AnySocket => NO_NETWORK,
        Refusal::Unlisted(_) => UNLISTED,
        Refusal::Socket(_) => {
            let remedy = "sockets of programs outside are hidden from commands";
            Kind { refused: BY_SANDBOX, remedy }
        }
    }
}

fn description(refusal: &Refusal) -> String {
    let shown = |path: &Path| visible_name(path.as_os_str().as_encoded_bytes());
    match refusal {
        Refusal::Write(path, _) => format!("write {}", shown(path)),
        Refusal::Change(deed, path, _) => format!("{} {}", verb(*deed), shown(path)),
        Refusal::Connect(address) | Refusal::Unlisted(address) => format!("connect {address}"),
        Refusal::LookUp(server) => format!("look up a name at {server}"),
        Refusal::AnySocket => "make a socket".to_owned(),
        Refusal::Socket(path) => format!("connect {}", shown(path)),
    }
}

fn path(refusal: &Refusal) -> Option<&Path> {
    match refusal {
        Refusal::Write(path, _) | Refusal::Change(_, path, _) | Refusal::Socket(path) => Some(path),
        Refusal::Connect(_) | Refusal::Unlisted(_) | Refusal::LookUp(_) | Refusal::AnySocket => {
            None
        }
    }
}

/// The setting that would allow the access.
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
        Unwritable::ParentOfProtected => {
            "holds something protected, and stays where it is; allow_protected in config.toml, or the rule"
        }
    }
}

fn verb(deed: DeniedAction) -> &'static str {
    match deed {
        DeniedAction::Make => "make",
        DeniedAction::Remove => "remove",
        DeniedAction::Rename => "rename",
        DeniedAction::Change => "change",
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
        Refusal::Connect(address) | Refusal::Unlisted(address) => {
            json!({"what": "connect", "address": address.to_string()})
        }
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
        Unwritable::ParentOfProtected => "holds_protected",
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
    fn each_setting_has_a_line_with_its_remedy() {
        let refusals = [
            Refusal::Write("/etc/hosts".into(), Unwritable::Outside),
            Refusal::LookUp("10.0.0.2:53".parse().unwrap()),
            Refusal::Connect("93.184.216.34:443".parse().unwrap()),
        ];
        assert_eq!(
            notes(&refusals, "", Path::new("/w"), MAX_LINES),
            [
                "network is off, by network = \"none\": look up a name at 10.0.0.2:53, connect 93.184.216.34:443 (network = \"list\" with rules for hosts, or \"all\", in config.toml allows it)",
                "refused by the sandbox: write /etc/hosts (outside the roots; --root DIR adds one, caches in config.toml those of build tools)",
            ]
        );
        assert_eq!(notes(&[], "", Path::new("/w"), MAX_LINES), Vec::<String>::new());
        assert_eq!(facts(&[]), None);
    }

    #[test]
    fn paths_that_the_output_shows_are_not_repeated() {
        let refusals = [
            Refusal::Change(DeniedAction::Remove, "/w/.git/config".into(), Unwritable::Repository),
            Refusal::Change(DeniedAction::Remove, "/w/.git/HEAD".into(), Unwritable::Repository),
        ];
        let output = "rm: cannot remove '.git/config': Permission denied\n";
        let all = notes(&refusals, output, Path::new("/w"), MAX_LINES);
        assert!(all[0].starts_with("refused by the sandbox: remove /w/.git/HEAD ("), "{all:?}");
        let all = notes(&refusals[..1], output, Path::new("/w"), MAX_LINES);
        assert!(all[0].starts_with("refused by the sandbox: the path shown above ("), "{all:?}");
        let all = notes(&written(2), "/etc/0 and /etc/1", Path::new("/w"), MAX_LINES);
        assert!(all[0].starts_with("refused by the sandbox: the paths shown above ("), "{all:?}");
    }

    #[test]
    fn notes_are_bounded() {
        let all = notes(&written(21), "", Path::new("/w"), MAX_LINES);
        assert_eq!(all.len(), 1);
        assert!(all[0].contains("write /etc/2 and 18 more ("), "{all:?}");
        let mut many = written(2);
        many.push(Refusal::AnySocket);
        for why in [Unwritable::Protected, Unwritable::Hidden, Unwritable::ParentOfProtected] {
            many.push(Refusal::Write("/x".into(), why));
        }
        let all = notes(&many, "", Path::new("/w"), MAX_LINES);
        assert!(all[0].starts_with("network is off"), "{all:?}");
        assert_eq!(all.len(), 3);
        assert_eq!(all[2], "refused by the sandbox: 3 more attempts, for other reasons");
        assert_eq!(facts(&written(21)).unwrap().as_array().unwrap().len(), 20);
    }
}
