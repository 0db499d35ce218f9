//! What file tools may do outside the workspace.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::access::Effect;
use crate::decide::Decision;
use crate::profile::Profile;

/// What file tools may read outside the workspace. Writing there is never allowed by this alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// What commands may read.
    Read,
    /// The same, after a question.
    Ask,
    /// Nothing.
    Deny,
}

impl Outside {
    /// All of them, the loosest first.
    pub const ALL: [Outside; 3] = [Outside::Read, Outside::Ask, Outside::Deny];

    /// What holds in a profile if nothing else is said.
    pub fn of(profile: Profile) -> Outside {
        match profile {
            Profile::Workspace | Profile::Open => Outside::Read,
            Profile::Cautious => Outside::Ask,
            Profile::ReadOnly => Outside::Deny,
        }
    }

    /// Its name in flags and configuration.
    pub fn name(self) -> &'static str {
        match self {
            Outside::Read => "read",
            Outside::Ask => "ask",
            Outside::Deny => "deny",
        }
    }

    /// What it says about an effect on a file outside, in a profile.
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

/// What a yes to writing a file opens: its directory, or the file alone where the directory holds more than
/// was meant, such as a home, a root or all of `/etc`.
pub(crate) fn opened_by_writing(path: &Path, held: &[&Path]) -> PathBuf {
    /// `/`, and a directory directly in it.
    const WIDE: usize = 2;
    let directory = path.parent().unwrap_or(path);
    let is_wide = directory.components().count() <= WIDE
        || held.iter().any(|held| held.starts_with(directory));
    if is_wide { path.to_owned() } else { directory.to_owned() }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is no such setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownOutside(String);

impl fmt::Display for UnknownOutside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "outside is read, ask or deny, not `{}`", self.0)
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
    fn writing_outside_is_never_easier_than_reading_there() {
        for profile in Profile::ALL {
            for outside in Outside::ALL {
                let [read, write] =
                    [Effect::Read, Effect::Write].map(|effect| outside.decision(profile, effect));
                assert!(read <= write, "{profile} {outside}");
            }
        }
        let usual = |profile, effect| Outside::of(profile).decision(profile, effect);
        assert_eq!(usual(Profile::Workspace, Effect::Read), Decision::Allow);
        assert_eq!(usual(Profile::Workspace, Effect::Write), Decision::Ask);
        assert_eq!(usual(Profile::Cautious, Effect::Read), Decision::Ask);
        assert_eq!(usual(Profile::ReadOnly, Effect::Read), Decision::Deny);
        assert_eq!(usual(Profile::Open, Effect::Write), Decision::Allow);
    }

    #[test]
    fn a_yes_opens_a_directory_and_no_home() {
        let held = [Path::new("/home/me"), Path::new("/work/ws")];
        for (path, opened) in [
            ("/srv/site/a.html", "/srv/site"),
            ("/home/me/notes/a.txt", "/home/me/notes"),
            ("/home/me/.bashrc", "/home/me/.bashrc"),
            ("/home/you.txt", "/home/you.txt"),
            ("/work/a.txt", "/work/a.txt"),
            ("/etc/hosts", "/etc/hosts"),
            ("/x", "/x"),
        ] {
            assert_eq!(opened_by_writing(Path::new(path), &held), Path::new(opened), "{path}");
        }
    }
}
