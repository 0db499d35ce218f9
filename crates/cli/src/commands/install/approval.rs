//! Settings that let a client use Toolcrib's tools without asking before each: Toolcrib decides itself, by its profile and
//! rules, and asks through the client.

use serde_json::{Value, json};
use toolcrib::Profile;

use super::clients::UserDirectories;
use super::settings::{FileFormat, Setting, keys};
use super::{Target, writer};
use crate::args::Client;
use crate::args::Common;
use crate::config::Config;

/// Whether the client may be told not to ask. With the profile `open`, Toolcrib neither asks nor confines.
pub(super) fn is_allowed(common: &Common, flags: &[String]) -> bool {
    let may_choose = |flag: &String| flag.starts_with("--profile") || flag.starts_with("--config");
    if flags.iter().any(may_choose) {
        return false;
    }
    let profile = Config::of(common).and_then(|config| config.profile(common));
    // A configuration with an error stops the server, so `install` writes nothing.
    profile.is_ok_and(|profile| profile != Profile::Open)
}

impl Client {
    /// The setting that stops the client from asking. `None` if `install` cannot or need not tell it so.
    pub(super) fn approving(self, name: &str, directories: &UserDirectories) -> Option<Target> {
        let field = |field: &str, value: Value| {
            let setting = Setting::Default(keys(&[self.servers(), name, field]), value);
            (self.file(directories), self.format(), setting)
        };
        let (file, format, setting) = match self {
            Client::Claude => {
                let tools = Setting::items(&["permissions", "allow"], &[&format!("mcp__{name}")]);
                (directories.claude_settings(), FileFormat::Json, tools)
            }
            Client::Codex => field("default_tools_approval_mode", json!("approve")),
            Client::Gemini => field("trust", json!(true)),
            _ => return None,
        };
        Some(Target { file, format, settings: vec![setting] })
    }

    /// A sentence about the client's own questions, as its files are now.
    pub(super) fn approval_note(
        self,
        approves: bool,
        name: &str,
        directories: &UserDirectories,
        asking: &str,
    ) -> Result<Option<String>, String> {
        let title = self.title();
        let asks =
            || format!("{title} asks before each tool. See \"Approve once\" in {}.", self.page());
        let Some(Target { file, format, settings }) = self.approving(name, directories) else {
            // These two do not ask before tools of MCP servers, unless the user has configured it.
            let is_silent = matches!(self, Client::Opencode | Client::Goose);
            return Ok((!is_silent).then(asks));
        };
        let text = writer::read(&file)?.unwrap_or_default();
        let is_told = settings.iter().all(|setting| setting.missing(format, &text).is_empty());
        Ok(Some(match (is_told, approves) {
            (false, _) => asks(),
            (true, true) => format!(
                "{title} does not ask before Toolcrib's tools: Toolcrib's profile and rules decide. To let {title} ask, \
                 run `{asking}`."
            ),
            (true, false) => {
                let paths: Vec<String> = settings.iter().map(Setting::name).collect();
                format!(
                    "{title} does not ask before Toolcrib's tools, because of `{}` in {}. `install` has no record of \
                     adding it. Remove it to let {title} ask.",
                    paths.join("`, `"),
                    file.display()
                )
            }
        }))
    }
}
