//! The same view of the files by the system's own bubblewrap, where only that may make namespaces: a
//! program with rights that we do not have, or that the system trusts to make namespaces of users.
//!
//! It is given the view as arguments, with descriptors for whatever is shown in another place than where it
//! is, or as writable as it is: between our look at a name and its mount nobody can put something else there.
//! What it laid over hidden names is looked at once more from inside ([`Inside::check`]).
//!
//! A hidden file that goes away while it works is a failure to it: the keeper tries again.
//!
//! Its last argument is this very program, by descriptor, which then does the rest: limits, Landlock, the filter.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, Mode, OFlags, SeekFrom, memfd_create, open, seek};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::mounts::layout::{Plan, Seen, Source};
use super::mounts::protect::{Hold, check_covered};
use super::{HeldPath, Network, Sandbox};
use crate::setup_error::{Failure, at, plainly};
use crate::wire::{Frame, Rest};

/// Where it is looked for: never where the caller's `PATH` leads.
const PLACES: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// What it is to do besides mounting. `--as-pid-1`: the first process inside is ours, and reaps.
const ALWAYS: [&str; 8] = [
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--die-with-parent",
    "--as-pid-1",
    "--cap-drop",
    "ALL",
    "--chdir",
];

/// More descriptors than a view has.
const MANY_HANDLES: u64 = 16 << 10;

/// The bubblewrap of this system, if nobody but root can have put it there.
pub(crate) fn find() -> Option<PathBuf> {
    let real = PLACES.iter().filter_map(|place| fs::canonicalize(place).ok());
    real.into_iter().find(|program| program.ancestors().all(is_roots_alone))
}

/// Whether it has the rights of root, whoever starts it.
pub(crate) fn is_setuid(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|about| about.mode() & libc::S_ISUID != 0)
}

fn is_roots_alone(path: &Path) -> bool {
    let others = libc::S_IWGRP | libc::S_IWOTH;
    fs::metadata(path).is_ok_and(|about| about.uid() == 0 && about.mode() & others == 0)
}

/// A command's view as bubblewrap is told of it.
pub(crate) struct Wrapped {
    program: PathBuf,
    /// Each ends with a zero.
    words: Vec<u8>,
    /// What is named in them by its number, to be inherited.
    handed: Vec<OwnedFd>,
    inside: Inside,
}

/// What the process inside has to know besides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Inside {
    /// What must be read-only there.
    covered: Vec<PathBuf>,
    /// Which file each root must be.
    meant: Vec<HeldPath>,
    /// How many open files there may be, as it was before descriptors were handed on.
    handles: Option<u64>,
}

impl Wrapped {
    pub(crate) fn new(sandbox: &Sandbox) -> Result<Wrapped, Failure> {
        let program = find().ok_or(io::Error::from_raw_os_error(libc::ENOENT));
        let program = at("find a bubblewrap that is root's in", Path::new("/usr/bin"), program)?;
        let plan = Plan::of(sandbox)?;
        let handles = plainly("have more open files", have_more_handles())?;
        let meant = sandbox.writable.iter().chain(&sandbox.read_only).cloned().collect();
        let inside = Inside { covered: Vec::new(), meant, handles };
        let mut wrapped = Wrapped { program, words: Vec::new(), handed: Vec::new(), inside };
        wrapped.add(&ALWAYS);
        wrapped.add(&["/"]);
        if sandbox.network == Network::None {
            wrapped.add(&["--unshare-net"]);
        }
        wrapped.show(&plan)?;
        Ok(wrapped)
    }

