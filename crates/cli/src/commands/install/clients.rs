//! The clients that we know, and where and how each keeps its list of servers.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Code
    Claude,
    /// Codex CLI
    Codex,
    /// Visual Studio Code
    Vscode,
    /// Cursor
    Cursor,
    /// Zed
    Zed,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// Goose
    Goose,
}

/// How a client starts us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
}

/// How a configuration is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON, comments and trailing commas allowed.
    Json,
    Toml,
    Yaml,
}

/// The user's directories.
pub(super) struct Places {
    pub(super) home: PathBuf,
    pub(super) config: PathBuf,
    /// Where an environment variable says that a client keeps its things.
    pub(super) variable: fn(&str) -> Option<PathBuf>,
}

impl Client {
    /// Its name as people know it.
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

    /// The user's own configuration, not that of a project: what is in a project is not ours to trust.
    pub(super) fn file(self, places: &Places) -> PathBuf {
        let Places { home, config, variable } = places;
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
            Client::Opencode => config.join("opencode/opencode.json"),
            Client::Goose => config.join("goose/config.yaml"),
        }
    }

    pub(super) fn form(self) -> Form {
        match self {
            Client::Codex => Form::Toml,
            Client::Goose => Form::Yaml,
            _ => Form::Json,
        }
    }

    /// The key that holds the servers, each under its name.
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

    /// What it takes to start us, in the client's words.
    pub(super) fn entry(self, start: &Start) -> Value {
        let Start { program, arguments } = start;
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
                "name": super::NAME,
                "cmd": program,
                "args": arguments,
                "timeout": 600,
            }),
        }
    }

    /// How the client says where the project is, if it does not start us there.
    pub(super) fn project(self) -> Option<&'static str> {
        matches!(self, Client::Vscode | Client::Cursor).then_some("${workspaceFolder}")
    }

    /// What the user does then.
    pub(super) fn next(self) -> &'static str {
        match self {
            Client::Claude => {
                "Start Claude Code in a project; /mcp shows toolcrib. To have it use these tools alone \
                 for files: claude --disallowedTools Read Edit Write Glob Grep NotebookEdit"
            }
            Client::Codex => "Start codex in a project; /mcp shows toolcrib.",
            Client::Vscode => {
                "In VS Code, run `MCP: List Servers` and start toolcrib; its tools are in agent mode."
            }
            Client::Cursor => "Restart Cursor; Settings, MCP shows toolcrib.",
            Client::Zed => "In Zed, the agent panel's settings show toolcrib.",
            Client::Gemini => "Start gemini in a project; /mcp shows toolcrib.",
            Client::Opencode => "Start opencode in a project; `opencode mcp list` shows toolcrib.",
            Client::Goose => "Start goose in a project; `goose configure` shows toolcrib.",
        }
    }
}

/// Where programs with windows keep their settings.
fn application_support<'a>(home: &'a Path, config: &'a Path) -> std::borrow::Cow<'a, Path> {
    match cfg!(target_os = "macos") {
        true => home.join("Library/Application Support").into(),
        false => config.into(),
    }
}
