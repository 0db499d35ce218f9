//! The steps of one call. Start reading here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;
use toolcrib_fs::About;
use toolcrib_policy::{Access, Decision, Effect};
use toolcrib_text::{Secrets, visible_name};

use crate::authorize::{CallDescription, Preview, permit};
use crate::call_recorder::Record;
use crate::change_notices::noted;
use crate::cx::Cx;
use crate::decision_log::OPERATOR_RULE;
use crate::decode::{Decoded, decode};
use crate::dialect::Dialect;
use crate::edit_checks::{Reader, checked, late_results};
use crate::error::{Error, ErrorKind};
use crate::message_names::Spelling;
use crate::output_notes::bracketed;
use crate::path_access::Grant;
use crate::quota::OverQuota;
use crate::reply::Reply;
use crate::request::{Call, Options};
use crate::run_later_notes::told;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::tool::Category;
use crate::tool_table::Row;

/// Makes the decoded call of a tool. Called once more for the preview.
pub(crate) type Decode<'a> = dyn Fn(&Row) -> Result<Decoded<'a>, Error> + 'a;

impl Runtime {
    /// Runs a call, records it, and returns the reply. Blocks until the call has ended.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool does not exist, the arguments do not fit its schema, the policy or the
    /// approver denies the call, the call is cancelled, or the tool fails. A panic of a tool becomes an error
    /// of kind [`ErrorKind::Internal`]; later calls still work.
    pub fn call(
        &self,
        session: &Session,
        call: Call,
        options: Options<'_>,
    ) -> Result<Reply, Error> {
        let decode = |row: &Row| decode(&row.entry, row.schema(), call.args.clone());
        let reply = self.call_decoded(session, &call, options, &decode, Reader::Model)?;
        if options.dry_run || session.is_for_one_call() {
            return Ok(reply);
        }
        let reply = late_results(self.services(), session, reply);
        Ok(noted(self.services(), session, reply))
    }

