//! Settings that let a client use Toolcrib's tools without asking before each: Toolcrib decides itself, by its profile and
//! rules, and asks through the client.

use serde_json::{Map, Value, json};
use toolcrib::Profile;

use super::clients::UserDirectories;
use super::settings::{FileFormat, Setting};
use super::{Target, client_name};
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
    /// Fields of the server's entry that stop the client from asking.
    pub(super) fn approving_fields(self) -> Map<String, Value> {
        let field = match self {
            Client::Codex => ("default_tools_approval_mode", json!("approve")),
            Client::Gemini => ("trust", json!(true)),
            _ => return Map::new(),
        };
        Map::from_iter([(field.0.to_owned(), field.1)])
    }

    /// The settings outside the entry that stop the client from asking.
    pub(super) fn approving_settings(
        self,
        name: &str,
        directories: &UserDirectories,
    ) -> Option<Target> {
        let tools = format!("mcp__{name}");
        let settings = vec![Setting::items(&["permissions", "allow"], &[&tools])];
        (self == Client::Claude).then(|| Target {
            file: directories.claude_settings(),
            format: FileFormat::Json,
            settings,
        })
    }

    /// A sentence about the client's own questions, for a client that is told not to ask or cannot be told so.
    pub(super) fn approval_note(self, is_approved: bool) -> Option<String> {
        let (title, name) = (self.title(), client_name(self));
        match self {
            Client::Claude | Client::Codex | Client::Gemini if is_approved => Some(format!(
                "{title} does not ask before Toolcrib's tools: Toolcrib's profile and rules decide. To let {title} ask, \
                 run `toolcrib uninstall {name}`, then `toolcrib install {name} --ask`."
            )),
            // They do not ask before tools of MCP servers, unless the user has configured it.
            Client::Opencode | Client::Goose => None,
            _ => Some(format!(
                "{title} asks before each tool. See \"Approve once\" in {}.",
                self.page()
            )),
        }
    }
}
