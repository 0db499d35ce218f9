//! Variables that describe the terminal or the program of one client. A shared server does not have them, so that no client
//! gets those of another.

use std::ffi::OsStr;

const NAMES: [&str; 37] = [
    "_",
    "CHROME_DESKTOP",
    "CLAUDECODE",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "DESKTOP_STARTUP_ID",
    "FORCE_COLOR",
    "GIO_LAUNCHED_DESKTOP_FILE",
    "GIO_LAUNCHED_DESKTOP_FILE_PID",
    "GPG_TTY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LC_TERMINAL",
    "LC_TERMINAL_VERSION",
    "LINES",
    "MANAGERPID",
    "NVIM",
    "OLDPWD",
    "ORIGINAL_XDG_CURRENT_DESKTOP",
    "SHLVL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STY",
    "SYSTEMD_EXEC_PID",
    "TERM",
    "TERMINAL_EMULATOR",
    "TMUX",
    "TMUX_PANE",
    "VIMRUNTIME",
    "VTE_VERSION",
    "WINDOW",
    "WINDOWID",
    "WINDOWPATH",
    "XDG_ACTIVATION_TOKEN",
    "XDG_SESSION_ID",
];

const PREFIXES: [&str; 17] = [
    "ALACRITTY_",
    "CLAUDE_CODE_",
    "CURSOR_",
    "ELECTRON_",
    "GEMINI_CLI",
    "GHOSTTY_",
    "GNOME_TERMINAL_",
    "ITERM_",
    "KITTY_",
    "KONSOLE_",
    "OPENCODE",
    "TERM_",
    "VSCODE_",
    "WEZTERM_",
    "WT_",
    "ZED_",
    "ZELLIJ",
];

/// Ends of names whose values decide which paths are hidden and which values are masked. These variables count, whatever
/// program they are of.
const COUNTING_ENDS: [&str; 5] = ["_DIR", "_HOME", "_KEY", "_SECRET", "_TOKEN"];

/// The working directory of the shell. Only the names of the roots depend on it.
const PWD: &str = "PWD";

/// Whether a shared server does not have a variable.
pub(super) fn is_removed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let counts = || COUNTING_ENDS.iter().any(|end| name.ends_with(end));
    NAMES.contains(&name) || (PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !counts())
}

/// Whether clients with different values of a variable have different servers.
pub(super) fn counts(name: &OsStr) -> bool {
    name != PWD && !is_removed(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_or_hidden_paths_depend_on_counts() {
        for name in ["PATH", "HOME", "LANG", "SSH_AUTH_SOCK", "CLAUDE_CONFIG_DIR", "VIRTUAL_ENV"] {
            assert!(counts(name.as_ref()) && !is_removed(name.as_ref()), "{name}");
        }
        assert!(counts("CLAUDE_CODE_OAUTH_TOKEN".as_ref()), "its value is masked in output");
        for name in ["TERM", "TERM_PROGRAM", "VSCODE_PID", "CLAUDE_CODE_ENTRYPOINT", "_"] {
            assert!(!counts(name.as_ref()) && is_removed(name.as_ref()), "{name}");
        }
        assert!(!counts(PWD.as_ref()) && !is_removed(PWD.as_ref()));
    }
}
