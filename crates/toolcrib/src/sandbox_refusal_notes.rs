//! Describes the accesses that the sandbox denied, each with the setting that would allow it.

use std::path::Path;

use serde_json::{Value, json};
use toolcrib_exec::{DeniedAction, MAX_REFUSALS, Refusal, Unwritable};
use toolcrib_policy::{A_RULE_DENIES, Denial, Effect, Policy, SettingHints};
use toolcrib_text::visible_name;

use crate::metadata_fields::MetadataField;
use crate::phrases::{counted, first_of};

/// Lines about denied accesses.
pub(crate) const MAX_LINES: usize = 3;

/// Caches that programs write if they can.
const MAN_CACHE: &str = "/var/cache/man";
const PYTHON_CACHE: &str = "__pycache__";

/// Directories of package managers, with the beginnings of names in them that they write if they can: logs, locks and
/// the times of last uses.
const PACKAGE_MANAGER_FILES: [(&str, &[&str]); 2] =
    [(".npm", &["_logs", "_update-notifier"]), (".cargo", &[".package-cache", ".global-cache"])];

/// Names of histories end or begin so. less writes `.lesshsQ` first, and vim `.viminfz.tmp`.
const HISTORY_ENDINGS: [&str; 3] = ["history", "_hist", "-hist"];
const HISTORY_BEGINNINGS: [&str; 3] = [".lesshs", "lesshs", ".viminf"];

/// Phrases of programs that may not change a file.
const FAILURES: [&str; 6] =
    ["ermission denied", "ot permitted", "ead-only", "annot ", "EACCES", "EPERM"];

/// Accesses named per line.
const MAX_NAMED: usize = 3;

/// One line per setting or rule, at most `most_lines`, the network first. Paths of failures that `output` reports, absolute
/// or relative to `directory`, are not repeated.
pub(crate) fn notes(
    refusals: &[Refusal],
    output: &str,
    directory: &Path,
    most_lines: usize,
    (settings, policy): (&SettingHints, &Policy),
) -> Vec<String> {
    // Refusals beyond the limit are not counted.
    let is_capped = refusals.len() > MAX_REFUSALS;
    let mut causes: Vec<(Cause, Vec<&Refusal>)> = Vec::new();
    for refusal in refusals.iter().filter(|refusal| !is_unneeded_cache(refusal)) {
        let cause = Cause { kind: kind(refusal), denial: denial(refusal, policy) };
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, others)) => others.push(refusal),
            None => causes.push((cause, vec![refusal])),
        }
    }
    causes.sort_by_key(|(cause, _)| cause.kind != NO_NETWORK && cause.kind != UNLISTED);
    let is_shown =
        |refusal: &&Refusal| path(refusal).is_some_and(|path| shows(output, path, directory));
    let line = |(Cause { kind, denial }, refused): &(Cause, Vec<&Refusal>)| {
        let (above, others): (Vec<&Refusal>, Vec<&Refusal>) =
            refused.iter().copied().partition(is_shown);
        let names = match others.as_slice() {
            [] if above.len() == 1 => "the path shown above".to_owned(),
            [] => "the paths shown above".to_owned(),
            others if is_capped && others.len() > MAX_NAMED => {
                let first = &others[..MAX_NAMED];
                format!("{} and more", first_of(first, MAX_NAMED, |refusal| description(refusal)))
            }
            others => first_of(others, MAX_NAMED, |refusal| description(refusal)),
        };
        let remedy = match (*kind, denial) {
            (NO_NETWORK, _) => network_remedy(settings),
            (Kind { remedy, .. }, Some(denial)) => format!("{denial}; {remedy}"),
            (Kind { remedy, .. }, None) => remedy.to_owned(),
        };
        format!("{}: {names} ({remedy})", kind.refused)
    };
    if causes.len() <= most_lines {
        return causes.iter().map(line).collect();
    }
    let Some(whole) = most_lines.checked_sub(1) else { return Vec::new() };
    let (first, others) = causes.split_at(whole);
    let more: usize = others.iter().map(|(_, refused)| refused.len()).sum();
    let more = counted(more as u64, "more attempt");
    first.iter().map(line).chain([format!("{BY_SANDBOX}: {more}, for other reasons")]).collect()
}

