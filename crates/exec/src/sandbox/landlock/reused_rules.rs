//! Landlock rules that several commands use.
//!
//! A home has hundreds of files beside hidden ones, and each needs a rule. Making the rules takes longer than a small
//! command. They are made here, outside the sandbox, and used again while nothing around the hidden paths has changed. The
//! command then adds the rules for what only it sees. Rules only allow, and only files that were beside hidden paths when
//! the rules were made: an older set of rules allows no file that has appeared since.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::surroundings::{Surroundings, Version};
use super::{HiddenPaths, LandlockRules, scoped, version_for};
use crate::sandbox::Confinement;
use crate::setup_error::{SetupError, context};

/// Each command adds a few rules for its own mounts, which slow the next ones down.
const MAX_USES: u32 = 32;

/// A directory that was changed less than this before it was listed may have changed again with the same time.
const SETTLED_NANOSECONDS: i128 = 1_000_000_000;

/// The kernel lists mounts here, and tells when they change.
const MOUNTS: &str = "/proc/self/mounts";

/// The last rules.
#[derive(Debug, Default)]
pub(crate) struct ReusedRules(Mutex<Option<Made>>);

#[derive(Debug)]
struct Made {
    ruleset: OwnedFd,
    hidden: HiddenPaths,
    kind: Kind,
    surroundings: Surroundings,
    mounts: File,
    uses: u32,
}

/// What a ruleset is made for.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    version: i64,
    scoped: u64,
}

impl ReusedRules {
    /// Rules for what surrounds the hidden paths of a sandbox with namespaces. `None` if it is not restricted by Landlock.
    pub(crate) fn around(&self, confinement: &Confinement) -> Result<Option<OwnedFd>, SetupError> {
        let Some(version) = version_for(confinement) else { return Ok(None) };
        let kind = Kind { version, scoped: scoped(confinement) };
        let hidden = HiddenPaths::of(confinement);
        let mut last = self.0.lock();
        if let Some(made) = &mut *last
            && made.kind == kind
            && made.hidden == hidden
            && made.is_current()
        {
            made.uses += 1;
            return context("share Landlock rules", made.ruleset.try_clone()).map(Some);
        }
        *last = None;
        // Before anything is listed: a later change is noticed the next time.
        let mounts = File::open(MOUNTS).ok();
        let (LandlockRules { ruleset, .. }, surroundings) =
            LandlockRules::around_hidden(confinement, version)?;
        let copy = context("share Landlock rules", ruleset.try_clone())?;
        if let Some(mounts) = mounts
            && is_settled(&surroundings)
        {
            *last = Some(Made { ruleset, hidden, kind, surroundings, mounts, uses: 1 });
        }
        Ok(Some(copy))
    }

    /// Gives the rules back to the kernel.
    pub(crate) fn forget(&self) {
        *self.0.lock() = None;
    }
}

impl Made {
    fn is_current(&self) -> bool {
        let is_same = |(path, version): &(PathBuf, Version)| Version::of(path) == Some(*version);
        self.uses < MAX_USES
            && !has_changed(&self.mounts)
            && self.surroundings.listed.iter().all(is_same)
    }
}

fn is_settled(surroundings: &Surroundings) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let settled = i128::try_from(now).unwrap_or(i128::MAX) - SETTLED_NANOSECONDS;
    surroundings.listed.iter().all(|(_, version)| version.changed < settled)
}

/// Whether something was mounted or unmounted since the list of mounts was opened.
fn has_changed(mounts: &File) -> bool {
    let mut change = [PollFd::from_borrowed_fd(mounts.as_fd(), PollFlags::PRI)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut change, Some(&now)).is_err() || change[0].revents().contains(PollFlags::PRI)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::path_set::PathSet;
    use crate::sandbox::level::Level;
    use crate::sandbox::{Network, Sandbox};

    fn confinement(hidden: &str) -> Confinement {
        let hidden = PathSet::from(vec![PathBuf::from(hidden)]).found();
        let sandbox = Sandbox { hidden, ..Sandbox::read_only(Network::None) };
        let level = Level::Namespaces;
        Confinement { sandbox, level, max_landlock: i64::MAX, proxy_port: None }
    }

    #[test]
    fn rules_are_used_again_for_the_same_hidden_paths() {
        let (rules, one, other) =
            (ReusedRules::default(), confinement("/etc/passwd"), confinement("/etc/group"));
        let uses = |confinement: &Confinement| {
            let made = rules.around(confinement).unwrap();
            assert_eq!(made.is_some(), version_for(confinement).is_some());
            rules.0.lock().as_ref().map(|made| made.uses)
        };
        // Another program may have just changed a directory that is listed.
        let both = || (uses(&one), uses(&one));
        let mut counted = both();
        for _ in 0..100 {
            if counted.1.is_some_and(|uses| uses > 1) || version_for(&one).is_none() {
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
            counted = both();
        }
        if version_for(&one).is_some() {
            assert_eq!(counted, (Some(1), Some(2)));
            assert_eq!(uses(&other), Some(1));
            assert_eq!(uses(&one), Some(1));
        }
        rules.forget();
        assert!(rules.0.lock().is_none());
    }
}
