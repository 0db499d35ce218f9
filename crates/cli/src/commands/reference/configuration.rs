//! The page of all configuration keys. Names and descriptions come from the parsed struct, defaults from the values
//! in use.

use crate::config::Config;

pub(super) fn page() -> String {
    let mut page = super::generated("Configuration");
    page += "\nSettings are TOML in `toolcrib/config.toml` under `$XDG_CONFIG_HOME`, or in the file that `--config` names. \
             Command-line flags override the file. Nothing is ever read from the workspace. Unknown keys are an error.\n";
    page += "\n| key | default | |\n| --- | --- | --- |\n";
    for (key, default, description) in Config::keys() {
        page += &format!("| `{key}` | {} | {description} |\n", code(&default));
    }
    page += "\nThe journal, the index and the token of the HTTP server are in `toolcrib` under `$XDG_STATE_HOME`, or in the \
             directory that `--state` names. It must be yours, with mode 0700 and not a symlink, beneath directories \
             that no other user can write.\n";
    page
}

fn code(default: &str) -> String {
    if default.is_empty() { String::new() } else { format!("`{default}`") }
}
