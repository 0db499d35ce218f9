//! Access of file tools to paths outside the workspace.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::access::Effect;
use crate::decision::Decision;
use crate::profile::Profile;

/// Whether file tools may read outside the workspace. It never allows writing by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// File tools may read the same paths as commands.
    Read,
    /// File tools may read the same paths as commands after approval.
    Ask,
    /// File tools may not read outside.
    Deny,
}

impl Outside {
    /// All settings, the most permissive first.
    pub const ALL: [Outside; 3] = [Outside::Read, Outside::Ask, Outside::Deny];

    /// The default of a profile.
    pub fn of(profile: Profile) -> Outside {
        match profile {
            Profile::Workspace | Profile::Open => Outside::Read,
            Profile::Cautious => Outside::Ask,
            Profile::ReadOnly => Outside::Deny,
        }
    }

    /// The name in flags and configuration.
    pub fn name(self) -> &'static str {
        match self {
            Outside::Read => "read",
            Outside::Ask => "ask",
            Outside::Deny => "deny",
        }
    }

    /// The decision on an effect on a file outside the workspace.
    pub(crate) fn decision(self, profile: Profile, effect: Effect) -> Decision {
        let reading = match self {
            Outside::Read => profile.decision(Effect::Read),
            Outside::Ask => Decision::Ask,
            Outside::Deny => Decision::Deny,
        };
        let writing = match profile {
            Profile::Open => Decision::Allow,
            Profile::Workspace | Profile::Cautious => Decision::Ask,
            Profile::ReadOnly => Decision::Deny,
        };
        match effect {
            Effect::Read => reading,
            _ => reading.max(writing),
        }
    }
}

/// The path that an approval to write a file covers: its directory, or the file alone if the directory is
/// too wide, such as a home, a parent of a root, or `/etc`.
pub(crate) fn write_approval_scope(path: &Path, homes_and_roots: &[&Path]) -> PathBuf {
    /// The number of components of `/` and of a directory directly below it.
    const WIDE: usize = 2;
    let directory = path.parent().unwrap_or(path);
    let is_wide = directory.components().count() <= WIDE
        || homes_and_roots.iter().any(|inner| inner.starts_with(directory));
    if is_wide { path.to_owned() } else { directory.to_owned() }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown value of the setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownOutside(String);

impl fmt::Display for UnknownOutside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`outside` must be read, ask or deny, not `{}`", self.0)
    }
}

impl std::error::Error for UnknownOutside {}

impl FromStr for Outside {
    type Err = UnknownOutside;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Outside::ALL.into_iter().find(|outside| outside.name() == name);
        found.ok_or_else(|| UnknownOutside(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_outside_needs_at_least_the_permission_to_read() {
        for profile in Profile::ALL {
            for outside in Outside::ALL {
                let [read, write] =
                    [Effect::Read, Effect::Write].map(|effect| outside.decision(profile, effect));
                assert!(read <= write, "{profile} {outside}");
            }
        }
        let default_decision = |profile, effect| Outside::of(profile).decision(profile, effect);
        assert_eq!(default_decision(Profile::Workspace, Effect::Read), Decision::Allow);
        assert_eq!(default_decision(Profile::Workspace, Effect::Write), Decision::Ask);
        assert_eq!(default_decision(Profile::Cautious, Effect::Read), Decision::Ask);
        assert_eq!(default_decision(Profile::ReadOnly, Effect::Read), Decision::Deny);
        assert_eq!(default_decision(Profile::Open, Effect::Write), Decision::Allow);
    }

    #[test]
    fn a_write_approval_covers_the_directory_unless_it_is_too_wide() {
        let homes_and_roots = [Path::new("/home/me"), Path::new("/work/ws")];
        for (path, expected) in [
            ("/srv/site/a.html", "/srv/site"),
            ("/home/me/notes/a.txt", "/home/me/notes"),
            ("/home/me/.bashrc", "/home/me/.bashrc"),
            ("/home/you.txt", "/home/you.txt"),
            ("/work/a.txt", "/work/a.txt"),
            ("/etc/hosts", "/etc/hosts"),
            ("/x", "/x"),
        ] {
            assert_eq!(
                write_approval_scope(Path::new(path), &homes_and_roots),
                Path::new(expected),
                "{path}"
            );
        }
    }
}
