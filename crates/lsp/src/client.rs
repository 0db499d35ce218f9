//! The client: a state machine between the bytes of a server and the errors of texts.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client_settings::ClientSettings;
use crate::diagnostic::Errors;
use crate::document::Document;
use crate::file_uri::{file_uri, path_of_uri};
use crate::frame::{FrameDecoder, FrameError};
use crate::incoming::{
    DiagnosticReport, Incoming, InitializeResult, Published, ResponseError, ServerStatus, parsed,
};
use crate::outgoing::{initialize_params, notification, request, response, without_params};
use crate::server_request;

/// The largest text that is sent.
pub const MAX_TEXT_BYTES: usize = 2 << 20;

/// Texts that a server has at a time. The one that was used longest ago is closed.
const MAX_DOCUMENTS: usize = 8;

/// Bytes that a server has not read yet. More than all its texts, escaped.
const MAX_OUTPUT_BYTES: usize = 32 << 20;

/// How often a request is repeated that the server could not answer yet.
const MAX_REPEATED: u32 = 200;

/// Codes with which a server asks to repeat a request: content modified, server cancelled, request cancelled.
const REPEAT_CODES: [i64; 3] = [-32801, -32802, -32800];

/// A change of a file on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// What happened to it.
    pub kind: FileChangeKind,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    /// It is new.
    Created,
    /// Its content changed.
    Changed,
    /// It is gone.
    Removed,
}

/// Why a server can no longer be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientError {
    /// Its output is not a sequence of messages.
    Frame(FrameError),
    /// A message is not valid JSON of the protocol.
    Message,
    /// It refused to start.
    Initialize,
    /// It neither answers requests for diagnostics nor takes texts.
    Unsupported,
    /// It does not read its input.
    NotReading,
    /// The text is larger than [`MAX_TEXT_BYTES`].
    LargeText,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Frame(error) => error.fmt(f),
            ClientError::Message => f.write_str("a message is not valid"),
            ClientError::Initialize => f.write_str("it refused to start"),
            ClientError::Unsupported => f.write_str("it does not take texts"),
            ClientError::NotReading => f.write_str("it does not read its input"),
            ClientError::LargeText => f.write_str("the text is too large"),
        }
    }
}

impl std::error::Error for ClientError {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// `initialize` was sent.
    Starting,
    Ready {
        /// Whether the client asks for diagnostics.
        asks: bool,
    },
}

/// A request that has no answer yet.
#[derive(Debug)]
enum Pending {
    Initialize,
    Diagnostic {
        path: PathBuf,
        version: i64,
        /// The number of times that the state of the server had become unknown.
        epoch: u64,
    },
    Shutdown,
}

impl Pending {
    fn is_for(&self, wanted: &Path) -> bool {
        matches!(self, Pending::Diagnostic { path, .. } if path == wanted)
    }
}

/// A client of one server.
#[derive(Debug)]
pub struct Client {
    settings: ClientSettings,
    phase: Phase,
    decoder: FrameDecoder,
    output: Vec<u8>,
    last_id: i64,
    pending: HashMap<i64, Pending>,
    documents: HashMap<PathBuf, Document>,
    used: u64,
    last_version: i64,
    is_quiescent: bool,
    epoch: u64,
}

impl Client {
    /// Starts the conversation. The output has the first request.
    pub fn new(settings: ClientSettings) -> Client {
        let params = initialize_params(&settings);
        let is_quiescent = !settings.waits_for_quiescence;
        let mut client = Client {
            settings,
            phase: Phase::Starting,
            decoder: FrameDecoder::default(),
            output: Vec::new(),
            last_id: 0,
            pending: HashMap::new(),
            documents: HashMap::new(),
            used: 0,
            last_version: 0,
            is_quiescent,
            epoch: 0,
        };
        client.request("initialize", &params, Pending::Initialize);
        client
    }

    /// Whether the server has answered the first request.
    pub fn is_ready(&self) -> bool {
        self.phase != Phase::Starting
    }

    /// Whether the server has loaded the project, if it says that.
    pub fn is_quiescent(&self) -> bool {
        self.is_quiescent
    }

