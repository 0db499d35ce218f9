//! The commands that change a setting, as messages name them.

use std::path::Path;

use crate::new_rule::shell_word;

/// How the operator changes a setting: in which configuration file, and which settings a flag decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingHints {
    /// The file, if it is not the usual one.
    file: Option<String>,
    /// Settings with the flag that decides them, whatever the file says.
    by_flag: Vec<(&'static str, &'static str)>,
}

impl SettingHints {
    /// Names the configuration file, which is not the usual one.
    #[must_use]
    pub fn in_file(self, file: &Path) -> SettingHints {
        SettingHints { file: Some(file.display().to_string()), ..self }
    }

    /// Names a flag that decides a setting: a change of the file would have no effect.
    #[must_use]
    pub fn with_flag(mut self, setting: &'static str, flag: &'static str) -> SettingHints {
        self.by_flag.push((setting, flag));
        self
    }

    /// Whether a flag decides a setting.
    pub fn is_flag(&self, setting: &str) -> bool {
        self.flag(setting).is_some()
    }

    /// The command of `toolcrib config` with these words, the subcommand first, for a shell.
    pub fn command(&self, words: &[&str]) -> String {
        let (subcommand, rest) = words.split_at(words.len().min(1));
        let file = self.file.iter().flat_map(|file| ["--config", file]);
        let words = ["toolcrib", "config"].into_iter().chain(subcommand.iter().copied());
        let words = words.chain(file).chain(rest.iter().copied());
        words.map(shell_word).collect::<Vec<_>>().join(" ")
    }

    /// What gives a setting this value: a command, or the flag that decides it.
    pub fn what_sets(&self, setting: &str, value: &str) -> String {
        match self.flag(setting) {
            Some(flag) => format!("{flag} {}", shell_word(value)),
            None => self.command(&["set", setting, value]),
        }
    }

    /// What the operator does to give a setting this value.
    pub fn to_set(&self, setting: &str, value: &str) -> String {
        let what = self.what_sets(setting, value);
        match self.flag(setting) {
            Some(flag) => format!("change the flag `{flag}` to `{what}`"),
            None => format!("run `{what}`"),
        }
    }

    fn flag(&self, setting: &str) -> Option<&'static str> {
        self.by_flag.iter().find(|(known, _)| *known == setting).map(|(_, flag)| *flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_another_file_and_flags_decide() {
        let hints = SettingHints::default();
        assert_eq!(hints.to_set("network", "list"), "run `toolcrib config set network list`");
        let hints = hints.in_file(Path::new("/my config.toml")).with_flag("profile", "--profile");
        let added = hints.command(&["add", "allow_protected", "a b"]);
        assert_eq!(added, "toolcrib config add --config '/my config.toml' allow_protected 'a b'");
        assert_eq!(
            hints.to_set("profile", "workspace"),
            "change the flag `--profile` to `--profile workspace`"
        );
        assert!(hints.is_flag("profile") && !hints.is_flag("outside"));
    }
}
