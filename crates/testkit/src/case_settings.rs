//! The settings of a case.

use std::path::{Path, PathBuf};

use toolcrib::{Outside, Profile};

/// The settings of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setup {
    /// The profile.
    pub profile: Profile,
    /// The access of file tools outside the workspace; `None` for the profile's default.
    pub outside: Option<Outside>,
    /// Whether the workspace is read-only.
    pub read_only: bool,
    /// Whether paths must be absolute.
    pub absolute_paths: bool,
    /// Whether a change of a file also changes its other hard links.
    pub write_through: bool,
    /// The directory of the journal.
    pub state: PathBuf,
}

impl Setup {
    /// The settings as command line flags and as the configuration file at its usual place: messages name a flag that
    /// decides a setting, and another file.
    pub(crate) fn flags(&self, workspace: &Path) -> Vec<String> {
        let hard_links = if self.write_through { "write_through" } else { "break" };
        let mut text = format!(
            "profile = \"{}\"\nabsolute_paths = {}\nhard_links = \"{hard_links}\"\n",
            self.profile.name(),
            self.absolute_paths
        );
        text.extend(self.outside.map(|outside| format!("outside = \"{outside}\"\n")));
        let config = self.config_home().join("toolcrib");
        std::fs::create_dir_all(&config)
            .and_then(|()| std::fs::write(config.join("config.toml"), text))
            .expect("the directory of the case can be written");
        let mode = if self.read_only { ":ro" } else { "" };
        vec![
            format!("--root={}{mode}", workspace.display()),
            format!("--state={}", self.state.display()),
        ]
    }

    /// The environment of the program: a home next to the workspace and separate directories for the configuration and
    /// the state.
    pub(crate) fn variables(&self, workspace: &Path) -> [(&'static str, PathBuf); 3] {
        let state_home = self.state.with_file_name("state_home");
        [
            ("HOME", Setup::home(workspace)),
            ("XDG_CONFIG_HOME", self.config_home()),
            ("XDG_STATE_HOME", state_home),
        ]
    }

    fn config_home(&self) -> PathBuf {
        self.state.with_file_name("config_home")
    }

    /// The home directory of the case.
    pub(crate) fn home(workspace: &Path) -> PathBuf {
        workspace.with_file_name("home")
    }

    /// Applies the lines of a `setup` block.
    pub(crate) fn parse(&self, body: &str) -> Result<Setup, String> {
        let mut setup = self.clone();
        for line in body.lines() {
            match line.split_once(": ") {
                Some(("profile", name)) => {
                    setup.profile = name.parse().map_err(|error| format!("{error}"))?;
                }
                Some(("outside", word)) => {
                    setup.outside = Some(word.parse().map_err(|error| format!("{error}"))?);
                }
                Some(("root", "ro")) => setup.read_only = true,
                Some(("paths", "absolute")) => setup.absolute_paths = true,
                Some(("hard_links", "write_through")) => setup.write_through = true,
                _ => return Err(format!("no such setting: {line}")),
            }
        }
        Ok(setup)
    }
}
