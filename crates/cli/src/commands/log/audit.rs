//! `toolcrib log verify` and `toolcrib log export`: the audit log of a workspace.

#[cfg(feature = "postgres")]
mod stored_copy;

use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::{AuditBreak, AuditReport, Runtime, escaped_json, visible_name};

use super::ocsf;
use crate::args::{AuditFormat, Common, LogCommand};
use crate::config::Config;
use crate::host_name::host_name;
use crate::output;

pub(crate) fn run(
    common: &Common,
    runtime: &Runtime,
    command: &LogCommand,
) -> Result<ExitCode, String> {
    match command {
        #[cfg(not(feature = "postgres"))]
        LogCommand::Verify { head } => verify(common, runtime, head.as_deref(), Copy::default()),
        #[cfg(feature = "postgres")]
        LogCommand::Verify { head, store } => {
            let copy = store.as_ref().map(|store| stored_copy::compared(runtime, store));
            verify(common, runtime, head.as_deref(), copy.transpose()?.unwrap_or_default())
        }
        LogCommand::Export { format } => export(runtime, *format),
    }
}

/// Follows the report if the log is off.
const OFF: &str = "\nThe log is off (`audit = false`): calls are not recorded in it now.";

/// What is known about the copy of a log in a store. Empty without one.
#[derive(Default)]
struct Copy {
    /// In words.
    sentence: String,
    facts: Option<Value>,
    is_wrong: bool,
}

fn verify(
    common: &Common,
    runtime: &Runtime,
    kept: Option<&str>,
    copy: Copy,
) -> Result<ExitCode, String> {
    let report = runtime.verify_audit(kept).map_err(|error| error.to_string())?;
    let is_off = !Config::of(common)?.audits();
    if output::for_people(common) {
        let off = if is_off { OFF } else { "" };
        output::answer(&(sentences(&report) + &copy.sentence + off));
    } else {
        let mut object = json!({
            "records": report.records,
            "first": report.first,
            "head": Some(&report.head).filter(|head| !head.is_empty()),
            "kept_at": report.kept_at,
            "torn_bytes": report.torn_bytes,
            "problem": report.broken.as_ref().map(ToString::to_string),
            "off": is_off,
        });
        if let Some(facts) = copy.facts {
            object["store"] = facts;
        }
        output::answer(&object.to_string());
    }
    Ok(if report.broken.is_none() && !copy.is_wrong {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn sentences(report: &AuditReport) -> String {
    let AuditReport { records, first, head, kept_at, torn_bytes, broken } = report;
    let torn = match torn_bytes {
        0 => String::new(),
        bytes => format!(
            "\nA crash left {bytes} bytes after the last record. The next call records that."
        ),
    };
    let last = (first + records).saturating_sub(1);
    let removed = match first {
        0 | 1 => String::new(),
        _ if broken == &Some(AuditBreak::UnknownHead) => {
            format!("\nThe log begins with record {first}. The hash may be of an older record.")
        }
        _ if kept_at == &Some(first - 1) => String::new(),
        _ => format!(
            "\nThe log begins with record {first}: it records that older ones were removed, because of audit_megabytes."
        ),
    };
    match broken {
        Some(broken) if *records == 0 => format!("BROKEN: {broken}."),
        Some(broken) => {
            format!(
                "BROKEN: {broken}.\nRecords {first} to {last} before that are right, up to {head}{removed}{torn}"
            )
        }
        None if *records == 0 => format!("No calls are recorded here yet.{torn}"),
        None => {
            let kept = match kept_at {
                Some(record) => format!("Record {record} has the hash that you kept, and all later ones follow it."),
                None => "Keep the hash elsewhere, and pass it with --head later: without it, nobody can see that the end was cut off \
                         or the whole log rewritten."
                    .to_owned(),
            };
            format!(
                "Records {first} to {last} are intact.{removed}\nHash of the last: {head}\n{kept}{torn}"
            )
        }
    }
}

fn export(runtime: &Runtime, format: AuditFormat) -> Result<ExitCode, String> {
    let report = runtime.verify_audit(None).map_err(|error| error.to_string())?;
    if let Some(broken) = report.broken {
        output::warning(&format!("the log is broken: {broken}. It is printed as it is."));
    }
    let host = host_name();
    let is_terminal = io::stdout().is_terminal();
    let mut stdout = BufWriter::new(io::stdout().lock());
    let (mut written, mut unreadable) = (Ok(()), 0_u64);
    let read = runtime.audit_lines(|line| {
        written = match format {
            // Old or edited lines may contain control characters. A program gets the bytes, because the hash covers them.
            AuditFormat::Jsonl if is_terminal => writeln!(stdout, "{}", visible_name(line)),
            AuditFormat::Jsonl => stdout.write_all(line).and_then(|()| stdout.write_all(b"\n")),
            AuditFormat::Ocsf => match ocsf::event(line, &host) {
                Some(event) => writeln!(stdout, "{}", escaped_json(&event)),
                None => {
                    unreadable += 1;
                    Ok(())
                }
            },
        };
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    read.map_err(|error| error.to_string())?;
    output::printed(written.and_then(|()| stdout.flush()))?;
    if unreadable > 0 {
        output::warning(&format!("{unreadable} lines are not records, and were left out"));
    }
    Ok(ExitCode::SUCCESS)
}
