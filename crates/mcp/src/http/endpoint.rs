//! A workspace as requests see it: its sessions, and the protocol.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::body::Bytes;
use hyper::{Request, Response};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;

use super::authorization::Authorization;
use super::guard::{Guard, Head, HeadCheck, PATH, check_path};
use super::over_quota::{RefusedCall, refused_call};
use super::refused::Refused;
use super::session_count::Owner;
use super::sessions::Sessions;
use crate::caller::Caller;
use crate::handler::Handler;
use crate::ndjson::MAX_MESSAGE_BYTES;
use crate::scope::Scope;

/// Answers the requests for one workspace.
pub(super) struct Endpoint<H> {
    sessions: Arc<Sessions>,
    service: StreamableHttpService<Arc<H>, Sessions>,
    handler: Arc<H>,
    checks: CallChecks<H>,
}

/// What a handler says about a call before it gets it.
pub(super) struct CallChecks<H> {
    /// The scope that calls of a tool need.
    pub(super) scope_of: fn(&H, &str) -> Scope,
    /// The call in the body of a message, if it is beyond a limit.
    pub(super) over_quota: fn(&H, &[u8]) -> Option<RefusedCall>,
}

impl CallChecks<Handler> {
    pub(super) const OWN: CallChecks<Handler> = CallChecks {
        scope_of: Handler::scope_of,
        over_quota: |handler, body| {
            let runtime = handler.runtime();
            let check = |tool: &str, arguments: &Value| runtime.check_quota(tool, arguments);
            runtime.is_limited().then(|| refused_call(body, check)).flatten()
        },
    };
}

impl<H> CallChecks<H> {
    /// For a handler that is not ours: each of its tools counts as one that runs commands, and there are no limits.
    pub(super) const UNKNOWN: CallChecks<H> =
        CallChecks { scope_of: |_, _| Scope::Exec, over_quota: |_, _| None };
}

impl<H: ServerHandler> Endpoint<H> {
    pub(super) fn new(handler: H, checks: CallChecks<H>, sessions: Sessions) -> Self {
        let (handler, sessions) = (Arc::new(handler), Arc::new(sessions));
        let served = handler.clone();
        let service =
            StreamableHttpService::new(move || Ok(served.clone()), sessions.clone(), config());
        Endpoint { sessions, service, handler, checks }
    }

    /// The scope that calls of a tool need.
    pub(super) fn scope_of(&self, tool: &str) -> Scope {
        (self.checks.scope_of)(&self.handler, tool)
    }

    /// The call in the body of a message, if it is beyond a limit.
    pub(super) fn over_quota(&self, body: &[u8]) -> Option<RefusedCall> {
        (self.checks.over_quota)(&self.handler, body)
    }

    pub(super) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// Answers a request that was checked.
    pub(super) async fn answer(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        self.service.handle(request).await
    }
}

/// The configuration of the protocol's HTTP layer. The guard has already checked `Host` and `Origin`.
fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
}

/// An endpoint, and what a request to it holds.
pub(super) type Opened<E> = (Arc<Endpoint<<E as Endpoints>::Handler>>, <E as Endpoints>::Held);

/// A request whose head was checked.
pub(super) struct Checked<N> {
    /// The endpoint that it is for.
    pub(super) name: N,
    /// Who makes it. `None` on a server with tokens of its own.
    pub(super) caller: Option<Arc<Caller>>,
}

impl<N> Checked<N> {
    /// Whose sessions the request can use.
    pub(super) fn owner(&self) -> Owner {
        self.caller.as_ref().map(|caller| caller.principal.clone())
    }

    /// The caller in words that are different for different callers: a subject is unique only for its issuer. Neither has
    /// control characters.
    pub(super) fn caller_name(&self) -> String {
        let principal = self.caller.as_ref().map(|caller| &caller.principal);
        principal.map_or_else(String::new, |principal| {
            format!("{}\n{}", principal.issuer, principal.subject)
        })
    }
}

