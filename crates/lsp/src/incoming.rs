//! Messages of a server, parsed as far as the client needs them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::diagnostic::Errors;

/// The longest id of a request of a server.
const MAX_ID_BYTES: usize = 200;

/// A message of a server.
#[derive(Debug)]
pub(crate) enum Incoming<'m> {
    /// The answer to one of our requests.
    Response {
        id: i64,
        outcome: Result<Option<&'m RawValue>, ResponseError>,
    },
    /// A request. The id is a number or a string, as JSON.
    Request {
        id: &'m RawValue,
        method: Cow<'m, str>,
        params: Option<&'m RawValue>,
    },
    Notification {
        method: Cow<'m, str>,
        params: Option<&'m RawValue>,
    },
    /// A message that the client does not use, such as a response with an id that is not ours.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct ResponseError {
    pub(crate) code: i64,
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow)]
    id: Option<&'m RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'m, str>>,
    #[serde(borrow)]
    params: Option<&'m RawValue>,
    #[serde(borrow)]
    result: Option<&'m RawValue>,
    error: Option<ResponseError>,
}

impl<'m> Incoming<'m> {
    /// Fails if the body is not a message.
    pub(crate) fn parse(body: &'m [u8]) -> Result<Incoming<'m>, serde_json::Error> {
        let Message { id, method, params, result, error } = serde_json::from_slice(body)?;
        let id = id.filter(|id| id.get() != "null");
        Ok(match (id, method) {
            (Some(id), Some(_)) if id.get().len() > MAX_ID_BYTES => Incoming::Other,
            (Some(id), Some(method)) => Incoming::Request { id, method, params },
            (None, Some(method)) => Incoming::Notification { method, params },
            (Some(id), None) => match id.get().parse() {
                Ok(id) => Incoming::Response { id, outcome: error.map_or(Ok(result), Err) },
                Err(_) => Incoming::Other,
            },
            (None, None) => Incoming::Other,
        })
    }
}

/// The result of `initialize`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct InitializeResult {
    pub(crate) capabilities: Capabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Capabilities {
    text_document_sync: Option<Sync>,
    diagnostic_provider: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Sync {
    Kind(u8),
    Options { change: Option<u8> },
}

impl Capabilities {
    /// Whether the server takes the texts of the client, and not only the files.
    pub(crate) fn takes_texts(&self) -> bool {
        let kind = match self.text_document_sync {
            None => 0,
            Some(Sync::Kind(kind)) => kind,
            Some(Sync::Options { change }) => change.unwrap_or(0),
        };
        kind > 0
    }

    /// Whether the client asks for diagnostics. Otherwise the server publishes them.
    pub(crate) fn answers_requests(&self) -> bool {
        self.diagnostic_provider.is_some()
    }
}

/// The result of `textDocument/diagnostic`.
#[derive(Debug, Deserialize)]
pub(crate) struct DiagnosticReport {
    pub(crate) kind: String,
    pub(crate) items: Option<Errors>,
}

/// The parameters of `textDocument/publishDiagnostics`.
#[derive(Debug, Deserialize)]
pub(crate) struct Published {
    pub(crate) uri: String,
    pub(crate) version: Option<i64>,
    pub(crate) diagnostics: Errors,
}

/// The parameters of `experimental/serverStatus`.
#[derive(Debug, Deserialize)]
pub(crate) struct ServerStatus {
    pub(crate) quiescent: bool,
}

/// Parsed parameters. `None` if they are missing or have another form.
pub(crate) fn parsed<'m, T: Deserialize<'m>>(params: Option<&'m RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}
