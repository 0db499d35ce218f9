//! The operator's configuration. An invalid file or an unknown key is an error at startup: continuing with fewer
//! restrictions than were written would be unsafe.

mod amount;
mod changed_settings;
mod key_table;
mod problem;

pub(crate) use self::changed_settings::{ChangedSetting, line};
pub(crate) use self::key_table::KeyType;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib::{
    Amount, Caps, CommandLimits, HardLinks, IndexSettings, InspectionSettings, LanguageServer,
    Limits, Network, Outside, Profile, Protection, SandboxSettings, SettingHints, UpstreamProxies,
    UpstreamProxy, user_machine,
};

use crate::args::{Common, NetworkWord, OuterWord};
use crate::injected_credentials::InjectEntry;
use crate::optional_file::{is_missing, unreadable};
use crate::{build_caches, network_presets};

/// The keys of `config.toml`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The [profile](profiles.md): `read-only`, `cautious`, `workspace` or `open`. `--profile` overrides it.
    profile: Option<String>,
    /// What file tools may do outside the roots: `read`, `ask` or `deny`. The default depends on the
    /// [profile](profiles.md). Writing there [needs approval](design/paths-outside-the-workspace.md) in
    /// `cautious` and `workspace`. `--outside` overrides it.
    outside: Option<String>,
    /// The available [tools](profiles.md#choosing-tools); others are neither listed nor callable. `--tools` overrides it.
    pub(crate) tools: Option<Vec<String>>,
    /// Tools to exclude. `--no-tools` adds to it.
    #[serde(default)]
    pub(crate) no_tools: Vec<String>,
    /// Calls must give absolute paths, and replies show absolute paths.
    #[serde(default)]
    pub(crate) absolute_paths: bool,
    /// Hard links of a changed file: `break` gives the changed name a new file, `write_through` writes in place, so
    /// that all names have the new content.
    #[serde(default)]
    hard_links: HardLinksWord,
    /// More [protected files](protected-and-hidden.md): path patterns; `*` matches within one component.
    #[serde(default)]
    protect: Vec<String>,
    /// Exceptions to the protected files.
    #[serde(default)]
    allow_protected: Vec<String>,
    /// [Hidden paths](protected-and-hidden.md) that commands and file tools may see: absolute, or relative to the home.
    #[serde(default)]
    allow_hidden: Vec<String>,
    /// A file of [rules](rules.md) that may only add restrictions: an absolute path.
    pub(crate) project_rules: Option<PathBuf>,
    /// Network access of commands: `none` (loopback within the session only), `list` ([listed hosts](network.md)) or `all`.
    #[serde(default)]
    network: NetworkWord,
    /// A [sandbox around this system](sandbox.md#gvisor), in which commands run although this system does not support ours:
    /// `gvisor`. `--outer` overrides it.
    outer: Option<OuterWord>,
    /// Package managers whose hosts commands reach with `network = "list"`: `npm`, `pip`, `uv`, `cargo`, `go`, `maven`, `apt`;
    /// and `git-read` or `git-read:HOST` for [fetching without pushing](network.md#git).
    #[serde(default)]
    pub(crate) network_presets: Vec<String>,
    /// [Credentials](network.md#credentials) that requests to some hosts get, and commands never have: tables with `host`,
    /// `header`, `value`, `format` and `placeholder`.
    #[serde(default)]
    inject: Vec<InjectEntry>,
    /// Ports of servers started by commands that you can reach at 127.0.0.1, with `network = "list"`.
    #[serde(default)]
    expose: Vec<u16>,
    /// The proxy through which commands reach hosts with `network = "list"`: `http://HOST:PORT`, `socks5h://HOST:PORT`
    /// or `none`. The default are `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` of the server; see
    /// [proxies](network.md#company-proxies).
    upstream_proxy: Option<String>,
    /// Build tools whose caches commands may write: `cargo`, `rustup`, `npm`, `pnpm`, `yarn`, `pip`, `uv`, `go`, `maven`, `gradle`.
    #[serde(default)]
    caches: Vec<String>,
    /// Memory of all processes of a command together: a size such as `4GiB`, a percentage of the machine's memory, or
    /// `none`. A command above it is killed; see [limits](sandbox.md#limits-of-commands).
    memory: Option<String>,
    /// Memory of each process of a command, like `memory`. The kernel enforces it. Programs built with sanitizers do
    /// not start with it.
    process_memory: Option<String>,
    /// Size of a file that a command writes: at least `16MiB`, or `none`.
    file_size: Option<String>,
    /// Size of the session's `/tmp`: a size, a percentage of the space that was free at the start, or `none`. Commands
    /// that write there above it are killed.
    tmp_size: Option<String>,
    /// Seconds that the program behind `toolcrib run --approvals` has to answer a question. Then the call is denied.
    approval_seconds: Option<u64>,
    /// Errors in replies to edits, from [language servers](checks.md) on your `PATH`: `off` or
    /// `errors`.
    #[serde(default)]
    check: CheckWord,
    /// Command that `toolcrib page` runs for each question that nobody answers within 2 seconds: a program and its
    /// arguments, without a shell. It gets the question as JSON on its standard input.
    #[serde(default)]
    pub(crate) notify: Vec<String>,
    /// Whether `serve` and `run` show their calls and questions to `toolcrib page` and `toolcrib watch`, on a
    /// [socket](security.md#the-monitor-socket) that only you can open. `--no-monitor` turns it off.
    monitor: Option<bool>,
    /// Whether calls are recorded in the [audit log](audit.md), a chain of hashes.
    audit: Option<bool>,
    /// Size limit of the audit log of each workspace in MB. The oldest records are removed first, and the log records that.
    audit_megabytes: Option<u64>,
    /// Size limit of the journal in MB. The oldest changes are dropped first.
    journal_megabytes: Option<u64>,
    /// Days for which the journal keeps a change.
    journal_days: Option<u64>,
    /// Characters in a reply.
    reply_chars: Option<usize>,
    /// Characters shown of one line.
    line_chars: Option<usize>,
    /// Largest file that is edited, in MB.
    edit_megabytes: Option<u64>,
    /// Largest image that is read, in MB.
    picture_megabytes: Option<u64>,
    /// Longer side of an image in a reply, in pixels.
    picture_side: Option<u32>,
    /// Largest PDF that is read, in MB.
    pdf_megabytes: Option<u64>,
    /// Largest notebook that is read, in MB.
    notebook_megabytes: Option<u64>,
    /// Largest file that a search over many files reads, in MB.
    search_megabytes: Option<u64>,
    /// Time limit of a search in seconds. The reply has the matches found so far.
    search_seconds: Option<u64>,
    /// Roots with at least this many files are indexed. Smaller ones, from 64 files, are indexed if they are searched often.
    index_files: Option<u64>,
    /// Size limit of an index in MB. 0 turns indexing off.
    index_megabytes: Option<u64>,
    /// Maximum number of directories watched for changes. The default is half of the user's inotify limit. 0 turns watching off.
    index_watches: Option<usize>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum HardLinksWord {
    #[default]
    Break,
    WriteThrough,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CheckWord {
    #[default]
    Off,
    Errors,
}

/// The minimum for the notes that a reply must contain.
const LEAST_REPLY_CHARS: usize = 2_000;
const LEAST_LINE_CHARS: usize = 80;
/// The user may be away for some minutes.
const APPROVAL_SECONDS: u64 = 600;

impl Config {
    /// The configuration with the arguments that replace parts of it.
    pub(crate) fn of(common: &Common) -> Result<Config, String> {
        let config = Config::read(common.config.as_deref())?;
        let network = common.network_access.unwrap_or(config.network);
        let outer = common.outer.or(config.outer);
        Ok(Config { network, outer, ..config })
    }

    /// Reads the given file, or the default one if it exists.
    fn read(named: Option<&Path>) -> Result<Config, String> {
        match named {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                Config::parse(path, &text)
            }
            None => match default_path().map(|path| (std::fs::read_to_string(&path), path)) {
                Some((Ok(text), path)) => Config::parse(&path, &text),
                Some((Err(error), path)) if !is_missing(&path, &error) => {
                    Err(unreadable(&path, &error))
                }
                _ => Ok(Config::default()),
            },
        }
    }

    /// The effective profile: a flag overrides the file.
    pub(crate) fn profile(&self, common: &Common) -> Result<Profile, String> {
        match (common.profile, &self.profile) {
            (Some(profile), _) => Ok(profile),
            (None, Some(name)) => name.parse().map_err(|error| format!("{error}")),
            (None, None) => Ok(Profile::default()),
        }
    }

    /// The access of file tools outside the roots: a flag overrides the file, which overrides the profile's
    /// default.
    pub(crate) fn outside(&self, common: &Common, profile: Profile) -> Result<Outside, String> {
        match (common.outside, &self.outside) {
            (Some(outside), _) => Ok(outside),
            (None, Some(word)) => word.parse().map_err(|error| format!("{error}")),
            (None, None) => Ok(Outside::of(profile)),
        }
    }

    /// The time limit for answering a question.
    /// Network access of commands, as a word.
    pub(crate) fn network_name(&self) -> &'static str {
        self.network.name()
    }

    /// Whether servers have a monitor socket.
    pub(crate) fn has_monitor(&self) -> bool {
        self.monitor.unwrap_or(true)
    }

    pub(crate) fn answer_deadline(&self) -> Duration {
        Duration::from_secs(self.approval_seconds.unwrap_or(APPROVAL_SECONDS))
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

    /// The language servers that check edited files.
    pub(crate) fn language_servers(&self) -> Vec<LanguageServer> {
        match self.check {
            CheckWord::Off => Vec::new(),
            CheckWord::Errors => LanguageServer::known(),
        }
    }

    pub(crate) fn protection(&self) -> Result<Protection, String> {
        let protection =
            self.protect.iter().try_fold(Protection::default(), |all, one| all.protect(one))?;
        self.allow_protected.iter().try_fold(protection, |all, one| all.allow(one))
    }

    /// The settings of the sandbox, besides the roots.
    pub(crate) fn sandbox(&self) -> Result<SandboxSettings, String> {
        let home = user_machine::home();
        let of_home = |paths: &[&str]| -> Vec<PathBuf> {
            let home = home.iter();
            home.flat_map(|home| paths.iter().map(move |path| home.join(path))).collect()
        };
        let mut caches = Vec::new();
        for name in &self.caches {
            caches.extend(of_home(build_caches::cache(name)?));
        }
        let network = match self.network {
            NetworkWord::None => Network::None,
            NetworkWord::List => Network::List,
            NetworkWord::All => Network::All,
        };
        if !self.expose.is_empty() && network != Network::List {
            return Err("expose needs network = \"list\"".to_owned());
        }
        if !self.inject.is_empty() && network != Network::List {
            return Err("inject needs network = \"list\"".to_owned());
        }
        let mut hidden = user_machine::secret_paths::hidden_paths(&self.allow_hidden)?;
        let injected: Vec<PathBuf> = self.inject.iter().filter_map(InjectEntry::file).collect();
        hidden.add(&injected);
        let limits = self.command_limits()?;
        let (expose, outer) = (self.expose.clone(), self.outer.map(OuterWord::wall));
        Ok(SandboxSettings { network, expose, caches, hidden, limits, outer })
    }

    /// The proxies through which commands reach hosts.
    pub(crate) fn upstream_proxies(&self) -> Result<UpstreamProxies, String> {
        let variable = |name: &str| std::env::var(name).ok();
        match self.upstream_proxy.as_deref() {
            // Without listed hosts they are not used, and may be invalid.
            _ if self.network != NetworkWord::List => Ok(UpstreamProxies::default()),
            None => UpstreamProxies::from_variables(variable),
            Some("none") => Ok(UpstreamProxies::default()),
            Some(url) => {
                let proxy = UpstreamProxy::parse(url);
                let proxy = proxy.map_err(|problem| format!("upstream_proxy: {problem}"))?;
                // The other variables are not used, and may be invalid.
                let exceptions =
                    |name: &str| variable(name).filter(|_| name.eq_ignore_ascii_case("no_proxy"));
                Ok(UpstreamProxies::from_variables(exceptions)?.with_proxy(proxy))
            }
        }
    }

    /// The resource limits of each command.
    fn command_limits(&self) -> Result<CommandLimits, String> {
        let usual = CommandLimits::DEFAULT;
        let amount = |key: &str, text: &Option<String>, usual: Amount| match text {
            Some(text) => amount::parse(key, text),
            None => Ok(usual),
        };
        let file_size = amount("file_size", &self.file_size, usual.file_size)?;
        match file_size {
            Amount::Percent(_) => return Err("file_size is a size or none".to_owned()),
            Amount::Bytes(bytes) if bytes < CommandLimits::LEAST_FILE_SIZE => {
                return Err("file_size is too small; use at least 16MiB".to_owned());
            }
            _ => {}
        }
        Ok(CommandLimits {
            memory: amount("memory", &self.memory, usual.memory)?,
            process_memory: amount("process_memory", &self.process_memory, usual.process_memory)?,
            file_size,
            tmp_size: amount("tmp_size", &self.tmp_size, usual.tmp_size)?,
            ..usual
        })
    }

    /// The settings of inspected hosts. Reads the secrets.
    pub(crate) fn inspection(&self) -> Result<InspectionSettings, String> {
        let injections =
            self.inject.iter().map(InjectEntry::injection).collect::<Result<_, _>>()?;
        let roots = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
        Ok(InspectionSettings { injections, roots: roots.filter(|roots| roots.is_absolute()) })
    }

    pub(crate) fn audits(&self) -> bool {
        self.audit.unwrap_or(true)
    }

    pub(crate) fn journal_caps(&self) -> Caps {
        let usual = Caps::default();
        let days = |days: u64| Duration::from_secs(days.saturating_mul(24 * 60 * 60));
        Caps {
            bytes: bytes(self.journal_megabytes, usual.bytes),
            age: self.journal_days.map_or(usual.age, days),
            audit_bytes: bytes(self.audit_megabytes, usual.audit_bytes),
        }
    }

    /// Parses and checks the text of a file. An error begins with the path.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Config, String> {
        Config::check(text).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    /// Parses and checks the text. An error begins with the line, if it is known.
    fn check(text: &str) -> Result<Config, String> {
        let config: Config =
            toml::from_str(text).map_err(|error| problem::of_toml(text, &error))?;
        config.check_values().map_err(|problem| problem::with_line(text, &problem))?;
        Ok(config)
    }

    /// Parses and checks a text that is in no file yet. An error names the key instead of the line.
    pub(crate) fn check_new(text: &str) -> Result<Config, String> {
        let config: Config =
            toml::from_str(text).map_err(|error| problem::without_line(text, &error))?;
        config.check_values()?;
        Ok(config)
    }

    fn check_values(&self) -> Result<(), String> {
        if let Some(name) = &self.profile {
            name.parse::<Profile>().map_err(|error| error.to_string())?;
        }
        if let Some(word) = &self.outside {
            word.parse::<Outside>().map_err(|error| error.to_string())?;
        }
        self.protection()?;
        if self.project_rules.as_ref().is_some_and(|path| path.is_relative()) {
            return Err("project_rules is a relative path; write an absolute path".to_owned());
        }
        self.inject.iter().try_for_each(InjectEntry::check)?;
        self.sandbox()?;
        self.upstream_proxies()?;
        let presets = network_presets::check(&self.network_presets);
        presets.map_err(|problem| format!("network_presets: {problem}"))?;
        at_least("reply_chars", self.reply_chars, LEAST_REPLY_CHARS)?;
        at_least("line_chars", self.line_chars, LEAST_LINE_CHARS)?;
        // Zero would remove the history of all workspaces with the next change.
        at_least("journal_days", self.journal_days, 1)?;
        at_least("journal_megabytes", self.journal_megabytes, 1)?;
        at_least("audit_megabytes", self.audit_megabytes, 1)?;
        // Zero would refuse every file, search or answer.
        let least_one = [
            ("approval_seconds", self.approval_seconds),
            ("edit_megabytes", self.edit_megabytes),
            ("picture_megabytes", self.picture_megabytes),
            ("picture_side", self.picture_side.map(u64::from)),
            ("pdf_megabytes", self.pdf_megabytes),
            ("notebook_megabytes", self.notebook_megabytes),
            ("search_megabytes", self.search_megabytes),
            ("search_seconds", self.search_seconds),
        ];
        least_one.into_iter().try_for_each(|(name, value)| at_least(name, value, 1))?;
        if self.expose.contains(&0) {
            return Err("expose has the port 0; name ports from 1 to 65535".to_owned());
        }
        Ok(())
    }

    /// The exceptions that are for no protected name.
    pub(crate) fn useless_exceptions(&self) -> Result<Vec<&str>, String> {
        let protection =
            self.protect.iter().try_fold(Protection::default(), |all, one| all.protect(one))?;
        let all = self.allow_protected.iter().map(String::as_str);
        Ok(all.filter(|one| !protection.has_names_like(one)).collect())
    }
}

