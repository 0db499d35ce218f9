//! A connection to PostgreSQL, over its own protocol. Blocking, with a time limit for everything.
//!
//! The server is not trusted with our memory or time: messages and results are bounded, and so is the work of signing in.

mod sign_in;

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::{DataRowBody, ErrorResponseBody, Message};
use postgres_protocol::message::frontend;
use toolcrib_net::ServerStream;

use crate::error::StoreError;
use crate::url::StoreUrl;

/// The time limit for connecting and signing in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The time limit for a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest message: a row with the largest record, and room.
const MAX_MESSAGE_BYTES: usize = 256 << 10;

/// The largest result of a statement.
const MAX_RESULT_BYTES: usize = 64 << 20;

const READ_BYTES: usize = 32 << 10;

/// A row of a result, as texts.
pub(crate) type Row = Vec<Option<String>>;

/// A connection. After an error that ends it, it must not be used.
pub(crate) struct Connection {
    stream: ServerStream,
    input: BytesMut,
    until: Instant,
    /// The time limit for a statement.
    patience: Duration,
}

impl Connection {
    /// Connects and signs in.
    pub(crate) fn open(url: &StoreUrl) -> Result<Connection, StoreError> {
        Connection::open_within(url, STATEMENT_TIMEOUT)
    }

    /// Connects and signs in, with a time limit for each statement.
    pub(crate) fn open_within(
        url: &StoreUrl,
        patience: Duration,
    ) -> Result<Connection, StoreError> {
        let until = Instant::now() + CONNECT_TIMEOUT.min(patience);
        let opened = sign_in::connect(url, until).and_then(|stream| {
            let input = BytesMut::new();
            let mut connection = Connection { stream, input, until, patience };
            sign_in::sign_in(&mut connection, url)?;
            // The server ends a statement that we do not wait for any more. Names are written with their schema.
            let milliseconds = patience.as_millis();
            let settings = format!(
                "SET statement_timeout = {milliseconds}; SET lock_timeout = {milliseconds}; SET search_path = pg_catalog"
            );
            connection.batch(&settings)?;
            Ok(connection)
        });
        opened.map_err(|error: StoreError| error.about(&format!("no connection to {url}")))
    }

