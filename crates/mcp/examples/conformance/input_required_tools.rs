//! Tools and a prompt that ask by `InputRequired` results, as servers do since 2026-07-28. Approvals are not here:
//! our own handler asks for them.

use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequiredResult, InputResponses, RequestStateCodec};
use serde_json::{Value, json};

use crate::suite_handler::{internal, made_of};

/// The tools.
pub(crate) const TOOLS: &[&str] = &[
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
];

/// The prompt.
pub(crate) const PROMPT: &str = "test_input_required_result_prompt";

/// The round of a question, sealed: a client returns it.
pub(crate) struct Rounds {
    codec: RequestStateCodec,
}

/// The state of a call.
pub(crate) enum Step {
    Ask(InputRequiredResult),
    /// Every question was answered. These are the answers of the last round.
    Done(Value),
}

impl Rounds {
    pub(crate) fn new() -> Result<Rounds, Box<dyn std::error::Error>> {
        let key = toolcrib::random_bytes::<32>()?;
        Ok(Rounds { codec: RequestStateCodec::try_new(key)? })
    }

    /// Takes a call of a tool or a prompt one step further.
    pub(crate) fn step(
        &self,
        name: &str,
        client: &ClientCapabilities,
        responses: Option<&InputResponses>,
        state: Option<&str>,
    ) -> Result<Step, ErrorData> {
        let mut round = match state {
            Some(state) => self.codec.open_json(state).map_err(|_| forged())?,
            None => 0_usize,
        };
        let rounds = questions(name, client);
        let answers = rounds.get(round).and_then(|asked| answers(asked, responses?));
        if let Some(answers) = answers {
            round += 1;
            if round == rounds.len() {
                return Ok(Step::Done(answers));
            }
        }
        let requests = rounds.get(round).ok_or_else(forged)?.clone();
        // A single round needs no state.
        let keeps = rounds.len() > 1 || requests.as_object().is_some_and(|all| all.len() > 2);
        let sealed = keeps.then(|| self.codec.seal_json(&round)).transpose().map_err(internal)?;
        Ok(Step::Ask(InputRequiredResult::new(Some(made_of(requests)?), sealed)))
    }
}

fn forged() -> ErrorData {
    ErrorData::invalid_params("requestState is not what this server gave", None)
}

/// The answers, if every question of a round has one of its kind. Other answers are ignored.
fn answers(asked: &Value, responses: &InputResponses) -> Option<Value> {
    let answered = asked.as_object()?.iter().map(|(key, question)| {
        let response = responses.get(key)?;
        let needed = match question["method"].as_str()? {
            "elicitation/create" => "action",
            "roots/list" => "roots",
            _ => "content",
        };
        response.get(needed).map(|_| (key.clone(), response.clone()))
    });
    answered.collect::<Option<serde_json::Map<_, _>>>().map(Value::Object)
}

/// The questions of each round.
fn questions(name: &str, client: &ClientCapabilities) -> Vec<Value> {
    match name {
        "test_input_required_result_sampling" => {
            vec![json!({"capital_question": sample("What is the capital of France?")})]
        }
        "test_input_required_result_list_roots" => vec![json!({"client_roots": roots()})],
        "test_input_required_result_multiple_inputs" => vec![json!({
            "user_name": form("What is your name?", "name"),
            "greeting": sample("A greeting, please."),
            "client_roots": roots(),
        })],
        "test_input_required_result_multi_round" => vec![
            json!({"step1": form("What is your name?", "name")}),
            json!({"step2": form("And your favourite colour?", "color")}),
        ],
        "test_input_required_result_capabilities" => vec![what_it_can(client)],
        PROMPT => vec![json!({"user_context": form("In which context?", "context")})],
        _ => vec![json!({"user_name": form("What is your name?", "name")})],
    }
}

/// Only questions that the client supports.
fn what_it_can(client: &ClientCapabilities) -> Value {
    let mut questions = json!({});
    if client.elicitation.is_some() {
        questions["user_name"] = form("What is your name?", "name");
    }
    if client.sampling.is_some() {
        questions["greeting"] = sample("A greeting, please.");
    }
    questions
}

fn form(message: &str, field: &str) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {field: {"type": "string"}},
        "required": [field],
    });
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

fn sample(prompt: &str) -> Value {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": prompt}}]);
    let params = json!({"messages": messages, "maxTokens": 100});
    json!({"method": "sampling/createMessage", "params": params})
}

fn roots() -> Value {
    json!({"method": "roots/list"})
}
