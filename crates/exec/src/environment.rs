//! Filters the user's environment for commands.
//!
//! Secrets are removed, and variables that make programs run other code. Fixed values keep commands from
//! waiting for a person: pagers print, editors fail and say what to do instead, prompts fail.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// An environment for commands, and the variables that were removed from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The variables that commands get.
    pub variables: Vec<(OsString, OsString)>,
    /// The names of the removed variables, sorted.
    pub removed: Vec<String>,
    /// The removed secrets, with their values. These values must not appear in any output.
    pub secrets: Vec<(OsString, OsString)>,
}

/// A name that contains one of these is a secret.
const SECRET_SUBSTRINGS: [&str; 11] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASSCODE",
    "CREDENTIAL",
    "PRIVATE",
    "CONNECTIONSTRING",
    "CONNECTION_STRING",
];

/// A name with one of these words is a secret. Words are separated by `_`; trailing digits are ignored.
const SECRET_WORDS: [&str; 13] = [
    "APIAUTH", "BEARER", "COOKIE", "COOKIES", "CRED", "CREDS", "DSN", "JWT", "OTP", "PAT", "PSW",
    "PW", "WEBHOOK",
];

/// Like [`SECRET_WORDS`], but only as the last word: in the middle they say what a file or a socket is for.
const SECRET_LAST_WORDS: [&str; 2] = ["AUTH", "SALT"];

/// A word with one of these suffixes is a secret, as in `PGPASS` and `MYSQL_PWD`.
const SECRET_SUFFIXES: [&str; 3] = ["PASS", "PWD", "PSWD"];

/// Names that match the rules above, but hold no secret or name a program.
const NOT_SECRET_NAMES: [&str; 6] =
    ["OLDPWD", "PWD", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "SSH_ASKPASS_REQUIRE"];

/// Secrets that match none of the rules above.
const SECRET_NAMES: [&str; 1] = ["DOCKER_AUTH_CONFIG"];

/// Variables for telemetry of this program: where it is sent, and with which credentials.
const TELEMETRY_PREFIX: &str = "OTEL_EXPORTER_OTLP_";

/// Variables that configure this program only.
const OWN_NAMES: [&str; 1] = ["TOOLCRIB_SSH"];

/// Fields of connection strings, in lower case, whose value is a secret.
const SECRET_FIELDS: [&str; 5] =
    ["password=", "pwd=", "accountkey=", "sharedaccesskey=", "authtoken="];

/// Prefixes of variables that make programs run other code or load other libraries.
const RUNS_CODE_PREFIXES: [&str; 4] = ["LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG"];

/// Names of variables that make programs run other code or load other libraries.
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

