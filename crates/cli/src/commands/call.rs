//! `toolcrib call`: makes one call.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib::{
    Answer, Approver, Call, Cancel, Dialect, Error, Options, PendingQuestion, Question, Runtime,
    parse_json,
};
use toolcrib_monitor::FirstAnswer;

use super::monitor_socket::MonitorSocket;
use crate::approve::TerminalApprover;
use crate::args::Common;
use crate::{bounded_input, output, rules};

pub(crate) fn call(
    common: &Common,
    runtime: &Runtime,
    tool: &str,
    args: &str,
    dialect: Dialect,
) -> Result<ExitCode, String> {
    let approver = CallApprover::new(common, runtime);
    let options = Options {
        dry_run: common.dry_run,
        approver: &approver,
        cancel: &approver.cancel,
        dialect,
        ..Options::default()
    };
    let parsed = read_args(args)?.map_err(|error| error.hint(example(runtime, tool, args)));
    let outcome = parsed.and_then(|args| {
        runtime.call(&runtime.session().for_one_call(), Call::new(tool, args), options)
    });
    let printed = match &outcome {
        _ if !output::call_for_people(common) => {
            let tool = runtime.tool_named(tool).map_or(tool, |tool| tool.name);
            writeln!(io::stdout(), "{}", Value::Object(dialect.reply_json(tool, &outcome)))
        }
        Ok(reply) => output::reply(reply),
        Err(error) => output::error(error),
    };
    if let Err(problem) = output::printed(printed) {
        output::usage_error(&format!("the call was made, but its reply is lost: {problem}"));
        return Ok(ExitCode::from(1));
    }
    Ok(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Asks at the terminal and on the monitor socket, which is opened with the first question: most calls have none.
struct CallApprover<'a> {
    common: &'a Common,
    runtime: &'a Runtime,
    terminal: TerminalApprover,
    cancel: Cancel,
    monitor: OnceLock<Option<MonitorSocket>>,
    answerer: Mutex<&'static str>,
}

impl<'a> CallApprover<'a> {
    fn new(common: &'a Common, runtime: &'a Runtime) -> CallApprover<'a> {
        CallApprover {
            common,
            runtime,
            terminal: TerminalApprover { rules: rules::file_for_additions(common) },
            cancel: Cancel::new(),
            monitor: OnceLock::new(),
            answerer: Mutex::new("terminal"),
        }
    }

    fn put(&self, ask: impl FnOnce(&FirstAnswer<'_>) -> Option<Answer>) -> Option<Answer> {
        if !TerminalApprover::is_available() {
            return Some(Answer::NoApprover);
        }
        let monitor = self.monitor.get_or_init(|| {
            let monitor = MonitorSocket::new(self.common, "call", false).ok()?;
            monitor.open(self.runtime);
            Some(monitor)
        });
        let Some(monitor) = monitor else { return Some(Answer::NoApprover) };
        let approver = FirstAnswer::new(monitor.monitor(), &self.terminal, &self.cancel);
        let answer = ask(&approver);
        *self.answerer.lock() = approver.name();
        answer
    }
}

impl Approver for CallApprover<'_> {
    fn ask(&self, question: &Question<'_>) -> Answer {
        let answer = self.put(|approver| Some(approver.ask(question)));
        answer.unwrap_or(Answer::NoApprover)
    }

    fn ask_pending(&self, pending: &PendingQuestion<'_>) -> Option<Answer> {
        self.put(|approver| approver.ask_pending(pending))
    }

    fn name(&self) -> &'static str {
        *self.answerer.lock()
    }
}

fn read_args(args: &str) -> Result<Result<Value, Error>, String> {
    if args != "-" {
        return Ok(parse_json(args.as_bytes()));
    }
    let read = bounded_input::read_all(io::stdin().lock())
        .map_err(|error| format!("cannot read the arguments from standard input: {error}"))?;
    Ok(read.and_then(|bytes| parse_json(&bytes)))
}

/// The form of the arguments. A value without its field is completed, and `field=value` is understood.
pub(super) fn example(runtime: &Runtime, tool: &str, args: &str) -> String {
    let schema = runtime.tool_named(tool).map(|tool| tool.arguments);
    let required = schema.as_ref().and_then(|schema| schema.get("required")?.get(0)?.as_str());
    let is_bare_value = args != "-" && !args.contains(['{', '\'', '\n']) && args.len() < 100;
    let value = if is_bare_value { args } else { "…" };
    let is_field =
        |name: &str| schema.as_ref().is_some_and(|schema| schema["properties"].get(name).is_some());
    let named = value.split_once('=').filter(|(name, _)| is_field(name));
    match named.or(required.map(|field| (field, value))) {
        Some((field, value)) => {
            format!("The arguments are a JSON object, such as '{}'.", json!({ field: value }))
        }
        None => "The arguments are a JSON object, such as '{}'.".to_owned(),
    }
}
