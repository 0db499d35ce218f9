//! Builds the sandbox of a command from the roots, the hidden paths and the rules of a runtime.

use std::path::Path;

use toolcrib_exec::{Network, PinnedPath, Replacement, Sandbox};
use toolcrib_fs::{Root, RootMode};

use crate::message_names::SHELL_TOOL;
use crate::sandbox_settings::{SandboxSettings, effective_network};
use crate::services::Services;

/// Whether commands may write below a path, if nothing there is protected.
pub(crate) fn may_write(services: &Services, path: &Path) -> bool {
    let is_writable = |root: &Root| root.mode() == RootMode::ReadWrite;
    let roots = services.paths.workspace.roots().filter(|root| is_writable(root)).map(Root::path);
    let caches = services.caches.iter().map(|cache| cache.path.as_path());
    roots.chain(caches).any(|top| path.starts_with(top))
}

/// The sandbox of a command.
pub(crate) fn command_sandbox(
    services: &Services,
    settings: &SandboxSettings,
    tmp: &Path,
) -> Sandbox {
    let roots = |mode: RootMode| {
        let roots = services.paths.workspace.roots().filter(move |root| root.mode() == mode);
        let held = |root: &Root| {
            Some(PinnedPath { path: root.path().to_owned(), identity: root.identity()? })
        };
        roots.filter_map(held).collect()
    };
    let mut hidden = services.paths.hidden.paths_for_sandbox();
    hidden.add(&services.policy.of_tool(SHELL_TOOL).unreadable_outside());
    // A command may have replaced a cache that is inside a root.
    let is_in_place =
        |cache: &&PinnedPath| PinnedPath::of(cache.path.clone()).is_ok_and(|now| now == **cache);
    let mut writable: Vec<PinnedPath> = roots(RootMode::ReadWrite);
    writable.extend(services.caches.iter().filter(is_in_place).cloned());
    let inspection = services.commands.as_ref().and_then(|host| host.inspection());
    let replaced = inspection.map(|one| one.replacements()).unwrap_or_default();
    // A command could remove a mount point that it can write.
    let is_fixed = |one: &&Replacement| !writable.iter().any(|top| one.path.starts_with(&top.path));
    let replaced = replaced.iter().filter(is_fixed).cloned().collect();
    Sandbox {
        writable,
        read_only: roots(RootMode::ReadOnly),
        hidden,
        replaced,
        tmp: tmp.to_owned(),
        supervise_reads: services.paths.path_rules.deny_reading(),
        network: match &services.commands {
            Some(host) => effective_network(settings, host.enforced()),
            None => Network::None,
        },
        limits: settings.limits,
    }
}
