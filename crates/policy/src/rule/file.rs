//! Parses `rules.toml`. An invalid rule, or one that can match nothing, is an error with its line: ignoring
//! a rule would be worse.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::argv::{ArgvPattern, CommandWords};
use super::content_name::content_name;
use super::host::HostPattern;
use super::path::PathPattern;
use super::path_names::PathNames;
use super::request::{RequestPatterns, RequestSubject};
use super::{Kind, Rule, Rules};
use crate::command::{ShellContext, analyze_command, normalize_lexically};
use crate::contacted_hosts::hosts_in;
use crate::decision::Decision;
use crate::toml_problem::{line_number, toml_problem};

/// More rules than a person can oversee. Each is compared with every command.
const MAX_RULES: usize = 1_000;

/// An error in a rules file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RuleError {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    rule: Vec<Spanned<RuleEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    decision: DecisionWord,
    kind: KindWord,
    name: Option<String>,
    tools: Option<Vec<String>>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    hosts: Vec<String>,
    methods: Option<Vec<String>>,
    #[serde(default)]
    upgrade: bool,
    #[serde(default)]
    why: String,
    #[serde(default)]
    r#match: Vec<String>,
    #[serde(default)]
    not_match: Vec<String>,
}

impl RuleEntry {
    /// Its patterns and its tools, for display.
    fn shown(&self) -> (Vec<String>, Vec<String>) {
        let patterns = match self.kind {
            KindWord::Command => self.commands.clone(),
            KindWord::Read | KindWord::Edit | KindWord::ExternalDirectory => self.paths.clone(),
            KindWord::Network => {
                let methods = self.methods.as_deref().unwrap_or_default();
                let parts = [&self.hosts, methods, &self.paths];
                let upgrade = self.upgrade.then(|| "upgrade".to_owned());
                parts.into_iter().flatten().cloned().chain(upgrade).collect()
            }
        };
        (patterns, self.tools.clone().unwrap_or_default())
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DecisionWord {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindWord {
    Read,
    Edit,
    Command,
    ExternalDirectory,
    Network,
}

impl KindWord {
    /// The word in the file.
    fn name(self) -> &'static str {
        match self {
            KindWord::Read => "read",
            KindWord::Edit => "edit",
            KindWord::Command => "command",
            KindWord::ExternalDirectory => "external_directory",
            KindWord::Network => "network",
        }
    }
}

/// A rule and its place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedRule {
    /// The name in decisions: `rule:` and its name, or a name by its content if it has none.
    pub name: String,
    /// `read`, `edit`, `command`, `external_directory` or `network`.
    pub kind: &'static str,
    /// The decision.
    pub decision: Decision,
    /// The first line, from 1.
    pub first_line: usize,
    /// The last line.
    pub last_line: usize,
    /// The patterns as they are written, with methods and paths of requests behind the hosts.
    pub patterns: Vec<String>,
    /// The tools that it is restricted to.
    pub tools: Vec<String>,
}

impl Rules {
    /// Parses the user's rules and finds their lines. Fails like [`Rules::parse`].
    pub fn locate(text: &str) -> Result<Vec<LocatedRule>, RuleError> {
        let rules = Rules::parse(text)?.rules;
        let file = parse_file(text)?;
        let lines: Vec<&str> = text.lines().collect();
        let firsts = file.rule.iter().map(|one| line_number(text, one.span().start));
        let firsts: Vec<usize> = firsts.collect();
        let located = rules.into_iter().zip(&file.rule).enumerate().map(|(at, (rule, entry))| {
            let first_line = firsts[at];
            let next = firsts.get(at + 1).copied().unwrap_or(lines.len() + 1);
            // Comments and empty lines before the next rule belong to that one.
            let is_content = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#');
            let own = lines.get(first_line - 1..next - 1).unwrap_or_default();
            let length = own.iter().rposition(is_content).map_or(1, |at| at + 1);
            let kind = entry.get_ref().kind.name();
            let last_line = first_line + length - 1;
            let (patterns, tools) = entry.get_ref().shown();
            let (name, decision) = (rule.name, rule.decision);
            LocatedRule { name, kind, decision, first_line, last_line, patterns, tools }
        });
        Ok(located.collect())
    }

