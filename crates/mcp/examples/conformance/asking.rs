//! Tools that ask the client while the call waits, as servers did before 2026-07-28.

use rmcp::model::{ClientCapabilities, SamplingCapability};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::suite_handler::{internal, made_of};

/// The tools.
pub(crate) const TOOLS: &[&str] = &[SAMPLING, DEFAULTS, ENUMS, NEEDS_SAMPLING];

const SAMPLING: &str = "test_sampling";
const DEFAULTS: &str = "test_elicitation_sep1034_defaults";
const ENUMS: &str = "test_elicitation_sep1330_enums";

/// A tool that only names its requirement.
const NEEDS_SAMPLING: &str = "test_missing_capability";

/// Asks, and returns the answer.
pub(crate) async fn run(
    tool: &str,
    arguments: &Value,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let said = match tool {
        SAMPLING => sample(arguments["prompt"].as_str().unwrap_or_default(), context).await?,
        DEFAULTS => elicit("With defaults", defaults(), context).await?,
        ENUMS => elicit("One or several of these", enums(), context).await?,
        _ => needs_sampling(context)?,
    };
    Ok(json!([{"type": "text", "text": said}]))
}

async fn sample(prompt: &str, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    let params = json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
        "maxTokens": 100,
    });
    let result = context.peer.create_message(made_of(params)?).await.map_err(internal)?;
    Ok(format!("LLM response: {}", json!(result.message.content)))
}

async fn elicit(
    message: &str,
    properties: Value,
    context: &RequestContext<RoleServer>,
) -> Result<String, ErrorData> {
    let schema = json!({"type": "object", "properties": properties});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    let result = context.peer.create_elicitation(made_of(params)?).await.map_err(internal)?;
    Ok(format!("Elicitation completed: {}", json!(result)))
}

/// Fields that a client can fill in by itself, one of each kind.
fn defaults() -> Value {
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": true},
    })
}

/// The five ways to define choices.
fn enums() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = [
        json!({"const": "value1", "title": "The first"}),
        json!({"const": "value2", "title": "The second"}),
        json!({"const": "value3", "title": "The third"}),
    ];
    json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    })
}

fn needs_sampling(context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    if context.client_capabilities().is_some_and(|client| client.sampling.is_some()) {
        return Ok("The client can be asked for a sample.".to_owned());
    }
    let mut needed = ClientCapabilities::default();
    needed.sampling = Some(SamplingCapability::default());
    Err(ErrorData::missing_required_client_capability(needed))
}
