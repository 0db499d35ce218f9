//! `toolcrib install` and `toolcrib uninstall`: Toolcrib's entry in a client's own configuration.

mod approval;
mod clients;
mod exclusive;
mod handshake;
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
    let plan = plan(client, &directories, entry, args.exclusive, approves)?;
    let record = server.record_name(&client_name(client));
    let mut records = record::read(&record)?;
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
    changes.iter().try_for_each(FileChange::write)?;
    let (title, words) = (client.title(), server.words(&client_name(client)));
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
                format!("{problem}\nAdd this by hand:\n{}", by_hand.unwrap_or_default().trim_end())
            })?;
            let is_leftover = record.created && record.steps.is_empty() && format.is_empty(&new);
            Ok((!is_leftover).then_some(new))
        })
    }
}

/// The files to change, with their settings.
fn plan(
    client: Client,
    directories: &UserDirectories,
    (name, start): (&str, &ServerCommand),
    exclusive: bool,
    approves: bool,
) -> Result<Vec<Target>, String> {
    let (file, format) = (client.file(directories), client.format());
    let text = writer::read(&file)?.unwrap_or_default();
    let path = [client.servers(), name];
    let entry = client.entry(name, start);
    let entry = with_other_fields(entry, format.get(&text, &keys(&path)), format);
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
) -> Result<ExitCode, String> {
    let file = client.file(&directories()?);
    let server = Server::of(host)?;
    let (name, record) = (server.name.as_str(), server.record_name(&client_name(client)));
    let records = record::read(&record)?;
    let mut files: Vec<&Path> = records.iter().map(|record| record.file.as_path()).collect();
    if !files.contains(&file.as_path()) {
        files.push(&file);
    }
    let mut changes = Vec::new();
    for path in files {
        let written = records.iter().find(|record| record.file == path);
        changes.extend(FileChange::of(path, |before| {
            let Some(text) = before else { return Ok(None) };
            let exact = written.and_then(|written| written.restored(text));
            let is_exact = exact.is_some();
            let mut text = exact.unwrap_or_else(|| text.to_owned());
            if path == file {
                // Needed if there is no record, if the user has changed the entry since, or if it is older than the record.
                text = client.format().remove(&text, &keys(&[client.servers(), name]))?;
            }
            let Some(written) = written else { return Ok(Some(text)) };
            if !is_exact {
                text = written.revert(&text)?;
            }
            let is_leftover = written.created && written.format.is_empty(&text);
            Ok((!is_leftover).then_some(text))
        })?);
    }
    if common.dry_run {
        return show(&changes);
    }
    changes.iter().try_for_each(FileChange::write)?;
    record::hand_over(&client_name(client), &record, &records)?;
    record::write(&record, &[])?;
    output::answer(&match changes.as_slice() {
        [] => format!(
            "{}: {name} is not installed, {} has no entry for it; nothing was changed.",
            client.title(),
            file.display()
        ),
        _ => format!(
            "{}: {name} is removed. Restart {} to end the server.",
            client.title(),
            client.title()
        ),
    });
    Ok(ExitCode::SUCCESS)
}

/// The clients with an entry, the name of the server, and the file of each.
pub(crate) fn installed() -> Result<Vec<(&'static str, String, PathBuf)>, String> {
    let directories = directories()?;
    let mut ours = Vec::new();
    for client in <Client as clap::ValueEnum>::value_variants() {
        let file = client.file(&directories);
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let there = record::servers_on_hosts(&client_name(*client));
        let names = std::iter::once(NAME.to_owned()).chain(there);
        let is_installed = |name: &String| {
            let entry = keys(&[client.servers(), name]);
            client.format().get(&text, &entry).is_some()
        };
        ours.extend(names.filter(is_installed).map(|name| (client.title(), name, file.clone())));
    }
    Ok(ours)
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
    if exclusive.is_set()? {
        let off = format!("{title}'s own file and shell tools are disabled in {file}.");
        return Ok(exclusive.remains.into_iter().fold(off, |text, rest| format!("{text} {rest}")));
    }
    let snippet = client.exclusive(directories, "").map(|exclusive| exclusive.snippet());
    let place = match client {
        // After a table, its first line would be a key of that table.
        Client::Codex => " this, at the top, before the first table,",
        _ => "",
    };
    Ok(format!(
        "{title} keeps its own file and shell tools, which Toolcrib does not confine. To switch them off, run \
         `{command}`, or add{place} to {file}:\n\n{}",
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
