//! Finds the rule that makes a new one useless.

use super::file::matches_example;
use super::{Kind, Rule, Rules};
use crate::decision::Decision;

impl Rules {
    /// The strictest rule that decides on all that a pattern of a new rule matches, with its decision, if it is at least as
    /// strict as `decision`. `kind` is a word of `rules.toml`. Rules for some tools or some requests are not considered.
    pub fn covering(
        &self,
        kind: &str,
        pattern: &str,
        decision: Decision,
    ) -> Option<(&str, Decision)> {
        let kind = Kind::named(kind)?;
        // A pattern matches its own text with a name in place of each wildcard. A rule for a part of the pattern, such as
        // `git push` of `git **`, does not match such a name.
        let sample = pattern.replace("**", "example").replace('*', "example").replace('?', "x");
        let covers = |rule: &Rule| {
            rule.decision >= decision
                && rule.tools.is_empty()
                && rule.requests.is_none()
                && matches_example(rule, &sample)
        };
        let rule = self.strictest(kind, covers)?;
        Some((&rule.name, rule.decision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_covers_a_pattern_only_as_a_whole() {
        let rules = |kind: &str, key: &str, pattern: &str, decision: &str| {
            let text = format!(
                "[[rule]]\nname = \"n\"\ndecision = \"{decision}\"\nkind = \"{kind}\"\n{key} = [\"{pattern}\"]\n"
            );
            Rules::parse(&text).unwrap()
        };
        for (kind, key, existing, new, expected) in [
            ("command", "commands", "git push", "git push", true),
            ("command", "commands", "git push", "git push origin **", true),
            ("command", "commands", "git **", "git push **", true),
            ("command", "commands", "git push", "git **", false),
            ("command", "commands", "git push --force", "git push **", false),
            ("read", "paths", "**/.env", "sub/.env", true),
            ("read", "paths", "secrets/**", "secrets/**", true),
            ("read", "paths", "secrets/a", "secrets/**", false),
            ("edit", "paths", "**", "src/**/*.rs", true),
            ("external_directory", "paths", "/data/**", "/data/x/**", true),
            ("network", "hosts", "example.com", "example.com:443", true),
            ("network", "hosts", "*.example.com", "*.example.com", true),
            ("network", "hosts", "a.example.com", "*.example.com", false),
        ] {
            let found = rules(kind, key, existing, "deny");
            let found = found.covering(kind, new, Decision::Allow);
            let expected = expected.then_some(("rule:n", Decision::Deny));
            assert_eq!(found, expected, "{kind} {existing} | {new}");
        }
        let ask = rules("command", "commands", "git push", "ask");
        let covering = |decision| ask.covering("command", "git push", decision).is_some();
        assert!(covering(Decision::Allow) && covering(Decision::Ask) && !covering(Decision::Deny));
        assert_eq!(ask.covering("edit", "git push", Decision::Allow), None);
    }
}
