//! `toolcrib run`: serves calls as JSON lines, in one session.

mod approvals;
mod pool;
mod request;
mod running_calls;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use toolcrib::{
    Approver, Dialect, Error, ErrorKind, NoApprover, Options, Runtime, Session, to_json,
};

use self::approvals::{Approvals, LineApprover};
use self::pool::{MAX_PENDING, MAX_PENDING_BYTES, Pool, WhenFull};
use self::request::{Message, Request, RequestError};
use self::running_calls::RunningCalls;
use crate::args::Common;
use crate::bounded_input::{self, Line};
use crate::rules;

/// Serves lines. Replies use the names of a dialect. With a time limit for answers, approval questions are lines
/// too.
pub(crate) fn run(
    common: &Common,
    runtime: &Runtime,
    dialect: Dialect,
    answer_within: Option<Duration>,
) -> Result<ExitCode, String> {
    let approvals =
        answer_within.map(|deadline| Approvals::new(deadline, rules::file_for_additions(common)));
    let server = LineServer {
        runtime,
        session: runtime.session(),
        dry_run: common.dry_run,
        dialect,
        approvals,
        running: RunningCalls::default(),
        output: Mutex::new(true),
    };
    let mut stdin = io::stdin().lock();
    std::thread::scope(|scope| {
        let mut pool = Pool::new(scope, |request: Request| server.answer(request));
        let read = server.serve(&mut stdin, &mut pool);
        if let Some(approvals) = &server.approvals {
            approvals.close();
        }
        read
    })
    .map_err(|error: io::Error| format!("cannot read the calls from standard input: {error}"))?;
    let all_written = *server.output.lock();
    Ok(if all_written { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

struct LineServer<'a> {
    runtime: &'a Runtime,
    session: Session,
    dry_run: bool,
    dialect: Dialect,
    /// The open questions, if approvals are enabled.
    approvals: Option<Approvals>,
    running: RunningCalls,
    /// Whether every line could be written.
    output: Mutex<bool>,
}

impl LineServer<'_> {
    /// Reads lines until the input ends.
    fn serve<'scope, F>(
        &self,
        stdin: &mut impl io::BufRead,
        pool: &mut Pool<'scope, '_, Request, F>,
    ) -> io::Result<()>
    where
        F: Fn(Request) + Send + Sync + 'scope,
    {
        while let Some(line) = bounded_input::read_line(stdin)? {
            let bytes = line.bytes();
            match parse_line(line) {
                None => {}
                Some(Err((field, value, error))) => {
                    self.write_reply(field, value, to_json(&Err(error)));
                }
                Some(Ok(Message::Approve(approve))) => {
                    let answered = match &self.approvals {
                        Some(approvals) => approvals.answer(&approve),
                        None => Err(Error::invalid("approvals are not enabled")
                            .hint("Start `toolcrib run --approvals` to enable them.")),
                    };
                    if let Err(error) = answered {
                        self.write_reply("approve", approve.id.into(), to_json(&Err(error)));
                    }
                }
                Some(Ok(Message::Cancel(id))) if self.running.cancel(&id) => {}
                Some(Ok(Message::Cancel(id))) => {
                    let error = Error::new(ErrorKind::NotFound, "no call with this id is running");
                    self.write_reply("cancel", id, to_json(&Err(error)));
                }
                Some(Ok(Message::Call(request))) => self.submit(request, bytes, pool),
            }
        }
        Ok(())
    }

    fn submit<'scope, F>(
        &self,
        request: Request,
        bytes: usize,
        pool: &mut Pool<'scope, '_, Request, F>,
    ) where
        F: Fn(Request) + Send + Sync + 'scope,
    {
        self.running.add(&request);
        // With approvals, reading continues, because lines may be answers.
        let is_asking = self.approvals.is_some();
        if request.wait && !is_asking {
            return self.answer(request);
        }
        let when_full = if is_asking { WhenFull::Refuse } else { WhenFull::Wait };
        let wait = request.wait;
        if let Err(request) = pool.submit(request, bytes, wait, when_full) {
            self.running.remove(&request);
            let megabytes = MAX_PENDING_BYTES >> 20;
            let message = format!(
                "too many calls are pending; the limit is {MAX_PENDING} calls and {megabytes} MiB"
            );
            let error = Error::new(ErrorKind::Limit, message)
                .hint("Nothing was done. Wait for replies, and answer the open questions.");
            self.write_reply("id", request.id, to_json(&Err(error)));
        }
    }

    fn answer(&self, request: Request) {
        let write = |line: &Value| self.write(line);
        let (call_id, cancel) = (&request.id, &*request.cancel);
        let approver = self.approvals.as_ref().map(|approvals| LineApprover {
            approvals,
            call_id,
            cancel,
            write: &write,
        });
        let approver: &dyn Approver = match &approver {
            Some(approver) => approver,
            None => &NoApprover,
        };
        let options = Options {
            dry_run: self.dry_run || request.dry_run,
            dialect: self.dialect,
            cancel,
            approver,
            ..Options::default()
        };
        let tool = self.runtime.tool_named(&request.call.tool).map_or("", |tool| tool.name);
        let outcome = self.runtime.call(&self.session, request.call.clone(), options);
        self.running.remove(&request);
        self.write_reply("id", request.id, self.dialect.reply_json(tool, &outcome));
    }

    /// Writes a reply as a line. A closed output does not stop the server: calls that were read are still made.
    fn write_reply(&self, field: &str, value: Value, outcome: Map<String, Value>) {
        let mut reply = Map::from_iter([(field.to_owned(), value)]);
        reply.extend(outcome);
        self.write(&Value::Object(reply));
    }

    /// Writes a line. Returns whether that succeeded.
    fn write(&self, line: &Value) -> bool {
        let line = format!("{line}\n");
        let mut all_written = self.output.lock();
        let mut stdout = io::stdout();
        let is_written = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).is_ok();
        *all_written &= is_written;
        is_written
    }
}

/// Parses a line. `None` if it is blank.
fn parse_line(line: Line) -> Option<Result<Message, RequestError>> {
    match line {
        Line::TooLong(bytes) => {
            Some(Err(("id", Value::Null, bounded_input::too_long(Some(bytes)))))
        }
        Line::Whole(bytes) if bytes.trim_ascii().is_empty() => None,
        Line::Whole(bytes) => Some(Message::parse(&bytes)),
    }
}