/// Whether a line of the output reports a failure at a path.
fn shows(output: &str, path: &Path, directory: &Path) -> bool {
    let absolute = visible_name(path.as_os_str().as_encoded_bytes());
    let relative = path.strip_prefix(directory).ok();
    let relative = relative.map(|path| visible_name(path.as_os_str().as_encoded_bytes()));
    let quoted = relative.filter(|path| !path.is_empty()).map(|path| format!("'{path}'"));
    let names = |line: &str| {
        line.contains(&absolute) || quoted.as_ref().is_some_and(|path| line.contains(path))
    };
    let fails = |line: &str| FAILURES.iter().any(|phrase| line.contains(phrase));
    output.lines().any(|line| fails(line) && names(line))
}

/// Whether it is a write to a cache or to the history of an interactive program, outside the roots. Programs work
/// without these files and do not report the failure.
fn is_unneeded_cache(refusal: &Refusal) -> bool {
    let (path, why) = match refusal {
        Refusal::Write(path, why) | Refusal::Change(_, path, why) => (path, why),
        _ => return false,
    };
    match why {
        Unwritable::Outside => is_cache(path) || is_history(path),
        Unwritable::Hidden => is_history(path),
        _ => false,
    }
}

fn is_cache(path: &Path) -> bool {
    path.starts_with(MAN_CACHE)
        || path.iter().any(|name| name == PYTHON_CACHE)
        || is_package_manager_file(path)
}

fn is_package_manager_file(path: &Path) -> bool {
    let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
    // npm creates its directory for its logs, and rustup when a program asks for the version of rustc.
    if matches!(names.last(), Some(&(".npm" | ".rustup"))) {
        return true;
    }
    names.windows(2).any(|pair| {
        PACKAGE_MANAGER_FILES.iter().any(|(directory, beginnings)| {
            pair[0] == *directory && beginnings.iter().any(|start| pair[1].starts_with(start))
        })
    })
}

/// Whether it is the user's configuration of git, or its lock.
fn is_git_configuration(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".lock").unwrap_or(name);
    name == ".gitconfig"
        || name == "config" && path.parent().is_some_and(|above| above.ends_with(".config/git"))
}

/// Whether a file has the name of a history, such as `.python_history`, or of a new version of one.
fn is_history(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let ends = HISTORY_ENDINGS.iter().any(|ending| name.ends_with(ending));
    ends || HISTORY_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// An access of a command that the sandbox denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedAccess {
    /// The access, such as `write /etc/passwd`.
    pub what: String,
    /// What would allow it.
    pub setting: &'static str,
}

/// Denied accesses with the setting that would allow each.
pub(crate) fn denied_accesses(refusals: &[Refusal]) -> Vec<DeniedAccess> {
    let denied =
        |refusal| DeniedAccess { what: description(refusal), setting: kind(refusal).remedy };
    refusals.iter().take(MAX_REFUSALS).map(denied).collect()
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
        "`outside`, `read_only`, `protected`, `denied`, `repository`, `hidden` or `holds_protected`.",
    ),
];

/// What gives commands a network.
pub(crate) fn network_remedy(settings: &SettingHints) -> String {
    format!(
        "the user can allow it: `{}` and `toolcrib policy allow network HOST:PORT`, or network = \"all\" in config.toml",
        settings.what_sets("network", "list")
    )
}

/// Why a rule denies the change of a file, and the name of the rule.
fn denial(refusal: &Refusal, policy: &Policy) -> Option<String> {
    let path = match refusal {
        Refusal::Write(path, Unwritable::Denied) | Refusal::Change(_, path, Unwritable::Denied) => {
            path
        }
        _ => return None,
    };
    // The rule for a file below a renamed directory is not named.
    let denial = [Effect::Write, Effect::Read]
        .into_iter()
        .find_map(|effect| policy.denial_of_file(effect, path));
    let text = denial
        .map_or_else(|| A_RULE_DENIES.to_owned(), |Denial { rule, why }| format!("{why} ({rule})"));
    Some(visible_name(text.as_bytes()))
}

/// The same, for programs.
pub(crate) fn facts(refusals: &[Refusal]) -> Option<Value> {
    let facts: Vec<Value> = refusals.iter().take(MAX_REFUSALS).map(fact).collect();
    (!facts.is_empty()).then(|| facts.into())
}

