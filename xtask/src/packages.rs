//! Programs of the system's own packages, which some tasks need.

use std::process::Command;

use crate::error::Result;
use crate::process;

/// strace: what a program asks the system for.
pub(crate) const STRACE: Package = Package { name: "strace", program: "strace" };

/// bubblewrap: a sandbox of others, to compare with; and the way to one where only it may make namespaces.
pub(crate) const BUBBLEWRAP: Package = Package { name: "bubblewrap", program: "bwrap" };

/// pytest, which tests of others run in the sandbox.
pub(crate) const PYTEST: Package = Package { name: "python3-pytest", program: "pytest-3" };

/// QEMU, which runs programs for other processors.
pub(crate) const QEMU: Package =
    Package { name: "qemu-user-static", program: "qemu-aarch64-static" };

/// A package, and a program in it that says its version when asked for.
pub(crate) struct Package {
    name: &'static str,
    pub(crate) program: &'static str,
}

impl Package {
    /// Sees to it that it is there, from the system's packages if need be.
    pub(crate) fn obtain(&self) -> Result<()> {
        let Package { name, program } = self;
        let probe = || process::probe(Command::new(program).arg("--version")).is_some();
        if probe() {
            return Ok(());
        }
        println!("{name} is not installed: trying apt-get");
        let install = ["install", "--yes", "--quiet", name];
        let _ = process::probe(Command::new("apt-get").arg("update"));
        let _ = process::probe(Command::new("apt-get").args(install));
        match probe() {
            true => Ok(()),
            false => Err(format!("{name} is not installed, and apt-get cannot install it").into()),
        }
    }
}
