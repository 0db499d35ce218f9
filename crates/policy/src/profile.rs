//! The four profiles that an operator can choose.

use std::fmt;
use std::str::FromStr;

use crate::access::Effect;
use crate::decision::Decision;

/// How much is allowed without approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Allows no changes and no access outside the workspace.
    ReadOnly,
    /// Asks about everything except commands that only read files in the workspace.
    Cautious,
    /// Allows work inside the workspace and asks before acting outside.
    #[default]
    Workspace,
    /// Allows everything without approval.
    Open,
}

impl Profile {
    /// All profiles, the strictest first.
    pub const ALL: [Profile; 4] =
        [Profile::ReadOnly, Profile::Cautious, Profile::Workspace, Profile::Open];

    /// The name in flags and configuration.
    pub fn name(self) -> &'static str {
        match self {
            Profile::ReadOnly => "read-only",
            Profile::Cautious => "cautious",
            Profile::Workspace => "workspace",
            Profile::Open => "open",
        }
    }

    /// Whether it allows an effect at least in some case: without a question, or after one.
    pub fn can_allow(self, effect: Effect) -> bool {
        self.decision(effect) != Decision::Deny
    }

    /// The decision of this profile on an effect.
    pub(crate) fn decision(self, effect: Effect) -> Decision {
        match (self, effect) {
            (Profile::Open, _) => Decision::Allow,
            (Profile::Cautious, _) => Decision::Ask,
            (Profile::ReadOnly | Profile::Workspace, Effect::Read) => Decision::Allow,
            (Profile::Workspace, Effect::Write) => Decision::Allow,
            (Profile::Workspace, Effect::Reach | Effect::Command) => Decision::Ask,
            (Profile::ReadOnly, Effect::Write | Effect::Reach | Effect::Command) => Decision::Deny,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown profile name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownProfile(String);

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Profile::ALL.map(Profile::name).join(", ");
        write!(f, "unknown profile `{}`; available: {names}", self.0)
    }
}

impl std::error::Error for UnknownProfile {}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Profile::ALL.into_iter().find(|profile| profile.name() == name);
        found.ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}
