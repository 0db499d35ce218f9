//! The operator's configuration. A file that does not parse, or says something that we do not know,
//! stops the start: to run on with fewer rules than were written would be worse.

use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use serde::Deserialize;
use toolcrib::{
    Caps, HardLinks, IndexSettings, Limits, Network, Outside, Profile, Protection, SandboxSettings,
};

use crate::args::Common;
use crate::{caches, hidden};

/// What `config.toml` may say.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The profile, where no flag says otherwise.
    profile: Option<String>,
    /// What file tools may do outside the roots, where no flag says otherwise: `read`, `ask` or `deny`.
    outside: Option<String>,
    /// Paths in calls must be absolute, and replies show them so.
    #[serde(default)]
    pub(crate) absolute_paths: bool,
    /// What becomes of a changed file's other names: `break` or `write_through`.
    #[serde(default)]
    hard_links: HardLinksWord,
    /// Files that are not written, besides those that never are.
    #[serde(default)]
    protect: Vec<String>,
    /// Files that may be written although they are protected.
    #[serde(default)]
    allow_protected: Vec<String>,
    /// Hidden places that commands and file tools may see: absolute, or beneath the home.
    #[serde(default)]
    allow_hidden: Vec<String>,
    /// A project's rules, which may only narrow: an absolute path.
    pub(crate) project_rules: Option<PathBuf>,
    /// Whom commands in the sandbox may talk to: `none`, or `all`.
    #[serde(default)]
    network: NetworkWord,
    /// Build tools whose caches commands may write, by name.
    #[serde(default)]
    caches: Vec<String>,
    /// Megabytes that the journal keeps.
    journal_megabytes: Option<u64>,
    /// Days for which the journal keeps a change.
    journal_days: Option<u64>,
    /// Characters in a reply.
    reply_chars: Option<usize>,
    /// Characters shown of one line.
    line_chars: Option<usize>,
    /// Megabytes of a file that is edited.
    edit_megabytes: Option<u64>,
    /// Megabytes of a picture that is read.
    picture_megabytes: Option<u64>,
    /// Pixels on the longer side of a picture in a reply.
    picture_side: Option<u32>,
    /// Megabytes of a PDF that is read.
    pdf_megabytes: Option<u64>,
    /// Megabytes of a notebook that is read.
    notebook_megabytes: Option<u64>,
    /// Megabytes of a file that a search over many looks into.
    search_megabytes: Option<u64>,
    /// Seconds that a search takes at most.
    search_seconds: Option<u64>,
    /// Files that a directory has at least, for searches to keep an index of it.
    index_files: Option<u64>,
    /// Megabytes that such an index may take, in memory and in files; with 0 there is none.
    index_megabytes: Option<u64>,
    /// Directories that may be watched for it, of all that the system allows.
    index_watches: Option<usize>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HardLinksWord {
    #[default]
    Break,
    WriteThrough,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NetworkWord {
    #[default]
    None,
    All,
}

/// Below this a reply has no room for what it must say.
const LEAST_REPLY_CHARS: usize = 2_000;
const LEAST_LINE_CHARS: usize = 80;

impl Config {
    /// Reads the file that was named, or the usual one if it is there.
    pub(crate) fn read(named: Option<&Path>) -> Result<Config, String> {
        match named {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                Config::parse(path, &text)
            }
            None => match usual_place().map(|path| (std::fs::read_to_string(&path), path)) {
                Some((Ok(text), path)) => Config::parse(&path, &text),
                Some((Err(error), path)) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(format!("{}: {error}", path.display()))
                }
                _ => Ok(Config::default()),
            },
        }
    }

    /// The profile that is in force: a flag beats the file.
    pub(crate) fn profile(&self, common: &Common) -> Result<Profile, String> {
        match (common.profile, &self.profile) {
            (Some(profile), _) => Ok(profile),
            (None, Some(name)) => name.parse().map_err(|error| format!("{error}")),
            (None, None) => Ok(Profile::default()),
        }
    }

    /// What file tools may do outside the roots: a flag beats the file, and the file the profile.
    pub(crate) fn outside(&self, common: &Common, profile: Profile) -> Result<Outside, String> {
        match (common.outside, &self.outside) {
            (Some(outside), _) => Ok(outside),
            (None, Some(word)) => word.parse().map_err(|error| format!("{error}")),
            (None, None) => Ok(Outside::of(profile)),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            reply_chars: self.reply_chars.unwrap_or(usual.reply_chars),
            line_chars: self.line_chars.unwrap_or(usual.line_chars),
            edit_bytes: bytes(self.edit_megabytes, usual.edit_bytes),
            picture_bytes: bytes(self.picture_megabytes, usual.picture_bytes),
            picture_side: self.picture_side.unwrap_or(usual.picture_side),
            pdf_bytes: bytes(self.pdf_megabytes, usual.pdf_bytes),
            notebook_bytes: bytes(self.notebook_megabytes, usual.notebook_bytes),
            search_bytes: bytes(self.search_megabytes, usual.search_bytes),
            search_time: self.search_seconds.map_or(usual.search_time, Duration::from_secs),
            ..usual
        }
    }

    pub(crate) fn index(&self) -> IndexSettings {
        let usual = IndexSettings::default();
        let least = |usual| match self.index_megabytes {
            Some(0) => u64::MAX,
            _ => self.index_files.unwrap_or(usual),
        };
        IndexSettings {
            least_files: least(usual.least_files),
            least_files_often: least(usual.least_files_often),
            max_bytes: bytes(self.index_megabytes, usual.max_bytes),
            max_watches: self.index_watches.unwrap_or(usual.max_watches),
            ..usual
        }
    }

    pub(crate) fn hard_links(&self) -> HardLinks {
        match self.hard_links {
            HardLinksWord::Break => HardLinks::Break,
            HardLinksWord::WriteThrough => HardLinks::WriteThrough,
        }
    }

    pub(crate) fn protection(&self) -> Result<Protection, String> {
        let protection =
            self.protect.iter().try_fold(Protection::default(), |all, one| all.protect(one))?;
        self.allow_protected.iter().try_fold(protection, |all, one| all.allow(one))
    }

    /// What commands are held to, besides the roots.
    pub(crate) fn sandbox(&self) -> Result<SandboxSettings, String> {
        let home = etcetera::home_dir().ok();
        let of_home = |paths: &[&str]| -> Vec<PathBuf> {
            let home = home.iter();
            home.flat_map(|home| paths.iter().map(move |path| home.join(path))).collect()
        };
        let mut caches = Vec::new();
        for name in &self.caches {
            caches.extend(of_home(caches::cache(name)?));
        }
        let network = match self.network {
            NetworkWord::None => Network::None,
            NetworkWord::All => Network::All,
        };
        Ok(SandboxSettings { network, caches, hidden: hidden::places(&self.allow_hidden)? })
    }

    pub(crate) fn journal_caps(&self) -> Caps {
        let usual = Caps::default();
        let days = |days: u64| Duration::from_secs(days.saturating_mul(24 * 60 * 60));
        Caps {
            bytes: bytes(self.journal_megabytes, usual.bytes),
            age: self.journal_days.map_or(usual.age, days),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Config, String> {
        let at = |problem: String| format!("{}: {problem}", path.display());
        let config: Config = toml::from_str(text).map_err(|error| at(error.to_string()))?;
        if let Some(name) = &config.profile {
            name.parse::<Profile>().map_err(|error| at(error.to_string()))?;
        }
        if let Some(word) = &config.outside {
            word.parse::<Outside>().map_err(|error| at(error.to_string()))?;
        }
        config.protection().map_err(at)?;
        if config.project_rules.as_ref().is_some_and(|path| path.is_relative()) {
            return Err(at("project_rules is a relative path; write where it begins".to_owned()));
        }
        config.sandbox().map_err(at)?;
        at_least("reply_chars", config.reply_chars, LEAST_REPLY_CHARS).map_err(at)?;
        at_least("line_chars", config.line_chars, LEAST_LINE_CHARS).map_err(at)?;
        Ok(config)
    }
}

fn at_least(name: &str, value: Option<usize>, least: usize) -> Result<(), String> {
    match value {
        Some(value) if value < least => {
            Err(format!("{name} = {value} is too little; at least {least}"))
        }
        _ => Ok(()),
    }
}

fn usual_place() -> Option<PathBuf> {
    directory().map(|directory| directory.join("config.toml"))
}

/// Where the operator's configuration is.
pub(crate) fn directory() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("toolcrib"))
}

