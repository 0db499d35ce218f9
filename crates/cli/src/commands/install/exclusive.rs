//! Settings that make each client use Toolcrib's tools instead of its own file and shell tools.

use std::path::PathBuf;

use serde_json::json;

use super::clients::UserDirectories;
use super::settings::{FileFormat, InstallRecord, Setting, keys};
use super::writer;
use crate::args::Client;

/// Settings that disable a client's own tools.
pub(super) struct Exclusive {
    pub(super) file: PathBuf,
    pub(super) format: FileFormat,
    pub(super) settings: Vec<Setting>,
    /// A sentence about the tools that stay enabled.
    pub(super) remains: Option<&'static str>,
}

impl Exclusive {
    /// What the file lacks of these settings: names of tools, or of settings.
    pub(super) fn missing(&self) -> Result<Vec<String>, String> {
        let text = writer::read(&self.file)?.unwrap_or_default();
        Ok(self.missing_in(&text))
    }

    /// What a file lacks that has none of them.
    pub(super) fn all(&self) -> Vec<String> {
        self.missing_in("")
    }

    fn missing_in(&self, text: &str) -> Vec<String> {
        self.settings.iter().flat_map(|setting| setting.missing(self.format, text)).collect()
    }

    /// The settings as the content of an otherwise empty file.
    pub(super) fn snippet(&self) -> Result<String, String> {
        InstallRecord::new(&self.file, self.format, true).apply("", &self.settings)
    }
}

/// Claude Code's tools that read, write or run commands. Unknown names are allowed: some builds lack some of them.
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

/// Gemini CLI's tools that read, write or run commands.
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

/// The permissions of opencode's file and shell tools. `edit` also covers write and patch.
const OPENCODE: [&str; 6] = ["bash", "edit", "glob", "grep", "list", "read"];

impl Client {
    /// The settings. `None` if the client has none. `text` is the current content of the client's configuration.
    pub(super) fn exclusive(self, directories: &UserDirectories, text: &str) -> Option<Exclusive> {
        let own = self.file(directories);
        let (file, format, settings) = match self {
            Client::Claude => {
                let deny = Setting::items(&["permissions", "deny"], &CLAUDE);
                (directories.claude_settings(), FileFormat::Json, vec![deny])
            }
            Client::Codex => {
                let settings = vec![
                    Setting::value(&["sandbox_mode"], "read-only"),
                    Setting::value(&["features", "shell_tool"], false),
                    Setting::value(&["features", "view_image"], false),
                ];
                (own, FileFormat::Toml, settings)
            }
            Client::Gemini => {
                let rule = json!({
                    "toolName": GEMINI,
                    "decision": "deny",
                    "priority": 999,
                    "denyMessage": "Use the tools of the toolcrib server.",
                });
                let file = directories.home.join(".gemini/policies/toolcrib.toml");
                (file, FileFormat::Toml, vec![Setting::value(&["rule"], json!([rule]))])
            }
            Client::Opencode => {
                let deny = |tool: &&str| Setting::value(&["permission", tool], "deny");
                (own, FileFormat::Json, OPENCODE.iter().map(deny).collect())
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
                (own, FileFormat::Json, settings)
            }
            Client::Goose => {
                let has_entry =
                    FileFormat::Yaml.get(text, &keys(&["extensions", "developer"])).is_some();
                let setting = if has_entry {
                    Setting::value(&["extensions", "developer", "enabled"], false)
                } else {
                    Setting::value(
                        &["extensions", "developer"],
                        json!({"enabled": false, "type": "builtin", "name": "developer"}),
                    )
                };
                (own, FileFormat::Yaml, vec![setting])
            }
            Client::Vscode | Client::Cursor => return None,
        };
        let remains = (self == Client::Codex).then_some(CODEX_REMAINS);
        Some(Exclusive { file, format, settings, remains })
    }

    /// What the user can do where no setting disables the client's own tools.
    pub(super) fn by_hand(self) -> String {
        let page = self.page();
        let step = match self {
            Client::Vscode => VSCODE_BY_HAND,
            Client::Cursor => CURSOR_BY_HAND,
            _ => "",
        };
        format!("{step}See \"Use only Toolcrib's tools\" in {page}.")
    }
}

/// A custom agent is the only list of tools that VS Code keeps.
const VSCODE_BY_HAND: &str = "\
Make a custom agent instead: run `Chat: New Custom Agent`, choose your user profile, write this, and choose it in the Chat view:

---
name: Toolcrib
description: Work with the tools of Toolcrib only
tools: ['toolcrib/*']
---
Read, search and change files, and run commands, with the tools of the toolcrib server.

";

const CURSOR_BY_HAND: &str = "\
Block them with a hook instead: in ~/.cursor/hooks.json, let `preToolUse` and `beforeShellExecution` run a script that exits \
with code 2. ";
