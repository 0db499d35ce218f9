//! Proposes rules that make an approval permanent, as text for `rules.toml`. Each rule comes with a
//! description of everything that it covers, so that a person knows what "always" means.

use std::path::{Path, PathBuf};

use crate::access::{Access, Effect};
use crate::approval_subject::{ApprovalScope, SessionApprovals};
use crate::decision::Decision;
use crate::new_rule::NewRule;

/// A person does not read more rules than this before choosing "always".
const MAX_RULES: usize = 20;

/// Rules that decide on everything in an approval request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    rules: Vec<ProposedRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ProposedRule {
    rule: NewRule,
    covers: String,
}

impl Proposal {
    /// One rule for each approval scope. `None` if no rule can cover one of them, or if there are too many. If a
    /// profile asks about all files, the rules cover only the files of this call.
    pub(crate) fn new(
        asks: &SessionApprovals,
        accesses: &[Access],
        decision: Decision,
    ) -> Option<Proposal> {
        let mut rules = Vec::new();
        for asked in asks {
            match asked {
                ApprovalScope::Effect(effect) => {
                    for access in accesses.iter().filter(|access| access.effect() == *effect) {
                        let file = ApprovalScope::Path(*effect, access.path()?.to_owned());
                        rules.push(ProposedRule::new(&file, decision)?);
                    }
                }
                asked => rules.push(ProposedRule::new(asked, decision)?),
            }
        }
        rules.dedup();
        (1..=MAX_RULES).contains(&rules.len()).then_some(Proposal { rules })
    }

    /// The same for the directories of the files, where each lies beneath one of `roots`: no rule is for a whole root.
    pub(crate) fn for_directories(&self, roots: &[PathBuf]) -> Option<Proposal> {
        let mut rules = Vec::new();
        for ProposedRule { rule, .. } in &self.rules {
            let is_of_files = matches!(rule.kind, "read" | "edit");
            let file = rule.patterns.first().filter(|_| is_of_files)?;
            let directory = Path::new(file).parent()?;
            let is_beneath = |root: &PathBuf| directory.starts_with(root) && directory != root;
            let scope = match rule.kind {
                "read" => ApprovalScope::Path(Effect::Read, directory.to_owned()),
                _ => ApprovalScope::Path(Effect::Write, directory.to_owned()),
            };
            rules.push(
                ProposedRule::new(&scope, rule.decision)
                    .filter(|_| roots.iter().any(is_beneath))?,
            );
        }
        rules.dedup();
        Some(Proposal { rules })
    }

    /// The same, to be added to this file, if it is not the usual one.
    pub(crate) fn in_file(mut self, file: Option<&String>) -> Proposal {
        self.rules.iter_mut().for_each(|one| one.rule.file = file.cloned());
        self
    }

    /// The rules in the format of `rules.toml`.
    pub fn text(&self) -> String {
        self.rules.iter().map(|one| one.rule.text()).collect::<Vec<_>>().join("\n")
    }

    /// The command that adds the rules, for a shell.
    pub fn command(&self) -> String {
        self.rules.iter().map(|one| one.rule.command()).collect::<Vec<_>>().join(" && ")
    }

    /// Descriptions of everything that the rules cover, one per rule.
    pub fn covers(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.covers.as_str())
    }
}

impl ProposedRule {
    fn new(asked: &ApprovalScope, decision: Decision) -> Option<ProposedRule> {
        let everywhere = "in every workspace";
        let (kind, pattern, covers) = match asked {
            ApprovalScope::Path(Effect::Read, path)
            | ApprovalScope::Outside(Effect::Read, path) => {
                let path = literal_path(path)?;
                ("read", path.to_owned(), format!("reading {path} and everything beneath it"))
            }
            ApprovalScope::Path(_, path)
            | ApprovalScope::Outside(_, path)
            | ApprovalScope::Redirection(path) => {
                let path = literal_path(path)?;
                let covers = format!(
                    "changing {path} and everything beneath it, by tools and by redirections of commands"
                );
                ("edit", path.to_owned(), covers)
            }
            ApprovalScope::External(path) => {
                let path = literal_path(path)?;
                let covers = format!("{path} and everything beneath it, {everywhere}");
                ("external_directory", path.to_owned(), covers)
            }
            ApprovalScope::Command(words) => {
                let pattern = exact_command_pattern(words)?;
                let covers = match decision {
                    Decision::Allow => format!(
                        "`{pattern}` with exactly these words, {everywhere}; also after cd, with 2>&1, with harmless variables, and piped into read-only commands"
                    ),
                    _ => format!("every command that begins with `{pattern}`, {everywhere}"),
                };
                ("command", pattern, covers)
            }
            ApprovalScope::Host(host) => {
                let covers = format!("connections of commands to {host}, {everywhere}");
                ("network", host.clone(), covers)
            }
            ApprovalScope::Effect(_) | ApprovalScope::Script(_) => return None,
        };
        Some(ProposedRule { rule: NewRule::new(decision, kind, pattern), covers })
    }
}

