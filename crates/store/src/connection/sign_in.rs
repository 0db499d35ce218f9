//! The beginning of a connection: TLS, the user and the password.

use std::io::{Read as _, Write as _};
use std::time::Instant;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use toolcrib_net::{ServerAddress, ServerStream};

use super::{Connection, cannot_send, lost, refused};
use crate::error::StoreError;
use crate::url::{StoreUrl, Tls};

/// The most rounds of hashing that a server may ask for. Servers use 4096.
const MAX_ROUNDS: u32 = 1_000_000;

/// Connects, with TLS if the address does not turn it off.
pub(super) fn connect(url: &StoreUrl, until: Instant) -> Result<ServerStream, StoreError> {
    let mut stream = ServerStream::connect(&url.address, until).map_err(StoreError::connection)?;
    let (Tls::Full(authorities), ServerAddress::Host(host, _)) = (&url.tls, &url.address) else {
        return Ok(stream);
    };
    let mut output = BytesMut::new();
    frontend::ssl_request(&mut output);
    stream.set_deadline(until).map_err(lost)?;
    stream.write_all(&output).map_err(lost)?;
    let mut answer = [0];
    stream.read_exact(&mut answer).map_err(lost)?;
    match answer {
        [b'S'] => stream.start_tls(host, authorities.as_deref()).map_err(StoreError::settings),
        [b'N'] => Err(StoreError::connection(
            "the server has no TLS; sslmode=disable in the address connects without it",
        )),
        _ => Err(StoreError::connection("the server does not speak the protocol of PostgreSQL")),
    }
}

/// Signs in.
pub(super) fn sign_in(connection: &mut Connection, url: &StoreUrl) -> Result<(), StoreError> {
    let parameters = [
        ("user", url.user.as_str()),
        ("database", url.database.as_str()),
        ("client_encoding", "UTF8"),
        ("application_name", "toolcrib"),
    ];
    let mut output = BytesMut::new();
    frontend::startup_message(parameters, &mut output).map_err(cannot_send)?;
    connection.send(&output)?;
    loop {
        let mut output = BytesMut::new();
        match connection.message()? {
            Message::AuthenticationOk => {}
            Message::ReadyForQuery(_) => return Ok(()),
            Message::ErrorResponse(body) => return Err(refused(&body)),
            Message::AuthenticationSasl(body) => {
                let offered: Vec<String> =
                    body.mechanisms().map(|name| Ok(name.to_owned())).collect().map_err(wrong)?;
                if !offered.iter().any(|name| name == SCRAM_SHA_256) {
                    return Err(StoreError::connection(
                        "the server offers no way to sign in that is supported",
                    ));
                }
                scram(connection, password(url)?)?;
            }
            Message::AuthenticationCleartextPassword => {
                let password = password_for_weak_method(connection, url)?;
                frontend::password_message(password.as_bytes(), &mut output)
                    .map_err(cannot_send)?;
                connection.send(&output)?;
            }
            Message::AuthenticationMd5Password(body) => {
                let password = password_for_weak_method(connection, url)?;
                let hash = md5_hash(url.user.as_bytes(), password.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), &mut output).map_err(cannot_send)?;
                connection.send(&output)?;
            }
            Message::AuthenticationGss
            | Message::AuthenticationKerberosV5
            | Message::AuthenticationScmCredential
            | Message::AuthenticationSspi => {
                return Err(StoreError::connection(
                    "the server asks for a way to sign in that is not supported: use scram-sha-256",
                ));
            }
            _ => {}
        }
    }
}

/// Signs in with SCRAM, by which the server also proves that it knows the password.
fn scram(connection: &mut Connection, password: &str) -> Result<(), StoreError> {
    let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    let mut output = BytesMut::new();
    let first = scram.message();
    frontend::sasl_initial_response(SCRAM_SHA_256, first, &mut output).map_err(cannot_send)?;
    connection.send(&output)?;
    let challenge = match connection.message()? {
        Message::AuthenticationSaslContinue(body) => body.data().to_vec(),
        Message::ErrorResponse(body) => return Err(refused(&body)),
        _ => return Err(StoreError::connection("the server broke off the sign-in")),
    };
    let rounds = String::from_utf8_lossy(&challenge)
        .split(',')
        .find_map(|part| part.strip_prefix("i=")?.parse::<u32>().ok());
    if rounds.is_none_or(|rounds| rounds > MAX_ROUNDS) {
        return Err(StoreError::connection("the server asks for too much work to sign in"));
    }
    scram.update(&challenge).map_err(wrong)?;
    let mut output = BytesMut::new();
    frontend::sasl_response(scram.message(), &mut output).map_err(cannot_send)?;
    connection.send(&output)?;
    match connection.message()? {
        Message::AuthenticationSaslFinal(body) => scram.finish(body.data()).map_err(wrong),
        Message::ErrorResponse(body) => Err(refused(&body)),
        _ => Err(StoreError::connection("the server broke off the sign-in")),
    }
}

fn password(url: &StoreUrl) -> Result<&str, StoreError> {
    url.password.as_deref().ok_or_else(|| {
        StoreError::settings(
            "the server wants a password: keep the address in a file that only you can read, or use PGPASSFILE or PGPASSWORD",
        )
    })
}

/// The password, if a method that reveals it to listeners can be used.
fn password_for_weak_method<'u>(
    connection: &Connection,
    url: &'u StoreUrl,
) -> Result<&'u str, StoreError> {
    if connection.stream.is_exposed() {
        return Err(StoreError::connection(
            "the server asks for the password in a form that listeners can use: use TLS, or scram-sha-256",
        ));
    }
    password(url)
}

fn wrong(error: std::io::Error) -> StoreError {
    StoreError::connection(format!("the server could not be verified: {error}"))
}