    /// The text without these lines, from 1, which must be whole rules. The empty line behind them goes, too.
    pub fn without_lines(text: &str, first: usize, last: usize) -> Result<String, RuleError> {
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        if first == 0 || first > last || last > all.len() {
            return Err(RuleError(format!("there are no lines {first} to {last}")));
        }
        let mut rest = all[last..].iter().copied().peekable();
        rest.next_if(|line| line.trim().is_empty());
        let new: String = all[..first - 1].iter().copied().chain(rest).collect();
        let is_kept = |rule: &LocatedRule| rule.last_line < first || rule.first_line > last;
        let kept = Rules::locate(text)?.into_iter().filter(is_kept).count();
        let left = Rules::locate(&new).map(|rules| rules.len());
        if left == Ok(kept) {
            Ok(new)
        } else {
            Err(RuleError("These lines are not whole rules; remove them by hand.".to_owned()))
        }
    }

    /// Parses the user's rules. Fails at invalid TOML and at rules that can match nothing.
    pub fn parse(text: &str) -> Result<Rules, RuleError> {
        let file = parse_file(text)?;
        if file.rule.len() > MAX_RULES {
            return Err(RuleError(format!("more than {MAX_RULES} rules; combine patterns")));
        }
        let rule = |entry: Spanned<RuleEntry>| {
            let line = line_number(text, entry.span().start);
            let at = |problem: String| RuleError(format!("line {line}: {problem}"));
            build_rule(entry.into_inner()).map_err(at)
        };
        Ok(Rules { rules: file.rule.into_iter().map(rule).collect::<Result<_, _>>()? })
    }

