//! `toolcrib run`: a line in, a line out, one session.

mod pool;
mod request;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};
use toolcrib::{Dialect, Error, Options, Runtime, Session, to_json};

use self::pool::Pool;
use self::request::Request;
use crate::args::Common;
use crate::bounded_input::{self, Line};

pub(crate) fn run(
    common: &Common,
    runtime: &Runtime,
    dialect: Dialect,
) -> Result<ExitCode, String> {
    let session = runtime.session();
    let door =
        Door { runtime, session, dry_run: common.dry_run, dialect, output: Mutex::new(true) };
    let mut stdin = io::stdin().lock();
    std::thread::scope(|scope| {
        let mut pool = Pool::new(scope, |request: Request| door.answer(request));
        while let Some(line) = bounded_input::read_line(&mut stdin)? {
            let line_bytes = line.bytes();
            match door.understand(line) {
                None => {}
                Some(Err((id, error))) => door.say(id, to_json(&Err(error))),
                Some(Ok(request)) if request.wait => door.answer(request),
                Some(Ok(request)) => pool.submit(request, line_bytes),
            }
        }
        Ok(())
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
    /// Whether every reply could be printed.
    output: Mutex<bool>,
}

impl Door<'_> {
    /// What a line asks for; nothing, if it is blank.
    fn understand(&self, line: Line) -> Option<Result<Request, (Value, Error)>> {
        match line {
            Line::TooLong(bytes) => Some(Err((Value::Null, bounded_input::too_long(bytes)))),
            Line::Whole(bytes) if bytes.trim_ascii().is_empty() => None,
            Line::Whole(bytes) => Some(Request::parse(&bytes)),
        }
    }

    fn answer(&self, request: Request) {
        let dry_run = self.dry_run || request.dry_run;
        let options = Options { dry_run, dialect: self.dialect, ..Options::default() };
        let tool = self.runtime.tool_named(&request.call.tool).map_or("", |tool| tool.name);
        let outcome = self.runtime.call(&self.session, request.call, options);
        self.say(request.id, self.dialect.reply_json(tool, &outcome));
    }

    /// Prints a reply as a line of its own. Nobody there to read it is no reason to stop: the calls that
    /// came in are still made.
    fn say(&self, id: Value, outcome: Map<String, Value>) {
        let mut reply = Map::from_iter([("id".to_owned(), id)]);
        reply.extend(outcome);
        let line = format!("{}\n", Value::Object(reply));
        let mut all_said = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stdout = io::stdout();
        *all_said &= stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).is_ok();
    }
}
