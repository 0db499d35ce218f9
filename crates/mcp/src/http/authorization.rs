//! An OAuth resource server: identifies callers by their access tokens, and tells clients how to get one.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde_json::json;
use toolcrib_http::{Refusal, bearer, is_repeated};

use super::guard::{Head, HeadCheck};
use super::public_url::PublicUrl;
use super::refused::Refused;
use super::workspace_id::WorkspaceId;
use crate::caller::{Caller, Lacking};
use crate::scope::Scope;

/// The path of the metadata, before that of the resource.
const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Finds the owner of an access token.
pub trait Identify: Send + Sync + 'static {
    /// The owner of a token for a resource, which is a URL, and what they may do in a workspace.
    fn identify<'a>(
        &'a self,
        token: &'a [u8],
        resource: &'a str,
        workspace: Option<&'a WorkspaceId>,
    ) -> Identifying<'a>;

    /// The issuers of tokens.
    fn issuers(&self) -> Vec<String>;

    /// The scopes that a client without a token should request.
    fn initial_scopes(&self) -> Vec<Scope>;

    /// What scopes have before their names.
    fn scope_prefix(&self) -> String;
}

/// The answer of [`Identify::identify`].
pub type Identifying<'a> = Pin<Box<dyn Future<Output = Result<Caller, Unidentified>> + Send + 'a>>;

/// Why a caller was not identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unidentified {
    /// The token is not valid, in words for the client: printable ASCII without quotes.
    Invalid(&'static str),
    /// That cannot be decided now.
    Unavailable,
}

/// Identifies the callers of a server.
pub(super) struct Authorization {
    identify: Box<dyn Identify>,
    public: PublicUrl,
    issuers: Vec<String>,
    initial: String,
    prefix: String,
}

/// The error in a challenge.
enum Fault<'a> {
    /// There was no token.
    NoToken,
    InvalidRequest,
    InvalidToken(&'a str),
    Insufficient(&'a [Scope]),
}

impl Authorization {
    pub(super) fn new(identify: Box<dyn Identify>, public: PublicUrl) -> Self {
        let (issuers, prefix) = (identify.issuers(), identify.scope_prefix());
        let initial = words(&prefix, &identify.initial_scopes());
        Authorization { identify, public, issuers, initial, prefix }
    }

    /// The caller of a request for the resource at this path.
    pub(super) async fn caller(
        &self,
        head: Head<'_>,
        path: &str,
        workspace: Option<&WorkspaceId>,
    ) -> Result<Arc<Caller>, Refused> {
        let in_query = |part: &str| part.split('=').next() == Some("access_token");
        let has_token_in_query =
            head.uri.query().is_some_and(|query| query.split('&').any(in_query));
        if has_token_in_query || is_repeated(head.headers, &AUTHORIZATION) {
            return Err(self.refuse(path, &Fault::InvalidRequest));
        }
        let Some(token) = bearer(head.headers) else {
            return Err(self.refuse(path, &Fault::NoToken));
        };
        let resource = format!("{}{path}", self.public);
        let caller = match self.identify.identify(token, &resource, workspace).await {
            Ok(caller) => caller,
            Err(Unidentified::Invalid(problem)) => {
                return Err(self.refuse(path, &Fault::InvalidToken(problem)));
            }
            Err(Unidentified::Unavailable) => return Err(UNAVAILABLE.into()),
        };
        if caller.granted.is_empty() {
            return Err(NOT_GRANTED.into());
        }
        if caller.in_token.is_empty() {
            let initial = self.identify.initial_scopes();
            return Err(self.refuse(path, &Fault::Insufficient(&initial)));
        }
        Ok(Arc::new(caller))
    }

    /// Refuses a request for which the caller lacks a scope.
    pub(super) fn require(
        &self,
        path: &str,
        caller: &Caller,
        needed: &[Scope],
    ) -> Result<(), Refused> {
        caller.check(needed).map_err(|lacking| match lacking {
            Lacking::Grant(_) => NOT_GRANTED.into(),
            // All that the request needs at once, so that the client asks for a new token once.
            Lacking::InToken(_) => self.refuse(path, &Fault::Insufficient(needed)),
        })
    }

    /// The metadata of the resource that a request for them names. `None` if the request is for something else.
    pub(super) fn metadata(
        &self,
        head: Head<'_>,
        heads: &HeadCheck,
        sole: Option<&'static str>,
    ) -> Option<Result<Response<BoxBody<Bytes, Infallible>>, Refused>> {
        let rest = head.uri.path().strip_prefix(METADATA)?;
        let path = match sole {
            Some(sole) if rest.is_empty() || rest == sole => sole,
            None if WorkspaceId::of_path(rest).is_some() => rest,
            _ => return Some(Err(NO_SUCH_RESOURCE.into())),
        };
        let checked = HeadCheck::check_target(head).and_then(|()| heads.check_headers(head));
        if let Err(refusal) = checked {
            return Some(Err(refusal.into()));
        }
        if head.method != Method::GET {
            return Some(Err(ONLY_GET.into()));
        }
        let supported = [Scope::Read, Scope::Write, Scope::Exec, Scope::Approve];
        let supported: Vec<String> =
            supported.iter().map(|scope| format!("{}{scope}", self.prefix)).collect();
        let document = json!({
            "resource": format!("{}{path}", self.public),
            "resource_name": "Toolcrib",
            "authorization_servers": self.issuers,
            "scopes_supported": supported,
            "bearer_methods_supported": ["header"],
        });
        let mut response = Response::new(Full::from(document.to_string()).boxed());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // As for each request without a token.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        Some(Ok(response))
    }

    fn refuse(&self, path: &str, fault: &Fault<'_>) -> Refused {
        let mut parts = Vec::new();
        let (status, sentence, scope) = match fault {
            Fault::NoToken => (StatusCode::UNAUTHORIZED, NO_TOKEN, self.initial.clone()),
            Fault::InvalidRequest => {
                parts.push("error=\"invalid_request\"".to_owned());
                (StatusCode::BAD_REQUEST, ONE_TOKEN, self.initial.clone())
            }
            Fault::InvalidToken(problem) => {
                parts.push("error=\"invalid_token\"".to_owned());
                parts.push(format!("error_description=\"{problem}\""));
                (StatusCode::UNAUTHORIZED, INVALID_TOKEN, self.initial.clone())
            }
            Fault::Insufficient(needed) => {
                parts.push("error=\"insufficient_scope\"".to_owned());
                (StatusCode::FORBIDDEN, INSUFFICIENT, words(&self.prefix, needed))
            }
        };
        parts.push(format!("scope=\"{scope}\""));
        parts.push(format!("resource_metadata=\"{}{METADATA}{path}\"", self.public));
        let challenge = HeaderValue::try_from(format!("Bearer {}", parts.join(", "))).ok();
        Refused { refusal: Refusal { status, sentence }, challenge }
    }
}

fn words(prefix: &str, scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| format!("{prefix}{scope}")).collect::<Vec<_>>().join(" ")
}

