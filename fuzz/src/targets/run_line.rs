//! Messages of `toolcrib run`: each is decoded by the schema of its tool or operation or rejected, the reply is bounded,
//! and a dry run changes nothing.

use std::cell::RefCell;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;
use toolcrib::{Caps, Dialect, Error, Options, Profile, Reply, Runtime, Session, to_json};

use self::frame::Frame;
use self::operation::Operation;
use self::request::{Message, Request, RequestError};
use crate::test_workspace::scratch;

// The program has no library, so its decoder is included here.
#[allow(dead_code, reason = "the program uses the rest of it")]
#[path = "../../../crates/cli/src/commands/run/frame.rs"]
mod frame;
#[allow(dead_code, reason = "the program uses the rest of it")]
#[path = "../../../crates/cli/src/commands/run/operation.rs"]
mod operation;
#[path = "../../../crates/cli/src/commands/run/operation_args.rs"]
mod operation_args;
#[allow(dead_code, reason = "the program uses the rest of it")]
#[path = "../../../crates/cli/src/commands/run/request.rs"]
mod request;

/// More than the longest reply to such a line, without the repeated id.
const MAX_REPLY_BYTES: usize = 400_000;

/// The number of lines after which the workspace is replaced.
const LINES: usize = 2_000;

struct Workspace {
    // Before the directory, so that it is dropped first.
    session: Session,
    runtime: Runtime,
    directory: TempDir,
    lines: usize,
}

pub(crate) fn run_line(input: &[u8]) -> String {
    thread_local!(static WORKSPACE: RefCell<Option<Workspace>> = const { RefCell::new(None) });
    WORKSPACE.with_borrow_mut(|slot| {
        let used = slot.take().filter(|slot| slot.lines < LINES);
        let mut workspace = used.unwrap_or_else(Workspace::make);
        let outcome = workspace.run(input);
        *slot = Some(workspace);
        outcome
    })
}

impl Workspace {
    fn make() -> Workspace {
        let directory = scratch();
        let root = directory.path().join("ws");
        fs::create_dir(&root).expect("a workspace");
        fs::write(root.join("a.txt"), "one\ntwo\n").expect("a file");
        // Without a helper there are no commands.
        let runtime = Runtime::builder().root(&root).profile(Profile::Open);
        let runtime = runtime.journal(directory.path().join("state"), Caps::default());
        let runtime = runtime.build().expect("a runtime");
        Workspace { session: runtime.session(), runtime, directory, lines: 0 }
    }

    fn run(&mut self, input: &[u8]) -> String {
        self.lines += 1;
        let request = match decode(input) {
            Ok(Message::Call(request)) => request,
            Ok(Message::Operation(request)) => return self.perform(request.operation),
            Ok(Message::Invoked(result)) => {
                let shown = result.invoked.len() + result.output.len();
                assert!(shown <= input.len() * 3, "the result is of the line");
                return "result".to_owned();
            }
            Ok(Message::Cancel(id)) => {
                assert!(id.to_string().len() <= input.len() * 6 + 2, "the id is of the line");
                return "cancel".to_owned();
            }
            Ok(Message::Approve(approve)) => {
                let shown = approve.id.len() + approve.answer.len() + approve.message.len();
                assert!(shown <= input.len() * 3, "the answer is of the line");
                return "answer".to_owned();
            }
            Err((field, _, error)) => {
                assert!(["id", "approve", "cancel", "invoked"].contains(&field), "{field}");
                check(&Err(error));
                return "no request".to_owned();
            }
        };
        let Ok(Message::Call(again)) = decode(input) else { panic!("it was one before") };
        let flags = |request: &Request| (request.id.clone(), request.wait, request.dry_run);
        assert_eq!(flags(&request), flags(&again), "the same line gives the same request");
        let options = Options { dry_run: true, cancel: &request.cancel, ..Options::default() };
        let outcome = self.runtime.call(&self.session, request.call, options);
        self.check_unchanged();
        check(&outcome)
    }

    /// Performs an operation as a dry run. Without a helper there are no commands.
    fn perform(&self, operation: Operation) -> String {
        let Operation::Other(operation) = operation else { return "command".to_owned() };
        let options = Options { dry_run: true, ..Options::default() };
        let backend = self.runtime.backend(&self.session, options);
        let outcome = operation.perform(backend, &self.runtime, Dialect::default());
        self.check_unchanged();
        check(&outcome.map(|(result, _)| Reply::new(result.to_string())))
    }

    fn check_unchanged(&self) {
        let root = self.directory.path().join("ws");
        let names: Vec<_> = fs::read_dir(&root).expect("a directory").flatten().collect();
        assert_eq!(names.len(), 1, "a dry run creates nothing: {names:?}");
        assert_eq!(fs::read(root.join("a.txt")).expect("a file"), b"one\ntwo\n");
    }
}

/// Decodes the first message.
fn decode(mut input: &[u8]) -> Result<Message, RequestError> {
    let empty = || ("id", Value::Null, Error::invalid("there is no message"));
    let (_, frame) = Frame::read(&mut input).expect("a slice can be read").ok_or_else(empty)?;
    Message::decode(frame.map_err(|error| error.error)?)
}

/// Checks that the reply is one bounded line of JSON and not an internal error.
fn check(outcome: &Result<Reply, Error>) -> String {
    let line = Value::Object(to_json(outcome)).to_string();
    assert!(line.len() <= MAX_REPLY_BYTES, "a reply of {} bytes", line.len());
    assert!(!line.contains('\n'), "it is one line");
    match outcome {
        Ok(_) => "done".to_owned(),
        Err(error) => {
            assert_ne!(error.kind().name(), "internal", "{}", error.text());
            error.kind().name().to_owned()
        }
    }
}
