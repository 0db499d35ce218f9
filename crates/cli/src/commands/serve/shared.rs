//! `toolcrib serve --shared`: clients with the same settings share one server process.
//!
//! The process that a client starts finds the server of its [key](key), or starts it, and copies bytes between its standard
//! streams and the socket of the server. `docs/design/shared-server.md` has the reasons.

mod client_variables;
mod clients;
mod greeting;
mod key;
mod place;
mod relay;
mod start;
mod start_or_join;

use std::process::ExitCode;

use self::clients::Clients;
use self::key::SharedKey;
use self::place::Place;
use crate::args::{Common, ServeArgs, SharedPart};

/// The exit code of a server that did not start.
const NOT_STARTED: u8 = 2;

pub(super) fn shared(common: &Common, args: &ServeArgs) -> Result<ExitCode, String> {
    match args.shared_part {
        None => join(common, args),
        Some(SharedPart::Launch) => start::launch(),
        Some(SharedPart::Serve) => serve(common, args),
    }
}

/// Connects the client that started this process to its server.
fn join(common: &Common, args: &ServeArgs) -> Result<ExitCode, String> {
    let key = SharedKey::of(common, args)?;
    let place = Place::of(&key)?;
    match start_or_join::start_or_join(&key, &place)? {
        Some(joined) => {
            super::note_terminal();
            relay::relay(joined, &place)
        }
        None => Ok(ExitCode::from(NOT_STARTED)),
    }
}

/// Serves all clients of a key.
fn serve(common: &Common, args: &ServeArgs) -> Result<ExitCode, String> {
    let key = SharedKey::of(common, args)?;
    let place = Place::of(&key)?;
    // After the key, which has the limits of the client.
    toolcrib::raise_nofile_limit();
    super::with_runtime(common, args, |runtime, options| {
        if !key.has_settings_of(common)? {
            return Err(
                "the configuration changed while the server started; start it again".to_owned()
            );
        }
        Clients::listen(runtime, options, key, &place)?.serve_all(&place)
    })
}
