//! The objects of one backup: put if missing, get, list. Nothing is ever replaced or removed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use toolcrib_net::{HttpAnswer, HttpConnection, HttpRequest};

use crate::address::BackupAddress;
use crate::credentials::Credentials;
use crate::error::{BackupError, BackupErrorKind};
use crate::signature::{self, Unsigned};
use crate::xml_text;

/// Requests that run at the same time.
pub(crate) const THREADS: usize = 6;

/// The time for a request without its body.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A slower transfer is given up.
const LEAST_BYTES_PER_SECOND: u64 = 100_000;

/// The largest answer that is not an object.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// A listing has 1,000 names at once.
const MAX_LIST_REQUESTS: usize = 10_000;

/// Says which keys to use now: they may be replaced while the program runs.
pub type CredentialSource = Arc<dyn Fn() -> Result<Credentials, String> + Send + Sync>;

/// The objects of one backup.
pub struct Objects {
    address: BackupAddress,
    source: CredentialSource,
    keys: Mutex<Option<Credentials>>,
    /// Connections that are open and not used at the moment.
    idle: Mutex<Vec<HttpConnection>>,
}

/// The result of putting an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Stored,
    /// There was one of this name before.
    Exists,
}

impl Objects {
    /// The objects at an address. Nothing is connected yet.
    pub fn new(address: BackupAddress, source: CredentialSource) -> Objects {
        Objects { address, source, keys: Mutex::default(), idle: Mutex::default() }
    }

    /// The address.
    pub fn address(&self) -> &BackupAddress {
        &self.address
    }

    /// Reads the keys again before the next request.
    pub(crate) fn forget_keys(&self) {
        *self.keys.lock() = None;
    }

    /// Closes the connections that are not used.
    pub(crate) fn close(&self) {
        self.idle.lock().clear();
    }

    /// Stores an object, if there is none of this name.
    pub(crate) fn put_new(&self, name: &str, bytes: &[u8]) -> Result<Put, BackupError> {
        let headers = [("if-none-match", "*")];
        let answer =
            self.request("PUT", &self.address.key(name), &[], &headers, bytes, MAX_ANSWER_BYTES)?;
        match answer.status {
            200 | 201 | 204 => Ok(Put::Stored),
            412 => Ok(Put::Exists),
            501 => Err(BackupError::new(
                BackupErrorKind::Refused,
                "the server does not support conditional requests (If-None-Match)",
            )),
            _ => Err(refusal(&answer)),
        }
    }

    /// The object of this name, up to `max` bytes. `None` if there is none.
    pub(crate) fn get(&self, name: &str, max: usize) -> Result<Option<Vec<u8>>, BackupError> {
        let answer = self.request("GET", &self.address.key(name), &[], &[], b"", max)?;
        match answer.status {
            200 => Ok(Some(answer.body)),
            404 if xml_text::element(&answer.body, "Code")
                .is_none_or(|code| code == "NoSuchKey") =>
            {
                Ok(None)
            }
            _ => Err(refusal(&answer)),
        }
    }

    /// The names of the objects in a folder, in order, without the folder.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<String>, BackupError> {
        let prefix = format!("{}/", self.address.key(folder));
        let pair = |name: &str, value: &str| (name.to_owned(), signature::encode(value));
        let (mut names, mut token) = (Vec::new(), None::<String>);
        for _ in 0..MAX_LIST_REQUESTS {
            let mut query = vec![pair("list-type", "2"), pair("prefix", &prefix)];
            query.extend(token.iter().map(|token| pair("continuation-token", token)));
            let answer = self.request("GET", "", &query, &[], b"", MAX_ANSWER_BYTES)?;
            if answer.status != 200 {
                return Err(refusal(&answer));
            }
            let keys = xml_text::elements(&answer.body, "Key").into_iter();
            names.extend(keys.filter_map(|key| Some(key.strip_prefix(&prefix)?.to_owned())));
            token = xml_text::element(&answer.body, "NextContinuationToken");
            let is_all = xml_text::element(&answer.body, "IsTruncated").as_deref() != Some("true");
            if is_all || token.is_none() {
                return Ok(names);
            }
        }
        Err(BackupError::new(BackupErrorKind::Refused, "the backup has too many objects"))
    }

    fn request(
        &self,
        method: &str,
        key: &str,
        query: &[(String, String)],
        headers: &[(&str, &str)],
        body: &[u8],
        max_bytes: usize,
    ) -> Result<HttpAnswer, BackupError> {
        let keys = self.keys()?;
        let target = &self.address.target;
        let path = self.address.path(key);
        let (host, region, time) = (&target.host_header(), &self.address.region, SystemTime::now());
        let unsigned = Unsigned { method, host, path: &path, query, headers, body, region, time };
        let headers = signature::sign(&unsigned, &keys);
        let question = if query.is_empty() { "" } else { "?" };
        let path = format!("{path}{question}{}", signature::query(query));
        let transferred = u64::try_from(body.len().max(max_bytes)).unwrap_or(u64::MAX);
        let timeout = TIMEOUT + Duration::from_secs(transferred / LEAST_BYTES_PER_SECOND);
        let headers = &headers;
        let request = HttpRequest { method, path: &path, headers, body, max_bytes, timeout };
        let idle = self.idle.lock().pop();
        let mut connection = idle.unwrap_or_else(|| {
            HttpConnection::new(target.clone(), self.address.authorities.clone())
        });
        let answer = connection.request(&request).map_err(BackupError::network)?;
        self.idle.lock().push(connection);
        Ok(answer)
    }

    fn keys(&self) -> Result<Credentials, BackupError> {
        let mut keys = self.keys.lock();
        if let Some(keys) = keys.as_ref() {
            return Ok(keys.clone());
        }
        let new = (self.source)().map_err(BackupError::settings)?;
        Ok(keys.insert(new).clone())
    }
}

fn refusal(answer: &HttpAnswer) -> BackupError {
    let kind = match answer.status {
        // 409: another request for the same object is under way.
        408 | 409 | 425 | 429 | 500.. => BackupErrorKind::Network,
        _ => BackupErrorKind::Refused,
    };
    BackupError::of_server(kind, answer.status, &answer.body)
}
