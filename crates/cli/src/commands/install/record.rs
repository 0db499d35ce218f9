//! Records of the changes that `install` made for each client, in the state directory. `uninstall` reverts exactly
//! these.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use super::settings::InstallRecord;
use toolcrib::user_machine;

/// Larger than any real record.
const MAX_BYTES: u64 = 1 << 20;

/// The changes for a client. Empty if there is no record. Fails if a newer program has written the state.
pub(super) fn read(client: &str) -> Result<Vec<InstallRecord>, String> {
    let checked = user_machine::state_directory().map_or(Ok(()), toolcrib::check_state_version);
    checked.map_err(|error| error.to_string())?;
    let Some(file) = file(client) else { return Ok(Vec::new()) };
    let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", file.display());
    match std::fs::metadata(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(&error)),
        Ok(about) if about.len() > MAX_BYTES => return Err(at(&"the record is too large")),
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(&file).map_err(|error| at(&error))?;
    serde_json::from_str(&text).map_err(|error| at(&error))
}

/// Writes a record, or deletes it if it is empty.
pub(super) fn write(client: &str, written: &[InstallRecord]) -> Result<(), String> {
    let file = file(client).ok_or("the state directory, which records the change, is unknown")?;
    let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", file.display());
    if written.is_empty() {
        return match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(&error)),
            _ => Ok(()),
        };
    }
    let text = serde_json::to_string(written).map_err(|error| at(&error))?;
    let directory = file.parent().ok_or_else(|| at(&"is not a file"))?;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory).map_err(|error| at(&error))?;
    let draft = file.with_extension("draft");
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, &file))
        .map_err(|error| at(&error))
}

/// Always in the default state directory: `uninstall` does not know the `--state` of the server.
fn file(client: &str) -> Option<PathBuf> {
    Some(user_machine::state_directory()?.join("clients").join(format!("{client}.json")))
}
