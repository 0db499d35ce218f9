//! Landlock rules that several commands use.
//!
//! A home has hundreds of files beside hidden ones, and each needs a rule. Making the rules takes longer than a small
//! command. They are made here, outside the sandbox, and used again by commands with the same sandbox while nothing around
//! the hidden paths has changed. Each command adds rules for its own mounts. Rules only allow, so an older set of rules
//! does not allow a file beside hidden ones that has appeared since.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::surroundings::{Version, paths_around};
use super::{HiddenPaths, LandlockRules, version_for};
use crate::sandbox::Confinement;
use crate::setup_error::{SetupError, context};

/// Each command adds a few rules for its own mounts, which slow the next ones down.
const MAX_USES: u32 = 32;

/// A directory that was changed less than this before it was listed may have changed again with the same time. Some file
/// systems count time in steps of two seconds.
const SETTLED_NANOSECONDS: i128 = 3_000_000_000;

/// More often than this, hidden paths do not appear while rules are made.
const MAX_ATTEMPTS: usize = 8;

/// The kernel lists mounts here, and tells when they change.
const MOUNTS: &str = "/proc/self/mounts";

/// The last rules.
#[derive(Debug, Default)]
pub(crate) struct ReusedRules(Mutex<Option<Made>>);

#[derive(Debug)]
struct Made {
    ruleset: OwnedFd,
    confinement: Confinement,
    hidden: HiddenPaths,
    /// The directories that were listed, each as it was before.
    listed: Vec<(PathBuf, Version)>,
    mounts: File,
    uses: u32,
}

impl ReusedRules {
    /// The confinement with the hidden paths that exist now, and rules for everything around them. No rules if it is not
    /// restricted by Landlock.
    pub(crate) fn prepare(
        &self,
        wanted: &Confinement,
    ) -> Result<(Confinement, Option<OwnedFd>), SetupError> {
        let Some(version) = version_for(wanted) else { return Ok((wanted.looked_up(), None)) };
        // Other commands make their own rules meanwhile: none waits for the file systems of another.
        let last = self.0.lock().take();
        let mut made = match last.filter(|made| made.is_current_for(wanted)) {
            Some(made) => made,
            None => Made::new(wanted, version)?,
        };
        made.uses += 1;
        let ruleset = context("share Landlock rules", made.ruleset.try_clone())?;
        let confinement = made.confinement.clone();
        if made.is_settled() {
            *self.0.lock() = Some(made);
        }
        Ok((confinement, Some(ruleset)))
    }

    /// Gives the rules back to the kernel, and with them the files that were deleted since.
    pub(crate) fn forget(&self) {
        *self.0.lock() = None;
    }
}

impl Made {
    fn new(wanted: &Confinement, version: i64) -> Result<Made, SetupError> {
        let mut confinement = wanted.looked_up();
        for _ in 0..MAX_ATTEMPTS {
            // Before anything is listed, so that a later change is noticed.
            let mounts = context("open the list of mounts", File::open(MOUNTS))?;
            let hidden = HiddenPaths::of(&confinement);
            let around = paths_around(&hidden.existing, &hidden.incomplete);
            let rules = LandlockRules::for_paths(&confinement, version, &around.paths)?;
            // A hidden path that appeared meanwhile was listed like any other.
            let again = wanted.looked_up();
            if again == confinement && HiddenPaths::of(&again) == hidden {
                let (ruleset, listed, uses) = (rules.ruleset, around.listed, 0);
                return Ok(Made { ruleset, confinement, hidden, listed, mounts, uses });
            }
            confinement = again;
        }
        context("look up hidden paths", Err(io::Error::from_raw_os_error(libc::EAGAIN)))
    }

    /// Whether the rules are right for a command that starts now. A hidden path that appears after it was looked up here has
    /// changed its directory.
    fn is_current_for(&self, wanted: &Confinement) -> bool {
        let now = wanted.looked_up();
        let is_same = |(path, version): &(PathBuf, Version)| Version::of(path) == Some(*version);
        self.uses < MAX_USES
            && self.confinement == now
            && self.hidden == HiddenPaths::of(&now)
            && !has_changed(&self.mounts)
            && self.listed.iter().all(is_same)
    }

    fn is_settled(&self) -> bool {
        let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else { return false };
        let Ok(now) = i128::try_from(now.as_nanos()) else { return false };
        self.listed.iter().all(|(_, version)| version.changed < now - SETTLED_NANOSECONDS)
    }
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
        let hidden = PathSet::from(vec![PathBuf::from(hidden)]);
        let sandbox = Sandbox { hidden, ..Sandbox::read_only(Network::None) };
        let level = Level::Namespaces;
        Confinement { sandbox, level, max_landlock: i64::MAX, proxy_port: None }
    }

    #[test]
    fn rules_are_used_again_for_the_same_hidden_paths() {
        let (rules, one, other) =
            (ReusedRules::default(), confinement("/etc/passwd"), confinement("/etc/group"));
        let uses = |confinement: &Confinement| {
            let (looked_up, made) = rules.prepare(confinement).unwrap();
            assert_eq!(looked_up, confinement.looked_up());
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
