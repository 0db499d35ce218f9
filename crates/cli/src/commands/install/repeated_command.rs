//! The command of the user with one more flag, for hints.

use std::path::Path;

use super::{client_name, server_command};
use crate::args::{Common, InstallArgs};
use crate::ssh::quote;

/// The command with the flag, quoted for a shell. It means the same in every directory.
pub(super) fn with(flag: &str, common: &Common, args: &InstallArgs) -> Result<String, String> {
    let mut words = vec![client_name(args.client)];
    let path = match &args.there.host {
        Some(host) => {
            words.extend(["--host".to_owned(), host.text.clone()]);
            path_there
        }
        None => server_command::absolute,
    };
    if let Some(program) = &args.there.host_program {
        words.extend(["--host-program".to_owned(), program.clone()]);
    }
    words.extend(server_command::options(common, path)?);
    let given = [(args.exclusive, "--exclusive"), (args.ask, "--ask"), (args.print, "--print")];
    for (is_given, given) in given {
        if is_given || flag == given {
            words.push(given.to_owned());
        }
    }
    if !args.flags.is_empty() {
        words.push("--".to_owned());
        words.extend(match args.there.host {
            Some(_) => args.flags.clone(),
            None => server_command::absolute_flags(&args.flags)?,
        });
    }
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    Ok(format!("toolcrib install {}", words.join(" ")))
}

fn path_there(path: &Path) -> Result<String, String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("{}: the path is not UTF-8", path.display()))
}
