//! `toolcrib install` and `toolcrib uninstall`: our entry in a client's own configuration.

mod clients;
mod handshake;
mod json;
mod toml;
mod yaml;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use etcetera::BaseStrategy as _;
use toolcrib::{Call, Options, Profile, Protection, Reply, Runtime};

pub(crate) use self::clients::Client;
use self::clients::{Form, Places, Start};
use crate::args::{Common, InstallArgs};
use crate::{config, print};

/// Under which name clients know us.
const NAME: &str = "toolcrib";

/// Puts our entry into the configuration of a client, or shows it.
pub(crate) fn install(common: &Common, args: &InstallArgs) -> Result<ExitCode, String> {
    let client = args.client;
    let start = start(client, &args.flags)?;
    let file = client.file(&places()?);
    let changed = change(common, client, &file, Some(&start), args.print)?;
    if args.print {
        print::note(&format!("would change {}; nothing was written", file.display()));
        return print::reply(&changed)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| error.to_string());
    }
    print::reply(&changed).map_err(|error| error.to_string())?;
    let tools = handshake::count_tools(client, &start)?;
    print::note(&format!(
        "{}: {} is written, and the server answers with {tools} tools.\n{}\nTake it back: toolcrib uninstall {}",
        client.title(),
        file.display(),
        client.next(),
        word(client),
    ));
    Ok(ExitCode::SUCCESS)
}

/// Takes our entry out of the configuration of a client.
pub(crate) fn uninstall(common: &Common, client: Client) -> Result<ExitCode, String> {
    let file = client.file(&places()?);
    if !is_installed(client, &file) {
        print::note(&format!("{} has no {NAME}", file.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let changed = change(common, client, &file, None, false)?;
    print::reply(&changed).map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Which clients have our entry, and in which file.
pub(crate) fn installed() -> Result<Vec<(&'static str, PathBuf)>, String> {
    let places = places()?;
    let all = <Client as clap::ValueEnum>::value_variants().iter();
    let with_file = all.map(|client| (*client, client.file(&places)));
    let ours = with_file.filter(|(client, file)| is_installed(*client, file));
    Ok(ours.map(|(client, file)| (client.title(), file)).collect())
}

fn is_installed(client: Client, file: &Path) -> bool {
    let has = match client.form() {
        Form::Json => json::has,
        Form::Toml => toml::has,
        Form::Yaml => yaml::has,
    };
    std::fs::read_to_string(file).is_ok_and(|text| has(&text, client.servers(), NAME))
}

/// Writes the file with our own tool: whole or not at all, with its mode kept, and taken back by
/// `toolcrib undo` like any other change.
fn change(
    common: &Common,
    client: Client,
    file: &Path,
    start: Option<&Start>,
    dry_run: bool,
) -> Result<Reply, String> {
    let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", file.display());
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        read => Some(read.map_err(|error| at(&error))?),
    };
    let with = match client.form() {
        Form::Json => json::with,
        Form::Toml => toml::with,
        Form::Yaml => yaml::with,
    };
    let entry = start.map(|start| client.entry(start));
    let new = with(text.as_deref().unwrap_or_default(), client.servers(), NAME, entry.as_ref())
        .map_err(|problem| {
            let by_hand = entry.as_ref().map_or(String::new(), |entry| {
                format!("\nwrite it by hand, under `{}`: {NAME}: {entry}", client.servers())
            });
            format!("{}{by_hand}", at(&problem))
        })?;
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(at(&"is no file"));
    };
    if !dry_run {
        std::fs::create_dir_all(directory).map_err(|error| at(&error))?;
    }
    let runtime = writer(common, directory)?;
    let session = runtime.session();
    let name = name.to_string_lossy();
    let mut hash = serde_json::Value::Null;
    if text.is_some() {
        // The tool writes only over a file that its caller knows.
        let read = Call::new("Read", serde_json::json!({"file_path": name, "limit": 1}));
        let read = runtime.call(&session, read, Options::default());
        hash = read.map_err(|error| error.text().to_string())?.metadata()["hash"].clone();
    }
    let args = serde_json::json!({"file_path": name, "content": new, "expected_hash": hash});
    let write = Call::new("Write", args);
    let options = Options { dry_run, ..Options::default() };
    runtime.call(&session, write, options).map_err(|error| error.text().to_string())
}

/// A runtime for the one directory, with nothing protected: who typed the command means this file.
fn writer(common: &Common, directory: &Path) -> Result<Runtime, String> {
    let everything = Protection::default().allow("**")?;
    let mut builder =
        Runtime::builder().root(directory).profile(Profile::Open).protection(everything);
    if let Some(state) = common.state.clone().or_else(config::state_directory) {
        let state = std::path::absolute(&state).map_err(|error| error.to_string())?;
        builder = builder.journal(state, toolcrib::Caps::default());
    }
    builder.build().map_err(|error| error.to_string())
}

/// How the client is to start us: this very program, wherever it lies, with what was asked for.
fn start(client: Client, flags: &[String]) -> Result<Start, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let program = program.to_str().ok_or("this program's path is not UTF-8")?.to_owned();
    let mut arguments = vec!["serve".to_owned()];
    let names_roots = flags.iter().any(|flag| flag == "--root" || flag.starts_with("--root="));
    if let Some(project) = client.project().filter(|_| !names_roots) {
        arguments.extend(["--root".to_owned(), project.to_owned()]);
    }
    arguments.extend_from_slice(flags);
    Ok(Start { program, arguments })
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
