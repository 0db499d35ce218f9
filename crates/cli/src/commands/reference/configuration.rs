//! The page of all configuration keys. Names and descriptions come from the parsed struct, defaults from the values
//! in use.

use crate::config::Config;

pub(super) fn page() -> String {
    let mut page = super::generated("Configuration");
    page += "\nSettings are in `~/.config/toolcrib/config.toml` (or under `$XDG_CONFIG_HOME`, or `--config FILE`). \
             Command-line flags override the file. Toolcrib never looks for settings in the workspace. Unknown \
             keys are an error. `toolcrib config set KEY VALUE`, `config add KEY VALUE`, `config remove KEY VALUE` and `config unset KEY` change the \
             file; `toolcrib config` shows it. Servers read it when they start.\n";
    page += "\n| key | default | |\n| --- | --- | --- |\n";
    for (key, default, description) in Config::keys() {
        page += &format!("| `{key}` | {} | {description} |\n", code(&default));
    }
    page += "\nThe journal, the index and the token of the HTTP server are in `~/.local/state/toolcrib` (or under \
             `$XDG_STATE_HOME`, or `--state DIR`). This directory must be yours, with mode 0700 and not a symlink, \
             beneath directories that no other user can write.\n";
    page
}

fn code(default: &str) -> String {
    if default.is_empty() { String::new() } else { format!("`{default}`") }
}
