//! The sandbox of commands: built from the roots, the protected files, the operator's settings and the level
//! that this system supports.

use std::path::{Path, PathBuf};

use toolcrib_exec::{
    Level, Limits as CommandLimits, Network, OuterWall, PathSet, SESSION_TMP, SandboxSupport,
};

use crate::error::{Error, ErrorKind};
use crate::metadata_fields::MetadataField;

/// Minimum level. Below it, commands run only with the profile `open`.
const MIN_LEVEL: Level = Level::Landlock;

/// Settings of the sandbox of commands.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Network access of commands. Defaults to none.
    pub network: Network,
    /// Ports on which servers of commands are reachable at this machine's loopback, with [`Network::List`].
    pub expose: Vec<u16>,
    /// Files and directories besides the roots that commands may write, such as caches of build tools. Each
    /// path is resolved when the runtime is built. Missing paths are ignored and not created.
    pub caches: Vec<PathBuf>,
    /// Files and directories that commands and tools do not see, such as keys.
    pub hidden: PathSet,
    /// Resource limits of each command.
    pub limits: CommandLimits,
    /// A sandbox around this system. In it, commands run although this system does not support our sandbox. The runtime
    /// is not built if it is not there.
    pub outer: Option<OuterWall>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        SandboxSettings {
            network: Network::None,
            expose: Vec::new(),
            caches: Vec::new(),
            hidden: PathSet::default(),
            limits: CommandLimits::DEFAULT,
            outer: None,
        }
    }
}

/// Confinement of a command, for the reply.
#[derive(Debug, Clone)]
pub(crate) enum Confined {
    /// No sandbox: the profile is `open`.
    Not,
    /// No sandbox of ours, but one around this system.
    Outside {
        wall: OuterWall,
        /// Whether the reply says what is not enforced.
        explained: bool,
    },
    Within {
        level: Level,
        network: Network,
        missing: Vec<String>,
    },
}

impl Confined {
    pub(crate) fn within(enforced: &SandboxSupport, settings: &SandboxSettings) -> Confined {
        let network = effective_network(settings, enforced);
        let mut missing = enforced.missing.clone();
        if network != settings.network {
            missing.push(LIST_NEEDS_LANDLOCK.to_owned());
        } else if network == Network::List && !enforced.level.has_namespaces() {
            missing.push(LIST_BY_PROXY.to_owned());
        }
        Confined::Within { level: enforced.level, network, missing }
    }

    /// For a session that has already been told what the level leaves open.
    pub(crate) fn without_explanation(mut self) -> Confined {
        match &mut self {
            Confined::Not => {}
            Confined::Outside { explained, .. } => *explained = false,
            Confined::Within { missing, .. } => missing.clear(),
        }
        self
    }

    /// The note for the caller. `None` at the highest level.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Confined::Not => Some("no sandbox: the profile is open".to_owned()),
            Confined::Outside { wall, explained: false } => {
                Some(format!("confined by {} around this system only", wall.shown()))
            }
            Confined::Outside { wall, explained: true } => Some(format!(
                "confined by {} around this system only; not enforced: {}",
                wall.shown(),
                NOT_ENFORCED_OUTSIDE.join(" ")
            )),
            Confined::Within { level: Level::Namespaces, .. } => None,
            Confined::Within { level, missing, .. } if missing.is_empty() => {
                Some(format!("sandbox level {} of 4, {level}", level.number()))
            }
            Confined::Within { level, missing, .. } => Some(format!(
                "sandbox level {} of 4, {level}; not enforced: {}",
                level.number(),
                missing.join(" ")
            )),
        }
    }

    /// A phrase for where a command would run.
    pub(crate) fn phrase(&self) -> String {
        match self {
            Confined::Not => "without a sandbox".to_owned(),
            Confined::Outside { wall, .. } => {
                format!("confined by {} around this system only", wall.shown())
            }
            Confined::Within { level, network, .. } => format!(
                "in the sandbox (level {} of 4, network {})",
                level.number(),
                network_name(*network)
            ),
        }
    }

    /// Metadata.
    pub(crate) fn facts(&self) -> Vec<(&'static str, serde_json::Value)> {
        match self {
            Confined::Not => vec![("sandbox", "none".into())],
            Confined::Outside { wall, .. } => vec![
                ("sandbox", format!("outer {}", wall.name()).into()),
                ("network", network_name(Network::All).into()),
            ],
            Confined::Within { level, network, .. } => vec![
                ("sandbox", format!("level {}", level.number()).into()),
                ("network", network_name(*network).into()),
            ],
        }
    }
}

/// Metadata of a reply about a command.
pub(crate) const SANDBOX: &[MetadataField] = &[
    MetadataField::new(
        "sandbox",
        "string",
        "always",
        "`level 2` to `level 4`, `outer gvisor` or `none`.",
    ),
    MetadataField::new(
        "network",
        "string",
        "the command was confined",
        "Network access of the command: `none`, `list` or `all`.",
    ),
];

/// What a sandbox around this system does not enforce.
pub(crate) const NOT_ENFORCED_OUTSIDE: [&str; 4] = [
    "Commands can read and write all files of this system, also hidden and protected ones and those of Toolcrib.",
    "The network is that of this system.",
    "Commands see each other's processes, and what they detach survives them.",
    "Changes by commands cannot be undone.",
];

