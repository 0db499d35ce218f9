//! The backups of a server: copies of its workspaces.

use std::path::PathBuf;
use std::sync::Arc;

use toolcrib::{Runtime, WriteGate};
use toolcrib_backup::{Copier, FollowedWorkspace};

use super::server::BackupServer;
use crate::host_name::host_name;
use crate::output;

/// The backups of a server. Clones share the thread that copies.
#[derive(Clone)]
pub(crate) struct ServedBackup {
    copier: Arc<Copier>,
    server: BackupServer,
}

impl ServedBackup {
    /// Starts copying. `None` without `--backup`. A server that cannot be reached is no error.
    pub(crate) fn start(address: Option<&String>) -> Result<Option<ServedBackup>, String> {
        let Some(address) = address else { return Ok(None) };
        let server = BackupServer::find(address)?;
        let copier = Copier::start(&host_name(), output::warning);
        let copier = copier.map_err(|error| format!("--backup: {error}"))?;
        Ok(Some(ServedBackup { copier: Arc::new(copier), server }))
    }

    /// Paths that no tool may access.
    pub(crate) fn own(backup: Option<&ServedBackup>) -> Vec<PathBuf> {
        backup.map(|backup| backup.server.files.clone()).unwrap_or_default()
    }

    /// Copies the workspace of a runtime as long as the result exists, and while the gate lets this machine write it. The ID is that of one
    /// of many workspaces.
    pub(crate) fn follow(
        backup: Option<&ServedBackup>,
        runtime: &Runtime,
        id: Option<&str>,
        gate: Option<Arc<dyn WriteGate>>,
    ) -> Result<Option<FollowedWorkspace>, String> {
        let Some(backup) = backup else { return Ok(None) };
        let source =
            runtime.backup_source().map_err(|error| format!("--backup: {}", error.text()))?;
        let server = id.map_or_else(|| Ok(backup.server.clone()), |id| backup.server.below(id))?;
        Ok(Some(backup.copier.follow(source, server.objects(), gate)))
    }
}