    /// Parses a project's rules, which may only ask and deny. Fails like [`Rules::parse`], and at a rule that
    /// allows.
    pub fn parse_restricting(text: &str) -> Result<Rules, RuleError> {
        let rules = Rules::parse(text)?;
        match rules.rules.iter().find(|rule| rule.decision == Decision::Allow) {
            None => Ok(rules),
            Some(rule) => Err(RuleError(format!(
                "{} has decision \"allow\", but a project's rules can only restrict: move it to your own rules, or change it to \"ask\" or \"deny\"",
                rule.name
            ))),
        }
    }
}

fn parse_file(text: &str) -> Result<RuleFile, RuleError> {
    toml::from_str(text).map_err(|error| {
        let span = error.span();
        let problem = toml_problem(text, span.as_ref(), error.message());
        RuleError(match (problem, span) {
            (Some(problem), Some(span)) => {
                format!("line {}: {problem}", line_number(text, span.start))
            }
            (Some(problem), None) => problem,
            (None, _) => error.to_string().trim_end().to_owned(),
        })
    })
}

fn build_rule(entry: RuleEntry) -> Result<Rule, String> {
    let kind = kind_with_patterns(&entry)?;
    let is_network = kind == Kind::Network;
    // Those of a rule for hosts are paths of URLs.
    let file_paths: &[String] = if is_network { &[] } else { &entry.paths };
    file_paths.iter().try_for_each(|text| check_syntax_of_others(text))?;
    let paths =
        file_paths.iter().map(|text| PathPattern::parse(text)).collect::<Result<Vec<_>, _>>()?;
    if kind == Kind::External
        && let Some(at) = paths.iter().position(|pattern| !pattern.is_absolute())
    {
        return Err(format!(
            "{:?} can match nothing: a path outside the workspace begins with `/` or `~/`",
            entry.paths[at]
        ));
    }
    let decision = match entry.decision {
        DecisionWord::Allow => Decision::Allow,
        DecisionWord::Ask => Decision::Ask,
        DecisionWord::Deny => Decision::Deny,
    };
    let requests = if is_network {
        let (methods, paths) = (entry.methods.as_deref(), &entry.paths);
        RequestPatterns::parse(methods, paths, entry.upgrade, decision)?
    } else {
        None
    };
    let tools = match entry.tools.clone() {
        Some(tools) if tools.is_empty() => {
            return Err(
                "`tools` is empty, so the rule can match nothing; to match all tools, remove it"
                    .to_owned(),
            );
        }
        tools => tools.unwrap_or_default(),
    };
    let name = entry.name.clone().unwrap_or_else(|| content_name_of(&entry, decision));
    let commands = entry.commands.iter().map(|text| ArgvPattern::parse(text));
    let hosts = entry.hosts.iter().map(|text| HostPattern::parse(text));
    let rule = Rule {
        name: format!("rule:{name}"),
        kind,
        decision,
        why: entry.why,
        tools,
        paths,
        commands: commands.collect::<Result<_, _>>()?,
        hosts: hosts.collect::<Result<_, _>>()?,
        requests,
        file: None,
    };
    check_examples(&rule, &entry.r#match, &entry.not_match)?;
    Ok(rule)
}

/// Fails at patterns that other programs expand. Here they are plain characters, so a rule that denies would match nothing.
fn check_syntax_of_others(path: &str) -> Result<(), String> {
    let braces = path.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    if braces.is_some_and(|(inside, _)| inside.contains(',')) {
        return Err(format!(
            "{path:?} has alternatives in braces, which are not expanded: write one pattern for each"
        ));
    }
    if path.starts_with('$') {
        return Err(format!(
            "{path:?} begins with a variable, which is not expanded: `~/` is the home directory"
        ));
    }
    Ok(())
}

/// The kind of a rule. Fails if it has no patterns, or patterns of another kind.
fn kind_with_patterns(entry: &RuleEntry) -> Result<Kind, String> {
    let (kind, patterns, others) = match entry.kind {
        KindWord::Read => (Kind::Read, "paths", FILE_OTHERS),
        KindWord::Edit => (Kind::Edit, "paths", FILE_OTHERS),
        KindWord::ExternalDirectory => (Kind::External, "paths", FILE_OTHERS),
        KindWord::Command => {
            (Kind::Command, "commands", &["paths", "hosts", "methods", "upgrade"][..])
        }
        KindWord::Network => (Kind::Network, "hosts", &["commands"][..]),
    };
    let given = |name: &str| match name {
        "paths" => !entry.paths.is_empty(),
        "commands" => !entry.commands.is_empty(),
        "methods" => entry.methods.is_some(),
        "upgrade" => entry.upgrade,
        _ => !entry.hosts.is_empty(),
    };
    if let Some(other) = others.iter().find(|name| given(name)) {
        return Err(format!("`{other}` has no effect in a rule of this kind; use `{patterns}`"));
    }
    if !given(patterns) {
        return Err(format!(
            "a rule without `{patterns}` can match nothing; to match everything, write {patterns} = [\"{}\"]",
            if patterns == "hosts" { "*" } else { "**" }
        ));
    }
    Ok(kind)
}

/// Keys that have no effect in a rule for files.
const FILE_OTHERS: &[&str] = &["commands", "hosts", "methods", "upgrade"];

/// The name of a rule that has none. Its explanation and its examples do not count.
fn content_name_of(entry: &RuleEntry, decision: Decision) -> String {
    let upgrade = [entry.upgrade.to_string()];
    content_name(
        decision.name(),
        &[
            ("commands", &entry.commands),
            ("paths", &entry.paths),
            ("hosts", &entry.hosts),
            ("methods", entry.methods.as_deref().unwrap_or_default()),
            ("tools", entry.tools.as_deref().unwrap_or_default()),
            ("kind", &[entry.kind.name().to_owned()]),
            ("upgrade", if entry.upgrade { &upgrade } else { &[] }),
        ],
    )
}

/// Fails if the rule does not do what its examples say.
fn check_examples(rule: &Rule, matching: &[String], others: &[String]) -> Result<(), String> {
    for (examples, expected) in [(matching, true), (others, false)] {
        for example in examples {
            if matches_example(rule, example) != expected {
                let does = if expected { "does not match" } else { "matches" };
                let key = if expected { "match" } else { "not_match" };
                return Err(format!(
                    "the rule {does} its own example {example:?} of `{key}`; fix the pattern or the example"
                ));
            }
        }
    }
    Ok(())
}

/// Whether a rule matches an example: a command, a path relative to the workspace, or a host.
pub(super) fn matches_example(rule: &Rule, example: &str) -> bool {
    let context = ShellContext {
        directory: "/workspace".into(),
        home: Some("/home/user".into()),
        roots: vec!["/workspace".into()],
    };
    match rule.kind {
        Kind::Command => analyze_command(example, &context)
            .commands
            .iter()
            .any(|command| rule.matches_command(&CommandWords::new(command))),
        Kind::Network => matches_request_example(rule, example),
        Kind::Read | Kind::Edit | Kind::External => {
            let path = match example.strip_prefix("~/") {
                Some(rest) => Path::new("/home/user").join(rest),
                None => Path::new("/workspace").join(example),
            };
            let path: PathBuf = normalize_lexically(&path);
            rule.matches_path(&PathNames::new(&path, &context))
        }
    }
}

/// Whether a rule matches a host and a port, a URL, or a request: a method and a URL.
fn matches_request_example(rule: &Rule, example: &str) -> bool {
    let (method, url) = example.split_once(' ').unwrap_or(("GET", example));
    // Without a scheme, the example is the host and the port of a URL.
    let url = if url.contains("://") { url.to_owned() } else { format!("host://{url}") };
    let target = url.split_once("://").map_or("", |(_, rest)| rest);
    let target = target.find(['/', '?']).map_or("/", |at| &target[at..]);
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let request = RequestSubject { method, path, query, is_upgrade: false };
    let hosts = hosts_in([url.as_str()].into_iter());
    hosts.iter().any(|host| rule.matches_host(&host.name, host.port))
        && rule.matches_request(&request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_located_with_all_their_lines() {
        let text = "# mine\n[[rule]]\ndecision = \"deny\"\nkind = \"command\"\ncommands = [\n  \"rm\",\n]\n\n\
                    # next\n[[rule]]\nname = \"b\"\ndecision = \"ask\"\nkind = \"edit\"\npaths = [\"*\"]\n# end\n";
        let rules = Rules::locate(text).unwrap();
        let places: Vec<_> = rules
            .iter()
            .map(|rule| (rule.name.as_str(), rule.kind, rule.first_line, rule.last_line))
            .collect();
        let unnamed = rules[0].name.as_str();
        assert!(unnamed.starts_with("rule:"), "{unnamed}");
        assert_eq!(places, [(unnamed, "command", 2, 7), ("rule:b", "edit", 10, 14)]);
        let list = "rule = [{decision = \"deny\", kind = \"command\", commands = [\"rm\"]}]\n";
        assert_eq!(Rules::locate(list).unwrap()[0].last_line, 1);
        assert!(Rules::locate("[[rule]]").is_err());
        assert_eq!(Rules::locate("").unwrap(), []);
    }

    #[test]
    fn parses_a_rules_file() {
        let rules = Rules::parse(
            r#"
            # What I keep to myself.
            [[rule]]
            name = "no-secrets"
            decision = "deny"
            kind = "read"
            paths = ["**/.env", "**/.env.*"]
            why = "secrets live there"
            match = [".env", "web/.env.local"]
            not_match = [".envrc"]

            [[rule]]
            decision = "allow"
            kind = "command"
            commands = ["npm run test", "cargo test **"]
            match = ["npm run test 2>&1 | head", "cd web && cargo test -p x"]
            not_match = ["npm run test:all"]

            [[rule]]
            decision = "ask"
            kind = "external_directory"
            paths = ["~/notes"]
            match = ["~/notes/x"]

            [[rule]]
            decision = "deny"
            kind = "network"
            hosts = ["*.example.com"]
            match = ["https://a.example.com/x", "b.example.com"]
            "#,
        );
        assert_eq!(rules.unwrap().count(), 4);
        let requests = r#"
            [[rule]]
            decision = "allow"
            kind = "network"
            hosts = ["api.example.com:443"]
            methods = ["get", "HEAD"]
            paths = ["/v1/**"]
            match = ["GET https://api.example.com/v1/items?x=y", "HEAD https://api.example.com/v1"]
            not_match = ["POST https://api.example.com/v1/items", "GET https://api.example.com/"]

            [[rule]]
            decision = "deny"
            kind = "network"
            hosts = ["api.example.com"]
            methods = ["DELETE"]
            match = ["DELETE https://api.example.com/v1/items"]
        "#;
        assert_eq!(Rules::parse(requests).unwrap().count(), 2);
        assert_eq!(Rules::parse("").unwrap().count(), 0);
    }

    #[test]
    fn errors_name_the_line() {
        let command = "[[rule]]\ndecision = \"allow\"\nkind = \"command\"\n";
        let network = "[[rule]]\ndecision = \"allow\"\nkind = \"network\"\nhosts = [\"a.b\"]\n";
        let read = "\n[[rule]]\ndecision = \"deny\"\nkind = \"read\"\n";
        for (text, expected) in [
            ("[[rule]\n".to_owned(), "line 1"),
            ("[[rules]]\n".to_owned(), "line 1: unknown key `rules`; known keys: rule"),
            (
                format!("{command}command = [\"ls\"]"),
                "line 4: unknown key `command`; known keys: decision, kind",
            ),
            (
                command.replace("allow", "permit"),
                "line 2: decision must be allow, ask or deny, not \"permit\"",
            ),
            (command.replace("\"command\"", "\"exec\""), "line 3: kind must be read, edit,"),
            ("[[rule]]\nkind = \"read\"".to_owned(), "line 1: the key `decision` is missing"),
            (command.to_owned(), "line 1: a rule without `commands` can match nothing"),
            (format!("{command}paths = [\"x\"]"), "line 1: `paths` has no effect"),
            (format!("{command}commands = [\"ls\"]\ntools = []"), "line 1: `tools` is empty"),
            (format!("{read}paths = [\"../x\"]"), "line 2: \"../x\" can match nothing"),
            (
                format!("{read}paths = [\"**/*.{{py,c}}\"]"),
                "line 2: \"**/*.{py,c}\" has alternatives",
            ),
            (format!("{read}paths = [\"$HOME/x\"]"), "begins with a variable"),
            (format!("{command}commands = [\"ls | cat\"]"), "matched separately"),
            (format!("{command}commands = [\"Bash(npm test)\"]"), "write only the command"),
            (network.replace("a.b", ".a.b"), "can match nothing"),
            (
                format!("{command}commands = [\"ls\"]\nmatch = [\"ls -l\"]"),
                "line 1: the rule does not match its own example \"ls -l\"",
            ),
            (
                format!("{command}commands = [\"ls **\"]\nnot_match = [\"ls -l\"]"),
                "matches its own example \"ls -l\" of `not_match`",
            ),
            (
                format!("{command}commands = [\"ls\"]\nmethods = [\"GET\"]"),
                "`methods` has no effect",
            ),
            (format!("{network}methods = []"), "`methods` is empty"),
            (format!("{network}methods = [\"G T\"]"), "a method is a word"),
            (format!("{network}paths = [\"x\"]"), "begins with `/`"),
            (format!("{network}upgrade = true"), "`upgrade` has no effect"),
            (format!("{network}methods = [\"POST\"]\nupgrade = true"), "allows GET"),
            (network.replace("allow", "ask") + "paths = [\"/x\"]", "allows or denies"),
            (network.replace("allow", "deny") + "paths = [\"/x?y\"]", "cannot name a query"),
            (
                read.replace("read", "external_directory") + "paths = [\"notes\"]",
                "begins with `/` or `~/`",
            ),
        ] {
            let error = Rules::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }

    #[test]
    fn project_rules_may_not_allow() {
        let allow = "[[rule]]\ndecision = \"allow\"\nkind = \"command\"\ncommands = [\"ls\"]";
        assert!(Rules::parse_restricting(allow).unwrap_err().to_string().contains("only restrict"));
        assert!(Rules::parse_restricting(&allow.replace("allow", "deny")).is_ok());
    }
}
