//! Who makes a request that was identified, and what they may do.

use std::sync::Arc;

use hyper::http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use toolcrib::Principal;

use crate::scope::{Scope, Scopes};

/// The owner of an access token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who it is.
    pub principal: Arc<Principal>,
    /// What the token allows.
    pub in_token: Scopes,
    /// What the operator allows its owner here.
    pub granted: Scopes,
}

/// Why a caller may not make a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// The operator does not allow it; another token of the same owner would not help.
    Grant(Scope),
    /// The token does not allow it.
    InToken(Scope),
}

impl Caller {
    /// The caller of a request, as found by the HTTP transport. `None` without identities.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Option<Arc<Caller>> {
        context.extensions.get::<Parts>()?.extensions.get::<Arc<Caller>>().cloned()
    }

    /// Fails if a scope is lacking.
    pub(crate) fn check(&self, needed: &[Scope]) -> Result<(), Lacking> {
        let lacks = |has: Scopes| needed.iter().copied().find(|scope| !has.contains(*scope));
        match (lacks(self.granted), lacks(self.in_token)) {
            (Some(scope), _) => Err(Lacking::Grant(scope)),
            (None, Some(scope)) => Err(Lacking::InToken(scope)),
            (None, None) => Ok(()),
        }
    }

    /// Whether it may do something.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.check(&[scope]).is_ok()
    }
}
