//! `toolcrib index`: shows, builds and deletes the search indexes.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::{Error, RootIndex, Runtime, visible_name};

use crate::args::{Common, IndexCommand};
use crate::output;

/// The update interval of the progress display.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn index(
    common: &Common,
    runtime: &Runtime,
    command: &IndexCommand,
) -> Result<ExitCode, String> {
    let roots = match command {
        IndexCommand::Status => runtime.indexes(),
        IndexCommand::Build => build(common, runtime),
        IndexCommand::Drop => runtime.drop_indexes(),
    };
    let roots = roots.map_err(|error| error.text().to_string())?;
    let printed = if output::for_people(common) {
        roots.iter().try_for_each(|root| writeln!(io::stdout(), "{}", sentence(root)))
    } else {
        writeln!(io::stdout(), "{}", Value::Array(roots.iter().map(object).collect()))
    };
    output::printed(printed)?;
    Ok(ExitCode::SUCCESS)
}

/// Builds the indexes, and shows the progress on a terminal.
fn build(common: &Common, runtime: &Runtime) -> Result<Vec<RootIndex>, Error> {
    if !output::for_people(common) || !io::stderr().is_terminal() {
        return runtime.build_indexes();
    }
    std::thread::scope(|scope| {
        let built = scope.spawn(|| runtime.build_indexes());
        while !built.is_finished() {
            std::thread::sleep(PROGRESS_INTERVAL);
            let _ = write!(io::stderr(), "\r{} files indexed", runtime.indexed_files());
        }
        let _ = write!(io::stderr(), "\r{:40}\r", "");
        built.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Describes an index in one line.
pub(super) fn sentence(root: &RootIndex) -> String {
    let RootIndex { files, status, .. } = root;
    let path = visible_name(root.root.as_os_str().as_encoded_bytes());
    let known = match status.files {
        0 => "none indexed".to_owned(),
        known => format!("{known} indexed, {}", size(status.bytes)),
    };
    let mut notes = String::new();
    if let Some(took) = status.built_in {
        notes += &format!(", built in {:.1} s", took.as_secs_f64());
    }
    if status.full {
        notes += "; the size limit is reached (index_megabytes)";
    }
    if status.dropped_older {
        notes += "; the index of an older version was removed, and searches build a new one";
    }
    if status.has_newer {
        notes += "; the index of a newer version is not used and not changed";
    }
    if !root.is_wanted {
        notes += match status.files {
            0 => "; searches use no index for so few files (index_files)",
            _ => "; searches do not use it for so few files (index_files)",
        };
    }
    let s = if *files == 1 { "" } else { "s" };
    format!("{path}: {files} file{s}, {known}{notes}")
}

fn size(bytes: u64) -> String {
    match bytes {
        ..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => format!("{} MB", bytes.div_ceil(1_000_000)),
    }
}

fn object(root: &RootIndex) -> Value {
    json!({
        "root": root.root.display().to_string(),
        "files": root.files,
        "kept_by_searches": root.is_wanted,
        "indexed_files": root.status.files,
        "bytes": root.status.bytes,
        "full": root.status.full,
        "dropped_older": root.status.dropped_older,
        "has_newer": root.status.has_newer,
        "seconds": root.status.built_in.map(|took| took.as_secs_f64()),
    })
}
