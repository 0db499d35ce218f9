//! Files, health and metadata.

mod file_body;
mod files;
mod response;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use serde_json::json;
use tokio::sync::Semaphore;
use toolcrib_http::{BodyBudget, BodyLimit, NextHead, read_body};

use self::files::Files;
pub(crate) use self::response::{RestResponse, refused};
use crate::error_status::RestError;
use crate::multipart;
use crate::workspace::Workspace;

/// The largest file that is written: that of the raw API, and some bytes for the other parts of a form.
const MAX_FILE_BODY: BodyLimit = BodyLimit {
    bytes: toolcrib::backend::MAX_WRITE_BYTES + (64 << 10),
    time: Duration::from_secs(600),
    sentence: "The file is too large: it has at most 256 MiB. A command can write larger ones.",
};

/// Requests without a file need no body. A small one is ignored.
const NO_BODY: BodyLimit = BodyLimit {
    bytes: 64 << 10,
    time: Duration::from_secs(10),
    sentence: "This request needs no body.",
};

/// The memory of the bodies of all unfinished requests, besides the first part of each.
const MAX_BODIES: usize = 512 << 20;

/// Requests that use files at the same time. Others wait.
pub(crate) const FILE_THREADS: usize = 16;

/// Words in the names of variables that are not shown, whatever their prefix.
const SECRET_WORDS: [&str; 10] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CRED", "KEY", "AUTH", "BEARER", "PRIVATE", "CERT"];

/// The REST interface.
pub(crate) struct Rest {
    workspace: Arc<Workspace>,
    bodies: Arc<BodyBudget>,
    threads: Semaphore,
    /// The variables of `/v1/metadata`.
    variables: BTreeMap<String, String>,
    version: String,
    started: Instant,
    is_ready: AtomicBool,
}

impl Rest {
    pub(crate) fn new(
        workspace: Arc<Workspace>,
        variables: impl IntoIterator<Item = (String, String)>,
        prefix: &str,
        version: String,
    ) -> Rest {
        let shown = variables.into_iter().filter(|(name, _)| is_shown(name, prefix));
        Rest {
            workspace,
            bodies: BodyBudget::new(MAX_BODIES, MAX_BODIES),
            threads: Semaphore::new(FILE_THREADS),
            variables: shown.collect(),
            version,
            started: Instant::now(),
            is_ready: AtomicBool::new(true),
        }
    }

    /// Answers health checks with 503 from now on.
    pub(crate) fn set_not_ready(&self) {
        self.is_ready.store(false, Ordering::Relaxed);
    }

    /// The answer to a health check, which needs no token: the kubelet has none.
    pub(crate) fn health(&self, method: &Method, path: &str) -> Option<RestResponse> {
        let is_get = matches!(*method, Method::GET | Method::HEAD);
        (path == "/v1/health" && is_get).then(|| {
            if !self.is_ready.load(Ordering::Relaxed) {
                let (status, code) = (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE");
                return response::error(RestError::new(
                    status,
                    code,
                    "the server is shutting down",
                ));
            }
            let uptime_seconds = self.started.elapsed().as_secs();
            response::json(&json!({"status": "ok", "uptime_seconds": uptime_seconds}))
        })
    }

    /// Answers a request of a caller who may make it.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        next_head: &NextHead,
    ) -> RestResponse {
        let answered = self.route(request, next_head).await;
        answered.unwrap_or_else(response::error)
    }

