//! A host of an agent: a runtime, its own tool, some calls, and an approver.
//!
//! `cargo run -p toolcrib --example embed`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use parking_lot::Mutex;

use serde::Deserialize;
use serde_json::json;
use toolcrib::{
    Access, Answer, Call, Category, Cx, Error, Hints, JsonSchema, Options, Question, Record, Reply,
    Runtime, Tool,
};

/// State of the host, which its tool uses.
#[derive(Default)]
struct Tickets(Mutex<Vec<String>>);

/// Opens a ticket in the team's tracker.
///
/// Use it for faults that are not fixed now.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpenTicket {
    /// One line that says what is wrong.
    title: String,
}

impl Tool for OpenTicket {
    const NAME: &'static str = "OpenTicket";
    const CATEGORY: Category = Category::Other;
    const HINTS: Hints =
        Hints { read_only: false, destructive: false, idempotent: false, open_world: true };

    fn access(&self) -> Vec<Access> {
        vec![Access::Reach(format!("open the ticket {:?}", self.title))]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        if cx.dry_run() {
            return Ok(Reply::new(format!("Would open the ticket {:?}.", self.title)));
        }
        let mut tickets = cx.state::<Tickets>()?.0.lock();
        tickets.push(self.title);
        Ok(Reply::new(format!("Opened ticket {}.", tickets.len())).with("ticket", tickets.len()))
    }
}

fn main() -> Result<(), Error> {
    let runtime = Runtime::builder()
        .root(env!("CARGO_MANIFEST_DIR"))
        .state(Tickets::default())
        .register::<OpenTicket>()
        .recorder(|record: Record| {
            println!("  [record] {} took {:?}: {:?}", record.tool, record.duration, record.outcome);
        })
        .build()?;
    let session = runtime.session();

    // Called whenever the policy asks. Here it approves tickets and denies everything else.
    let approver = |question: &Question<'_>| {
        println!("  [asked] {}: {} ({})", question.tool, question.accesses[0], question.why);
        match question.tool {
            "OpenTicket" => Answer::AllowForSession,
            _ => Answer::Deny("Only tickets may be opened here.".to_owned()),
        }
    };
    let options = Options { approver: &approver, ..Options::default() };

    let calls = [
        Call::new("Read", json!({"file_path": "Cargo.toml", "limit": 3})),
        Call::new("OpenTicket", json!({"title": "The build is slow"})),
        // Approved for the session, so this call is not asked about. The spelling of the tool is accepted;
        // the wrong field of the next call is explained in the error.
        Call::new("open_ticket", json!({"title": "The tests are slow"})),
        Call::new("OpenTicket", json!({"titel": "The docs are slow"})),
    ];
    for call in calls {
        println!("{} {}", call.tool, call.args);
        match runtime.call(&session, call, options) {
            Ok(reply) => println!("{}", reply.text()),
            Err(error) => println!("error of kind {}: {}", error.kind().name(), error.text()),
        }
    }
    Ok(())
}
