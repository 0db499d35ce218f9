//! Arguments of `log`.

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Check the audit log of the workspace, and print the hash of its last record
    #[command(long_about = VERIFY)]
    Verify {
        /// The hash of a record that you kept elsewhere: it must be in the log
        #[arg(long, value_name = "HASH", value_parser = record_hash)]
        head: Option<String>,
        /// Compare with the copy in PostgreSQL: the value of `serve --store`
        #[cfg(feature = "postgres")]
        #[arg(long, value_name = "STORE")]
        store: Option<String>,
    },
    /// Print the audit log of the workspace, oldest first, one JSON object per line
    Export {
        /// The format: the records as they are, or events of the Open Cybersecurity Schema Framework
        #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
        format: AuditFormat,
    },
}

/// Formats of `log export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// The records as they are, with their hashes
    Jsonl,
    /// API Activity events of OCSF
    Ocsf,
}

const VERIFY: &str = "\
Check the audit log of the workspace from its first record to its last, and name the first record that was edited, \
deleted, moved or cut off. Exit code 1 if there is one.

Each record has the hash of the one before it. So a log whose end was cut off, or that was rewritten as a whole, looks \
right. To notice that, keep the printed hash where nobody who can write the log can change it, and pass it with --head later.";

/// Parses the hash of a record.
fn record_hash(text: &str) -> Result<String, &'static str> {
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { Ok(text.to_ascii_lowercase()) } else { Err("not a hash of 64 digits") }
}
