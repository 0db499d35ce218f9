//! Finds the answer to a request to the API.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcrib::{Dialect, OperatorLogs, Spelling};

use crate::api_error::ApiError;
use crate::live::Live;
use crate::monitors::Monitors;
use crate::operator::Operator;
use crate::query::{Query, decoded};
use crate::rules::RuleEdit;
use crate::sign_in::{Browser, SignIn};
use crate::{calls, changes, questions, refusals, rule_preview, rules, workspaces};

/// Everything that requests use.
pub(crate) struct Api {
    pub(crate) sign_in: SignIn,
    pub(crate) live: Arc<Live>,
    pub(crate) logs: OperatorLogs,
    pub(crate) monitors: Monitors,
    pub(crate) operator: Box<dyn Operator>,
}

/// A request whose head was checked.
pub(crate) struct ApiRequest {
    pub(crate) browser: Browser,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) body: Vec<u8>,
}

impl ApiRequest {
    /// The body as JSON.
    fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        parsed(&self.body)
    }
}

/// The body of `POST /api/session`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ticket {
    ticket: String,
}

/// The body of `POST /api/questions/ID/preview`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PreviewedAnswer {
    answer: String,
}

/// The body of `POST /api/visible`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Visible {
    visible: bool,
}

impl Api {
    /// `POST /api/session`
    pub(crate) fn sign_in(&self, body: &[u8]) -> Result<Value, ApiError> {
        let Ticket { ticket } = parsed(body)?;
        let token = self.sign_in.trade(&ticket).map_err(|error| ApiError::io(error.to_string()))?;
        let token = token.ok_or_else(|| {
            let message = "This address was used before. Run `toolcrib page` again for a new one.";
            ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
        })?;
        Ok(json!({"token": token}))
    }

    /// Answers a request with a token.
    pub(crate) fn answer(&self, request: &ApiRequest) -> Result<Value, ApiError> {
        // Messages name commands, not tools: a person reads them.
        let _names = Spelling::of(Dialect::CommandLine);
        let path = request.path.strip_prefix("/api/").unwrap_or_default();
        let parts: Vec<String> = path.split('/').map(decoded).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        if request.method == Method::GET {
            self.get(&parts, &request.query)
        } else {
            self.post(&parts, request)
        }
    }

    fn get(&self, parts: &[&str], query: &Query) -> Result<Value, ApiError> {
        match parts {
            ["calls"] => calls::list(&self.logs, &self.live, query),
            ["calls", id] => calls::one(&self.logs, &self.live, id),
            ["calls", id, "output"] => self.monitors.output(id, query.number("from")?.unwrap_or(0)),
            ["changes", id] => changes::one(&self.logs, self.operator.as_ref(), id),
            ["rules"] => rules::list(&self.logs, self.operator.as_ref()),
            ["refusals"] => refusals::list(&self.logs, &self.live, query),
            ["workspaces"] => workspaces::list(&self.logs),
            _ => Err(no_such_request()),
        }
    }

    fn post(&self, parts: &[&str], request: &ApiRequest) -> Result<Value, ApiError> {
        let operator = self.operator.as_ref();
        match parts {
            ["visible"] => {
                let Visible { visible } = request.json()?;
                self.monitors.visible(request.browser, visible);
                Ok(json!({}))
            }
            ["questions", id, "preview"] => {
                let PreviewedAnswer { answer } = request.json()?;
                let rules = questions::proposed_rules(&self.live, id, &answer)?;
                rule_preview::preview(&self.logs, operator, &RuleEdit::Add(rules))
            }
            ["questions", id] => questions::answer(&self.live, &self.monitors, id, request.json()?),
            ["calls", id, "stop"] => self.monitors.stop(id),
            ["changes", id, "undo"] => changes::undo(&self.logs, operator, id, request.json()?),
            ["changes", id, "redo"] => changes::redo(&self.logs, operator, id, &request.json()?),
            ["rules"] => rules::edit(&self.logs, operator, &request.json()?),
            ["rules", "preview"] => rule_preview::preview(&self.logs, operator, &request.json()?),
            ["rules", "explain"] => rules::explain(operator, request.json()?),
            _ => Err(no_such_request()),
        }
    }
}

fn no_such_request() -> ApiError {
    ApiError::not_found("There is no such request.")
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::invalid(format!("The body: {error}.")))
}
