//! `toolcrib run`: a line in, a line out, one session.

mod approvals;
mod pool;
mod request;
mod running_calls;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use toolcrib::{
    Approver, Dialect, Error, ErrorKind, NoApprover, Options, Runtime, Session, to_json,
};

use self::approvals::{Approvals, LineApprover};
use self::pool::{MAX_PENDING, MAX_PENDING_BYTES, Pool, WhenFull};
use self::request::{Message, Misunderstood, Request};
use self::running_calls::RunningCalls;
use crate::args::Common;
use crate::bounded_input::{self, Line};
use crate::rules;

/// Serves lines, with the names of a dialect in the replies. With a deadline for answers, questions are lines too.
pub(crate) fn run(
    common: &Common,
    runtime: &Runtime,
    dialect: Dialect,
    answer_within: Option<Duration>,
) -> Result<ExitCode, String> {
    let approvals =
        answer_within.map(|deadline| Approvals::new(deadline, rules::to_add_to(common)));
    let door = Door {
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
        let mut pool = Pool::new(scope, |request: Request| door.answer(request));
        let read = door.serve(&mut stdin, &mut pool);
        if let Some(approvals) = &door.approvals {
            approvals.close();
        }
        read
    })
    .map_err(|error: io::Error| format!("cannot read the calls from standard input: {error}"))?;
    let all_said = *door.output.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(if all_said { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

struct Door<'a> {
    runtime: &'a Runtime,
    session: Session,
    dry_run: bool,
    dialect: Dialect,
    /// The questions, if the other end answers them.
    approvals: Option<Approvals>,
    running: RunningCalls,
    /// Whether every line could be printed.
    output: Mutex<bool>,
}

impl Door<'_> {
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
            match understand(line) {
                None => {}
                Some(Err((field, value, error))) => self.say(field, value, to_json(&Err(error))),
                Some(Ok(Message::Approve(approve))) => {
                    let answered = match &self.approvals {
                        Some(approvals) => approvals.answer(&approve),
                        None => Err(Error::invalid("there are no questions")
                            .hint("`toolcrib run --approvals` asks them.")),
                    };
                    if let Err(error) = answered {
                        self.say("approve", approve.id.into(), to_json(&Err(error)));
                    }
                }
                Some(Ok(Message::Cancel(id))) if self.running.cancel(&id) => {}
                Some(Ok(Message::Cancel(id))) => {
                    let error = Error::new(ErrorKind::NotFound, "no call of this id runs");
                    self.say("cancel", id, to_json(&Err(error)));
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
        // While lines are answers too, reading does not stop.
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
                "too many calls are under way; {MAX_PENDING} and {megabytes} MiB are taken"
            );
            let error = Error::new(ErrorKind::Limit, message)
                .hint("Nothing was done. Wait for replies, and answer the open questions.");
            self.say("id", request.id, to_json(&Err(error)));
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
        self.say("id", request.id, self.dialect.reply_json(tool, &outcome));
    }

    /// Prints a reply as a line of its own. Nobody there to read it is no reason to stop: the calls that
    /// came in are still made.
    fn say(&self, field: &str, value: Value, outcome: Map<String, Value>) {
        let mut reply = Map::from_iter([(field.to_owned(), value)]);
        reply.extend(outcome);
        self.write(&Value::Object(reply));
    }

    /// Prints a line. Returns whether that was possible.
    fn write(&self, line: &Value) -> bool {
        let line = format!("{line}\n");
        let mut all_said = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stdout = io::stdout();
        let is_said = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).is_ok();
        *all_said &= is_said;
        is_said
    }
}

/// What a line asks for; nothing, if it is blank.
fn understand(line: Line) -> Option<Result<Message, Misunderstood>> {
    match line {
        Line::TooLong(bytes) => Some(Err(("id", Value::Null, bounded_input::too_long(bytes)))),
        Line::Whole(bytes) if bytes.trim_ascii().is_empty() => None,
        Line::Whole(bytes) => Some(Message::parse(&bytes)),
    }
}