fn at_least<T: PartialOrd + Display>(name: &str, value: Option<T>, least: T) -> Result<(), String> {
    match value {
        Some(value) if value < least => {
            Err(format!("{name} = {value} is too small; use at least {least}"))
        }
        _ => Ok(()),
    }
}

/// The configuration file that is read if no other one is given.
pub(crate) fn default_path() -> Option<PathBuf> {
    user_machine::configuration_directory().map(|directory| directory.join("config.toml"))
}

/// How messages say that a setting is changed.
pub(crate) fn hints(common: &Common) -> SettingHints {
    let file = common.config.as_ref();
    let file = file.map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()));
    let hints = SettingHints::default();
    let hints = file.iter().fold(hints, |hints, file| hints.in_file(file));
    [
        ("profile", "--profile", common.profile.is_some()),
        ("outside", "--outside", common.outside.is_some()),
        ("network", "--network-access", common.network_access.is_some()),
    ]
    .into_iter()
    .filter(|(_, _, is_given)| *is_given)
    .fold(hints, |hints, (setting, flag, _)| hints.with_flag(setting, flag))
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
    fn keys_are_parsed() {
        let config =
            parse("profile = \"cautious\"\nabsolute_paths = true\nreply_chars = 5000").unwrap();
        assert!(config.absolute_paths);
        assert_eq!(config.limits().reply_chars, 5000);
        assert_eq!(config.limits().line_chars, Limits::default().line_chars);
        assert_eq!(config.index(), IndexSettings::default());
        assert_eq!(parse("index_files = 7").unwrap().index().least_files, 7);
        let none = parse("index_megabytes = 0").unwrap().index();
        assert_eq!((none.least_files, none.least_files_often), (u64::MAX, u64::MAX));
        let limits =
            parse("memory = \"4GiB\"\ntmp_size = \"none\"").unwrap().command_limits().unwrap();
        assert_eq!((limits.memory, limits.tmp_size), (Amount::Bytes(4 << 30), Amount::Unlimited));
        assert_eq!(limits.processes, CommandLimits::DEFAULT.processes);
        assert!(parse("").unwrap().language_servers().is_empty());
        assert!(!parse("check = \"errors\"").unwrap().language_servers().is_empty());
    }

    #[test]
    fn invalid_keys_and_values_are_errors() {
        for (text, expected) in [
            ("profil = \"open\"", "line 1: unknown key `profil`; did you mean `profile`?"),
            ("# x\n\nxyz = 1", "line 3: unknown key `xyz`; docs/configuration.md lists the keys"),
            ("\n[[inject]]\nhosts = \"a\"", "line 3: unknown key `hosts`; did you mean `host`?"),
            ("\n\nprofile = open", "line 3"),
            ("\nprofile = \"openn\"", "line 2: unknown profile `openn`; available: read-only"),
            ("outside = \"write\"", "`outside` must be read, ask or deny, not `write`"),
            ("reply_chars = 10", "at least 2000"),
            ("journal_days = 0", "journal_days = 0 is too small; use at least 1"),
            ("journal_megabytes = 0", "at least 1"),
            ("audit_megabytes = 0", "audit_megabytes = 0 is too small; use at least 1"),
            ("\nsearch_seconds = 0", "line 2: search_seconds = 0 is too small; use at least 1"),
            ("approval_seconds = 0", "line 1: approval_seconds = 0 is too small; use at least 1"),
            ("picture_side = 0", "line 1: picture_side = 0 is too small; use at least 1"),
            ("network = \"list\"\nexpose = [0]", "line 2: expose has the port 0"),
            (
                "reply_chars = -1",
                "line 1: reply_chars must be a whole number that is not negative, not -1",
            ),
            ("protect = [\"a//b\"]", "is not a pattern"),
            (
                "hard_links = \"keep\"",
                "line 1: hard_links must be break or write_through, not \"keep\"",
            ),
            ("allow_hidden = [\"src\"]", "src is not in the list of hidden paths"),
            ("network = \"some\"", "network must be none, list or all, not \"some\""),
            ("network = [\"list\"]", "line 1: network must be text in quotes"),
            ("\n\ncaches = [\"nix\"]", "line 3: no caches are known for \"nix\""),
            ("check = \"all\"", "check must be off or errors, not \"all\""),
            ("expose = [8000]", "expose needs network"),
            ("network = \"list\"\nupstream_proxy = \"https://x\"", "upstream_proxy: the URL"),
            ("memory = \"4 apples\"", "memory = \"4 apples\" is not a size"),
            ("memory = \"120%\"", "is not a size"),
            ("memory = \"0\"", "is not a size"),
            ("file_size = \"1MiB\"", "at least 16MiB"),
            ("file_size = \"10%\"", "file_size is a size or none"),
            (
                "[[inject]]\nhost = \"a.b\"\nheader = \"X\"\nvalue = { env = \"Y\" }",
                "inject needs network",
            ),
            (
                "network = \"list\"\n[[inject]]\nhost = \"a.b\"\nheader = \"X\"\nvalue = \"secret\"",
                "line 5: value must be a table such as { env = \"NAME\" }",
            ),
            ("network_presets = [\"nix\"]", "unknown preset \"nix\"; available: npm, pip"),
            ("monitor = \"yes\"", "line 1: monitor must be true or false, not \"yes\""),
            ("tools = \"Read\"", "line 1: tools must be a list in brackets, not \"Read\""),
            ("project_rules = \"rules.toml\"", "project_rules is a relative path"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("config.toml: ") && error.contains(expected), "{error}");
        }
    }
}
