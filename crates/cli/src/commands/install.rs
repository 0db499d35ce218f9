//! `toolcrib install` and `toolcrib uninstall`: Toolcrib's entry in a client's own configuration.

mod approval;
mod clients;
mod exclusive;
mod foreign_entry;
mod handshake;
mod installed;
mod json;
mod record;
mod remote_server;
mod repeated_command;
mod replaced_lines;
mod server_command;
mod settings;
mod temporary_program;
mod toml;
mod writer;
mod yaml;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use etcetera::BaseStrategy as _;
use serde_json::{Map, Value};

use self::clients::{ServerCommand, UserDirectories};
use self::exclusive::Exclusive;
pub(crate) use self::installed::installed;
use self::remote_server::Server;
use self::settings::{FileFormat, InstallRecord, Setting, keys};
use self::writer::FileChange;
use crate::args::{Client, Common, InstallArgs, RemoteHost};
use crate::output;

/// The name of the server on this machine in client configurations.
pub(super) const NAME: &str = "toolcrib";

/// Writes an entry into the configuration of a client, or shows it.
pub(crate) fn install(common: &Common, args: &InstallArgs) -> Result<ExitCode, String> {
    let (client, directories) = (args.client, directories()?);
    let (host, there) = (args.there.host.as_ref(), &args.there);
    let server = Server::of(host)?;
    let start = match host {
        Some(host) => remote_server::start(there, host, common, &args.flags)?,
        None => server_command::start(client, common, &args.flags)?,
    };
    let is_found = client.is_found(&directories);
    let approves = !args.ask
        && match host {
            Some(host) => remote_server::is_confined(there, host, common, &args.flags)?,
            None => approval::is_allowed(common, &args.flags),
        };
    let entry = (server.name.as_str(), &start);
    let record = server.record_name(&client_name(client));
    let mut records = record::read(&record)?;
    let words = server.words(&client_name(client));
    let foreign = forget_foreign_entry(client, &directories, &server.name, &mut records)?;
    if let Some(entry) = &foreign {
        let program = foreign_entry::command(entry).into_iter().next();
        output::warning(&format!(
            "{} has an entry `{}` that starts {}. `install` replaces it, and `toolcrib uninstall {words}` restores it. To \
             keep both, give it another name in that file first.",
            client.file(&directories).display(),
            server.name,
            program.map_or("another server".to_owned(), |program| format!("`{program}`"))
        ));
    }
    let is_ours = foreign.is_none();
    let plan = plan(client, &directories, entry, is_ours, args.exclusive, approves)?;
    let mut changes = Vec::new();
    for target in &plan {
        changes.extend(target.change(&mut records)?);
    }
    records.retain(|record| !record.steps.is_empty());
    if args.print || common.dry_run {
        return show(&changes);
    }
    let tools = handshake::count_tools(client, &start).map_err(|problem| {
        let step = host.map_or(String::new(), |host| remote_server::next_step(host, &problem));
        format!("{problem}{step}\nNothing was written.")
    })?;
    if !changes.is_empty() {
        record::write(&record, &records)?;
    }
    let showing = repeated_command::with("--print", common, args)?;
    changes.iter().try_for_each(|change| change.write(&showing))?;
    let title = client.title();
    let done = match changes.as_slice() {
        [] => "Already installed; nothing was changed".to_owned(),
        _ => format!("{title}: installed in {}", client.file(&directories).display()),
    };
    output::answer(&format!(
        "{done}. The server answers with {tools} tools.\n{}",
        client.next(&server.name)
    ));
    let asking = repeated_command::with("--ask", common, args)?;
    let note = client.approval_note(approves, &server.name, &directories, &asking)?;
    note.iter().for_each(|note| output::answer(note));
    let exclusive = repeated_command::with("--exclusive", common, args)?;
    output::answer(&own_tools(client, &directories, &exclusive)?);
    output::answer(&format!("More: {}. To revert this: toolcrib uninstall {words}", client.page()));
    if !is_found {
        output::warning(&format!(
            "{title} was not found on this machine. The entry is used once it is installed."
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// A file and the settings to write into it.
struct Target {
    file: PathBuf,
    format: FileFormat,
    settings: Vec<Setting>,
}

impl Target {
    /// The change that adds the settings, which is also added to the records. `None` if the file has them already.
    fn change(&self, records: &mut Vec<InstallRecord>) -> Result<Option<FileChange>, String> {
        let Target { file, format, settings } = self;
        FileChange::of(file, |before| {
            let index = records.iter().position(|record| record.file == *file);
            let index = index.unwrap_or_else(|| {
                records.push(InstallRecord::new(file, *format, before.is_none()));
                records.len() - 1
            });
            let record = &mut records[index];
            let new = record.apply(before.unwrap_or_default(), settings).map_err(|problem| {
                let by_hand = InstallRecord::new(file, *format, true).apply("", settings);
                format!(
                    "{problem}\nNothing was written. Repair the file and run the command again, or add this by hand:\n{}",
                    by_hand.unwrap_or_default().trim_end()
                )
            })?;
            let is_leftover = record.created && record.steps.is_empty() && format.is_empty(&new);
            Ok((!is_leftover).then_some(new))
        })
    }
}

/// The entry with our name that starts something else, which the records are not about then.
fn forget_foreign_entry(
    client: Client,
    directories: &UserDirectories,
    name: &str,
    records: &mut [InstallRecord],
) -> Result<Option<Value>, String> {
    let (file, path) = (client.file(directories), keys(&[client.servers(), name]));
    let text = writer::read(&file)?.unwrap_or_default();
    let Some(entry) = client.format().get(&text, &path) else { return Ok(None) };
    let record = records.iter_mut().find(|record| record.file == file);
    let written = record.as_ref().and_then(|record| Some(record.change_at(&path)?.1));
    if !foreign_entry::is_foreign(&entry, written) {
        return Ok(None);
    }
    if let Some(record) = record {
        record.forget(&path);
    }
    Ok(Some(entry))
}

/// The files to change, with their settings.
fn plan(
    client: Client,
    directories: &UserDirectories,
    (name, start): (&str, &ServerCommand),
    is_ours: bool,
    exclusive: bool,
    approves: bool,
) -> Result<Vec<Target>, String> {
    let (file, format) = (client.file(directories), client.format());
    let text = writer::read(&file)?.unwrap_or_default();
    let path = [client.servers(), name];
    let entry = client.entry(name, start);
    let existing = format.get(&text, &keys(&path)).filter(|_| is_ours);
    let entry = with_other_fields(entry, existing, format);
    let mut plan = vec![Target { file, format, settings: vec![Setting::value(&path, entry)] }];
    if let Some(mut target) = client.approving(name, directories) {
        if !approves {
            target.settings = target.settings.iter().map(Setting::withdrawn).collect();
        }
        add(&mut plan, target);
    }
    if exclusive {
        let Some(Exclusive { file, format, settings, .. }) = client.exclusive(directories, &text)
        else {
            return Err(format!(
                "{} has no setting that disables its own tools. Run the command without --exclusive.\n{}",
                client.title(),
                client.by_hand()
            ));
        };
        add(&mut plan, Target { file, format, settings });
    }
    Ok(plan)
}

/// Adds settings to a plan, which changes each file once.
fn add(plan: &mut Vec<Target>, target: Target) {
    match plan.iter_mut().find(|planned| planned.file == target.file) {
        Some(planned) => planned.settings.extend(target.settings),
        None => plan.push(target),
    }
}

/// The entry, merged with other fields of an existing entry, such as a timeout.
fn with_other_fields(entry: Value, existing: Option<Value>, format: FileFormat) -> Value {
    // The YAML reader does not parse every field.
    let existing = existing.filter(|_| format != FileFormat::Yaml);
    let fields = |value: Value| match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let mut all = existing.map(fields).unwrap_or_default();
    all.extend(fields(entry));
    Value::Object(all)
}

fn show(changes: &[FileChange]) -> Result<ExitCode, String> {
    changes.iter().try_for_each(FileChange::show)?;
    output::answer(if changes.is_empty() {
        "Nothing would change."
    } else {
        "Nothing was written."
    });
    Ok(ExitCode::SUCCESS)
}

/// Reverts `install`.
pub(crate) fn uninstall(
    common: &Common,
    client: Client,
    host: Option<&RemoteHost>,
    print: bool,
) -> Result<ExitCode, String> {
    let directories = directories()?;
    let (file, entry_files) = (client.file(&directories), client.files(&directories));
    let server = Server::of(host)?;
    let (name, record) = (server.name.as_str(), server.record_name(&client_name(client)));
    let records = record::read(&record)?;
    let mut files: Vec<&Path> = records.iter().map(|record| record.file.as_path()).collect();
    for file in &entry_files {
        if !files.contains(&file.as_path()) {
            files.push(file);
        }
    }
    let entry = keys(&[client.servers(), name]);
    for path in &files {
        let written = records.iter().find(|record| record.file == **path);
        check_readable(path, client.format(), &entry, written)?;
    }
    let mut changes = Vec::new();
    let mut kept = false;
    for path in files {
        let written = records.iter().find(|record| record.file == path);
        changes.extend(FileChange::of(path, |before| {
            let Some(text) = before else { return Ok(None) };
            let exact = written.and_then(|written| written.restored(text));
            let is_exact = exact.is_some();
            let mut text = exact.unwrap_or_else(|| text.to_owned());
            if entry_files.iter().any(|file| file == path) {
                // Needed if there is no record, if the user has changed the entry since, or if it is older than the record.
                let is_kept;
                (text, is_kept) = without_entry(client.format(), &text, &entry, written)?;
                kept |= is_kept;
            }
            let Some(written) = written else { return Ok(Some(text)) };
            if !is_exact {
                text = written.revert(&text)?;
            }
            let is_leftover = written.created && written.format.is_empty(&text);
            Ok((!is_leftover).then_some(text))
        })?);
    }
    if print || common.dry_run {
        return show(&changes);
    }
    let showing = format!("toolcrib uninstall {} --print", server.words(&client_name(client)));
    changes.iter().try_for_each(|change| change.write(&showing))?;
    record::hand_over(&client_name(client), &record, &records)?;
    record::write(&record, &[])?;
    let (title, file) = (client.title(), file.display());
    output::answer(&match (changes.as_slice(), kept) {
        ([], false) => format!(
            "{title}: {name} is not installed, {file} has no entry for it; nothing was changed."
        ),
        ([], true) => format!(
            "{title}: {name} is not installed, its entry in {file} starts something else; nothing was changed."
        ),
        (_, false) => format!("{title}: {name} is removed. Restart {title} to end the server."),
        (_, true) => format!(
            "{title}: {name} is removed, and {file} has the entry that starts something else. Restart {title} to end \
             the server."
        ),
    });
    Ok(ExitCode::SUCCESS)
}

/// Fails if a file is not valid: it would seem to have none of our settings.
fn check_readable(
    file: &Path,
    format: FileFormat,
    entry: &[String],
    written: Option<&InstallRecord>,
) -> Result<(), String> {
    let text = writer::read(file)?.unwrap_or_default();
    let checked = match written.map_or(format, |written| written.format) {
        // Lines that `install` could not have edited are no problem in a file that has nothing of it.
        FileFormat::Yaml if written.is_some() => FileFormat::Yaml.remove(&text, entry).map(drop),
        format => format.check(&text),
    };
    checked.map_err(|problem| {
        format!(
            "{}: {problem}\nNothing was changed. Repair the file and run the command again.",
            file.display()
        )
    })
}

/// The text without our entry, and whether it has one that starts something else: that stays, or is restored.
fn without_entry(
    format: FileFormat,
    text: &str,
    path: &[String],
    written: Option<&InstallRecord>,
) -> Result<(String, bool), String> {
    let change = written.and_then(|written| written.change_at(path));
    let Some(entry) = format.get(text, path) else { return Ok((text.to_owned(), false)) };
    if foreign_entry::is_foreign(&entry, change.map(|(_, after)| after)) {
        return Ok((text.to_owned(), true));
    }
    match change.and_then(|(before, _)| before) {
        Some(before) if foreign_entry::is_foreign(before, None) => {
            Ok((format.set(text, path, before)?, true))
        }
        _ => Ok((format.remove(text, path)?, false)),
    }
}

/// Whether the client has its own tools, which Toolcrib does not confine, and how to switch them off.
fn own_tools(
    client: Client,
    directories: &UserDirectories,
    command: &str,
) -> Result<String, String> {
    let title = client.title();
    let text = writer::read(&client.file(directories))?.unwrap_or_default();
    let Some(exclusive) = client.exclusive(directories, &text) else {
        return Ok(format!(
            "{title} keeps its own file and shell tools, and has no setting to switch them off. {}",
            client.by_hand()
        ));
    };
    let file = exclusive.file.display();
    let missing = exclusive.missing()?;
    if missing.is_empty() {
        let off = format!("{title}'s own file and shell tools are disabled in {file}.");
        return Ok(exclusive.remains.into_iter().fold(off, |text, rest| format!("{text} {rest}")));
    }
    let snippet = client.exclusive(directories, "").map(|exclusive| exclusive.snippet());
    let place = match client {
        // After a table, its first line would be a key of that table.
        Client::Codex => " this, at the top, before the first table,",
        _ => "",
    };
    let kept = if missing == exclusive.all() {
        format!("{title} keeps its own file and shell tools, which Toolcrib does not confine.")
    } else {
        format!(
            "{title} keeps some of its own file and shell tools, which Toolcrib does not confine: {file} does not have \
             the setting for `{}`.",
            missing.join("`, `")
        )
    };
    Ok(format!(
        "{kept} To switch them off, run `{command}`, or add{place} to {file}:\n\n{}",
        snippet.transpose()?.unwrap_or_default()
    ))
}

fn directories() -> Result<UserDirectories, String> {
    let base = etcetera::choose_base_strategy().map_err(|error| error.to_string())?;
    Ok(UserDirectories {
        home: base.home_dir().to_owned(),
        config: base.config_dir(),
        variable: |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(Into::into),
    })
}

/// The name of a client on the command line.
fn client_name(client: Client) -> String {
    let value = clap::ValueEnum::to_possible_value(&client);
    value.map_or(String::new(), |value| value.get_name().to_owned())
}