    /// The bytes for the server since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Takes bytes of the server. After an error the client is unusable.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.decoder.push(bytes);
        while let Some(body) = self.decoder.next_body().map_err(ClientError::Frame)? {
            let message = Incoming::parse(&body).map_err(|_| ClientError::Message)?;
            self.handle(message)?;
            if self.output.len() > MAX_OUTPUT_BYTES {
                return Err(ClientError::NotReading);
            }
        }
        Ok(())
    }

    /// Gives the server a text, and asks for its errors. Returns the version of the text. If the server publishes errors
    /// by itself, and has done so for this text, that version is returned.
    pub fn set_text(
        &mut self,
        path: &Path,
        language: &str,
        text: &str,
    ) -> Result<i64, ClientError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(ClientError::LargeText);
        }
        if self.output.len() > MAX_OUTPUT_BYTES {
            return Err(ClientError::NotReading);
        }
        self.used += 1;
        let used = self.used;
        let is_ready = self.is_ready();
        let publishes = self.phase == (Phase::Ready { asks: false });
        match self.documents.get_mut(path) {
            Some(document) if document.text == text && document.language == language => {
                document.used = used;
                if !is_ready || (publishes && document.answer.is_some()) {
                    return Ok(document.version);
                }
                if publishes {
                    // clangd publishes nothing for a change without a difference. It does for an opened text.
                    self.close(path);
                }
            }
            Some(_) => {}
            None => self.close_oldest(),
        }
        self.last_version += 1;
        let version = self.last_version;
        let is_open = self.documents.get(path).is_some_and(|document| document.is_open);
        let document = Document {
            language: language.to_owned(),
            version,
            text: text.to_owned(),
            is_open,
            is_wanted: true,
            repeated: 0,
            answer: None,
            used,
        };
        self.documents.insert(path.to_owned(), document);
        if self.is_ready() {
            self.tell_change(path);
            self.ask_wanted();
        }
        Ok(version)
    }

    /// The errors of this version of a text. `None` if they are not known yet, or if the server has another version.
    pub fn answer(&self, path: &Path, version: i64) -> Option<&Errors> {
        let document = self.documents.get(path)?;
        let (answered, errors) = document.answer.as_ref()?;
        (*answered == version && document.version == version).then_some(errors)
    }

    /// Closes a text: the server uses the file on disk from now on.
    pub fn close(&mut self, path: &Path) {
        if let Some(document) = self.documents.remove(path)
            && document.is_open
        {
            let params = json!({"textDocument": {"uri": file_uri(path)}});
            self.output.extend(notification("textDocument/didClose", &params));
        }
    }

    /// Whether the server has a text for this path.
    pub fn has_text(&self, path: &Path) -> bool {
        self.documents.contains_key(path)
    }

    /// Tells the server of files that changed on disk.
    pub fn files_changed(&mut self, changes: &[FileChange]) {
        if changes.is_empty() || !self.is_ready() {
            return;
        }
        let change = |change: &FileChange| {
            let kind = match change.kind {
                FileChangeKind::Created => 1,
                FileChangeKind::Changed => 2,
                FileChangeKind::Removed => 3,
            };
            json!({"uri": file_uri(&change.path), "type": kind})
        };
        let changes: Vec<Value> = changes.iter().map(change).collect();
        let params = json!({"changes": changes});
        self.output.extend(notification("workspace/didChangeWatchedFiles", &params));
        self.forget_answers();
    }

    /// Sends requests again that the server could not answer. Called from time to time while an answer is awaited.
    pub fn tick(&mut self) {
        if self.is_ready() {
            self.ask_wanted();
        }
    }

    /// Asks the server to end.
    pub fn shut_down(&mut self) {
        if self.is_ready() {
            let id = self.next_id(Pending::Shutdown);
            self.output.extend(without_params(Some(id), "shutdown"));
            self.output.extend(without_params(None, "exit"));
        }
    }

    fn handle(&mut self, message: Incoming<'_>) -> Result<(), ClientError> {
        match message {
            Incoming::Response { id, outcome } => match self.pending.remove(&id) {
                Some(Pending::Initialize) => self.initialized(outcome),
                Some(Pending::Diagnostic { path, version, epoch }) => {
                    self.answered((&path, version, epoch), outcome);
                    Ok(())
                }
                Some(Pending::Shutdown) | None => Ok(()),
            },
            Incoming::Request { id, method, params } => {
                self.output.extend(response(id, &server_request::answer(&method, params)));
                if method == "workspace/diagnostic/refresh" {
                    self.forget_answers();
                    self.ask_wanted();
                }
                Ok(())
            }
            Incoming::Notification { method, params } => {
                self.notified(&method, params);
                Ok(())
            }
            Incoming::Other => Ok(()),
        }
    }

    fn initialized(
        &mut self,
        outcome: Result<Option<&RawValue>, ResponseError>,
    ) -> Result<(), ClientError> {
        let result = outcome.map_err(|_| ClientError::Initialize)?;
        let result: InitializeResult = parsed(result).ok_or(ClientError::Initialize)?;
        if !result.capabilities.takes_texts() {
            return Err(ClientError::Unsupported);
        }
        self.phase = Phase::Ready { asks: result.capabilities.answers_requests() };
        self.output.extend(notification("initialized", &json!({})));
        let mut paths: Vec<PathBuf> = self.documents.keys().cloned().collect();
        paths.sort();
        for path in paths {
            self.tell_change(&path);
        }
        self.ask_wanted();
        Ok(())
    }

    /// Handles the answer to a request for the errors of a version.
    fn answered(
        &mut self,
        (path, version, epoch): (&Path, i64, u64),
        outcome: Result<Option<&RawValue>, ResponseError>,
    ) {
        let is_current = epoch == self.epoch && self.is_quiescent;
        let Some(document) = self.documents.get_mut(path) else { return };
        if document.version != version {
            return;
        }
        let is_repeatable = match &outcome {
            Ok(_) => !is_current,
            Err(error) => REPEAT_CODES.contains(&error.code),
        };
        if is_repeatable {
            document.repeated += 1;
            document.is_wanted = document.repeated <= MAX_REPEATED;
            return;
        }
        let report: Option<DiagnosticReport> = outcome.ok().and_then(parsed);
        // Without an earlier result the server cannot answer that it is unchanged.
        let errors = report.filter(|report| report.kind == "full").and_then(|report| report.items);
        if let Some(errors) = errors {
            document.answer = Some((version, errors));
        }
    }

    fn notified(&mut self, method: &str, params: Option<&RawValue>) {
        match method {
            "textDocument/publishDiagnostics" => {
                // A server that answers requests may publish as well, and then less.
                if self.phase != (Phase::Ready { asks: false }) || !self.is_quiescent {
                    return;
                }
                let Some(published) = parsed::<Published>(params) else { return };
                let Some(path) = path_of_uri(&published.uri) else { return };
                let Some(document) = self.documents.get_mut(&path) else { return };
                if document.is_open && published.version == Some(document.version) {
                    document.answer = Some((document.version, published.diagnostics));
                }
            }
            "experimental/serverStatus" if self.settings.waits_for_quiescence => {
                let Some(status) = parsed::<ServerStatus>(params) else { return };
                if !status.quiescent {
                    self.forget_answers();
                }
                self.is_quiescent = status.quiescent;
                if self.is_ready() {
                    self.ask_wanted();
                }
            }
            _ => {}
        }
    }

    /// The state of the project has changed: earlier answers, also those under way, do not count.
    fn forget_answers(&mut self) {
        self.epoch += 1;
        for document in self.documents.values_mut() {
            document.answer = None;
            document.is_wanted = document.repeated <= MAX_REPEATED;
            document.repeated += 1;
        }
    }

    /// Sends the text of a document.
    fn tell_change(&mut self, path: &Path) {
        let Some(document) = self.documents.get_mut(path) else { return };
        let uri = file_uri(path);
        let told = if document.is_open {
            let params = json!({
                "textDocument": {"uri": uri, "version": document.version},
                "contentChanges": [{"text": document.text}],
            });
            notification("textDocument/didChange", &params)
        } else {
            document.is_open = true;
            let params = json!({
                "textDocument": {
                    "uri": uri,
                    "languageId": document.language,
                    "version": document.version,
                    "text": document.text,
                },
            });
            notification("textDocument/didOpen", &params)
        };
        self.output.extend(told);
    }

    /// Sends the requests for errors that are wanted and can be answered.
    fn ask_wanted(&mut self) {
        if !self.is_quiescent || self.phase != (Phase::Ready { asks: true }) {
            return;
        }
        let wanted = self.documents.iter_mut().filter(|(_, document)| document.is_wanted);
        let mut paths: Vec<(PathBuf, i64)> = wanted
            .map(|(path, document)| {
                document.is_wanted = false;
                (path.clone(), document.version)
            })
            .collect();
        paths.sort();
        for (path, version) in paths {
            // No earlier request for this text is of use.
            self.pending.retain(|_, pending| !pending.is_for(&path));
            let params = json!({"textDocument": {"uri": file_uri(&path)}});
            let pending = Pending::Diagnostic { path, version, epoch: self.epoch };
            self.request("textDocument/diagnostic", &params, pending);
        }
    }

    fn close_oldest(&mut self) {
        if self.documents.len() < MAX_DOCUMENTS {
            return;
        }
        let oldest = self.documents.iter().min_by_key(|(_, document)| document.used);
        if let Some(path) = oldest.map(|(path, _)| path.clone()) {
            self.close(&path);
        }
    }

    fn request(&mut self, method: &str, params: &Value, pending: Pending) {
        let id = self.next_id(pending);
        self.output.extend(request(id, method, params));
    }

    fn next_id(&mut self, pending: Pending) -> i64 {
        self.last_id += 1;
        self.pending.insert(self.last_id, pending);
        self.last_id
    }
}
