//! The clients that Toolcrib can be installed in.

use clap::ValueEnum;

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
