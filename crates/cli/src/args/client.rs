//! The clients that Toolcrib can be installed in.

use clap::ValueEnum;
use clap::error::{ContextKind, ContextValue, ErrorKind};

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

/// The error, with the names of the clients if one is missing. The parser names them only if a name is wrong.
pub(crate) fn with_clients(mut error: clap::Error) -> clap::Error {
    let is_missing = error.kind() == ErrorKind::MissingRequiredArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::Strings(missing))
            if missing.iter().any(|argument| argument == "<CLIENT>"));
    if is_missing {
        let values = Client::value_variants().iter().filter_map(Client::to_possible_value);
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        let tip = format!("the clients are {}", names.join(", "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}
