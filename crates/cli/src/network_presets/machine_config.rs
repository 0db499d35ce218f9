//! Reads configuration files and environment variables of this machine.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::args::Common;
use toolcrib::user_machine;

/// A configuration file is far smaller.
const MAX_BYTES: u64 = 1 << 20;

/// Files in one directory of configuration.
const MAX_FILES: usize = 100;

/// Reads a variable of the environment.
type ReadVariable = Box<dyn Fn(&str) -> Option<String>>;

/// Where the configuration of tools is.
pub(super) struct MachineConfig {
    pub(super) root: PathBuf,
    pub(super) home: Option<PathBuf>,
    pub(super) variable: ReadVariable,
    /// The roots of the workspace. Files beneath them are not read: an agent could write them.
    pub(super) workspace: Vec<PathBuf>,
}

impl MachineConfig {
    /// This machine, as its user sees it.
    pub(super) fn this(common: &Common) -> MachineConfig {
        let variable = Box::new(|name: &str| std::env::var(name).ok());
        let roots = common.roots();
        let workspace = roots.iter().filter_map(|root| root.directory.canonicalize().ok());
        let workspace = workspace.collect();
        MachineConfig { root: PathBuf::from("/"), home: user_machine::home(), variable, workspace }
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }

    /// A variable, unless the environment has one of the variables that a tool sets for the programs that it
    /// starts: then the value may come from the workspace.
    pub(super) fn variable_unless(&self, set_by_tool: &[&str], name: &str) -> Option<String> {
        let is_started_by_tool = set_by_tool.iter().any(|mark| (self.variable)(mark).is_some());
        self.variable(name).filter(|_| !is_started_by_tool)
    }

    /// The texts of files in the home and of the system, those that exist.
    pub(super) fn files(&self, in_home: &[&str], of_system: &[&str]) -> Vec<String> {
        let home =
            self.home.iter().flat_map(|home| in_home.iter().map(move |name| home.join(name)));
        let system = of_system.iter().map(|name| self.root.join(name));
        home.chain(system).filter_map(|path| self.text(&path)).collect()
    }

    /// The texts of the files in a directory of the system.
    pub(super) fn files_in(&self, directory: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(directory)).into_iter().flatten().flatten();
        entries.take(MAX_FILES).filter_map(|entry| self.text(&entry.path())).collect()
    }

    fn text(&self, path: &Path) -> Option<String> {
        let path = path.canonicalize().ok()?;
        if self.workspace.iter().any(|root| path.starts_with(root)) {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}
