//! A rule that is to be added, as text for `rules.toml` and as the command that adds it.

use crate::decision::Decision;

/// A rule with the patterns that it is written with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    /// The decision.
    pub decision: Decision,
    /// `read`, `edit`, `command`, `external_directory` or `network`.
    pub kind: &'static str,
    /// The paths, commands or hosts.
    pub patterns: Vec<String>,
    /// The methods of requests to hosts.
    pub methods: Vec<String>,
    /// The paths of requests to hosts.
    pub request_paths: Vec<String>,
    /// Whether requests may upgrade the protocol.
    pub upgrade: bool,
    /// The reason, which the agent sees. Empty if there is none.
    pub why: String,
    /// The file that it is added to, if that is not the usual one.
    pub file: Option<String>,
}

impl NewRule {
    /// A rule for one pattern.
    pub fn new(decision: Decision, kind: &'static str, pattern: impl Into<String>) -> NewRule {
        NewRule {
            decision,
            kind,
            patterns: vec![pattern.into()],
            methods: Vec::new(),
            request_paths: Vec::new(),
            upgrade: false,
            why: String::new(),
            file: None,
        }
    }

    /// The rule in the format of `rules.toml`.
    pub fn text(&self) -> String {
        let key = match self.kind {
            "command" => "commands",
            "network" => "hosts",
            _ => "paths",
        };
        let list = |key: &str, values: &[String]| {
            let values: Vec<String> = values.iter().map(|value| toml_string(value)).collect();
            format!("{key} = [{}]\n", values.join(", "))
        };
        let mut text = format!("[[rule]]\ndecision = \"{}\"\n", self.decision.name());
        text += &format!("kind = \"{}\"\n", self.kind);
        text += &list(key, &self.patterns);
        if !self.methods.is_empty() {
            text += &list("methods", &self.methods);
        }
        if !self.request_paths.is_empty() {
            text += &list("paths", &self.request_paths);
        }
        if self.upgrade {
            text += "upgrade = true\n";
        }
        if !self.why.is_empty() {
            text += &format!("why = {}\n", toml_string(&self.why));
        }
        text
    }

    /// The command that adds the rule, for a shell.
    pub fn command(&self) -> String {
        let mut words = vec!["toolcrib", "policy", self.decision.name(), self.kind];
        if let Some(file) = &self.file {
            words.extend(["--rules", file]);
        }
        for method in &self.methods {
            words.extend(["--method", method]);
        }
        for path in &self.request_paths {
            words.extend(["--path", path]);
        }
        if self.upgrade {
            words.push("--upgrade");
        }
        if !self.why.is_empty() {
            words.extend(["--why", &self.why]);
        }
        if self.patterns.iter().any(|pattern| pattern.starts_with('-')) {
            words.push("--");
        }
        words.extend(self.patterns.iter().map(String::as_str));
        words.into_iter().map(shell_word).collect::<Vec<_>>().join(" ")
    }
}

/// The text as a TOML string.
fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// The text as one word of a shell. Control characters are escaped, because a terminal would act on them.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.contains(char::is_control) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut quoted = String::from("$'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    quoted += &format!("\\x{byte:02x}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted + "'"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rules;

    #[test]
    fn the_command_is_quoted_for_a_shell() {
        for (pattern, expected) in [
            ("ls", "toolcrib policy allow command ls"),
            ("npm test **", "toolcrib policy allow command 'npm test **'"),
            ("echo \"it's\"", "toolcrib policy allow command 'echo \"it'\\''s\"'"),
            ("$(rm x) `y`", "toolcrib policy allow command '$(rm x) `y`'"),
            ("-x", "toolcrib policy allow command -- -x"),
            ("a \u{1b}'\\", "toolcrib policy allow command $'a \\x1b\\'\\\\'"),
        ] {
            let rule = NewRule::new(Decision::Allow, "command", pattern);
            assert_eq!(rule.command(), expected);
        }
    }

    #[test]
    fn the_command_names_another_file() {
        let file = Some("/my rules.toml".to_owned());
        let rule = NewRule { file, ..NewRule::new(Decision::Allow, "command", "ls") };
        let expected = "toolcrib policy allow command --rules '/my rules.toml' ls";
        assert_eq!(rule.command(), expected);
    }

    #[test]
    fn a_rule_for_requests_has_its_options_and_parses() {
        let rule = NewRule {
            methods: vec!["GET".to_owned()],
            request_paths: vec!["/v1/**".to_owned()],
            why: "issues only".to_owned(),
            ..NewRule::new(Decision::Allow, "network", "api.example.com:443")
        };
        assert_eq!(
            rule.command(),
            "toolcrib policy allow network --method GET --path '/v1/**' --why 'issues only' api.example.com:443"
        );
        assert_eq!(Rules::parse(&rule.text()).map(|rules| rules.count()), Ok(1), "{}", rule.text());
    }
}