/// Where our own state is, if nobody says otherwise.
pub(crate) fn state_directory() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.state_dir()?.join("toolcrib"))
}

/// The user's home directory.
pub(crate) fn home() -> Option<PathBuf> {
    etcetera::home_dir().ok()
}

fn bytes(megabytes: Option<u64>, usual: u64) -> u64 {
    megabytes.map_or(usual, |megabytes| megabytes.saturating_mul(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("config.toml"), text)
    }

    #[test]
    fn what_is_written_is_taken() {
        let config =
            parse("profile = \"cautious\"\nabsolute_paths = true\nreply_chars = 5000").unwrap();
        assert!(config.absolute_paths);
        assert_eq!(config.limits().reply_chars, 5000);
        assert_eq!(config.limits().line_chars, Limits::default().line_chars);
        assert_eq!(config.index(), IndexSettings::default());
        assert_eq!(parse("index_files = 7").unwrap().index().least_files, 7);
        let none = parse("index_megabytes = 0").unwrap().index();
        assert_eq!((none.least_files, none.least_files_often), (u64::MAX, u64::MAX));
    }

    #[test]
    fn what_is_not_understood_stops_the_start_with_its_line() {
        for (text, expected) in [
            ("profil = \"open\"", "unknown field `profil`"),
            ("\n\nprofile = open", "line 3"),
            ("profile = \"openn\"", "no profile `openn`; there are: read-only"),
            ("outside = \"write\"", "outside is read, ask or deny, not `write`"),
            ("reply_chars = 10", "at least 2000"),
            ("reply_chars = -1", "invalid value"),
            ("protect = [\"a//b\"]", "is no pattern"),
            ("hard_links = \"keep\"", "unknown variant `keep`"),
            ("allow_hidden = [\"src\"]", "src is not hidden"),
            ("project_rules = \"rules.toml\"", "project_rules is a relative path"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("config.toml: ") && error.contains(expected), "{error}");
        }
    }
}
