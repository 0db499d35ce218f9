//! One local audit log on its way to the store.

use toolcrib::{AuditOutbox, OutboxPosition, OutboxRecord, random_bytes};

use crate::audit_rows::{self, LogName, OTHER_RECORD};
use crate::connection::Connection;
use crate::error::StoreError;
use crate::schema::StoreId;

/// Limits of a batch.
const BATCH_RECORDS: usize = 500;
const BATCH_BYTES: usize = 1 << 20;

/// A local audit log, and how much of it the store has.
pub(crate) struct OutgoingLog {
    outbox: AuditOutbox,
    /// The name of the workspace in the store.
    workspace: String,
    /// Known once the store was asked.
    sent: Option<Sent>,
}

struct Sent {
    name: LogName,
    seq: u64,
}

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Another process sends this log.
    ByAnother,
    /// The store has all records.
    UpToDate,
    /// A batch has arrived; there may be more.
    Sent,
}

impl OutgoingLog {
    pub(crate) fn new(outbox: AuditOutbox, workspace: String) -> OutgoingLog {
        OutgoingLog { outbox, workspace, sent: None }
    }

    /// The path of the workspace.
    pub(crate) fn path(&self) -> &str {
        self.outbox.workspace()
    }

    /// Whether there may be something to send. Does not use the network.
    pub(crate) fn may_have_more(&self) -> bool {
        self.sent.is_none() || self.outbox.may_have_more()
    }

    /// After the connection was lost, the last record in the store is unknown.
    pub(crate) fn forget_position(&mut self) {
        self.sent = None;
    }

    /// Sends a batch. `notice` gets what somebody should look into.
    pub(crate) fn send_some(
        &mut self,
        connection: &mut Connection,
        store: &StoreId,
        notice: &dyn Fn(&str),
    ) -> Result<Step, StoreError> {
        if !self.outbox.try_lock().map_err(StoreError::local)? {
            return Ok(Step::ByAnother);
        }
        let sent = match self.sent.take() {
            Some(sent) => sent,
            None => self.begin(connection, store, notice)?,
        };
        let records = self.outbox.after(sent.seq, BATCH_RECORDS, BATCH_BYTES);
        let records = records.map_err(StoreError::local)?;
        let Some(last) = records.last() else {
            self.sent = Some(sent);
            return Ok(Step::UpToDate);
        };
        // Otherwise a crash of this machine could lose a record that the store has.
        self.outbox.sync().map_err(StoreError::local)?;
        audit_rows::add(connection, &sent.name, &records)?;
        // Ignored rows are not necessarily ours: another sender may have been faster.
        if audit_rows::hash(connection, &sent.name, last.seq)?.as_ref() != Some(&last.hash) {
            return Err(StoreError::refused(
                OTHER_RECORD.as_bytes(),
                b"the log has another record",
            ));
        }
        let sent = Sent { seq: last.seq, ..sent };
        self.keep(store, &sent)?;
        self.sent = Some(sent);
        Ok(Step::Sent)
    }

    fn keep(&self, store: &StoreId, sent: &Sent) -> Result<(), StoreError> {
        let position = OutboxPosition {
            store: store.0.clone(),
            log: sent.name.log.clone(),
            name: self.workspace.clone(),
            workspace: self.outbox.workspace().to_owned(),
            seq: sent.seq,
        };
        self.outbox.keep_position(&position).map_err(StoreError::local)
    }

    /// Asks for the last record in the store.
    fn begin(
        &mut self,
        connection: &mut Connection,
        store: &StoreId,
        notice: &dyn Fn(&str),
    ) -> Result<Sent, StoreError> {
        let first = self.outbox.first().map_err(StoreError::local)?;
        let (name, kept) = find_log(connection, store, &self.outbox, &self.workspace)?;
        let name = match name {
            Some(name) => name,
            None => self.new_log()?,
        };
        let Some((seq, hash)) = audit_rows::last(connection, &name)? else {
            let sent = Sent { name, seq: 0 };
            self.keep(store, &sent)?;
            return Ok(sent);
        };
        if kept > seq {
            notice(&format!(
                "the store has lost records {} to {kept} of {}; they are sent again",
                seq + 1,
                self.path()
            ));
        }
        let same = self.outbox.find(seq).map_err(StoreError::local)?;
        let was_removed_here = first.is_some_and(|first: OutboxRecord| first.seq > seq);
        let goes_on = same.map_or(was_removed_here, |same| same.hash == hash);
        let sent = if goes_on {
            Sent { name, seq }
        } else {
            // The local log was cut or rewritten. The store keeps its records.
            notice(&format!(
                "the audit log of {} is not the one whose records the store has, up to record {seq}; it is sent as another log",
                self.path()
            ));
            Sent { name: self.new_log()?, seq: 0 }
        };
        self.keep(store, &sent)?;
        Ok(sent)
    }

    fn new_log(&self) -> Result<LogName, StoreError> {
        let random: [u8; 16] = random_bytes().map_err(StoreError::local)?;
        let log = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(LogName { workspace: self.workspace.clone(), log })
    }
}

/// The log in the store that has the records of a local log, and the number of the last record that had arrived: by the
/// position that was kept, or else by the first record.
pub(crate) fn find_log(
    connection: &mut Connection,
    store: &StoreId,
    outbox: &AuditOutbox,
    workspace: &str,
) -> Result<(Option<LogName>, u64), StoreError> {
    let kept = outbox.position().map_err(StoreError::local)?;
    let kept = kept.filter(|kept| kept.store == store.0 && kept.name == workspace);
    if let Some(kept) = kept {
        return Ok((Some(LogName { workspace: kept.name, log: kept.log }), kept.seq));
    }
    let first = outbox.first().map_err(StoreError::local)?;
    let Some(first) = first else { return Ok((None, 0)) };
    let log = audit_rows::log_with(connection, workspace, &first)?;
    Ok((log.map(|log| LogName { workspace: workspace.to_owned(), log }), 0))
}