/// Variables that describe a terminal, which commands do not have, or another shell.
const TERMINAL_AND_SHELL_NAMES: [&str; 9] = [
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

/// An editor that fails and says what to do instead. git and others run it with a shell; programs that take
/// it as the name of a program fail at once. The message is in a variable, since git repeats the command.
const NO_EDITOR: &str = "sh -c 'echo \"$TOOLCRIB_NO_EDITOR\" >&2; exit 1' editor";
const NO_EDITOR_MESSAGE: &str =
    "no editor: there is no terminal. Pass the text in the command (git commit -m TEXT)";

/// The editor of git: it keeps an existing message (of a merge, an amended commit, a rebase) and fails if
/// there is none.
const MESSAGE_EDITOR: &str = "sh -c 'grep -q \"^[^#]\" \"$1\" 2>/dev/null || { echo \"$TOOLCRIB_NO_EDITOR\" >&2; exit 1; }' editor";

/// The editor for the list of an interactive rebase: it always fails.
const NO_LIST_EDITOR: &str = "sh -c 'echo \"$TOOLCRIB_NO_LIST_EDITOR\" >&2; exit 1' editor";
const NO_LIST_EDITOR_MESSAGE: &str = "no editor: there is no terminal. Set GIT_SEQUENCE_EDITOR to a command that edits the list of commits (sed -i 2s/pick/squash/), or to true to keep it unchanged";

/// Variables that every command gets, whatever the user's values are.
const FIXED: [(&str, &str); 20] = [
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("EDITOR", NO_EDITOR),
    ("GCM_INTERACTIVE", "never"),
    ("GIT_ASKPASS", "/bin/false"),
    ("GIT_EDITOR", MESSAGE_EDITOR),
    ("GIT_PAGER", "cat"),
    ("GIT_SEQUENCE_EDITOR", NO_LIST_EDITOR),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"),
    ("PAGER", "cat"),
    ("PIP_NO_INPUT", "1"),
    ("PYTHONIOENCODING", "utf-8"),
    ("SSH_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS_REQUIRE", "force"),
    ("SUDO_ASKPASS", "/bin/false"),
    ("SYSTEMD_PAGER", "cat"),
    ("TERM", "dumb"),
    ("TOOLCRIB_NO_EDITOR", NO_EDITOR_MESSAGE),
    ("TOOLCRIB_NO_LIST_EDITOR", NO_LIST_EDITOR_MESSAGE),
    ("VISUAL", NO_EDITOR),
];

/// The `PATH` if the user's environment has none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Environment {
    /// Builds the environment of commands from the user's environment. `is_token` recognises secret values,
    /// whatever the name of their variable.
    pub fn from_user(
        users: impl IntoIterator<Item = (OsString, OsString)>,
        is_token: impl Fn(&str) -> bool,
    ) -> Environment {
        let mut environment = Environment::default();
        for (name, value) in users {
            let shown = name.to_string_lossy().into_owned();
            let text = value.to_string_lossy();
            if is_secret(&shown) || has_credentials(&text) || is_token(&text) {
                environment.secrets.push((name, value));
                environment.removed.push(shown);
            } else if runs_code(&shown)
                || shown.starts_with(TELEMETRY_PREFIX)
                || OWN_NAMES.contains(&shown.as_str())
            {
                environment.removed.push(shown);
            } else if !TERMINAL_AND_SHELL_NAMES.contains(&shown.as_str()) {
                let value = if shown == "PATH" { absolute_only(&value) } else { value };
                environment.set(name, value);
            }
        }
        for (name, value) in FIXED {
            environment.set(name.into(), value.into());
        }
        if environment.get("PATH").is_none_or(OsStr::is_empty) {
            environment.set("PATH".into(), DEFAULT_PATH.into());
        }
        if ["LC_ALL", "LC_CTYPE", "LANG"].iter().all(|name| environment.get(name).is_none()) {
            environment.set("LANG".into(), "C.UTF-8".into());
        }
        environment.removed.sort();
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

/// Whether a variable is a secret by its name.
pub fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if NOT_SECRET_NAMES.contains(&upper.as_str()) {
        return false;
    }
    let mut words =
        upper.split('_').map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    let last = words.clone().next_back().unwrap_or_default();
    SECRET_SUBSTRINGS.iter().any(|secret| upper.contains(secret))
        || SECRET_NAMES.contains(&upper.as_str())
        || SECRET_LAST_WORDS.contains(&last)
        || (upper.starts_with(TELEMETRY_PREFIX) && last == "HEADERS")
        || words.any(is_secret_word)
}

fn is_secret_word(word: &str) -> bool {
    // Plain words with a secret suffix.
    let is_plain = matches!(word, "BYPASS" | "COMPASS" | "ASKPASS");
    SECRET_WORDS.contains(&word)
        || (!is_plain && SECRET_SUFFIXES.iter().any(|end| word.ends_with(end)))
}

/// Whether a value contains a password: `scheme://user:password@host`, or a field of a connection string.
fn has_credentials(value: &str) -> bool {
    let in_address = value.match_indices("://").any(|(at, sign)| {
        let rest = &value[at + sign.len()..];
        let authority = &rest[..rest.find(['/', '?', '#', ' ']).unwrap_or(rest.len())];
        let login = authority.rsplit_once('@').map_or("", |(login, _)| login);
        login.split_once(':').is_some_and(|(_, password)| !password.is_empty())
    });
    let small = value.to_ascii_lowercase();
    in_address || SECRET_FIELDS.iter().any(|field| small.contains(field))
}

fn runs_code(name: &str) -> bool {
    RUNS_CODE_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || RUNS_CODE.contains(&name)
}

/// Removes relative entries from a `PATH`: a program planted in the current directory would run in place of
/// another.
fn absolute_only(path: &OsStr) -> OsString {
    let entries = path.as_bytes().split(|&byte| byte == b':');
    let absolute: Vec<&[u8]> = entries.filter(|entry| entry.starts_with(b"/")).collect();
    OsString::from_vec(absolute.join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(users: &[(&str, &str)]) -> Environment {
        let users = users.iter().map(|(name, value)| (name.into(), value.into()));
        Environment::from_user(users, |value| value.starts_with("ghp_"))
    }

    #[test]
    fn secrets_and_code_injecting_variables_are_removed_and_named() {
        let names =
            ["OPENAI_API_KEY", "github_token", "LD_PRELOAD", "BASH_FUNC_ls%%", "NODE_OPTIONS"];
        let mut users: Vec<(&str, &str)> = names.iter().map(|name| (*name, "x")).collect();
        users.push(("EDITOR", "vim"));
        users.push(("MINE", "1"));
        let environment = of(&users);
        let mut expected = names.map(str::to_owned);
        expected.sort();
        assert_eq!(environment.removed, expected);
        let secrets: Vec<&OsString> = environment.secrets.iter().map(|(name, _)| name).collect();
        assert_eq!(secrets, ["OPENAI_API_KEY", "github_token"]);
        assert_eq!(environment.get("EDITOR"), Some(OsStr::new(NO_EDITOR)));
        assert_eq!(environment.get("MINE"), Some(OsStr::new("1")));
        assert!(names.iter().all(|name| environment.get(name).is_none()));
    }

    #[test]
    fn secrets_are_recognised_by_name_and_by_value() {
        for name in [
            "GITHUB_PAT",
            "MYSQL_PWD",
            "REDISCLI_AUTH",
            "PGPASS",
            "PGPASSWORD",
            "NPM_CONFIG__AUTH",
            "SLACK_WEBHOOK_URL",
            "JWT",
            "COOKIE",
            "SENTRY_DSN",
            "DOCKER_AUTH_CONFIG",
            "AZURE_STORAGE_CONNECTION_STRING",
            "SSHPASS",
            "GH_PAT2",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        ] {
            assert!(is_secret(name) && of(&[(name, "x")]).get(name).is_none(), "{name}");
        }
        for name in ["OTEL_EXPORTER_OTLP_ENDPOINT", "TOOLCRIB_SSH"] {
            assert!(of(&[(name, "x")]).get(name).is_none(), "{name}");
        }
        for (name, value) in [
            ("DATABASE_URL", "postgres://me:p%40ss@db/x"),
            ("MIRROR", "see https://a/ and https://u:p@host"),
            ("ADO", "Server=x;Password=y"),
            ("ANY", "ghp_x"),
        ] {
            let environment = of(&[(name, value)]);
            assert!(environment.get(name).is_none() && environment.secrets.len() == 1, "{name}");
        }
        for (name, value) in [
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("COMPASS", "north"),
            ("PATH_INFO", "/a"),
            ("HTTP_PROXY", "http://proxy:3128"),
            ("XDG_SESSION_ID", "3"),
            ("REPOSITORY", "ssh://git@host:22/x"),
        ] {
            assert_eq!(of(&[(name, value)]).get(name), Some(OsStr::new(value)), "{name}");
        }
    }

    #[test]
    fn path_keeps_only_absolute_entries() {
        assert_eq!(of(&[("PATH", ".:/a::b:/c")]).get("PATH"), Some(OsStr::new("/a:/c")));
        assert_eq!(of(&[]).get("PATH"), Some(OsStr::new(DEFAULT_PATH)));
        assert_eq!(of(&[]).get("LANG"), Some(OsStr::new("C.UTF-8")));
        assert_eq!(of(&[("LC_ALL", "de_DE.UTF-8")]).get("LANG"), None);
    }
}
