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

/// Leaves to another server of the same client what this record knows about their common files: that they and their
/// containers are ours, so that the last `uninstall` removes them.
pub(super) fn hand_over(client: &str, own: &str, records: &[InstallRecord]) -> Result<(), String> {
    let there = servers_on_hosts(client).into_iter().map(|name| name_on_host(client, &name));
    for name in there.chain([client.to_owned()]).filter(|name| name != own) {
        let mut others = read(&name)?;
        let before = others.clone();
        for other in &mut others {
            if let Some(record) = records.iter().find(|record| record.file == other.file) {
                other.inherit(record);
            }
        }
        if others != before {
            return write(&name, &others);
        }
    }
    Ok(())
}

/// The names of the servers on other machines that this client has a record of.
pub(super) fn servers_on_hosts(client: &str) -> Vec<String> {
    let directory = file(client).and_then(|file| Some(file.parent()?.to_owned()));
    let entries = directory.and_then(|directory| std::fs::read_dir(directory).ok());
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let server = name.strip_prefix(client)?.strip_prefix('@')?.strip_suffix(".json")?;
        Some(server.to_owned())
    };
    let mut names: Vec<String> = entries.into_iter().flatten().flatten().filter_map(name).collect();
    names.sort();
    names
}

/// The name of the record of a server on another machine.
pub(super) fn name_on_host(client: &str, server: &str) -> String {
    format!("{client}@{server}")
}

/// Always in the default state directory: `uninstall` does not know the `--state` of the server.
fn file(client: &str) -> Option<PathBuf> {
    Some(user_machine::state_directory()?.join("clients").join(format!("{client}.json")))
}
