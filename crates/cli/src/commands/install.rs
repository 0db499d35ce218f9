//! `toolcrib install` and `toolcrib uninstall`: Toolcrib's entry in a client's own configuration.

mod clients;
mod exclusive;
mod handshake;
mod json;
mod record;
mod settings;
mod start;
mod toml;
mod writer;
mod yaml;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use etcetera::BaseStrategy as _;

pub(crate) use self::clients::Client;
use self::clients::Places;
use self::exclusive::Exclusive;
use self::settings::{Setting, Written, keys};
use self::writer::FileChange;
use crate::args::{Common, InstallArgs};
use crate::print;

/// Under which name clients know the server.
const NAME: &str = "toolcrib";

/// Writes an entry into the configuration of a client, or shows it.
pub(crate) fn install(common: &Common, args: &InstallArgs) -> Result<ExitCode, String> {
    let (client, places) = (args.client, places()?);
    let start = start::start(client, common, &args.flags)?;
    let file = client.file(&places);
    let text = writer::read(&file)?.unwrap_or_default();
    let exclusive = client.exclusive(&places, &text);
    let mut records = record::read(&word(client))?;
    let entry = client.entry(&start);
    let mut plan = vec![(file.clone(), client.form(), vec![entry_setting(client, entry)])];
    match (&exclusive, args.exclusive) {
        (Some(Exclusive { file, form, settings, .. }), true) => {
            match plan.iter_mut().find(|(other, ..)| other == file) {
                Some((.., all)) => all.extend_from_slice(settings),
                None => plan.push((file.clone(), *form, settings.clone())),
            }
        }
        (None, true) => return Err(no_exclusive_setting(client)),
        (_, false) => {}
    }
    let is_found = client.is_found(&places);
    let mut changes = Vec::new();
    for (file, form, settings) in &plan {
        changes.extend(FileChange::of(file, |before| {
            let index = records.iter().position(|record| record.file == *file);
            let index = index.unwrap_or_else(|| {
                records.push(Written::new(file, *form, before.is_none()));
                records.len() - 1
            });
            let text = before.unwrap_or_default();
            let new = records[index].apply(text, settings).map_err(|problem| {
                let by_hand = Written::new(file, *form, true).apply("", settings);
                format!("{problem}\nAdd this by hand:\n{}", by_hand.unwrap_or_default().trim_end())
            })?;
            Ok(Some(new))
        })?);
    }
    if args.print || common.dry_run {
        changes.iter().try_for_each(FileChange::show)?;
        print::answer("Nothing was written.");
        return Ok(ExitCode::SUCCESS);
    }
    let tools = handshake::count_tools(client, &start)
        .map_err(|problem| format!("{problem}\nNothing was written."))?;
    if !changes.is_empty() {
        record::write(&word(client), &records)?;
    }
    changes.iter().try_for_each(FileChange::write)?;
    let done = match changes.as_slice() {
        [] => "Already installed; nothing was changed".to_owned(),
        _ => format!("{}: installed in {}", client.title(), file.display()),
    };
    print::answer(&format!("{done}. The server answers with {tools} tools.\n{}", client.next()));
    print::answer(&match args.exclusive {
        true => exclusive.map_or(String::new(), |exclusive| {
            let (title, file) = (client.title(), exclusive.file.display());
            let off = format!("{title}'s own file and shell tools are switched off in {file}.");
            exclusive.remains.into_iter().fold(off, |text, rest| format!("{text} {rest}"))
        }),
        false => own_tools_stay(client, &places)?,
    });
    let word = word(client);
    print::answer(&format!("More: {}. To remove it: toolcrib uninstall {word}", client.page()));
    if !is_found {
        print::warning(&format!(
            "{} was not found on this machine. The entry is used once it is installed.",
            client.title()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes what `install` wrote.
pub(crate) fn uninstall(common: &Common, client: Client) -> Result<ExitCode, String> {
    let file = client.file(&places()?);
    let records = record::read(&word(client))?;
    let mut files: Vec<&Path> = records.iter().map(|record| record.file.as_path()).collect();
    if !files.contains(&file.as_path()) {
        files.push(&file);
    }
    let mut changes = Vec::new();
    for path in files {
        let written = records.iter().find(|record| record.file == path);
        changes.extend(FileChange::of(path, |before| {
            let Some(text) = before else { return Ok(None) };
            let mut text = text.to_owned();
            if path == file {
                // Without a record, and if the user has changed it since.
                text = client.form().remove(&text, &keys(&[client.servers(), NAME]))?;
            }
            let Some(written) = written else { return Ok(Some(text)) };
            let text = written.revert(&text)?;
            let is_leftover = written.created && written.form.is_empty(&text);
            Ok((!is_leftover).then_some(text))
        })?);
    }
    if common.dry_run {
        changes.iter().try_for_each(FileChange::show)?;
        print::answer("Nothing was written.");
        return Ok(ExitCode::SUCCESS);
    }
    changes.iter().try_for_each(FileChange::write)?;
    record::write(&word(client), &[])?;
    print::answer(&match changes.as_slice() {
        [] => format!("{} has no {NAME}; nothing was changed.", file.display()),
        _ => format!(
            "{}: {NAME} is removed. Restart {} to end the server.",
            client.title(),
            client.title()
        ),
    });
    Ok(ExitCode::SUCCESS)
}

/// Which clients have the entry, and in which file.
pub(crate) fn installed() -> Result<Vec<(&'static str, PathBuf)>, String> {
    let places = places()?;
    let all = <Client as clap::ValueEnum>::value_variants().iter();
    let with_file = all.map(|client| (*client, client.file(&places)));
    let ours = with_file.filter(|(client, file)| is_installed(*client, file));
    Ok(ours.map(|(client, file)| (client.title(), file)).collect())
}

fn is_installed(client: Client, file: &Path) -> bool {
    let entry = keys(&[client.servers(), NAME]);
    std::fs::read_to_string(file).is_ok_and(|text| client.form().get(&text, &entry).is_some())
}

fn entry_setting(client: Client, entry: serde_json::Value) -> Setting {
    Setting::value(&[client.servers(), NAME], entry)
}

/// Says that the client's own tools remain, which no sandbox of Toolcrib's confines, and how to switch them off.
fn own_tools_stay(client: Client, places: &Places) -> Result<String, String> {
    let title = client.title();
    let Some(exclusive) = client.exclusive(places, "") else {
        return Ok(format!(
            "{title} keeps its own file and shell tools, and has no setting to switch them off: see \"Use only \
             Toolcrib's tools\" in {}.",
            client.page()
        ));
    };
    Ok(format!(
        "{title} keeps its own file and shell tools, which Toolcrib does not confine. To switch them off, run \
         `toolcrib install {} --exclusive`, or add to {}:\n\n{}",
        word(client),
        exclusive.file.display(),
        exclusive.snippet()?
    ))
}

fn no_exclusive_setting(client: Client) -> String {
    format!(
        "{} has no setting that switches off its own tools. Without --exclusive, the entry is written. See \"Use \
         only Toolcrib's tools\" in {}.",
        client.title(),
        client.page()
    )
}

fn places() -> Result<Places, String> {
    let base = etcetera::choose_base_strategy().map_err(|error| error.to_string())?;
    Ok(Places {
        home: base.home_dir().to_owned(),
        config: base.config_dir(),
        variable: |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(Into::into),
    })
}

/// The word for a client on the command line.
fn word(client: Client) -> String {
    let value = clap::ValueEnum::to_possible_value(&client);
    value.map_or(String::new(), |value| value.get_name().to_owned())
}
