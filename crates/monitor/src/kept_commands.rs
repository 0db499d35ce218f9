//! The commands of running and recent calls, for their output.

use std::collections::BTreeMap;

use toolcrib::{CallCommand, WeakCallCommand};

/// Ended commands whose output is kept although their session may have forgotten it, and the largest such output.
const KEPT_ENDED: usize = 8;
const MAX_KEPT_BYTES: u64 = 1 << 20;

/// Commands that are known at all.
const MAX_COMMANDS: usize = 256;

/// The commands by the number of their call.
#[derive(Debug, Default)]
pub(crate) struct KeptCommands {
    commands: BTreeMap<u64, KeptCommand>,
}

#[derive(Debug)]
struct KeptCommand {
    session: u64,
    id: String,
    command: Held,
}

#[derive(Debug)]
enum Held {
    Kept(CallCommand),
    /// Its session decides how long it is kept.
    BySession(WeakCallCommand),
}

impl KeptCommands {
    pub(crate) fn add(&mut self, call: u64, session: u64, command: CallCommand) {
        let id = command.id().to_owned();
        self.commands.insert(call, KeptCommand { session, id, command: Held::Kept(command) });
        self.limit();
    }

    /// The command of a call.
    pub(crate) fn get(&self, call: u64) -> Option<CallCommand> {
        match &self.commands.get(&call)?.command {
            Held::Kept(command) => Some(command.clone()),
            Held::BySession(command) => command.upgrade(),
        }
    }

    /// The call of a job.
    pub(crate) fn call_of(&self, session: u64, job: &str) -> Option<u64> {
        let is_it = |kept: &KeptCommand| kept.session == session && kept.id == job;
        self.commands.iter().rev().find(|(_, kept)| is_it(kept)).map(|(call, _)| *call)
    }

    /// Leaves the output of older ended commands to their sessions.
    fn limit(&mut self) {
        let mut kept = 0;
        for entry in self.commands.values_mut().rev() {
            let Held::Kept(command) = &entry.command else { continue };
            if command.is_running() {
                continue;
            }
            kept += 1;
            if kept > KEPT_ENDED || command.written() > MAX_KEPT_BYTES {
                entry.command = Held::BySession(command.downgrade());
            }
        }
        while self.commands.len() > MAX_COMMANDS {
            self.commands.pop_first();
        }
    }
}