/// Why operations were refused.
#[derive(PartialEq, Eq)]
struct Cause {
    kind: Kind,
    /// The reason and the name of the rule that denies them.
    denial: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    refused: &'static str,
    remedy: &'static str,
}

const BY_SANDBOX: &str = "refused by the sandbox";
const NO_NETWORK: Kind = Kind {
    refused: "network is off; refused",
    remedy: "the user can allow it: `toolcrib config set network list` and `toolcrib policy allow network HOST:PORT`, or network = \"all\" in config.toml",
};

/// cargo has no variable for its cache alone.
const CARGO_CACHE: &str = "outside the roots; export CARGO_HOME=/tmp/cargo for downloads of this session, or caches = [\"cargo\"] in config.toml";

/// Settings of git for all repositories of the user.
const GIT_CONFIGURATION: &str = "outside the roots; git config without --global sets it for this repository, git -c NAME=VALUE for one command";

const UNLISTED: Kind = Kind {
    refused: "network: not reached",
    remedy: "commands reach hosts by name, with TCP; hosts = [\"ADDRESS:PORT\"] in a rule of kind network in rules.toml allows an address",
};

fn kind(refusal: &Refusal) -> Kind {
    match refusal {
        Refusal::Write(path, Unwritable::Outside)
        | Refusal::Change(_, path, Unwritable::Outside)
            if path.iter().any(|name| name == ".cargo") =>
        {
            Kind { refused: BY_SANDBOX, remedy: CARGO_CACHE }
        }
        Refusal::Write(path, Unwritable::Outside)
        | Refusal::Change(_, path, Unwritable::Outside)
            if is_git_configuration(path) =>
        {
            Kind { refused: BY_SANDBOX, remedy: GIT_CONFIGURATION }
        }
        Refusal::Write(_, why) | Refusal::Change(_, _, why) => {
            Kind { refused: BY_SANDBOX, remedy: remedy(*why) }
        }
        Refusal::Connect(_) | Refusal::LookUp(_) | Refusal::AnySocket => NO_NETWORK,
        Refusal::Unlisted(_) => UNLISTED,
        Refusal::WithoutProxy(_) => Kind {
            refused: BY_SANDBOX,
            remedy: "at sandbox level 2 only programs that use the proxy variables reach hosts",
        },
        Refusal::Socket(_) => {
            let remedy = "sockets of other programs are hidden from commands";
            Kind { refused: BY_SANDBOX, remedy }
        }
    }
}

fn description(refusal: &Refusal) -> String {
    let shown = |path: &Path| visible_name(path.as_os_str().as_encoded_bytes());
    match refusal {
        Refusal::Write(path, _) => format!("write {}", shown(path)),
        Refusal::Change(deed, path, _) => format!("{} {}", verb(*deed), shown(path)),
        Refusal::Connect(address) | Refusal::Unlisted(address) | Refusal::WithoutProxy(address) => {
            format!("connect {address}")
        }
        // The address is that of the resolver, not of the host that the program looked up.
        Refusal::LookUp(_) => "the lookup of a host name".to_owned(),
        Refusal::AnySocket => "create a socket".to_owned(),
        Refusal::Socket(path) => format!("connect {}", shown(path)),
    }
}

fn path(refusal: &Refusal) -> Option<&Path> {
    match refusal {
        Refusal::Write(path, _) | Refusal::Change(_, path, _) | Refusal::Socket(path) => Some(path),
        Refusal::Connect(_)
        | Refusal::Unlisted(_)
        | Refusal::WithoutProxy(_)
        | Refusal::LookUp(_)
        | Refusal::AnySocket => None,
    }
}

/// The setting that would allow the access.
fn remedy(why: Unwritable) -> &'static str {
    match why {
        Unwritable::Outside => {
            "outside the roots; --root DIR or caches in config.toml can allow it"
        }
        Unwritable::ReadOnly => "read-only; a root given as DIR:ro is writable if given as DIR",
        Unwritable::Protected => {
            "protected: it can make programs run code, or `protect` names it; allow_protected in config.toml can allow it"
        }
        Unwritable::Denied => {
            "the operator can change the rule, which `toolcrib policy list` shows"
        }
        Unwritable::Repository => {
            "protected: this repository existed before the session, and only git may remove or overwrite its parts; the user can do it, or allow it with allow_protected in config.toml"
        }
        Unwritable::Hidden => "hidden from commands",
        Unwritable::ParentOfProtected => {
            "contains a protected path and cannot be moved or removed; allow_protected in config.toml can allow it"
        }
    }
}

