//! The store of a server: sends the audit logs of its workspaces, and keeps their limits.

use std::path::PathBuf;
use std::sync::Arc;

use toolcrib::{Quota, Runtime, WriteGate};
use toolcrib_monitor::SharedQuestions;
use toolcrib_store::{AuditSender, FollowedLog, HeldLease, LeaseKeeper, Quotas, SharedApprovals};

use super::address::{StoreAddress, url};
use super::shared_questions::QuestionsInStore;
use crate::args::{Common, ServeArgs};
use crate::commands::state;
use crate::config::Config;
use crate::host_name::host_name;
use crate::output;

/// The longest name of a workspace in the store.
const MAX_NAME_BYTES: usize = 1_024;

/// The store of a server. Clones share it.
#[derive(Clone)]
pub(crate) struct ServedStore {
    sender: Arc<AuditSender>,
    /// With `--lease`.
    leases: Option<Arc<LeaseKeeper>>,
    /// With `--http`: the client on stdio is on this machine, and ends with its server.
    approvals: Option<Arc<SharedApprovals>>,
    /// The limits of the tenant.
    quotas: Arc<Quotas>,
    /// The name of the workspace, if the user gave one.
    name: Option<String>,
    /// Paths that no tool may access.
    own: Vec<PathBuf>,
}

impl ServedStore {
    /// Starts sending. `None` without `--store`. A store that cannot be reached is no error.
    pub(crate) fn start(common: &Common, args: &ServeArgs) -> Result<Option<ServedStore>, String> {
        let Some(argument) = &args.store else { return Ok(None) };
        if !Config::of(common)?.audits() {
            return Err("--store sends the audit log, and audit = false turns it off".to_owned());
        }
        let directory = state(common)?;
        let directory =
            directory.ok_or("--store needs a state directory: name one with --state")?;
        let name = args.store_name.clone();
        if let Some(name) = &name {
            check_name(name)?;
        }
        if args.lease && name.is_none() && args.workspaces.is_none() {
            return Err(
                "--lease needs --store-name NAME: the same name on every machine that may serve the workspace".to_owned(),
            );
        }
        let StoreAddress { url, files } = url(argument)?;
        let failed = |error: std::io::Error| format!("--store: {error}");
        let leases = args.lease.then(|| {
            LeaseKeeper::start(url.clone(), directory.clone(), &host_name(), output::note)
        });
        let leases = leases.transpose().map_err(failed)?.map(Arc::new);
        let approvals = args
            .http
            .is_some()
            .then(|| SharedApprovals::start(url.clone(), &host_name(), output::warning));
        let approvals = approvals.transpose().map_err(failed)?.map(Arc::new);
        let quotas = Quotas::start(url.clone(), output::warning).map_err(failed)?;
        let sender = AuditSender::start(url, directory, output::warning).map_err(failed)?;
        let (sender, quotas) = (Arc::new(sender), Arc::new(quotas));
        Ok(Some(ServedStore { sender, leases, approvals, quotas, name, own: files }))
    }

    /// Where the questions about a workspace can be answered from other machines.
    pub(crate) fn questions(
        store: Option<&ServedStore>,
        runtime: &Runtime,
        id: Option<&str>,
    ) -> Option<Arc<dyn SharedQuestions>> {
        let store = store?;
        let workspace = store.name_of(runtime, id)?;
        let (approvals, node) = (store.approvals.clone()?, host_name());
        Some(Arc::new(QuestionsInStore { approvals, workspace, node }))
    }

    /// Makes a runtime keep the limits of the tenant and of the workspace.
    pub(crate) fn limit(store: Option<&ServedStore>, runtime: &mut Runtime, id: Option<&str>) {
        let named = store.and_then(|store| Some((store, store.name_of(runtime, id)?)));
        let quota =
            named.map(|(store, name)| -> Arc<dyn Quota> { store.quotas.of_workspace(&name) });
        quota.into_iter().for_each(|quota| runtime.set_quota(quota));
    }

    /// The name of a workspace in the store.
    fn name_of(&self, runtime: &Runtime, id: Option<&str>) -> Option<String> {
        let given = id.or(self.name.as_deref()).map(str::to_owned);
        given.or_else(|| Some(workspace_name(runtime.audit_outbox()?.workspace())))
    }

    /// Takes the lease of a workspace, with `--lease`. It is kept as long as the result exists.
    pub(crate) fn hold(
        store: Option<&ServedStore>,
        id: Option<&str>,
    ) -> Result<Option<HeldLease>, String> {
        let Some((store, leases)) = store.and_then(|store| Some((store, store.leases.as_ref()?)))
        else {
            return Ok(None);
        };
        let name = id.or(store.name.as_deref()).unwrap_or_default();
        leases.hold(name).map(Some).map_err(|error| error.to_string())
    }

    /// What decides whether the workspace may be changed.
    pub(crate) fn gate(lease: Option<&HeldLease>) -> Option<Arc<dyn WriteGate>> {
        lease.map(|held| -> Arc<dyn WriteGate> { held.lease() })
    }

    /// Paths that no tool may access.
    pub(crate) fn own(store: Option<&ServedStore>) -> Vec<PathBuf> {
        store.map(|store| store.own.clone()).unwrap_or_default()
    }

    /// Sends the audit log of a runtime as long as the result exists.
    pub(crate) fn follow(
        store: Option<&ServedStore>,
        runtime: &Runtime,
        id: Option<&str>,
    ) -> Option<FollowedLog> {
        let (store, outbox) = (store?, runtime.audit_outbox()?);
        let name = store.name_of(runtime, id)?;
        Some(store.sender.follow(outbox, &name))
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        return Err("--store-name has 1 to 1024 bytes, without control characters".to_owned());
    }
    Ok(())
}

/// The usual name of a workspace in the store: the host and the path, since other machines may have the same path.
pub(crate) fn workspace_name(path: &str) -> String {
    let name = format!("{}:{path}", host_name());
    let end = name.floor_char_boundary(MAX_NAME_BYTES);
    name[..end].to_owned()
}
