//! The commands that `exec` runs: their control by id, and the order of their input.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;
use serde_json::Value;
use toolcrib::backend::ProcessControl;
use toolcrib::{Error, ErrorKind};

/// The largest number of commands that run at the same time.
const MAX_COMMANDS: usize = 256;

/// The largest number of bytes of input that wait for commands to read them.
const MAX_INPUT_BYTES: usize = 256 << 20;

/// Running commands by the id of their request.
#[derive(Default)]
pub(super) struct RunningCommands {
    commands: Mutex<Vec<RunningCommand>>,
    input_bytes: Arc<Mutex<usize>>,
}

struct RunningCommand {
    id: Value,
    control: Arc<ProcessControl>,
    input: Sender<Input>,
}

/// Input for a command, with the id of its request.
pub(super) struct Input {
    pub(super) request: Value,
    /// `None` closes stdin.
    bytes: Option<Vec<u8>>,
}

impl RunningCommands {
    /// Adds a command. Returns its input in the order in which it arrives.
    pub(super) fn add(
        &self,
        id: &Value,
        control: &Arc<ProcessControl>,
    ) -> Result<Receiver<Input>, Error> {
        let mut commands = self.commands.lock();
        if commands.len() >= MAX_COMMANDS {
            let message = format!("{MAX_COMMANDS} commands are running, which is the limit");
            return Err(Error::new(ErrorKind::Limit, message).hint("Nothing was run."));
        }
        if commands.iter().any(|command| command.id == *id) {
            return Err(Error::invalid("a command with this id is running")
                .hint("Nothing was run. Give each request its own id."));
        }
        let (input, inputs) = channel();
        commands.push(RunningCommand { id: id.clone(), control: control.clone(), input });
        Ok(inputs)
    }

    pub(super) fn remove(&self, id: &Value) {
        self.commands.lock().retain(|command| command.id != *id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.lock().is_empty()
    }

    pub(super) fn control(&self, id: &Value) -> Result<Arc<ProcessControl>, Error> {
        let commands = self.commands.lock();
        let command = commands.iter().find(|command| command.id == *id);
        command.map(|command| command.control.clone()).ok_or_else(not_running)
    }

    /// Queues input for a command. `None` closes its stdin.
    pub(super) fn send(
        &self,
        id: &Value,
        request: Value,
        bytes: Option<Vec<u8>>,
    ) -> Result<(), Error> {
        let commands = self.commands.lock();
        let command = commands.iter().find(|command| command.id == *id);
        let command = command.ok_or_else(not_running)?;
        let length = bytes.as_ref().map_or(0, Vec::len);
        let mut waiting = self.input_bytes.lock();
        if *waiting > 0 && *waiting + length > MAX_INPUT_BYTES {
            let message = "too much input waits for commands that do not read it";
            return Err(Error::new(ErrorKind::Limit, message)
                .hint("Wait for the replies to earlier write_stdin requests."));
        }
        *waiting += length;
        drop(waiting);
        command.input.send(Input { request, bytes }).map_err(|_| {
            *self.input_bytes.lock() -= length;
            Error::new(ErrorKind::Io, "the stdin of the command is closed")
        })
    }

    /// Performs one input.
    pub(super) fn perform(&self, input: &Input, control: &ProcessControl) -> Result<(), Error> {
        let Some(bytes) = &input.bytes else { return control.close_stdin() };
        let written = control.write_stdin(bytes);
        *self.input_bytes.lock() -= bytes.len();
        written
    }

    /// Closes the input of all commands.
    pub(super) fn close_all(&self) {
        for command in &*self.commands.lock() {
            let _ = command.input.send(Input { request: Value::Null, bytes: None });
        }
    }
}

fn not_running() -> Error {
    Error::new(ErrorKind::NotFound, "no command with this id is running")
}