/// The endpoints of a server.
pub(super) trait Endpoints: Sized + Send + Sync + 'static {
    type Handler: ServerHandler;
    /// The name of an endpoint in a request.
    type Name: Send + Sync;
    /// What a request holds until it was answered.
    type Held: Send + Sync + Unpin + 'static;

    /// Answers a request for the metadata of an endpoint. `None` if it is for something else.
    fn metadata(&self, head: Head<'_>) -> Option<MetadataAnswer>;

    /// Decides on a request by its head, before the body is read.
    fn check(
        &self,
        head: Head<'_>,
    ) -> impl Future<Output = Result<Checked<Self::Name>, Refused>> + Send;

    /// Refuses a request if its caller lacks a scope.
    fn require(&self, path: &str, caller: &Caller, needed: &[Scope]) -> Result<(), Refused>;

    /// Who makes a request: one owner does not take the connections of another.
    fn connection_owner(checked: &Checked<Self::Name>) -> String;

    /// The endpoint for a request that was checked.
    fn open(
        &self,
        name: Self::Name,
        owner: &Owner,
    ) -> impl Future<Output = Result<Opened<Self>, Refused>> + Send;

    /// Ends idle sessions and workspaces.
    fn end_idle(&self, now: Instant);

    /// Ends all sessions and their calls.
    fn end_all(&self);
}

/// The answer to a request for metadata.
pub(super) type MetadataAnswer = Result<Response<BoxBody<Bytes, Infallible>>, Refused>;

/// How a server with one workspace admits requests.
pub(super) enum Admission {
    Token(Guard),
    Identity(Box<Authorization>, HeadCheck),
}

/// The endpoint of a server with one workspace.
pub(super) struct SoleEndpoint<H> {
    pub(super) admission: Admission,
    pub(super) endpoint: Arc<Endpoint<H>>,
}

impl<H: ServerHandler> Endpoints for SoleEndpoint<H> {
    type Handler = H;
    type Name = ();
    type Held = ();

    fn metadata(&self, head: Head<'_>) -> Option<MetadataAnswer> {
        match &self.admission {
            Admission::Token(_) => None,
            Admission::Identity(authorization, heads) => {
                authorization.metadata(head, heads, Some(PATH))
            }
        }
    }

    async fn check(&self, head: Head<'_>) -> Result<Checked<()>, Refused> {
        let caller = match &self.admission {
            Admission::Token(guard) => {
                guard.check_head(head)?;
                None
            }
            Admission::Identity(authorization, heads) => {
                HeadCheck::check_target(head)?;
                check_path(head)?;
                let caller = authorization.caller(head, PATH, None).await?;
                heads.check_headers(head)?;
                Some(caller)
            }
        };
        Ok(Checked { name: (), caller })
    }

    fn require(&self, path: &str, caller: &Caller, needed: &[Scope]) -> Result<(), Refused> {
        match &self.admission {
            Admission::Token(_) => Ok(()),
            Admission::Identity(authorization, _) => authorization.require(path, caller, needed),
        }
    }

    fn connection_owner(checked: &Checked<()>) -> String {
        checked.caller_name()
    }

    async fn open(&self, (): (), _: &Owner) -> Result<Opened<Self>, Refused> {
        Ok((self.endpoint.clone(), ()))
    }

    fn end_idle(&self, now: Instant) {
        self.endpoint.sessions.end_idle(now);
    }

    fn end_all(&self) {
        self.endpoint.sessions.end_all();
    }
}

#[cfg(test)]
mod tests {
    use toolcrib::Principal;

    use super::*;

    #[test]
    fn callers_of_two_issuers_are_different_owners_of_connections() {
        let of = |issuer: &str, subject: &str| {
            let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
            let scopes = [Scope::Read].into_iter().collect();
            let principal = Arc::new(Principal { issuer, subject });
            let caller = Caller { principal, in_token: scopes, granted: scopes };
            let checked = Checked { name: (), caller: Some(Arc::new(caller)) };
            SoleEndpoint::<Handler>::connection_owner(&checked)
        };
        assert_eq!(of("https://i", "alice"), of("https://i", "alice"));
        assert_ne!(of("https://i", "alice"), of("https://j", "alice"));
        assert_ne!(of("https://i", "alice"), of("https://i", "bob"));
        assert_ne!(of("https://i", "alice"), of("https://ia", "lice"));
        let anybody = Checked { name: (), caller: None };
        assert_eq!(SoleEndpoint::<Handler>::connection_owner(&anybody), "");
    }
}