const NO_TOKEN: &str =
    "An access token is needed. WWW-Authenticate says where to find who issues it.";
const ONE_TOKEN: &str = "Send one access token, in one Authorization header, and none in the URL.";
const INVALID_TOKEN: &str = "The access token is not valid. WWW-Authenticate says why.";
const INSUFFICIENT: &str =
    "The access token lacks a scope. WWW-Authenticate says what the request needs.";

const UNAVAILABLE: Refusal = Refusal {
    status: StatusCode::SERVICE_UNAVAILABLE,
    sentence: "The keys of the issuer are not available. Try again later.",
};

const NOT_GRANTED: Refusal = Refusal {
    status: StatusCode::FORBIDDEN,
    sentence: "The operator of this server does not grant you this.",
};

const NO_SUCH_RESOURCE: Refusal =
    Refusal { status: StatusCode::NOT_FOUND, sentence: "There is no such resource." };

const ONLY_GET: Refusal =
    Refusal { status: StatusCode::METHOD_NOT_ALLOWED, sentence: "Use GET for the metadata." };

#[cfg(test)]
mod tests {
    use hyper::Request;
    use hyper::header::WWW_AUTHENTICATE;
    use toolcrib::Principal;

    use super::*;
    use crate::scope::Scopes;

    /// Tokens are lists of scopes.
    struct ByName;

