//! How each client is told to use Toolcrib's tools instead of its own file and shell tools.

use std::path::PathBuf;

use serde_json::json;

use super::clients::{Client, Places};
use super::settings::{Form, Setting, Written, keys};
use super::writer;

/// Settings that switch off a client's own tools.
pub(super) struct Exclusive {
    pub(super) file: PathBuf,
    pub(super) form: Form,
    pub(super) settings: Vec<Setting>,
    /// What the client still has, as a sentence.
    pub(super) remains: Option<&'static str>,
}

impl Exclusive {
    /// Whether the file has all of the settings.
    pub(super) fn is_set(&self) -> Result<bool, String> {
        let text = writer::read(&self.file)?.unwrap_or_default();
        let applied = Written::new(&self.file, self.form, false).apply(&text, &self.settings);
        Ok(applied.is_ok_and(|applied| applied == text))
    }

    /// The settings as they stand in a file that has nothing else.
    pub(super) fn snippet(&self) -> Result<String, String> {
        Written::new(&self.file, self.form, true).apply("", &self.settings)
    }
}

/// Claude Code's tools that read, write or run. Unknown names are allowed: not every build has them all.
const CLAUDE: [&str; 10] = [
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "LSP",
    "Monitor",
    "NotebookEdit",
    "PowerShell",
    "Read",
    "Write",
];

/// The same of Gemini CLI.
const GEMINI: [&str; 10] = [
    "glob",
    "grep_search",
    "list_background_processes",
    "list_directory",
    "read_background_output",
    "read_file",
    "read_many_files",
    "replace",
    "run_shell_command",
    "write_file",
];

/// No setting of Codex removes this tool; the sandbox keeps it from writing.
const CODEX_REMAINS: &str = "Its apply_patch tool stays, but writes nothing without your approval in the read-only sandbox.";

/// The permissions of opencode's file and shell tools; `edit` is that of write and patch too.
const OPENCODE: [&str; 6] = ["bash", "edit", "glob", "grep", "list", "read"];

impl Client {
    /// The settings; nothing, if the client has none. `text` is what the client's own file says now.
    pub(super) fn exclusive(self, places: &Places, text: &str) -> Option<Exclusive> {
        let own = self.file(places);
        let (file, form, settings) = match self {
            Client::Claude => {
                let directory = (places.variable)("CLAUDE_CONFIG_DIR");
                let directory = directory.unwrap_or_else(|| places.home.join(".claude"));
                let deny = Setting::items(&["permissions", "deny"], &CLAUDE);
                (directory.join("settings.json"), Form::Json, vec![deny])
            }
            Client::Codex => {
                let settings = vec![
                    Setting::value(&["sandbox_mode"], "read-only"),
                    Setting::value(&["features", "shell_tool"], false),
                    Setting::value(&["features", "view_image"], false),
                ];
                (own, Form::Toml, settings)
            }
            Client::Gemini => {
                let rule = json!({
                    "toolName": GEMINI,
                    "decision": "deny",
                    "priority": 999,
                    "denyMessage": "Use the tools of the toolcrib server.",
                });
                let file = places.home.join(".gemini/policies/toolcrib.toml");
                (file, Form::Toml, vec![Setting::value(&["rule"], json!([rule]))])
            }
            Client::Opencode => {
                let deny = |tool: &&str| Setting::value(&["permission", tool], "deny");
                (own, Form::Json, OPENCODE.iter().map(deny).collect())
            }
            Client::Zed => {
                let profile = json!({
                    "name": "Toolcrib",
                    "tools": {"diagnostics": true, "fetch": true, "now": true, "web_search": true},
                    "enable_all_context_servers": true,
                });
                let settings = vec![
                    Setting::value(&["agent", "default_profile"], super::NAME),
                    Setting::value(&["agent", "profiles", super::NAME], profile),
                ];
                (own, Form::Json, settings)
            }
            Client::Goose => {
                let has_entry = Form::Yaml.get(text, &keys(&["extensions", "developer"])).is_some();
                let setting = match has_entry {
                    true => Setting::value(&["extensions", "developer", "enabled"], false),
                    false => Setting::value(
                        &["extensions", "developer"],
                        json!({"enabled": false, "type": "builtin", "name": "developer"}),
                    ),
                };
                (own, Form::Yaml, vec![setting])
            }
            Client::Vscode | Client::Cursor => return None,
        };
        let remains = (self == Client::Codex).then_some(CODEX_REMAINS);
        Some(Exclusive { file, form, settings, remains })
    }
}