    async fn route(
        self: &Arc<Self>,
        request: Request<Incoming>,
        next_head: &NextHead,
    ) -> Result<RestResponse, RestError> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let file = path.strip_prefix("/v1/files").filter(|rest| {
            // `/v1/files` is the root, and `/v1/filesystem` is not a file.
            rest.is_empty() || rest.starts_with('/')
        });
        let is_put = head.method == Method::PUT && file.is_some();
        let limit = if is_put { MAX_FILE_BODY } else { NO_BODY };
        let mut reserved = self.bodies.begin("");
        let body = read_body(body, limit, &mut reserved).await.map_err(response::of_refusal)?;
        next_head.follows();
        let Some(file) = file else {
            return match (path, &head.method) {
                ("/v1/metadata", &Method::GET | &Method::HEAD) => Ok(self.metadata()),
                ("/v1/metadata" | "/v1/health", _) => Err(wrong_method()),
                _ => Err(RestError::new(
                    StatusCode::NOT_FOUND,
                    "NOT_FOUND",
                    "the paths are /v1/files/PATH, /v1/health and /v1/metadata",
                )),
            };
        };
        let files = Files::of(self.workspace.clone(), file)?;
        let query = Query(head.uri.query().unwrap_or_default());
        match head.method {
            Method::GET => self.on_thread(move |cancel| files.get(cancel)).await,
            Method::HEAD => self.on_thread(move |cancel| files.head(cancel)).await,
            Method::DELETE => {
                let recursive = query.recursive()?;
                self.on_thread(move |cancel| files.delete(recursive, cancel)).await
            }
            Method::PUT => {
                let mode = query.mode()?;
                let content_type = head.headers.get(CONTENT_TYPE);
                let content_type = content_type.and_then(|value| value.to_str().ok());
                let content = match content_type.and_then(multipart::boundary) {
                    None => body,
                    Some(boundary) => {
                        let boundary = boundary.map_err(RestError::invalid)?;
                        let part = multipart::file_part(&body, &boundary);
                        body.slice(part.map_err(RestError::invalid)?)
                    }
                };
                self.on_thread(move |cancel| {
                    let written = files.put(content.into(), mode, cancel);
                    drop(reserved);
                    written
                })
                .await
            }
            _ => Err(wrong_method()),
        }
    }

    /// Uses files on another thread. If the client goes away, the operation is cancelled.
    async fn on_thread(
        &self,
        work: impl FnOnce(&toolcrib::Cancel) -> Result<RestResponse, RestError> + Send + 'static,
    ) -> Result<RestResponse, RestError> {
        let _thread = self.threads.acquire().await.map_err(|_| RestError::internal())?;
        let cancel = CancelOnDrop(Arc::new(toolcrib::Cancel::new()));
        let of_work = cancel.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&of_work)).await;
        done.map_err(|_| RestError::internal())?
    }

    fn metadata(&self) -> RestResponse {
        let info = self.workspace.info();
        let sandbox = info.sandbox.map(|(level, name)| json!({"level": level, "name": name}));
        response::json(&json!({
            "env": self.variables,
            "toolcrib": {"version": self.version, "sandbox": sandbox, "outer": info.outer},
        }))
    }
}

struct CancelOnDrop(Arc<toolcrib::Cancel>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn wrong_method() -> RestError {
    let (status, code) = (StatusCode::METHOD_NOT_ALLOWED, "INVALID_ARGUMENT");
    RestError::new(status, code, "this path does not have that method")
}

/// Whether a variable is shown: one of the orchestrator, and not a secret.
fn is_shown(name: &str, prefix: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    name.starts_with(prefix) && !SECRET_WORDS.iter().any(|word| upper.contains(word))
}

/// The parameters of a request. They have no characters that need encoding.
struct Query<'a>(&'a str);

impl Query<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn mode(&self) -> Result<u32, RestError> {
        let Some(text) = self.value("mode").filter(|text| !text.is_empty()) else {
            return Ok(0o644);
        };
        let is_mode = text.len() == 4 && text.starts_with('0');
        let bits = u32::from_str_radix(text, 8).ok().filter(|_| is_mode);
        bits.ok_or_else(|| RestError::invalid("mode is not 0 and three octal digits, like 0644"))
    }

    fn recursive(&self) -> Result<bool, RestError> {
        match self.value("recursive").unwrap_or_default() {
            "" | "false" | "False" | "FALSE" | "f" | "F" | "0" => Ok(false),
            "true" | "True" | "TRUE" | "t" | "T" | "1" => Ok(true),
            _ => Err(RestError::invalid("recursive is neither true nor false")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        for name in ["SANDBOX_ID", "SANDBOX_WORKSPACE"] {
            assert!(is_shown(name, "SANDBOX_"), "{name}");
        }
        for name in ["HOME", "KUBERNETES_SERVICE_HOST", "SANDBOX_API_TOKEN", "SANDBOX_Ssh_Key"] {
            assert!(!is_shown(name, "SANDBOX_"), "{name}");
        }
    }

    #[test]
    fn parameters_are_checked() {
        assert_eq!(Query("").mode(), Ok(0o644));
        assert_eq!(Query("a=b&mode=0755").mode(), Ok(0o755));
        for bad in ["mode=0999", "mode=777", "mode=abcd", "mode=01777", "mode=+755", "mode=0+55"] {
            assert!(Query(bad).mode().is_err(), "{bad}");
        }
        assert_eq!(Query("recursive=true").recursive(), Ok(true));
        assert_eq!(Query("recursive=0").recursive(), Ok(false));
        assert!(Query("recursive=banana").recursive().is_err());
    }
}
