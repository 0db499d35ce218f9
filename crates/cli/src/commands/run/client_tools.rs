//! Tools of the calling program: it registers them first, and their calls come back to it as messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolcrib::{Cx, Error, ErrorKind, HostTool, Reply, Runtime, visible_name};

use super::output::Output;
use super::request::Invoked;

/// How often a waiting call checks whether it was cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

/// The largest number of tools of the calling program.
const MAX_TOOLS: usize = 256;

/// The calls that the calling program performs.
pub(super) struct ClientTools {
    output: Arc<Output>,
    calls: Mutex<Calls>,
    answered: Condvar,
}

#[derive(Default)]
struct Calls {
    registered: usize,
    made: u64,
    /// Open calls by id, with their results if any.
    open: HashMap<String, Option<Result<String, String>>>,
    /// Whether the input has ended.
    is_closed: bool,
}

/// The arguments of `register`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegisterArgs {
    name: String,
    description: String,
    #[serde(default)]
    schema: Map<String, Value>,
    #[serde(default)]
    read_only: bool,
    reaches: Option<String>,
}

impl ClientTools {
    pub(super) fn new(output: Arc<Output>) -> Arc<ClientTools> {
        Arc::new(ClientTools { output, calls: Mutex::default(), answered: Condvar::new() })
    }

    /// Adds a tool of the calling program.
    pub(super) fn register(
        self: &Arc<ClientTools>,
        runtime: &mut Runtime,
        args: Value,
    ) -> Result<(), Error> {
        let args: RegisterArgs = serde_json::from_value(args)
            .map_err(|error| Error::invalid(format!("`args`: {error}")))?;
        let mut calls = self.calls.lock();
        if calls.registered >= MAX_TOOLS {
            let message = format!("{MAX_TOOLS} tools are registered, which is the limit");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        if runtime.tool_named(&args.name).is_some() {
            let name = visible_name(args.name.as_bytes());
            return Err(Error::new(ErrorKind::Exists, format!("there is a tool {name}")));
        }
        let (tools, name) = (self.clone(), args.name.clone());
        runtime.register(HostTool {
            name: args.name,
            description: args.description,
            arguments: args.schema,
            is_read_only: args.read_only,
            reaches: args.reaches,
            run: Box::new(move |arguments, cx| tools.invoke(&name, arguments, cx)),
        })?;
        calls.registered += 1;
        Ok(())
    }

    /// Whether the program has registered a tool.
    pub(super) fn is_any(&self) -> bool {
        self.calls.lock().registered > 0
    }

    /// Lets the calling program perform a call, and waits for the result.
    fn invoke(&self, tool: &str, arguments: Value, cx: &Cx<'_>) -> Result<Reply, Error> {
        let id = {
            let mut calls = self.calls.lock();
            calls.made += 1;
            let id = format!("i{}", calls.made);
            calls.open.insert(id.clone(), None);
            id
        };
        self.write(json!({"invoke": id, "tool": tool, "args": arguments}));
        let mut calls = self.calls.lock();
        let result = loop {
            if let Some(Some(result)) = calls.open.get_mut(&id).map(Option::take) {
                break result;
            }
            if calls.is_closed {
                calls.open.remove(&id);
                let message = format!("{tool} was not performed: the program that has it is gone");
                return Err(Error::new(ErrorKind::Io, message));
            }
            if let Err(cancelled) = cx.check_cancelled() {
                calls.open.remove(&id);
                drop(calls);
                self.write(json!({"invoke_cancelled": id}));
                return Err(cancelled);
            }
            self.answered.wait_for(&mut calls, CANCEL_INTERVAL);
        };
        calls.open.remove(&id);
        match result {
            Ok(output) => Ok(Reply::new(output)),
            Err(message) => Err(Error::new(ErrorKind::Failed, message)),
        }
    }

    /// Takes the result of a call.
    pub(super) fn take_result(&self, result: Invoked) -> Result<(), Error> {
        let mut calls = self.calls.lock();
        let Some(open) = calls.open.get_mut(&result.invoked).filter(|open| open.is_none()) else {
            return Err(Error::new(ErrorKind::NotFound, "there is no open call with this id")
                .hint("It was answered or cancelled."));
        };
        *open = Some(if result.success { Ok(result.output) } else { Err(result.output) });
        drop(calls);
        self.answered.notify_all();
        Ok(())
    }

    /// Called at the end of the input: open and later calls fail.
    pub(super) fn close(&self) {
        self.calls.lock().is_closed = true;
        self.answered.notify_all();
    }

    fn write(&self, message: Value) {
        if let Value::Object(fields) = message {
            self.output.write(fields, None);
        }
    }
}