/// The sentence about `network = "list"` without namespaces, where a command cannot be restricted to a proxy.
pub(crate) const LIST_NEEDS_LANDLOCK: &str = "network = \"list\" needs sandbox level 3, or Landlock version 4 (Linux 6.7) at level 2: the network is off.";

/// The sentence about `network = "list"` without namespaces.
pub(crate) const LIST_BY_PROXY: &str = "Listed hosts are reached through a proxy: programs that ignore the proxy variables cannot connect.";

/// Network access that this system can enforce: without namespaces, commands must be restricted to a proxy.
pub(crate) fn effective_network(settings: &SandboxSettings, enforced: &SandboxSupport) -> Network {
    let can_list = enforced.level.has_namespaces() || enforced.can_restrict_tcp;
    match settings.network {
        Network::List if !can_list => Network::None,
        network => network,
    }
}

/// Path of the session's private directory as the command sees it: `/tmp` if the command has its own mount
/// layout.
pub(crate) fn visible_tmp(level: Level, tmp: &Path) -> &Path {
    if level.has_namespaces() { Path::new(SESSION_TMP[0]) } else { tmp }
}

/// Whether the level suffices to run commands.
pub(crate) fn is_sufficient(enforced: &SandboxSupport) -> bool {
    enforced.level >= MIN_LEVEL
}

/// The error if the level does not suffice.
pub(crate) fn insufficient_level_error(enforced: &SandboxSupport) -> Error {
    let level = enforced.level;
    let message = format!(
        "this system supports sandbox level {} of 4 ({level}), but the profile needs {}",
        level.number(),
        MIN_LEVEL.number()
    );
    Error::new(ErrorKind::Unsupported, message).hint(format!(
        "Nothing was run. {} Ask the operator to make the sandbox available (`toolcrib doctor` says what is missing).",
        enforced.reasons.join(" ")
    ))
}

/// How commands are confined where our sandbox is not available. Fails if they may not run there.
pub(crate) fn confined_outside(
    enforced: &SandboxSupport,
    settings: &SandboxSettings,
) -> Result<Confined, Error> {
    let Some(wall) = settings.outer else { return Err(insufficient_level_error(enforced)) };
    if settings.network != Network::All {
        let message = format!("the network cannot be switched off in {}", wall.shown());
        return Err(Error::new(ErrorKind::Unsupported, message).hint(
            "Nothing was run. Ask the operator to limit the network outside, such as by a network policy, and to set \
             network = \"all\" to confirm it.",
        ));
    }
    Ok(Confined::Outside { wall, explained: true })
}

fn network_name(network: Network) -> &'static str {
    match network {
        Network::None => "none",
        Network::List => "list",
        Network::All => "all",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_hosts_need_namespaces_or_a_proxy() {
        let settings = SandboxSettings { network: Network::List, ..SandboxSettings::default() };
        let within = |level, can_restrict_tcp| {
            let (missing, reasons) = (Vec::new(), Vec::new());
            let enforced = SandboxSupport { level, can_restrict_tcp, missing, reasons };
            match Confined::within(&enforced, &settings) {
                Confined::Within { network, missing, .. } => (network, missing),
                Confined::Not | Confined::Outside { .. } => panic!(),
            }
        };
        assert_eq!(within(Level::Bubblewrap, false), (Network::List, Vec::new()));
        let by_proxy = (Network::List, vec![LIST_BY_PROXY.to_owned()]);
        assert_eq!(within(Level::Landlock, true), by_proxy);
        let off = (Network::None, vec![LIST_NEEDS_LANDLOCK.to_owned()]);
        assert_eq!(within(Level::Landlock, false), off);
    }

    #[test]
    fn an_outer_wall_is_named_and_needs_an_open_network() {
        let (missing, reasons) = (Vec::new(), vec!["Level 2: no Landlock.".to_owned()]);
        let enforced =
            SandboxSupport { level: Level::Nothing, can_restrict_tcp: false, missing, reasons };
        let outer = Some(OuterWall::Gvisor);
        let confined = |network, outer| {
            let settings = SandboxSettings { network, outer, ..SandboxSettings::default() };
            confined_outside(&enforced, &settings)
        };
        let refusal = |network, outer| confined(network, outer).unwrap_err().text();
        assert!(refusal(Network::All, None).contains("Level 2: no Landlock."));
        for network in [Network::None, Network::List] {
            assert!(refusal(network, outer).contains("network = \"all\""));
        }
        let confined = confined(Network::All, outer).unwrap();
        let note = confined.note().unwrap();
        assert!(note.contains("gVisor") && note.contains("cannot be undone"), "{note}");
        assert_eq!(confined.facts()[0], ("sandbox", "outer gvisor".into()));
        let short = confined.without_explanation().note().unwrap();
        assert!(note.starts_with(&format!("{short};")), "{short}");
    }

    #[test]
    fn a_note_without_explanation_still_names_the_level() {
        let missing = vec!["It sees all processes.".to_owned()];
        let confined = Confined::Within { level: Level::Landlock, network: Network::None, missing };
        let note = confined.note().unwrap();
        assert!(note.ends_with("; not enforced: It sees all processes."), "{note}");
        let short = confined.without_explanation().note().unwrap();
        assert!(note.starts_with(&format!("{short};")), "{short}");
    }
}
