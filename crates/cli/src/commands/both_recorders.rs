//! Two recorders of the same calls.

use toolcrib::{BegunCall, CallCommand, CommandEnd, ConnectionEntry, Record, Recorder};

/// Tells everything to both.
pub(super) struct BothRecorders<A, B>(pub(super) A, pub(super) B);

impl<A: Recorder, B: Recorder> Recorder for BothRecorders<A, B> {
    fn begun(&self, call: BegunCall) {
        self.0.begun(call.clone());
        self.1.begun(call);
    }

    fn command_started(&self, call: u64, command: CallCommand) {
        self.0.command_started(call, command.clone());
        self.1.command_started(call, command);
    }

    fn command_ended(&self, call: u64, end: CommandEnd) {
        self.0.command_ended(call, end.clone());
        self.1.command_ended(call, end);
    }

    fn connection(&self, connection: &ConnectionEntry) {
        self.0.connection(connection);
        self.1.connection(connection);
    }

    fn record(&self, record: Record) {
        self.0.record(record.clone());
        self.1.record(record);
    }
}