    /// The program and its arguments; the words of `command` come last, with this program before them. What is
    /// inherited is open until this is dropped.
    pub(crate) fn command(
        mut self,
        arguments: impl Iterator<Item = OsString>,
    ) -> Result<(std::process::Command, Vec<OwnedFd>, Inside), Failure> {
        let own = open("/proc/self/exe", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let own = self.hand_on(plainly("open this program", own)?)?;
        let words = plainly("hold the arguments", held(&self.words))?;
        let words = self.hand_on(words)?;
        let mut command = std::process::Command::new(&self.program);
        command.args(["--args", &words, "--"]).arg(format!("/proc/self/fd/{own}"));
        command.args(arguments);
        Ok((command, self.handed, self.inside))
    }

    fn show(&mut self, plan: &Plan) -> Result<(), Failure> {
        self.add(&["--ro-bind", "/", "/"]);
        let mut emptied = Vec::new();
        for layer in &plan.layers {
            let path = &layer.path;
            match &layer.seen {
                Seen::AsItIs(source) => self.bind("--bind-fd", source, path)?,
                Seen::ReadOnly(source) => self.bind("--ro-bind-fd", source, path)?,
                Seen::Fresh => self.add_at(&["--perms", "0755", "--tmpfs"], path),
                Seen::Link(target) => {
                    self.add_at(&["--symlink"], target);
                    self.add_word(path.as_os_str());
                }
                Seen::Devices => self.add_at(&["--dev"], path),
                Seen::EmptyDirectory => {
                    self.empty(path);
                    emptied.push(path);
                }
                Seen::UnreadableFile => self.deny(path),
            }
        }
        for hold in &plan.holds {
            match hold {
                Hold::Directory(path) => {
                    let source = Source { path: path.clone(), identity: None };
                    self.bind("--bind-fd", &source, path)?;
                }
                Hold::Hidden(path) if path.is_dir() => {
                    self.empty(path);
                    emptied.push(path);
                }
                Hold::Hidden(path) => self.deny(path),
            }
            if let Hold::Hidden(path) = hold {
                self.inside.covered.push(path.clone());
            }
        }
        for path in emptied {
            self.add_at(&["--remount-ro"], path);
        }
        // Read-only: what root may set in there is the whole system's.
        self.add(&["--proc", "/proc", "--remount-ro", "/proc"]);
        Ok(())
    }

    fn bind(&mut self, how: &str, source: &Source, path: &Path) -> Result<(), Failure> {
        let number = self.hand_on(source.open()?)?;
        self.add_at(&[how, &number], path);
        Ok(())
    }

    fn empty(&mut self, path: &Path) {
        self.add_at(&["--perms", "0555", "--tmpfs"], path);
    }

    /// A device on a mount that has none: nobody can open it.
    fn deny(&mut self, path: &Path) {
        self.add_at(&["--ro-bind", "/dev/null"], path);
    }

    fn hand_on(&mut self, descriptor: OwnedFd) -> Result<String, Failure> {
        plainly("hand on a file", fcntl_setfd(&descriptor, FdFlags::empty()))?;
        let number = descriptor.as_raw_fd().to_string();
        self.handed.push(descriptor);
        Ok(number)
    }

    fn add_at(&mut self, words: &[&str], path: &Path) {
        self.add(words);
        self.add_word(path.as_os_str());
    }

    fn add(&mut self, words: &[&str]) {
        words.iter().for_each(|word| self.add_word(OsStr::new(word)));
    }

    fn add_word(&mut self, word: &OsStr) {
        self.words.extend_from_slice(word.as_bytes());
        self.words.push(0);
    }
}

impl Inside {
    /// Looks whether everything was laid where it belongs; to be called inside.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        for path in &self.covered {
            at("hide", path, check_covered(path))?;
        }
        for held in &self.meant {
            Source { path: held.path.clone(), identity: Some(held.identity) }.open()?;
        }
        if let Some(given) = self.handles {
            let limit =
                Rlimit { current: Some(given), maximum: getrlimit(Resource::Nofile).maximum };
            plainly("have as many open files as before", setrlimit(Resource::Nofile, limit))?;
        }
        Ok(())
    }

    pub(crate) fn encode(&self, frame: &mut Frame) {
        frame.paths(&self.covered);
        HeldPath::encode_all(&self.meant, frame);
        frame.number(self.handles.unwrap_or(0));
    }

    pub(crate) fn parse(rest: &mut Rest<'_>) -> Option<Inside> {
        let (covered, meant) = (rest.paths()?, HeldPath::parse_all(rest)?);
        let handles = Some(rest.number()?).filter(|&handles| handles > 0);
        Some(Inside { covered, meant, handles })
    }
}

/// Room for a descriptor of each place; answers what there was.
fn have_more_handles() -> io::Result<Option<u64>> {
    let given = getrlimit(Resource::Nofile);
    let wanted = given.maximum.map_or(MANY_HANDLES, |most| most.min(MANY_HANDLES));
    let Some(current) = given.current.filter(|&current| current < wanted) else {
        return Ok(None);
    };
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: given.maximum })?;
    Ok(Some(current))
}

/// A file without a name that holds some bytes, to be read from its beginning.
fn held(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create("arguments", MemfdFlags::CLOEXEC)?;
    fs::File::from(file.try_clone()?).write_all(bytes)?;
    seek(&file, SeekFrom::Start(0))?;
    Ok(file)
}
