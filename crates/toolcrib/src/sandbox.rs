//! What commands are held to: the roots, what is protected in them, what the operator says, and what this
//! system can enforce.

pub(crate) mod git_directory;
mod git_history;
mod git_objects;
pub(crate) mod git_refs;
mod guard;
mod known_content;
mod named_paths;
mod other_version_control;
mod path_rules;
pub(crate) mod refusals;
mod version_control_programs;

pub(crate) use self::guard::CommandGuard;
pub(crate) use self::path_rules::{Danger, PathRules};

use std::path::{Path, PathBuf};

use toolcrib_exec::{Enforced, HeldPath, Level, Network, SESSION_TMP, Sandbox};
use toolcrib_fs::{Root, RootMode};

use crate::error::{Error, ErrorKind};
use crate::metadata_field::MetadataField;
use crate::runtime::Runtime;

/// The lowest level at which a command is run by anybody who was not told to run it without.
const LEAST: Level = Level::Landlock;

/// What the operator says about the sandbox that commands run in.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Whom commands may talk to.
    pub network: Network,
    /// Directories and files that commands may write besides the roots, such as the caches of build tools. Each is
    /// what its path leads to when the runtime is built. Those that are not there are passed over, and not made.
    pub caches: Vec<PathBuf>,
    /// Files and directories that commands do not see, such as keys.
    pub hidden: Vec<PathBuf>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        SandboxSettings { network: Network::None, caches: Vec::new(), hidden: Vec::new() }
    }
}

/// How a command was confined, for the reply.
#[derive(Debug, Clone)]
pub(crate) enum Confined {
    /// Not at all: the profile says so.
    Not,
    /// In a sandbox.
    Within { level: Level, network: Network, missing: Vec<String> },
}

impl Confined {
    pub(crate) fn within(enforced: &Enforced, network: Network) -> Confined {
        Confined::Within { level: enforced.level, network, missing: enforced.missing.clone() }
    }

    /// What the caller should know of it; nothing, where all is as it should be.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Confined::Not => Some("nothing confined this command: the profile is open".to_owned()),
            Confined::Within { level: Level::Namespaces, .. } => None,
            Confined::Within { level, missing, .. } => Some(format!(
                "sandbox level {} of 4, {level}; what that leaves open: {}",
                level.number(),
                missing.join(" ")
            )),
        }
    }

    /// The same, for programs.
    pub(crate) fn facts(&self) -> Vec<(&'static str, serde_json::Value)> {
        match self {
            Confined::Not => vec![("sandbox", "none".into())],
            Confined::Within { level, network, .. } => vec![
                ("sandbox", format!("level {}", level.number()).into()),
                ("network", network_name(*network).into()),
            ],
        }
    }
}

/// Metadata of a reply about a command.
pub(crate) const SANDBOX: &[MetadataField] = &[
    MetadataField::new("sandbox", "string", "always", "`level 1` to `level 4`, or `none`."),
    MetadataField::new(
        "network",
        "string",
        "the command was confined",
        "Network access of the command: `none` or `all`.",
    ),
];

/// The sandbox of a command.
pub(crate) fn sandbox(runtime: &Runtime, settings: &SandboxSettings, tmp: &Path) -> Sandbox {
    let roots = |mode: RootMode| {
        let roots = runtime.workspace().roots().filter(move |root| root.mode() == mode);
        let held = |root: &Root| {
            Some(HeldPath { path: root.path().to_owned(), identity: root.identity()? })
        };
        roots.filter_map(held).collect()
    };
    let mut hidden = settings.hidden.clone();
    hidden.extend(runtime.own().iter().cloned());
    hidden.extend(runtime.policy().unreadable_outside());
    // A command may have put something else in the place of one that lies in a root.
    let is_in_place =
        |cache: &&HeldPath| HeldPath::of(cache.path.clone()).is_ok_and(|now| now == **cache);
    let mut writable: Vec<HeldPath> = roots(RootMode::ReadWrite);
    writable.extend(runtime.caches().iter().filter(is_in_place).cloned());
    Sandbox {
        writable,
        read_only: roots(RootMode::ReadOnly),
        hidden,
        tmp: tmp.to_owned(),
        supervise_reads: runtime.path_rules().deny_reading(),
        network: settings.network,
        limits: toolcrib_exec::Limits::DEFAULT,
    }
}

/// Where a command finds the session's own directory: with a view of its own, in the usual place.
pub(crate) fn seen_tmp(level: Level, tmp: &Path) -> &Path {
    if level.has_view() { Path::new(SESSION_TMP[0]) } else { tmp }
}

/// Whether this system confines commands well enough.
pub(crate) fn is_enough(enforced: &Enforced) -> bool {
    enforced.level >= LEAST
}

/// Why no command is run where that is not so.
pub(crate) fn not_enough(enforced: &Enforced) -> Error {
    let level = enforced.level;
    let message = format!(
        "this system confines commands at level {} of 4 only ({level}), and the profile needs {}",
        level.number(),
        LEAST.number()
    );
    Error::new(ErrorKind::Unsupported, message).hint(format!(
        "Nothing was run. {} Ask the operator to make the sandbox available (`toolcrib doctor` says what is missing).",
        enforced.reasons.join(" ")
    ))
}

fn network_name(network: Network) -> &'static str {
    match network {
        Network::None => "none",
        Network::All => "all",
    }
}
