//! The environment of the user's login shell.
//!
//! A server that a desktop starts has a minimal environment: no `PATH` of nvm, pyenv or cargo. The login shell
//! runs in the background without write access. Only the output of `env` is used. It is cached for the next
//! server until a file that the shell reads has changed.

mod cache;
mod files;
mod loading;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use toolcrib_exec::{Command, Stdin};

use super::Variables;

pub use self::files::login_files;
pub(super) use self::loading::{Loaded, Login, LoginProbe};

/// Separates the startup output of the shell from the output of `env`. The script spells it with a backslash,
/// so that a shell which echoes its commands does not print it.
const MARKER: &[u8] = b"\x01toolcrib\x01";

/// Variables that a login provides. With others, the result would depend on the program that started us.
const LOGIN_VARIABLES: [&str; 8] =
    ["HOME", "LANG", "LOGNAME", "SHELL", "TZ", "USER", "XDG_CONFIG_HOME", "ZDOTDIR"];

/// `PATH` of a login.
const LOGIN_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Initial environment of the login shell.
fn environment_at_login(own: &Variables) -> Variables {
    let is_kept = |name: &OsString| {
        name.to_str().is_some_and(|name| LOGIN_VARIABLES.contains(&name) || name.starts_with("LC_"))
    };
    let mut environment: Variables =
        own.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
    environment.sort();
    environment.push(("PATH".into(), LOGIN_PATH.into()));
    environment.push(("TERM".into(), "dumb".into()));
    environment
}

/// The command that makes the login shell `shell` print its environment.
fn login_command(bash: &Path, shell: &Path, mut environment: Variables) -> Command {
    let script = b"exec \"$TOOLCRIB_LOGIN_SHELL\" -l -i -c 'printf \"\\001toolcrib\\001\"; command env -0; printf \"\\001toolcrib\\001\"' 2>/dev/null";
    let directory = home(&environment).unwrap_or_else(|| "/".into());
    environment.push(("TOOLCRIB_LOGIN_SHELL".into(), shell.into()));
    Command {
        script: script.to_vec(),
        shell: bash.to_owned(),
        directory,
        environment,
        stdin: Stdin::EMPTY,
        separate_streams: false,
    }
}

fn home(environment: &Variables) -> Option<PathBuf> {
    let home = environment.iter().find(|(name, _)| name == "HOME");
    home.map(|(_, home)| PathBuf::from(home)).filter(|home| home.is_absolute())
}

/// Merges the two. The process's own variables take precedence; `PATH` has the entries of both.
pub(super) fn merged(own: Variables, login: Variables) -> Variables {
    let path = |variables: &Variables| {
        variables.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone())
    };
    let paths = [path(&own), path(&login)];
    let mut entries: Vec<Vec<u8>> = Vec::new();
    for path in paths.iter().flatten() {
        for entry in path.as_bytes().split(|&byte| byte == b':') {
            if !entries.iter().any(|known| known == entry) {
                entries.push(entry.to_vec());
            }
        }
    }
    let known = |name: &OsString| own.iter().any(|(known, _)| known == name);
    let mut all: Variables = login.into_iter().filter(|(name, _)| !known(name)).collect();
    all.extend(own);
    all.retain(|(name, _)| name != "PATH" && name != "TOOLCRIB_LOGIN_SHELL");
    all.push(("PATH".into(), OsString::from_vec(entries.join(&b':'))));
    all
}

/// Parses the output of that command, once it is complete.
fn parse(output: &[u8]) -> Option<Variables> {
    let begin = find(output, MARKER)? + MARKER.len();
    let rest = output.get(begin..)?;
    let between = rest.get(..find(rest, MARKER)?)?;
    let variable = |entry: &[u8]| {
        let equals = entry.iter().position(|&byte| byte == b'=')?;
        let (name, value) = entry.split_at(equals);
        let value = value.get(1..)?;
        Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
    };
    Some(between.split(|&byte| byte == 0).filter_map(variable).collect())
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn startup_output_is_ignored() {
        let output = b"Welcome!\n\x01toolcrib\x01A=1\0B=two\nlines\0\x01toolcrib\x01bye";
        assert_eq!(parse(output), Some(variables(&[("A", "1"), ("B", "two\nlines")])));
        assert_eq!(parse(b"Welcome!\n\x01toolcrib\x01A=1\0"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn own_variables_take_precedence_and_paths_are_merged() {
        let own = variables(&[("PATH", "/venv/bin:/bin"), ("A", "own")]);
        let login = variables(&[("PATH", "/nvm/bin:/bin"), ("A", "login"), ("B", "login")]);
        let expected = [("B", "login"), ("A", "own"), ("PATH", "/venv/bin:/bin:/nvm/bin")];
        assert_eq!(merged(own, login), variables(&expected));
    }
}
