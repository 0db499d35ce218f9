//! The clients that have an entry, for `doctor`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::clients::UserDirectories;
use super::settings::keys;
use super::{NAME, client_name, directories, foreign_entry, record, writer};
use crate::args::Client;

/// Each entry with its client and file, and each file of a client that cannot be read. A problem if the client cannot start
/// the server.
pub(crate) fn installed() -> Result<Vec<Result<String, String>>, String> {
    let directories = directories()?;
    let mut found = Vec::new();
    for client in <Client as clap::ValueEnum>::value_variants() {
        for file in client.files(&directories) {
            found.extend(entries(*client, &file, &directories));
        }
    }
    Ok(found)
}

fn entries(
    client: Client,
    file: &Path,
    directories: &UserDirectories,
) -> Vec<Result<String, String>> {
    let (title, name) = (client.title(), client_name(client));
    let shown = file.display();
    let text = writer::read(file).and_then(|text| {
        let text = text.unwrap_or_default();
        client.format().check(&text).map_err(|problem| format!("{shown}: {problem}"))?;
        Ok(text)
    });
    let text = match text {
        Ok(text) => text,
        Err(problem) => {
            return vec![Err(format!(
                "{title}: it is not known whether it has an entry. {problem}"
            ))];
        }
    };
    let here = (NAME.to_owned(), name.clone());
    let there = record::servers_on_hosts(&name).into_iter();
    let there = there.map(|server| {
        let record = record::name_on_host(&name, &server);
        (server, record)
    });
    let servers = std::iter::once(here).chain(there);
    let entry = |(server, record): (String, String)| {
        let path = keys(&[client.servers(), &server]);
        let entry = client.format().get(&text, &path)?;
        let records = record::read(&record).unwrap_or_default();
        let record = records.iter().find(|record| record.file == file);
        let written = record.and_then(|record| Some(record.change_at(&path)?.1));
        if foreign_entry::is_foreign(&entry, written) {
            return None;
        }
        let listed = match server.as_str() {
            NAME => format!("{title} ({shown})"),
            server => format!("{title}, {server} ({shown})"),
        };
        let program = foreign_entry::command(&entry).into_iter().next().unwrap_or_default();
        Some(if exists(&program, directories) {
            Ok(listed)
        } else {
            Err(format!(
                "{listed}: the program `{program}` of its entry does not exist. Install it again"
            ))
        })
    };
    servers.filter_map(entry).collect()
}

/// Whether a client can start a program, by its path or by its name.
fn exists(program: &str, directories: &UserDirectories) -> bool {
    let is_executable = |path: &Path| {
        path.metadata()
            .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_executable(Path::new(program));
    }
    let path = (directories.variable)("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_executable(&directory.join(program)))
}
