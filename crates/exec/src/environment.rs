//! What of the user's environment a command gets.
//!
//! Not what is secret, and not what makes programs run code that nobody asked for. And so that nothing
//! waits for a person: pagers print, editors do nothing, prompts fail.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// An environment for commands, and the names of the variables that were left out of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// What commands get.
    pub variables: Vec<(OsString, OsString)>,
    /// What they do not get.
    pub left_out: Vec<String>,
    /// What of that is secret, with its values: nothing that is shown may have them.
    pub secrets: Vec<(OsString, OsString)>,
}

/// Parts of names by which secrets are known.
const SECRETS: [&str; 8] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "PRIVATE"];

/// Beginnings of names of variables that have programs run code, or take libraries from elsewhere.
const RUNS_CODE_PREFIXES: [&str; 4] = ["LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG"];

/// The same, as whole names.
const RUNS_CODE: [&str; 26] = [
    "BASH_ENV",
    "BASHOPTS",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GIT_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GLOBIGNORE",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSCLOSE",
    "LESSOPEN",
    "NODE_OPTIONS",
    "PERL5DB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONINSPECT",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "SHELLOPTS",
    "_JAVA_OPTIONS",
];

/// What describes a terminal that is not there, or a shell that is not this one.
const OF_ANOTHER: [&str; 9] = [
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "_",
];

/// What every command gets, whatever the user has: nothing waits for a person, nothing draws.
const FIXED: [(&str, &str); 19] = [
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("EDITOR", "true"),
    ("GCM_INTERACTIVE", "never"),
    ("GIT_ASKPASS", "/bin/false"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("PIP_NO_INPUT", "1"),
    ("PYTHONIOENCODING", "utf-8"),
    ("SSH_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS_REQUIRE", "force"),
    ("SUDO_ASKPASS", "/bin/false"),
    ("SYSTEMD_PAGER", "cat"),
    ("TERM", "dumb"),
    ("VISUAL", "true"),
];

/// Where programs are, if the user's environment does not say.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Environment {
    /// What commands get of a user's environment.
    pub fn of(users: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
        let mut environment = Environment::default();
        for (name, value) in users {
            let shown = name.to_string_lossy().into_owned();
            if is_left_out(&shown) {
                if is_secret(&shown) {
                    environment.secrets.push((name, value));
                }
                environment.left_out.push(shown);
            } else if !OF_ANOTHER.contains(&shown.as_str()) {
                let value = if shown == "PATH" { absolute_only(&value) } else { value };
                environment.set(name, value);
            }
        }
        for (name, value) in FIXED {
            environment.set(name.into(), value.into());
        }
        if environment.get("PATH").is_none_or(OsStr::is_empty) {
            environment.set("PATH".into(), USUAL_PATH.into());
        }
        if ["LC_ALL", "LC_CTYPE", "LANG"].iter().all(|name| environment.get(name).is_none()) {
            environment.set("LANG".into(), "C.UTF-8".into());
        }
        environment.left_out.sort();
        environment
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }

    fn set(&mut self, name: OsString, value: OsString) {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value));
    }
}

/// Whether a variable has a secret, by its name.
pub fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRETS.iter().any(|secret| upper.contains(secret))
}

fn is_left_out(name: &str) -> bool {
    is_secret(name)
        || RUNS_CODE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || RUNS_CODE.contains(&name)
}

/// A `PATH` without what depends on where one is: a program planted there would be taken for another.
fn absolute_only(path: &OsStr) -> OsString {
    let entries = path.as_bytes().split(|&byte| byte == b':');
    let absolute: Vec<&[u8]> = entries.filter(|entry| entry.starts_with(b"/")).collect();
    OsString::from_vec(absolute.join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(users: &[(&str, &str)]) -> Environment {
        Environment::of(users.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn secrets_and_what_runs_code_are_left_out_and_named() {
        let names =
            ["OPENAI_API_KEY", "github_token", "LD_PRELOAD", "BASH_FUNC_ls%%", "NODE_OPTIONS"];
        let mut users: Vec<(&str, &str)> = names.iter().map(|name| (*name, "x")).collect();
        users.push(("EDITOR", "vim"));
        users.push(("MINE", "1"));
        let environment = of(&users);
        let mut expected = names.map(str::to_owned);
        expected.sort();
        assert_eq!(environment.left_out, expected);
        let secrets: Vec<&OsString> = environment.secrets.iter().map(|(name, _)| name).collect();
        assert_eq!(secrets, ["OPENAI_API_KEY", "github_token"]);
        assert_eq!(environment.get("EDITOR"), Some(OsStr::new("true")));
        assert_eq!(environment.get("MINE"), Some(OsStr::new("1")));
        assert!(names.iter().all(|name| environment.get(name).is_none()));
    }

    #[test]
    fn a_path_has_only_what_is_the_same_everywhere() {
        assert_eq!(of(&[("PATH", ".:/a::b:/c")]).get("PATH"), Some(OsStr::new("/a:/c")));
        assert_eq!(of(&[]).get("PATH"), Some(OsStr::new(USUAL_PATH)));
        assert_eq!(of(&[]).get("LANG"), Some(OsStr::new("C.UTF-8")));
        assert_eq!(of(&[("LC_ALL", "de_DE.UTF-8")]).get("LANG"), None);
    }
}