    /// Runs a statement with parameters, and returns its rows.
    pub(crate) fn query(
        &mut self,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Row>, StoreError> {
        let parameters: Vec<Option<&str>> = parameters.iter().map(|value| Some(*value)).collect();
        self.query_with(statement, &parameters)
    }

    /// Runs a statement with parameters of which some have no value.
    pub(crate) fn query_with(
        &mut self,
        statement: &str,
        parameters: &[Option<&str>],
    ) -> Result<Vec<Row>, StoreError> {
        self.until = Instant::now() + self.patience;
        let mut output = BytesMut::new();
        let value = |value: &Option<&str>, buffer: &mut BytesMut| {
            let Some(value) = value else { return Ok(IsNull::Yes) };
            buffer.extend_from_slice(value.as_bytes());
            Ok(IsNull::No)
        };
        frontend::parse("", statement, [], &mut output).map_err(cannot_send)?;
        frontend::bind("", "", [], parameters, value, [], &mut output)
            .map_err(|_| cannot_send("too many or too long parameters"))?;
        frontend::execute("", 0, &mut output).map_err(cannot_send)?;
        frontend::sync(&mut output);
        self.send(&output)?;
        self.rows()
    }

    /// Runs statements without parameters, in one transaction if they begin none.
    pub(crate) fn batch(&mut self, statements: &str) -> Result<(), StoreError> {
        self.until = Instant::now() + self.patience;
        let mut output = BytesMut::new();
        frontend::query(statements, &mut output).map_err(cannot_send)?;
        self.send(&output)?;
        self.rows().map(drop)
    }

    /// The rows up to the end of a statement.
    fn rows(&mut self) -> Result<Vec<Row>, StoreError> {
        let (mut rows, mut bytes, mut refusal) = (Vec::new(), 0_usize, None);
        loop {
            match self.message()? {
                Message::DataRow(body) => {
                    bytes = bytes.saturating_add(body.buffer().len());
                    if bytes > MAX_RESULT_BYTES {
                        return Err(StoreError::connection("the server sent too large a result"));
                    }
                    rows.push(row(&body)?);
                }
                Message::ErrorResponse(body) => refusal = Some(refused(&body)),
                Message::ReadyForQuery(_) => return refusal.map_or(Ok(rows), Err),
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => {
                    return Err(StoreError::connection("the server sent an unexpected message"));
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.stream.set_deadline(self.until).map_err(lost)?;
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).map_err(lost)
    }

    /// Waits for a notification of a channel that the connection listens to. Returns whether there was one in time.
    pub(crate) fn wait_for_notification(&mut self, most: Duration) -> Result<bool, StoreError> {
        self.until = Instant::now() + most;
        loop {
            match self.message_in_time()? {
                None => return Ok(false),
                Some(Message::NotificationResponse(_)) => return Ok(true),
                Some(Message::ErrorResponse(body)) => return Err(refused(&body)),
                Some(_) => {}
            }
        }
    }

    /// The next message.
    fn message(&mut self) -> Result<Message, StoreError> {
        self.message_in_time()?.ok_or_else(late)
    }

    /// The next message. `None` if none came in time; a part of it that has come is kept.
    fn message_in_time(&mut self) -> Result<Option<Message>, StoreError> {
        loop {
            let announced = self.input.get(1..5).and_then(|length| length.try_into().ok());
            let announced = announced.map_or(0, u32::from_be_bytes) as usize;
            if announced > MAX_MESSAGE_BYTES {
                return Err(StoreError::connection("the server sent too large a message"));
            }
            let parsed = Message::parse(&mut self.input);
            let parsed = parsed.map_err(|_| {
                StoreError::connection("the server sent a message that is not of PostgreSQL")
            })?;
            if parsed.is_some() {
                return Ok(parsed);
            }
            let mut bytes = [0; READ_BYTES];
            let read = self.stream.set_deadline(self.until);
            match read.and_then(|()| self.stream.read(&mut bytes)) {
                Ok(0) => {
                    return Err(StoreError::connection("the server has closed the connection"));
                }
                Ok(length) => self.input.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) => return Ok(None),
                Err(error) => return Err(lost(error)),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut output = BytesMut::new();
        frontend::terminate(&mut output);
        self.until = Instant::now() + Duration::from_millis(100);
        // The server notices the end of the connection anyway.
        let _ = self.send(&output);
    }
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

fn lost(error: std::io::Error) -> StoreError {
    if is_late(&error) {
        return late();
    }
    StoreError::connection(format!("the connection was lost: {error}"))
}

fn late() -> StoreError {
    StoreError::connection("the server did not answer in time")
}

fn cannot_send(why: impl std::fmt::Display) -> StoreError {
    StoreError::local(format!("the statement cannot be sent: {why}"))
}

/// The texts of a row.
fn row(body: &DataRowBody) -> Result<Row, StoreError> {
    let wrong = || StoreError::connection("the server sent a damaged row");
    let text = |range: Option<std::ops::Range<usize>>| {
        let Some(range) = range else { return Ok(None) };
        let bytes = body.buffer().get(range).ok_or_else(wrong)?;
        std::str::from_utf8(bytes).map(|text| Some(text.to_owned())).map_err(|_| wrong())
    };
    let (mut ranges, mut row) = (body.ranges(), Vec::new());
    while let Some(range) = ranges.next().map_err(|_| wrong())? {
        row.push(text(range)?);
    }
    Ok(row)
}

fn refused(body: &ErrorResponseBody) -> StoreError {
    let (mut code, mut text) = (Vec::new(), Vec::new());
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        match field.type_() {
            b'C' => code = field.value_bytes().to_vec(),
            b'M' => text = field.value_bytes().to_vec(),
            _ => {}
        }
    }
    StoreError::refused(&code, &text)
}

/// A column of a row that must have a value.
pub(crate) fn column(row: &Row, at: usize) -> Result<&str, StoreError> {
    let value = row.get(at).and_then(Option::as_deref);
    value.ok_or_else(|| StoreError::connection("the server sent a row without a value"))
}

/// A column that must be a number.
pub(crate) fn number<N: std::str::FromStr>(row: &Row, at: usize) -> Result<N, StoreError> {
    let wrong = |_| StoreError::connection("the server sent something else in place of a number");
    column(row, at)?.parse().map_err(wrong)
}

#[cfg(test)]
mod tests;
