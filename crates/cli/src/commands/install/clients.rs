//! The clients that `install` knows, and where and how each keeps its list of servers.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::settings::Form;

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

/// The user's directories.
pub(super) struct Places {
    pub(super) home: PathBuf,
    pub(super) config: PathBuf,
    /// The value of an environment variable that is not empty.
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
            Client::Claude => "Start claude in a project; /mcp lists toolcrib.",
            Client::Codex => "Start codex in a project; /mcp lists toolcrib.",
            Client::Vscode => {
                "In VS Code, run `MCP: List Servers` and start toolcrib; its tools are in agent mode."
            }
            Client::Cursor => "Restart Cursor; Settings, Tools & MCP lists toolcrib.",
            Client::Zed => "In Zed, the agent panel's settings list toolcrib.",
            Client::Gemini => "Start gemini in a project; /mcp lists toolcrib.",
            Client::Opencode => "Start opencode in a project; `opencode mcp list` lists toolcrib.",
            Client::Goose => "Start goose in a project; `goose configure` lists toolcrib.",
        }
    }

    /// The page about this client.
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

    /// Whether the client seems to be installed: its program is on the PATH, or, of one with windows, which
    /// need not be there, its directory of settings exists.
    pub(super) fn is_found(self, places: &Places) -> bool {
        let (programs, directory): (&[&str], Option<PathBuf>) = match self {
            Client::Claude => (&["claude"], None),
            Client::Codex => (&["codex"], None),
            Client::Gemini => (&["gemini"], None),
            Client::Opencode => (&["opencode"], None),
            Client::Goose => (&["goose"], None),
            Client::Vscode => {
                (&["code"], Some(application_support(&places.home, &places.config).join("Code")))
            }
            Client::Cursor => (&["cursor", "cursor-agent"], Some(places.home.join(".cursor"))),
            Client::Zed => {
                (&["zed", "zeditor", "zedit", "zed-editor"], Some(places.config.join("zed")))
            }
        };
        let path = (places.variable)("PATH").unwrap_or_default();
        let mut on_path = std::env::split_paths(&path)
            .flat_map(|directory| programs.iter().map(move |program| directory.join(program)));
        on_path.any(|program| program.is_file()) || directory.is_some_and(|there| there.is_dir())
    }
}

/// Where programs with windows keep their settings.
fn application_support<'a>(home: &'a Path, config: &'a Path) -> std::borrow::Cow<'a, Path> {
    match cfg!(target_os = "macos") {
        true => home.join("Library/Application Support").into(),
        false => config.into(),
    }
}
