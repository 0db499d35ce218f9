//! One file per target.

mod backtrack;
mod command;
mod edit;
mod encoding;
mod git_config;
mod http;
mod hunks;
mod index;
mod journal;
mod locate;
mod lsp;
mod mcp;
mod monitor;
mod network;
mod notebook;
mod patch;
mod pdf;
mod rules;
mod run_line;
mod secrets;
mod syntax;
mod terminal;

pub(crate) use backtrack::backtrack;
pub(crate) use command::command;
pub(crate) use edit::edit;
pub(crate) use encoding::encoding;
pub(crate) use git_config::git_config;
pub(crate) use http::http;
pub(crate) use hunks::hunks;
pub(crate) use index::index;
pub(crate) use journal::journal;
pub(crate) use locate::locate;
pub(crate) use lsp::lsp;
pub(crate) use mcp::mcp;
pub(crate) use monitor::monitor;
pub(crate) use network::network;
pub(crate) use notebook::notebook;
pub(crate) use patch::patch;
pub(crate) use pdf::pdf;
pub(crate) use rules::rules;
pub(crate) use run_line::run_line;
pub(crate) use secrets::secrets;
pub(crate) use syntax::syntax;
pub(crate) use terminal::terminal;

/// Splits an input into parts at a byte that UTF-8 never contains, so that a part can be any text. Missing parts
/// are empty.
fn parts<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    let mut parts = input.splitn(N, |byte| *byte == 0xff);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}