/// The path as a pattern that matches only it and everything beneath. `None` if it contains wildcards.
fn literal_path(path: &Path) -> Option<&str> {
    path.to_str().filter(|path| !path.contains(['*', '?']))
}

/// A pattern that matches only this command. Leading variables are dropped.
fn exact_command_pattern(words: &[String]) -> Option<String> {
    let is_variable = |word: &&String| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    let quoted = |word: &String| {
        let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
        match word {
            // Wildcards would match more, and a word with both kinds of quotes cannot be written.
            word if word.contains(['*', '?', '\n']) => None,
            word if !word.is_empty() && word.chars().all(plain) => Some(word.clone()),
            word if !word.contains('\'') => Some(format!("'{word}'")),
            word if !word.contains('"') => Some(format!("\"{word}\"")),
            _ => None,
        }
    };
    let words: Vec<String> =
        words.iter().skip_while(is_variable).map(quoted).collect::<Option<_>>()?;
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rules;

    fn proposed(asked: ApprovalScope) -> Option<String> {
        let proposal = Proposal::new(&SessionApprovals::from([asked]), &[], Decision::Allow)?;
        assert_eq!(proposal.covers().count(), 1);
        Some(proposal.text())
    }

    #[test]
    fn rules_cover_only_the_files_of_the_call() {
        let asks = SessionApprovals::from([ApprovalScope::Effect(Effect::Write)]);
        let writes = |paths: &[&str]| -> Vec<Access> {
            paths.iter().map(|path| Access::Write(path.into())).collect()
        };
        let proposed = |accesses: &[Access]| {
            let proposal = Proposal::new(&asks, accesses, Decision::Allow)?;
            Some(proposal.command())
        };
        let mut one = writes(&["/w/ws/a.txt"]);
        one.push(Access::Read("/w/ws/b.txt".into()));
        let line = "toolcrib policy allow edit /w/ws/a.txt";
        assert_eq!(proposed(&one).as_deref(), Some(line));
        let two = proposed(&writes(&["/w/ws/a.txt", "/w/ws/b.txt"])).unwrap();
        assert!(two.contains("a.txt") && two.contains("b.txt"), "{two}");
        assert_eq!(
            proposed(&[Access::WriteAny]),
            None,
            "no rule covers files that are not known yet"
        );
        assert_eq!(proposed(&writes(&["/w/ws/a*"])), None);
        let many: Vec<String> = (0..=MAX_RULES).map(|number| format!("/w/ws/{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(proposed(&writes(&many)), None);
    }

    #[test]
    fn the_wider_rule_is_for_the_directory_of_the_file_and_never_for_a_root() {
        let asks = SessionApprovals::from([ApprovalScope::Effect(Effect::Write)]);
        let wider = |path: &str| {
            let write = [Access::Write(path.into())];
            let proposal = Proposal::new(&asks, &write, Decision::Allow)?;
            Some(proposal.for_directories(&["/w/ws".into(), "/r".into()])?.command())
        };
        let line = "toolcrib policy allow edit /w/ws/src/deep";
        assert_eq!(wider("/w/ws/src/deep/a.txt").as_deref(), Some(line));
        for path in ["/w/ws/a.txt", "/w/ws", "/r/a.txt", "/etc/hosts", "/w/other/a.txt"] {
            assert_eq!(wider(path), None, "{path}");
        }
        let command = SessionApprovals::from([ApprovalScope::Command(vec!["ls".into()])]);
        let command = Proposal::new(&command, &[], Decision::Allow).unwrap();
        assert_eq!(command.for_directories(&["/w/ws".into()]), None);
    }

    #[test]
    fn proposed_rules_parse() {
        for asked in [
            ApprovalScope::Command(vec![
                "git".into(),
                "push".into(),
                "a b".into(),
                "it's".into(),
                "\"\\\u{1b}".into(),
            ]),
            ApprovalScope::Command(vec!["CI=1".into(), "npm".into(), "test".into()]),
            ApprovalScope::Redirection("/w/ws/a \"b\".txt".into()),
            ApprovalScope::External("/etc/x".into()),
            ApprovalScope::Host("example.com".into()),
            ApprovalScope::Path(Effect::Read, "/w/ws/a.txt".into()),
        ] {
            let text = proposed(asked).unwrap();
            assert_eq!(Rules::parse(&text).map(|rules| rules.count()), Ok(1), "{text}");
        }
    }

    #[test]
    fn proposes_nothing_without_an_exact_rule() {
        for asked in [
            ApprovalScope::Script("$x".into()),
            ApprovalScope::Command(vec!["ls".into(), "*".into()]),
            ApprovalScope::Command(vec!["LD_PRELOAD=x".into()]),
            ApprovalScope::Redirection("/w/ws/a*".into()),
        ] {
            assert_eq!(proposed(asked), None);
        }
    }
}
