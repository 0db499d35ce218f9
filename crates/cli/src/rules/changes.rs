//! Reads the rules again when their files change.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use toolcrib::{Rules, RulesSource};

use crate::args::Common;
use crate::config::Config;

/// How long files have to stay the same before they are read. Editors empty or remove a file before they write it, and its
/// deny rules must not be missing in between.
const UNCHANGED_FOR: Duration = Duration::from_millis(200);

/// How often a file that is still being changed is looked at before one call. The next call goes on.
const MAX_LOOKS: u32 = 5;

/// The rules files of a server.
pub(crate) struct RulesFiles {
    common: Common,
    config: Config,
    /// The files, as they were when they were last read.
    read: Mutex<Vec<Option<Version>>>,
}

impl RulesFiles {
    /// The files as they are now. The rules must be read after this.
    pub(crate) fn new(common: &Common, config: &Config) -> RulesFiles {
        let (common, config) = (common.clone(), config.clone());
        let read = Mutex::new(versions(&common, &config));
        RulesFiles { common, config, read }
    }
}

impl RulesSource for RulesFiles {
    fn changed(&self) -> Option<Result<Rules, String>> {
        let mut read = self.read.lock();
        let mut found = versions(&self.common, &self.config);
        if *read == found {
            return None;
        }
        for _ in 0..MAX_LOOKS {
            std::thread::sleep(UNCHANGED_FOR);
            let now = versions(&self.common, &self.config);
            if found == now {
                *read = now;
                return Some(super::read(&self.common, &self.config));
            }
            found = now;
        }
        None
    }
}

/// A state of a file. Any change of its content gives another one.
#[derive(PartialEq, Eq)]
struct Version {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Version {
    fn of(found: &Metadata) -> Version {
        Version {
            file: (found.dev(), found.ino()),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

fn versions(common: &Common, config: &Config) -> Vec<Option<Version>> {
    let own = common.among.as_ref().and_then(|among| among.rules.clone());
    let version = |path: PathBuf| path.metadata().ok().as_ref().map(Version::of);
    super::files(common, config).into_iter().chain(own).map(version).collect()
}
