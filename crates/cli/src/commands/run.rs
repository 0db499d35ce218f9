//! `toolcrib run`: serves calls and raw operations as JSON lines, in one session.

mod approvals;
mod client_tools;
mod frame;
mod operation;
mod operation_args;
mod output;
mod pool;
mod request;
mod running_calls;
mod running_commands;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::Scope;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolcrib::backend::{Exec, ExecEvent, OutputStream, ProcessControl, ProcessStdin, has_reader};
use toolcrib::{Cancel, Dialect, Error, ErrorKind, Options, Progress, Runtime, Session, to_json};
use toolcrib_monitor::{Channel, FirstAnswer, Monitor, NoChannel};

use self::approvals::{Approvals, LineApprover};
use self::client_tools::ClientTools;
use self::frame::{Frame, FrameError};
use self::operation::{Control, Operation, OperationResult, Other, executed_json};
use self::output::Output;
use self::pool::{MAX_PENDING, MAX_PENDING_BYTES, Pool, WhenFull};
use self::request::{Message, OperationRequest, Request};
use self::running_calls::RunningCalls;
use self::running_commands::{Input, RunningCommands};
use super::monitor_socket::MonitorSocket;
use crate::args::Common;
use crate::rules;

/// How often to check whether the output still has a reader, after the end of the input.
const READER_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Serves messages. Replies use the names of a dialect. With a time limit for answers, approval questions are messages
/// too.
pub(crate) fn run(
    common: &Common,
    mut runtime: Runtime,
    dialect: Dialect,
    answer_within: Option<Duration>,
    monitor: &MonitorSocket,
) -> Result<ExitCode, String> {
    let approvals =
        answer_within.map(|deadline| Approvals::new(deadline, rules::file_for_additions(common)));
    let output = Arc::new(Output::new());
    let client_tools = ClientTools::new(output.clone());
    let cannot_read =
        |error: io::Error| format!("cannot read the calls from standard input: {error}");
    let mut stdin = io::stdin().lock();
    let first =
        register_tools(&mut stdin, &mut runtime, &client_tools, &output).map_err(cannot_read)?;
    let server = Server {
        runtime: &runtime,
        session: runtime.session(),
        dry_run: common.dry_run,
        dialect,
        approvals,
        running: RunningCalls::default(),
        commands: RunningCommands::default(),
        client_tools,
        output,
        monitor: monitor.monitor(),
    };
    std::thread::scope(|scope| {
        let mut pool = Pool::new(scope, |work: Work| server.perform(work));
        let read = server.serve(first, &mut stdin, scope, &mut pool);
        if let Some(approvals) = &server.approvals {
            approvals.close();
        }
        server.client_tools.close();
        server.commands.close_all();
        server.end_commands_without_reader();
        read
    })
    .map_err(cannot_read)?;
    Ok(if server.output.all_written() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A message that was read, and its size.
type ReadFrame = (usize, Result<Frame, FrameError>);

/// Registers the tools of the calling program, which come first. Returns the first other message.
fn register_tools(
    stdin: &mut impl io::BufRead,
    runtime: &mut Runtime,
    client_tools: &Arc<ClientTools>,
    output: &Output,
) -> io::Result<Option<ReadFrame>> {
    loop {
        let Some((bytes, frame)) = Frame::read(stdin)? else { return Ok(None) };
        let frame = match frame {
            Ok(frame) if frame.fields.get("op").is_some_and(|op| op == "register") => frame,
            other => return Ok(Some((bytes, other))),
        };
        let id = frame.fields.get("id").cloned().unwrap_or_default();
        let args = frame.fields.get("args").cloned().unwrap_or_default();
        let registered = client_tools.register(runtime, args);
        write_result(output, &id, registered.map(|()| (json!({}), None)));
    }
}

/// Writes the result of an operation.
fn write_result(output: &Output, id: &Value, result: OperationResult) {
    match result {
        Ok((result, payload)) => {
            let fields = json!({"success": true, "result": result});
            output.write_about(id, fields, payload.as_deref());
        }
        Err(error) => {
            output.write_about(id, Value::Object(to_json(&Err(error))), None);
        }
    }
}

/// Work for the pool.
enum Work {
    Call(Request),
    Operation { id: Value, operation: Other, cancel: Arc<Cancel> },
}

struct Server<'a> {
    runtime: &'a Runtime,
    session: Session,
    dry_run: bool,
    dialect: Dialect,
    /// The open questions, if approvals are enabled.
    approvals: Option<Approvals>,
    running: RunningCalls,
    commands: RunningCommands,
    client_tools: Arc<ClientTools>,
    output: Arc<Output>,
    monitor: &'a Arc<Monitor>,
}

impl Server<'_> {
    /// Reads messages until the input ends.
    fn serve<'scope, 'env, F>(
        &'env self,
        first: Option<ReadFrame>,
        stdin: &mut impl io::BufRead,
        scope: &'scope Scope<'scope, 'env>,
        pool: &mut Pool<'scope, 'env, Work, F>,
    ) -> io::Result<()>
    where
        F: Fn(Work) + Send + Sync + 'scope,
    {
        let mut next = first;
        while let Some((line_bytes, frame)) = next {
            let bytes = line_bytes + frame.as_ref().map_or(0, Frame::payload_bytes);
            let is_last = frame.as_ref().is_err_and(|error| error.is_fatal);
            match frame.map_err(|error| error.error).and_then(Message::decode) {
                Err((field, value, error)) => {
                    self.write_reply(field, value, to_json(&Err(error)));
                }
                Ok(Message::Approve(approve)) => {
                    let answered = match &self.approvals {
                        Some(approvals) => approvals.answer(&approve),
                        None => Err(Error::invalid("approvals are not enabled")
                            .hint("Start `toolcrib run --approvals` to enable them.")),
                    };
                    if let Err(error) = answered {
                        self.write_reply("approve", approve.id.into(), to_json(&Err(error)));
                    }
                }
                Ok(Message::Cancel(id)) if self.running.cancel(&id) => {}
                Ok(Message::Cancel(id)) => {
                    let error = Error::new(ErrorKind::NotFound, "no call with this id is running");
                    self.write_reply("cancel", id, to_json(&Err(error)));
                }
                Ok(Message::Call(request)) => {
                    let wait = request.wait;
                    self.running.add(&request.id, &request.cancel);
                    self.submit(Work::Call(request), bytes, wait, pool);
                }
                Ok(Message::Operation(request)) => self.begin(request, bytes, scope, pool),
                Ok(Message::Invoked(result)) => {
                    let id = result.invoked.clone();
                    if let Err(error) = self.client_tools.take_result(result) {
                        self.write_reply("invoked", id.into(), to_json(&Err(error)));
                    }
                }
            }
            next = if is_last { None } else { Frame::read(stdin)? };
        }
        Ok(())
    }

    fn submit<'scope, F>(
        &self,
        work: Work,
        bytes: usize,
        wait: bool,
        pool: &mut Pool<'scope, '_, Work, F>,
    ) where
        F: Fn(Work) + Send + Sync + 'scope,
    {
        // With approvals or tools of the program, reading continues, because messages may be answers.
        let is_asking = self.approvals.is_some() || self.client_tools.is_any();
        if wait && !is_asking {
            return self.perform(work);
        }
        let when_full = if is_asking { WhenFull::Refuse } else { WhenFull::Wait };
        if let Err(work) = pool.submit(work, bytes, wait, when_full) {
            let (Work::Call(Request { id, cancel, .. }) | Work::Operation { id, cancel, .. }) =
                work;
            self.running.remove(&cancel);
            let megabytes = MAX_PENDING_BYTES >> 20;
            let message = format!(
                "too many calls are pending; the limit is {MAX_PENDING} calls and {megabytes} MiB"
            );
            let error = Error::new(ErrorKind::Limit, message)
                .hint("Nothing was done. Wait for replies, and answer the open questions.");
            self.write_reply("id", id, to_json(&Err(error)));
        }
    }

    /// Begins an operation. A command has its own thread, since it may run for a long time.
    fn begin<'scope, 'env, F>(
        &'env self,
        request: OperationRequest,
        bytes: usize,
        scope: &'scope Scope<'scope, 'env>,
        pool: &mut Pool<'scope, 'env, Work, F>,
    ) where
        F: Fn(Work) + Send + Sync + 'scope,
    {
        let OperationRequest { id, operation, cancel } = request;
        match operation {
            Operation::Other(operation) => {
                self.running.add(&id, &cancel);
                self.submit(Work::Operation { id, operation, cancel }, bytes, false, pool);
            }
            Operation::Control { to, control } => {
                let done = match control {
                    // In order, and answered when the command has read it.
                    Control::WriteStdin(bytes) => {
                        match self.commands.send(&to, id.clone(), Some(bytes)) {
                            Ok(()) => return,
                            refused => refused,
                        }
                    }
                    Control::CloseStdin => match self.commands.send(&to, id.clone(), None) {
                        Ok(()) => return,
                        refused => refused,
                    },
                    Control::Signal(signal) => {
                        self.commands.control(&to).and_then(|command| command.signal(signal))
                    }
                    Control::Resize(size) => {
                        self.commands.control(&to).and_then(|command| command.resize(size))
                    }
                };
                write_result(&self.output, &id, done.map(|()| (json!({}), None)));
            }
            Operation::Exec(exec) => {
                let inputs = match self.commands.add(&id, &exec.control) {
                    Ok(inputs) => inputs,
                    Err(error) => return write_result(&self.output, &id, Err(error)),
                };
                self.running.add(&id, &cancel);
                let has_input = !matches!(exec.stdin, ProcessStdin::Content(_));
                let control = exec.control.clone();
                let thread = || std::thread::Builder::new();
                let forwards = !has_input
                    || thread()
                        .spawn_scoped(scope, move || self.forward_input(&inputs, &control))
                        .is_ok();
                let (request, token) = (id.clone(), cancel.clone());
                let runs = forwards
                    && thread()
                        .spawn_scoped(scope, move || self.execute(request, *exec, &token))
                        .is_ok();
                if !runs {
                    self.commands.remove(&id);
                    self.running.remove(&cancel);
                    let error = Error::new(ErrorKind::Limit, "no thread can be started");
                    write_result(&self.output, &id, Err(error.hint("Nothing was run.")));
                }
            }
        }
    }

    /// Passes input on to a command until the command ends.
    fn forward_input(&self, inputs: &Receiver<Input>, control: &ProcessControl) {
        for input in inputs {
            let done = self.commands.perform(&input, control);
            if !input.request.is_null() {
                write_result(&self.output, &input.request, done.map(|()| (json!({}), None)));
            }
        }
    }

    /// Runs a command, and writes its events and its reply.
    fn execute(&self, id: Value, exec: Exec, cancel: &Arc<Cancel>) {
        let outcome = self.with_options(&id, cancel, self.dry_run, |options| {
            let backend = self.runtime.backend(&self.session, options);
            backend.exec(exec, &|event| {
                let (event, stream) = match event {
                    ExecEvent::Started => (json!({"event": "started"}), None),
                    ExecEvent::Output(stream, bytes) => {
                        let name = match stream {
                            OutputStream::Stdout => "stdout",
                            OutputStream::Stderr => "stderr",
                        };
                        (json!({"event": "output", "stream": name}), Some(bytes))
                    }
                };
                // Without a reader, nothing would end it.
                if !self.output.write_about(&id, event, stream) {
                    cancel.cancel();
                }
            })
        });
        self.commands.remove(&id);
        self.running.remove(cancel);
        write_result(&self.output, &id, outcome.map(|executed| (executed_json(&executed), None)));
    }

    fn perform(&self, work: Work) {
        match work {
            Work::Call(request) => self.answer(request),
            Work::Operation { id, operation, cancel } => {
                let result = self.with_options(&id, &cancel, self.dry_run, |options| {
                    let backend = self.runtime.backend(&self.session, options);
                    operation.perform(backend, self.runtime, self.dialect)
                });
                self.running.remove(&cancel);
                write_result(&self.output, &id, result);
            }
        }
    }

    fn answer(&self, request: Request) {
        let dry_run = self.dry_run || request.dry_run;
        let tool = self.runtime.tool_named(&request.call.tool).map_or("", |tool| tool.name);
        let report = |progress: Progress<'_>| {
            let Progress { done, total, message } = progress;
            let event =
                json!({"event": "progress", "done": done, "total": total, "message": message});
            self.output.write_about(&request.id, event, None);
        };
        let outcome = self.with_options(&request.id, &request.cancel, dry_run, |options| {
            let options =
                if request.progress { Options { progress: &report, ..options } } else { options };
            self.runtime.call(&self.session, request.call.clone(), options)
        });
        self.running.remove(&request.cancel);
        self.write_reply("id", request.id, self.dialect.reply_json(tool, &outcome));
    }

    /// Calls a function with the options of a call.
    fn with_options<T>(
        &self,
        call_id: &Value,
        cancel: &Cancel,
        dry_run: bool,
        call: impl FnOnce(Options<'_>) -> T,
    ) -> T {
        let write = |line: &Value| match line {
            Value::Object(fields) => self.output.write(fields.clone(), None),
            _ => false,
        };
        let approver = self.approvals.as_ref().map(|approvals| LineApprover {
            approvals,
            call_id,
            cancel,
            write: &write,
        });
        let channel: &dyn Channel = match &approver {
            Some(approver) => approver,
            None => &NoChannel,
        };
        let approver = &FirstAnswer::new(self.monitor, channel, cancel);
        call(Options { dry_run, dialect: self.dialect, cancel, approver, ..Options::default() })
    }

    /// After the end of the input, cancels the commands when stdout has no reader.
    fn end_commands_without_reader(&self) {
        while !self.commands.is_empty() {
            if !has_reader(io::stdout()) {
                self.running.cancel_all();
            }
            std::thread::sleep(READER_CHECK_INTERVAL);
        }
    }

    /// Writes a reply. A closed output does not stop the server: calls that were read are still made.
    fn write_reply(&self, field: &str, value: Value, outcome: Map<String, Value>) {
        let mut reply = Map::from_iter([(field.to_owned(), value)]);
        reply.extend(outcome);
        self.output.write(reply, None);
    }
}