    impl Identify for ByName {
        fn identify<'a>(
            &'a self,
            token: &'a [u8],
            resource: &'a str,
            _: Option<&'a WorkspaceId>,
        ) -> Identifying<'a> {
            Box::pin(async move {
                assert_eq!(resource, "https://tools.example/mcp");
                match token {
                    b"expired" => return Err(Unidentified::Invalid("the token has expired")),
                    b"down" => return Err(Unidentified::Unavailable),
                    _ => {}
                }
                let names = std::str::from_utf8(token).unwrap().split('+');
                let in_token: Scopes = names.filter_map(Scope::named).collect();
                let granted = if token == b"nobody+read" { [].as_slice() } else { &[Scope::Exec] };
                let granted = granted.iter().copied().collect();
                let principal = Arc::new(Principal { issuer: "i".into(), subject: "s".into() });
                Ok(Caller { principal, in_token, granted })
            })
        }

        fn issuers(&self) -> Vec<String> {
            vec!["https://issuer.example".to_owned()]
        }

        fn initial_scopes(&self) -> Vec<Scope> {
            vec![Scope::Read, Scope::Exec]
        }

        fn scope_prefix(&self) -> String {
            "t:".to_owned()
        }
    }

    fn authorization() -> Authorization {
        let public = PublicUrl::parse("https://tools.example").unwrap();
        Authorization::new(Box::new(ByName), public)
    }

    fn caller(target: &str, headers: &[(&str, &str)]) -> Result<Arc<Caller>, (u16, String)> {
        let mut request = Request::builder().method("POST").uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let authorization = authorization();
        let found = runtime.block_on(authorization.caller(Head::of(&request), "/mcp", None));
        found.map_err(shown)
    }

    fn shown(refused: Refused) -> (u16, String) {
        let response = refused.response();
        let challenge = response.headers().get(WWW_AUTHENTICATE);
        let challenge = challenge.map_or("", |value| value.to_str().unwrap());
        (response.status().as_u16(), challenge.to_owned())
    }

    const METADATA_URL: &str =
        "resource_metadata=\"https://tools.example/.well-known/oauth-protected-resource/mcp\"";

    #[test]
    fn a_challenge_says_how_to_get_a_token() {
        let expect =
            |error: &str, scope: &str| format!("Bearer {error}scope=\"{scope}\", {METADATA_URL}");
        let initial = "t:read t:exec";
        let invalid = "error=\"invalid_token\", error_description=\"the token has expired\", ";
        let token = |token: &'static str| ("authorization", token);
        for (target, headers, status, challenge) in [
            ("/mcp", vec![], 401, expect("", initial)),
            ("/mcp", vec![token("Basic x")], 401, expect("", initial)),
            ("/mcp", vec![token("Bearer expired")], 401, expect(invalid, initial)),
            (
                "/mcp",
                vec![token("Bearer read"), token("Bearer read")],
                400,
                expect("error=\"invalid_request\", ", initial),
            ),
            ("/mcp?access_token=read", vec![], 400, expect("error=\"invalid_request\", ", initial)),
            (
                "/mcp?a=b&access_token=read",
                vec![token("Bearer read")],
                400,
                expect("error=\"invalid_request\", ", initial),
            ),
            (
                "/mcp",
                vec![token("Bearer other")],
                403,
                expect("error=\"insufficient_scope\", ", initial),
            ),
            ("/mcp", vec![token("Bearer nobody+read")], 403, String::new()),
            ("/mcp", vec![token("Bearer down")], 503, String::new()),
        ] {
            assert_eq!(caller(target, &headers).unwrap_err(), (status, challenge), "{target}");
        }
        assert!(caller("/mcp?x=access_token", &[token("Bearer read")]).is_ok());
    }

    #[test]
    fn a_lacking_scope_is_named_unless_it_is_not_granted() {
        let authorization = authorization();
        let reader = caller("/mcp", &[("authorization", "Bearer read+approve")]).unwrap();
        let require =
            |needed: &[Scope]| authorization.require("/mcp", &reader, needed).map_err(shown);
        assert_eq!(require(&[]), Ok(()));
        assert_eq!(require(&[Scope::Read]), Ok(()));
        let challenge =
            format!("Bearer error=\"insufficient_scope\", scope=\"t:exec\", {METADATA_URL}");
        assert_eq!(require(&[Scope::Exec]), Err((403, challenge)));
        assert_eq!(require(&[Scope::Read, Scope::Approve]), Err((403, String::new())));
    }

    #[test]
    fn metadata_describe_the_resource() {
        let heads = HeadCheck::new(&["tools.example".to_owned()], Some(8765)).unwrap();
        let ask = |method: &str, path: &str, host: &str, sole| {
            let request = Request::builder().method(method).uri(path).header("host", host);
            let request = request.body(()).unwrap();
            authorization().metadata(Head::of(&request), &heads, sole)
        };
        let status = |method: &str, path: &str, host: &str, sole| {
            ask(method, path, host, sole).map(|answer| match answer {
                Ok(response) => response.status().as_u16(),
                Err(refused) => refused.refusal.status.as_u16(),
            })
        };
        let (root, own) = (METADATA.to_owned(), format!("{METADATA}/mcp"));
        for (method, path, host, sole, expected) in [
            ("GET", root.as_str(), "tools.example", Some("/mcp"), Some(200)),
            ("GET", &own, "tools.example", Some("/mcp"), Some(200)),
            ("GET", &own, "tools.example", None, Some(404)),
            ("GET", &root, "tools.example", None, Some(404)),
            ("GET", &format!("{METADATA}/w/a/mcp"), "tools.example", None, Some(200)),
            ("GET", &format!("{METADATA}/w/../mcp"), "tools.example", None, Some(404)),
            ("DELETE", &own, "tools.example", Some("/mcp"), Some(405)),
            ("GET", &own, "evil.example", Some("/mcp"), Some(403)),
            ("GET", "/mcp", "tools.example", Some("/mcp"), None),
        ] {
            assert_eq!(status(method, path, host, sole), expected, "{method} {path} {host}");
        }
        let answer = ask("GET", &own, "tools.example", Some("/mcp")).unwrap().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(document["resource"], "https://tools.example/mcp");
        assert_eq!(document["authorization_servers"], json!(["https://issuer.example"]));
        assert_eq!(
            document["scopes_supported"],
            json!(["t:read", "t:write", "t:exec", "t:approve"])
        );
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    }
}