fn verb(deed: DeniedAction) -> &'static str {
    match deed {
        DeniedAction::Make => "create",
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
        Refusal::Connect(address) | Refusal::Unlisted(address) | Refusal::WithoutProxy(address) => {
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
        Unwritable::Denied => "denied",
        Unwritable::Repository => "repository",
        Unwritable::Hidden => "hidden",
        Unwritable::ParentOfProtected => "holds_protected",
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_policy::Rules;

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
            notes(
                &refusals,
                "",
                Path::new("/w"),
                MAX_LINES,
                (&SettingHints::default(), &Policy::default())
            ),
            [
                "network is off; refused: the lookup of a host name, connect 93.184.216.34:443 (the user can allow it: `toolcrib config set network list` and `toolcrib policy allow network HOST:PORT`, or network = \"all\" in config.toml)",
                "refused by the sandbox: write /etc/hosts (outside the roots; --root DIR or caches in config.toml can allow it)",
            ]
        );
        assert_eq!(
            notes(
                &[],
                "",
                Path::new("/w"),
                MAX_LINES,
                (&SettingHints::default(), &Policy::default())
            ),
            Vec::<String>::new()
        );
        assert_eq!(facts(&[]), None);
    }

    #[test]
    fn rules_that_deny_are_named_with_their_reasons() {
        let rule = |path: &str, rest: &str| {
            format!(
                "[[rule]]\ndecision = \"deny\"\nkind = \"edit\"\npaths = [\"{path}\"]\n{rest}\n"
            )
        };
        let text =
            rule("gen/**", "name = \"generated\"\nwhy = \"run make\"") + &rule("b", "name = \"b\"");
        let policy = Policy::default().rules(Rules::parse(&text).unwrap());
        let policy = policy.locations(vec!["/w".into()], None);
        let refused = ["/w/gen/x", "/w/gen/y", "/w/b", "/w/c"]
            .map(|path| Refusal::Write(path.into(), Unwritable::Denied));
        assert_eq!(
            notes(&refused, "", Path::new("/w"), MAX_LINES, (&SettingHints::default(), &policy)),
            [
                "refused by the sandbox: write /w/gen/x, write /w/gen/y (run make (rule:generated); the operator can change the rule, which `toolcrib policy list` shows)",
                "refused by the sandbox: write /w/b (a rule denies it (rule:b); the operator can change the rule, which `toolcrib policy list` shows)",
                "refused by the sandbox: write /w/c (a rule denies it; the operator can change the rule, which `toolcrib policy list` shows)",
            ]
        );
    }

    #[test]
    fn paths_that_the_output_shows_are_not_repeated() {
        let refusals = [
            Refusal::Change(DeniedAction::Remove, "/w/.git/config".into(), Unwritable::Repository),
            Refusal::Change(DeniedAction::Remove, "/w/.git/HEAD".into(), Unwritable::Repository),
        ];
        let output = "rm: cannot remove '.git/config': Permission denied\n";
        let all = notes(
            &refusals,
            output,
            Path::new("/w"),
            MAX_LINES,
            (&SettingHints::default(), &Policy::default()),
        );
        assert!(all[0].starts_with("refused by the sandbox: remove /w/.git/HEAD ("), "{all:?}");
        let all = notes(
            &refusals[..1],
            output,
            Path::new("/w"),
            MAX_LINES,
            (&SettingHints::default(), &Policy::default()),
        );
        assert!(all[0].starts_with("refused by the sandbox: the path shown above ("), "{all:?}");
        let output = "/etc/0: Permission denied\n/etc/1: Permission denied\n";
        let all = notes(
            &written(2),
            output,
            Path::new("/w"),
            MAX_LINES,
            (&SettingHints::default(), &Policy::default()),
        );
        assert!(all[0].starts_with("refused by the sandbox: the paths shown above ("), "{all:?}");
    }

    #[test]
    fn paths_that_the_output_shows_without_a_failure_are_named() {
        let refusals = [Refusal::Socket("/run/x.sock".into())];
        let output = "LISTEN 0 128 /run/x.sock\ncurl: (7) Couldn't connect to server\n";
        let all = notes(
            &refusals,
            output,
            Path::new("/w"),
            MAX_LINES,
            (&SettingHints::default(), &Policy::default()),
        );
        assert!(all[0].starts_with("refused by the sandbox: connect /run/x.sock ("), "{all:?}");
    }

    #[test]
    fn only_caches_outside_the_roots_are_unneeded() {
        let write = |path: &str, why| is_unneeded_cache(&Refusal::Write(path.into(), why));
        assert!(write("/var/cache/man/cat1/catGoghn6", Unwritable::Outside));
        assert!(write("/usr/share/gdb/__pycache__/x.pyc", Unwritable::Outside));
        assert!(!write("/w/__pycache__/x.pyc", Unwritable::Protected));
        assert!(!write("/var/cache/other", Unwritable::Outside));
        assert!(write("/root/.npm/_logs/2026-11-17.log", Unwritable::Outside));
        assert!(write("/root/.rustup", Unwritable::Outside));
        assert!(!write("/root/.rustup/toolchains/x", Unwritable::Outside));
        assert!(write("/root/.cargo/.package-cache-mutate", Unwritable::Outside));
        assert!(!write("/root/.npm/_cacache/tmp/x", Unwritable::Outside));
        assert!(!write("/root/.cargo/registry/cache/x", Unwritable::Outside));
    }

    #[test]
    fn histories_of_interactive_programs_are_unneeded() {
        for name in [
            ".python_history",
            ".node_repl_history",
            ".lesshst",
            ".lesshsQ",
            ".psql_history",
            ".octave_hist",
            ".viminfo.tmp",
            ".local/state/python_history",
        ] {
            for why in [Unwritable::Outside, Unwritable::Hidden] {
                let refused = [Refusal::Write(Path::new("/home/me").join(name), why)];
                assert_eq!(
                    notes(
                        &refused,
                        "",
                        Path::new("/w"),
                        MAX_LINES,
                        (&SettingHints::default(), &Policy::default())
                    ),
                    [""; 0],
                    "{name}"
                );
            }
        }
        let refused = [Refusal::Write("/home/me/.ssh/config".into(), Unwritable::Hidden)];
        assert_eq!(
            notes(
                &refused,
                "",
                Path::new("/w"),
                MAX_LINES,
                (&SettingHints::default(), &Policy::default())
            )
            .len(),
            1
        );
        let refused = [Refusal::Write("/w/.python_history".into(), Unwritable::Protected)];
        assert_eq!(
            notes(
                &refused,
                "",
                Path::new("/w"),
                MAX_LINES,
                (&SettingHints::default(), &Policy::default())
            )
            .len(),
            1
        );
    }

    #[test]
    fn created_files_are_called_so() {
        let refused = [Refusal::Change(DeniedAction::Make, "/up/new".into(), Unwritable::Outside)];
        let all = notes(
            &refused,
            "",
            Path::new("/w"),
            MAX_LINES,
            (&SettingHints::default(), &Policy::default()),
        );
        assert!(all[0].starts_with("refused by the sandbox: create /up/new ("), "{all:?}");
    }

    #[test]
    fn notes_are_bounded() {
        let all = notes(
            &written(21),
            "",
            Path::new("/w"),
            MAX_LINES,
            (&SettingHints::default(), &Policy::default()),
        );
        assert_eq!(all.len(), 1);
        assert!(all[0].contains("write /etc/2 and more ("), "{all:?}");
        let mut many = written(2);
        many.push(Refusal::AnySocket);
        for why in [Unwritable::Protected, Unwritable::Hidden, Unwritable::ParentOfProtected] {
            many.push(Refusal::Write("/x".into(), why));
        }
        let all = notes(
            &many,
            "",
            Path::new("/w"),
            MAX_LINES,
            (&SettingHints::default(), &Policy::default()),
        );
        assert!(all[0].starts_with("network is off"), "{all:?}");
        assert_eq!(all.len(), 3);
        assert_eq!(all[2], "refused by the sandbox: 3 more attempts, for other reasons");
        assert_eq!(facts(&written(21)).unwrap().as_array().unwrap().len(), 20);
    }
}