    /// Makes a call that `decode` decodes, and records it as `call`. Without the notices of [`Runtime::call`]: each is
    /// given once, and a program does not read them.
    pub(crate) fn call_decoded(
        &self,
        session: &Session,
        call: &Call,
        options: Options<'_>,
        decode: &Decode<'_>,
        reader: Reader,
    ) -> Result<Reply, Error> {
        let _names = Spelling::of(options.dialect);
        let running = session.begin_call();
        let secrets = self.services().secrets(session);
        let number = self.next_call();
        let (mut record, began) = Record::begin(number, session, call, &secrets, options);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.carry_out(session, (&call.tool, decode, reader), options, &secrets, &mut record)
        }));
        drop(running);
        let budget = self.services().limits.reply_chars;
        let outcome = match outcome.unwrap_or_else(|panic| Err(internal(panic.as_ref()))) {
            Ok(reply) => {
                let reply = reply.within(budget);
                let services = self.services();
                let trouble = services.decisions.take_trouble().into_iter();
                let notes = trouble.chain(services.calls.take_trouble());
                Ok(notes.chain(self.rules_note(session)).fold(reply, Reply::note))
            }
            Err(error) => {
                let note = self.rules_note(session);
                let error = if error.kind() == ErrorKind::Denied {
                    self.with_rules_problem(error)
                } else {
                    note.iter().fold(error, |error, note| error.detail_line(note))
                };
                Err(error.within(budget))
            }
        };
        // The call may have found more secrets.
        record.end(began, || self.services().secrets(session), &outcome);
        self.record(record);
        outcome
    }

    /// Steps of a call: count, apply changed rules, find the tool, decode the arguments, resolve the paths, authorize, run.
    fn carry_out(
        &self,
        session: &Session,
        (tool, decode, reader): (&str, &Decode<'_>, Reader),
        options: Options<'_>,
        secrets: &Secrets,
        record: &mut Record,
    ) -> Result<Reply, Error> {
        self.services().begin_call()?;
        self.refresh_rules();
        let row = self.table().find(tool)?;
        record.tool = row.entry.name.to_owned();
        let Decoded { tool, notes } = decode(row)?;
        let description = tool.description();
        let grant = Grant::resolve(&self.services().paths, session, tool.access())?;
        record.accesses = grant.accesses();
        record.set_description(description.as_deref(), secrets);
        if let Some(recorder) = &self.services().recorder {
            recorder.begun(record.begun(row.entry.name, secrets));
        }
        let preview = || {
            // Nobody is asked about a call that could not run now, and no answer is used up by it.
            self.services().check_gates(&grant.accesses())?;
            self.preview(row, decode, session, &grant, options)
        };
        let requested = grant.requested();
        let touched = (record.accesses.as_slice(), requested.as_slice());
        let asked = CallDescription {
            call: record.call,
            tool: row.entry.name,
            description: description.as_deref(),
        };
        let policies = (&self.services().policy, &self.services().paths.workspace);
        let permission = permit(policies, session, asked, touched, options, preview);
        let mut verdict = permission.verdict;
        // The profile of a person's own command is not a setting of theirs.
        if options.dialect == Dialect::CommandLine && verdict.decision == Decision::Allow {
            OPERATOR_RULE.clone_into(&mut verdict.rule);
        }
        let about = About {
            tool: record.tool.clone(),
            arguments: record.arguments.clone(),
            rule: verdict.rule.clone(),
            session: Some(session.id()),
            ..About::default()
        };
        record.decision = Some((verdict.decision, verdict.rule));
        record.answered = permission.answered;
        self.services().decisions.record(session, secrets, record);
        permission.permitted?;
        if let Some(unasked) = &permission.unasked
            && !self.may_see(session, row, &grant)
        {
            let reply = Ok(unasked.reply().with("dry_run", true));
            return self.masked(session, row.entry.category, reply);
        }
        grant.check()?;
        options.cancel.check()?;
        if !options.dry_run {
            self.services().check_gates(&record.accesses)?;
        }
        let mut cx = Cx::begin(self.services(), session, &grant, options, about)
            .numbered(record.call)
            .agreed(permission.agreed)
            .allowing(permission.hosts.clone());
        let outcome = tool.run(&mut cx).map_err(|error| {
            notes.iter().fold(error, |error, note| error.detail_line(bracketed(note).trim_end()))
        });
        let outcome = outcome.map(|reply| {
            let reply = notes.iter().fold(reply, |reply, note| reply.note(bracketed(note)));
            permission.unasked.iter().fold(reply, |reply, unasked| unasked.add_to(reply))
        });
        let reply = self.masked(session, row.entry.category, outcome)?;
        if options.dry_run {
            return Ok(reply.with("dry_run", true));
        }
        let opened = permission.opened.iter().filter(|_| self.services().paths.is_sandboxed());
        let reply = opened.fold(reply, |reply, path| reply.note(opened_note(path)));
        // Undo restores content that the user or an earlier, named change wrote.
        if row.entry.category == Category::History {
            return Ok(reply);
        }
        let edited = cx.take_edited();
        let reply = checked(self.services(), session, edited, (options.cancel, reader), reply);
        Ok(told(&self.services().paths, session, cx.into_written(), reply))
    }

    /// Adds to a refusal why a change of the rules has no effect.
    fn with_rules_problem(&self, error: Error) -> Error {
        let rules = self.services().policy.rules();
        match rules.problem() {
            Some(problem) => error.detail_line(&unapplied_note(&problem)),
            None if rules.is_unfinished() => error.detail_line(
                "[the rules were changed within the last second; repeat the call to use them]",
            ),
            None => error,
        }
    }

    /// Tells each session once why a change of the rules has no effect.
    fn rules_note(&self, session: &Session) -> Option<String> {
        let problem = self.services().policy.rules().problem();
        let problem = problem.filter(|problem| session.is_new_rules_problem(problem))?;
        Some(unapplied_note(&problem))
    }

    /// Succeeds if a call may begin now by the limits of the host, for a transport that refuses calls in its own way. It is not
    /// counted before it runs.
    ///
    /// # Errors
    ///
    /// Fails if a limit is reached.
    pub fn check_quota(&self, tool: &str, arguments: &Value) -> Result<(), OverQuota> {
        let Some(quota) = &self.services().quota else { return Ok(()) };
        let runs_command = || {
            let decoded = self
                .table()
                .find(tool)
                .and_then(|row| decode(&row.entry, row.schema(), arguments.clone()));
            let is_command = |access: &Access| matches!(access, Access::Command(_));
            decoded.is_ok_and(|decoded| decoded.tool.access().iter().any(is_command))
        };
        quota.check_call(&runs_command)
    }

    /// Removes secrets from replies about commands. They can occur in file names and in the text of a command
    /// as well as in its output. Replies about files keep the files' content.
    fn masked(
        &self,
        session: &Session,
        category: Category,
        outcome: Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        if !matches!(category, Category::Execution | Category::History) {
            return outcome;
        }
        let secrets = self.services().secrets(session);
        outcome.map(|reply| reply.masked(&secrets)).map_err(|error| error.masked(&secrets))
    }

    /// Dry run of a call for the approver, with the content that it is based on. An error that the call would
    /// return anyway is returned at once, unless it could reveal files that the caller may not read yet.
    fn preview(
        &self,
        row: &Row,
        decode: &Decode<'_>,
        session: &Session,
        grant: &Grant,
        options: Options<'_>,
    ) -> Result<Option<Preview>, Error> {
        // `Cx` ensures that a dry run writes no file. It has no control beyond files, so such a tool must not
        // start before the answer.
        let beyond_files =
            |access: &Access| matches!(access.effect(), Effect::Reach | Effect::Command);
        let reaches = grant.accesses().iter().any(beyond_files);
        if reaches || row.entry.hints.read_only || options.dry_run || grant.check().is_err() {
            return Ok(None);
        }
        let tool = decode(row)?.tool;
        let options = Options { dry_run: true, ..options };
        let about = About { tool: row.entry.name.to_owned(), ..About::default() };
        let mut cx = Cx::begin(self.services(), session, grant, options, about);
        match tool.run(&mut cx) {
            // Untruncated: the approver sees the whole change.
            Ok(reply) => Ok(Some((reply, cx.into_basis()))),
            Err(error) if self.may_see(session, row, grant) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Whether the caller may see what a call would do before it may do it: the files that it would change may be
    /// read, and it acts on nothing but files and commands, which a dry run does not run.
    fn may_see(&self, session: &Session, row: &Row, grant: &Grant) -> bool {
        let accesses = [grant.accesses(), grant.requested()].concat();
        let read = |access| match access {
            Access::Write(path) => Some(Access::Read(path)),
            Access::WriteAny => Some(Access::Read(session.directory().path())),
            Access::Command(_) => None,
            access => Some(access),
        };
        let reads: Vec<Access> = accesses.into_iter().filter_map(read).collect();
        let policy = self.services().policy.for_call(session, row.entry.name, &reads);
        policy.decide(&reads, &session.remembered()).decision == Decision::Allow
    }
}

fn unapplied_note(problem: &str) -> String {
    let problem = visible_name(problem.as_bytes());
    format!("[the rules were changed, but not applied: {problem}. Tell the operator]")
}

fn opened_note(path: &Path) -> String {
    let path = visible_name(path.as_os_str().as_encoded_bytes());
    format!("[{path} is open to file tools for this session; commands still cannot write there]")
}

fn internal(panic: &(dyn std::any::Any + Send)) -> Error {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Error::new(ErrorKind::Internal, format!("the tool has a bug: {words}"))
        .hint("Other calls still work. Try another way, and report this message to the operator.")
}
