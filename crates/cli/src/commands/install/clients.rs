//! The supported clients: paths and formats of their server configuration.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::settings::FileFormat;
use crate::args::Client;

/// The command line that starts the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerCommand {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
}

/// The user's directories.
pub(super) struct UserDirectories {
    pub(super) home: PathBuf,
    pub(super) config: PathBuf,
    /// The value of an environment variable that is not empty.
    pub(super) variable: fn(&str) -> Option<PathBuf>,
}

impl UserDirectories {
    /// Claude Code's file with permissions, which is not the one with servers.
    pub(super) fn claude_settings(&self) -> PathBuf {
        let directory = (self.variable)("CLAUDE_CONFIG_DIR");
        directory.unwrap_or_else(|| self.home.join(".claude")).join("settings.json")
    }
}

impl Client {
    /// Its display name.
    pub(super) fn title(self) -> &'static str {
        match self {
            Client::Claude => "Claude Code",
            Client::Codex => "Codex",
            Client::Vscode => "Visual Studio Code",
            Client::Cursor => "Cursor",
            Client::Zed => "Zed",
            Client::Gemini => "Gemini CLI",
            Client::Opencode => "opencode",
            Client::Goose => "Goose",
        }
    }

    /// The user's configuration file. Never one of a project: project files are untrusted.
    pub(super) fn file(self, directories: &UserDirectories) -> PathBuf {
        let UserDirectories { home, config, variable } = directories;
        match self {
            Client::Claude => {
                variable("CLAUDE_CONFIG_DIR").unwrap_or(home.clone()).join(".claude.json")
            }
            Client::Codex => {
                variable("CODEX_HOME").unwrap_or(home.join(".codex")).join("config.toml")
            }
            Client::Vscode => application_support(home, config).join("Code/User/mcp.json"),
            Client::Cursor => home.join(".cursor/mcp.json"),
            Client::Zed => config.join("zed/settings.json"),
            Client::Gemini => home.join(".gemini/settings.json"),
            Client::Opencode => {
                let [json, jsonc] = opencode_files(config);
                // Its settings override those of the other file.
                if jsonc.is_file() { jsonc } else { json }
            }
            Client::Goose => config.join("goose/config.yaml"),
        }
    }

    /// All files of the user that may have the entry.
    pub(super) fn files(self, directories: &UserDirectories) -> Vec<PathBuf> {
        match self {
            Client::Opencode => opencode_files(&directories.config).into(),
            _ => vec![self.file(directories)],
        }
    }

    pub(super) fn format(self) -> FileFormat {
        match self {
            Client::Codex => FileFormat::Toml,
            Client::Goose => FileFormat::Yaml,
            _ => FileFormat::Json,
        }
    }

    /// The key of the object that maps server names to entries.
    pub(super) fn servers(self) -> &'static str {
        match self {
            Client::Claude | Client::Cursor | Client::Gemini => "mcpServers",
            Client::Codex => "mcp_servers",
            Client::Vscode => "servers",
            Client::Zed => "context_servers",
            Client::Opencode => "mcp",
            Client::Goose => "extensions",
        }
    }

    /// The entry that starts the server, in the client's format.
    pub(super) fn entry(self, name: &str, start: &ServerCommand) -> Value {
        let ServerCommand { program, arguments } = start;
        match self {
            Client::Claude | Client::Vscode => {
                json!({"type": "stdio", "command": program, "args": arguments})
            }
            Client::Codex | Client::Cursor | Client::Zed | Client::Gemini => {
                json!({"command": program, "args": arguments})
            }
            Client::Opencode => {
                let command: Vec<&String> = std::iter::once(program).chain(arguments).collect();
                json!({"type": "local", "command": command, "enabled": true})
            }
            Client::Goose => json!({
                "enabled": true,
                "type": "stdio",
                "name": name,
                "cmd": program,
                "args": arguments,
                "timeout": 600,
            }),
        }
    }

    /// The client's variable for the project directory, if it does not start servers there.
    pub(super) fn project(self) -> Option<&'static str> {
        matches!(self, Client::Vscode | Client::Cursor).then_some("${workspaceFolder}")
    }

    /// The next step for the user.
    pub(super) fn next(self, name: &str) -> String {
        match self {
            Client::Claude => format!("Start claude in a project; /mcp lists {name}."),
            Client::Codex => format!("Start codex in a project; /mcp lists {name}."),
            Client::Vscode => {
                format!(
                    "In VS Code, run `MCP: List Servers` and start {name}; its tools are in agent mode."
                )
            }
            Client::Cursor => format!("Restart Cursor; Settings, Tools & MCP lists {name}."),
            Client::Zed => format!("In Zed, the agent panel's settings list {name}."),
            Client::Gemini => format!("Start gemini in a project; /mcp lists {name}."),
            Client::Opencode => {
                format!("Start opencode in a project; `opencode mcp list` lists {name}.")
            }
            Client::Goose => format!("Start goose in a project; `goose configure` lists {name}."),
        }
    }

    /// The documentation page of this client.
    pub(super) fn page(self) -> &'static str {
        match self {
            Client::Claude => "docs/clients/claude-code.md",
            Client::Codex => "docs/clients/codex.md",
            Client::Vscode => "docs/clients/vscode.md",
            Client::Cursor => "docs/clients/cursor.md",
            Client::Zed => "docs/clients/zed.md",
            Client::Gemini => "docs/clients/gemini-cli.md",
            Client::Opencode => "docs/clients/opencode.md",
            Client::Goose => "docs/clients/goose.md",
        }
    }

    /// Whether the client seems to be installed: its program is on `PATH`, or, for a graphical client, its settings
    /// directory exists.
    pub(super) fn is_found(self, directories: &UserDirectories) -> bool {
        let (programs, directory): (&[&str], Option<PathBuf>) = match self {
            Client::Claude => (&["claude"], None),
            Client::Codex => (&["codex"], None),
            Client::Gemini => (&["gemini"], None),
            Client::Opencode => (&["opencode"], None),
            Client::Goose => (&["goose"], None),
            Client::Vscode => (
                &["code"],
                Some(application_support(&directories.home, &directories.config).join("Code")),
            ),
            Client::Cursor => (&["cursor", "cursor-agent"], Some(directories.home.join(".cursor"))),
            Client::Zed => {
                (&["zed", "zeditor", "zedit", "zed-editor"], Some(directories.config.join("zed")))
            }
        };
        let path = (directories.variable)("PATH").unwrap_or_default();
        let mut on_path = std::env::split_paths(&path)
            .flat_map(|directory| programs.iter().map(move |program| directory.join(program)));
        on_path.any(|program| program.is_file()) || directory.is_some_and(|there| there.is_dir())
    }
}

fn opencode_files(config: &Path) -> [PathBuf; 2] {
    ["opencode.json", "opencode.jsonc"].map(|name| config.join("opencode").join(name))
}

/// The settings directory of graphical programs.
fn application_support<'a>(home: &'a Path, config: &'a Path) -> std::borrow::Cow<'a, Path> {
    if cfg!(target_os = "macos") {
        home.join("Library/Application Support").into()
    } else {
        config.into()
    }
}
