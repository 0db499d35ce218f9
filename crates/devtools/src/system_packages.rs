//! Programs from system packages that some tasks need.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Result;
use crate::process;

/// What programs call the argument that prints their version.
const VERSION_FLAGS: [&str; 4] = ["--version", "-V", "-v", "version"];

/// strace, which traces system calls.
pub const STRACE: Package = Package { name: "strace", program: "strace" };

/// bubblewrap: a sandbox to compare with, and the only one that some systems allow to create namespaces.
pub const BUBBLEWRAP: Package = Package { name: "bubblewrap", program: "bwrap" };

/// pytest, which some tests run in the sandbox.
pub const PYTEST: Package = Package { name: "python3-pytest", program: "pytest-3" };

/// QEMU, which runs programs for other processors.
pub const QEMU: Package = Package { name: "qemu-user-static", program: "qemu-aarch64-static" };

/// debootstrap, which makes the root of a Debian system.
pub const DEBOOTSTRAP: Package = Package { name: "debootstrap", program: "debootstrap" };

/// Chromium, which runs the tests of the page.
pub const CHROMIUM: Package = Package { name: "chromium", program: "chromium" };

/// universal-ctags, which lists definitions.
pub const UNIVERSAL_CTAGS: Package = Package { name: "universal-ctags", program: "ctags" };

/// The language server for C and C++.
pub const CLANGD: Package = Package { name: "clangd", program: "clangd" };

/// The compiler of Go, which its language server runs.
pub const GO: Package = Package { name: "golang-go", program: "go" };

/// The language server for Go.
pub const GOPLS: Package = Package { name: "gopls", program: "gopls" };

/// PostgreSQL, which the tests of the store start.
pub const POSTGRESQL: Package =
    Package { name: "postgresql", program: "/usr/lib/postgresql/*/bin/postgres" };

/// The OpenSSH server, which some tests start on loopback.
pub const OPENSSH_SERVER: Package = Package { name: "openssh-server", program: "/usr/sbin/sshd" };

/// HAProxy, which routes requests to several servers.
pub const HAPROXY: Package = Package { name: "haproxy", program: "haproxy" };

/// Slurm, which runs job arrays.
pub const SLURM: Package = Package { name: "slurm-wlm", program: "/usr/sbin/slurmctld" };

/// MUNGE, with which the programs of Slurm authenticate each other.
pub const MUNGE: Package = Package { name: "munge", program: "/usr/sbin/munged" };

/// gVisor, a sandbox around a whole system.
pub const RUNSC: Package = Package { name: "runsc", program: "runsc" };

/// A package, and one of its programs. The program supports one of `VERSION_FLAGS`.
pub struct Package {
    name: &'static str,
    /// A program of the package, to see whether it is installed. `*` in its path stands for a version.
    pub program: &'static str,
}

impl Package {
    /// Installs the package if its program is missing. Fails if it cannot be installed.
    pub fn obtain(&self) -> Result<()> {
        let Package { name, program } = self;
        let answers = |path: &PathBuf| {
            let probe = |flag: &&str| process::probe(Command::new(path).arg(flag)).is_some();
            VERSION_FLAGS.iter().any(probe)
        };
        let probe = || paths(program).iter().any(answers);
        if probe() {
            return Ok(());
        }
        println!("{name} is not installed: trying apt-get");
        let install = ["install", "--yes", "--quiet", name];
        let _ = process::probe(Command::new("apt-get").arg("update"));
        let _ = process::probe(Command::new("apt-get").args(install));
        if probe() {
            Ok(())
        } else {
            Err(format!("{name} is not installed, and apt-get cannot install it").into())
        }
    }
}

/// The paths that a program with `*` in its path may have.
fn paths(program: &str) -> Vec<PathBuf> {
    let Some((above, below)) = program.split_once("/*/") else { return vec![program.into()] };
    let versions = Path::new(above).read_dir().into_iter().flatten().flatten();
    versions.map(|version| version.path().join(below)).collect()
}
