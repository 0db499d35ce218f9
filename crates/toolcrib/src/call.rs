//! One call through every layer. Start reading here.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use toolcrib_fs::About;
use toolcrib_policy::{Access, Decision, Effect};
use toolcrib_text::{Secrets, visible_name};

use crate::approve::{Approver, Nobody};
use crate::authorize::permit;
use crate::call_record::Record;
use crate::cancel::{Cancel, Progress};
use crate::cx::Cx;
use crate::decode::decode;
use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::names::Spelling;
use crate::path_access::Grant;
use crate::reply::Reply;
use crate::run_later_notes::told;
use crate::runtime::Runtime;
use crate::seen_files::Basis;
use crate::session::Session;
use crate::tool::Category;
use crate::tool_table::Row;

/// What a caller wants: a tool by its name, and its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool, without regard to case and `_`.
    pub tool: String,
    /// The arguments: a JSON object.
    pub args: Value,
}

impl Call {
    /// A call of `tool` with `args`.
    pub fn new(tool: impl Into<String>, args: Value) -> Self {
        Call { tool: tool.into(), args }
    }
}

/// How a call is made, besides what it asks for.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Only tell what would be done.
    pub dry_run: bool,
    /// Ends the call when raised.
    pub cancel: &'a Cancel,
    /// Who is asked, where the policy wants somebody asked.
    pub approver: &'a dyn Approver,
    /// How names of tools and fields are spelled in the reply.
    pub dialect: Dialect,
    /// Who hears how far it is.
    pub progress: &'a (dyn Fn(Progress<'_>) + Sync),
}

impl Default for Options<'_> {
    fn default() -> Self {
        static NEVER: Cancel = Cancel::new();
        Options {
            dry_run: false,
            cancel: &NEVER,
            approver: &Nobody,
            dialect: Dialect::default(),
            progress: &|_| {},
        }
    }
}

impl Runtime {
    /// Makes a call and keeps a record of it. A panic in a tool is an error of its kind, and the
    /// runtime lives on.
    pub fn call(
        &self,
        session: &Session,
        call: Call,
        options: Options<'_>,
    ) -> Result<Reply, Error> {
        let _names = Spelling::of(options.dialect);
        let secrets = self.secrets(session);
        let (mut record, began) = Record::begin(session, &call, &secrets, options.dry_run);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.carry_out(session, call, options, &secrets, &mut record)
        }));
        let budget = self.limits().reply_chars;
        let outcome = match outcome.unwrap_or_else(|panic| Err(internal(panic.as_ref()))) {
            Ok(reply) => {
                let reply = reply.within(budget);
                Ok(self.decision_keeping().take_trouble().into_iter().fold(reply, Reply::note))
            }
            Err(error) => Err(error.within(budget)),
        };
        // The call may have made more known.
        record.end(began, || self.secrets(session), &outcome);
        self.record(record);
        outcome
    }

    /// The flow of a call: table, decode, access, real paths, permission, tool.
    fn carry_out(
        &self,
        session: &Session,
        call: Call,
        options: Options<'_>,
        secrets: &Secrets,
        record: &mut Record,
    ) -> Result<Reply, Error> {
        let row = self.table().find(&call.tool)?;
        record.tool = row.entry.name.to_owned();
        let tool = decode(&row.entry, row.schema(), call.args.clone())?;
        let grant = Grant::resolve(self, session, tool.access())?;
        record.accesses = as_done(grant.accesses(), options.dry_run);
        let mut agreed = None;
        let preview = || {
            let previewed = self.preview(row, call.args, session, &grant, options)?;
            Ok(previewed.map(|(reply, basis)| {
                agreed = Some(basis);
                reply
            }))
        };
        let requested = as_done(grant.requested(), options.dry_run);
        let touched = (record.accesses.as_slice(), requested.as_slice());
        let permission = permit(self, session, row.entry.name, touched, options, preview);
        let verdict = permission.verdict;
        let about = About {
            tool: record.tool.clone(),
            arguments: record.arguments.clone(),
            rule: verdict.rule.clone(),
            session: Some(session.id()),
            ..About::default()
        };
        record.decision = Some((verdict.decision, verdict.rule));
        record.answered = permission.answered;
        self.keep_decision(session, secrets, record);
        permission.permitted?;
        grant.check()?;
        options.cancel.check()?;
        let mut cx = Cx::begin(self, session, &grant, options, about).agreed(agreed);
        let outcome = tool.run(&mut cx);
        let reply = self.masked(session, row.entry.category, outcome)?;
        if options.dry_run {
            return Ok(reply.with("dry_run", true));
        }
        let opened = permission.opened.iter().filter(|_| self.is_sandboxed());
        let reply = opened.fold(reply, |reply, path| {
            let path = visible_name(path.as_os_str().as_encoded_bytes());
            reply.note(format!(
                "[{path} is open to file tools for this session; commands still cannot write there]"
            ))
        });
        Ok(told(self, session, cx.into_written(), reply))
    }

    /// An answer about commands without the secrets in it: they may stand in the names of files and directories,
    /// and in the text of a command, as well as in its output. Answers about files are as the files are.
    fn masked(
        &self,
        session: &Session,
        category: Category,
        outcome: Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        if !matches!(category, Category::Execution | Category::History) {
            return outcome;
        }
        let secrets = self.secrets(session);
        outcome.map(|reply| reply.masked(&secrets)).map_err(|error| error.masked(&secrets))
    }

    /// What the call would change, and from what, for whoever is asked about it. An error that the call
    /// would end in anyway is told at once, unless it could tell the caller of files that it may not
    /// read yet.
    fn preview(
        &self,
        row: &Row,
        args: Value,
        session: &Session,
        grant: &Grant,
        options: Options<'_>,
    ) -> Result<Option<(Reply, Basis)>, Error> {
        // `Cx` sees to it that a dry run writes no file. Beyond files it sees nothing, so there a tool
        // must not even begin before the answer.
        let beyond_files =
            |access: &Access| matches!(access.effect(), Effect::Reach | Effect::Command);
        let reaches = grant.accesses().iter().any(beyond_files);
        if reaches || row.entry.hints.read_only || options.dry_run || grant.check().is_err() {
            return Ok(None);
        }
        let tool = decode(&row.entry, row.schema(), args)?;
        let options = Options { dry_run: true, ..options };
        let mut cx = Cx::begin(self, session, grant, options, About::default());
        match tool.run(&mut cx) {
            // Whole: what somebody agrees to is not cut.
            Ok(reply) => Ok(Some((reply, cx.into_basis()))),
            // Whether it may be written at all is the first question.
            Err(_) if grant.writes_outside() => Ok(None),
            Err(error) => {
                let reads = as_done(grant.accesses(), true);
                let verdict =
                    self.policy_for(session, &reads).decide(&reads, &session.remembered());
                if verdict.decision == Decision::Allow { Err(error) } else { Ok(None) }
            }
        }
    }
}

/// A dry run of a write is a read, and one of a command is nothing.
fn as_done(accesses: Vec<Access>, dry_run: bool) -> Vec<Access> {
    let lower = |access| match access {
        Access::Write(path) if dry_run => Some(Access::Read(path)),
        Access::WriteAny if dry_run => Some(Access::Read(".".into())),
        Access::Command(_) if dry_run => None,
        access => Some(access),
    };
    accesses.into_iter().filter_map(lower).collect()
}

fn internal(panic: &(dyn std::any::Any + Send)) -> Error {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no words");
    Error::new(ErrorKind::Internal, format!("the tool failed by a fault of its own: {words}"))
        .hint("Other calls still work. Try another way, and tell the operator of this message.")
}
