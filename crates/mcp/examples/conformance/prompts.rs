//! Prompts, and completions of their arguments.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::contents::{picture, resource};
use crate::input_required_tools::PROMPT;

/// The list. Each change of it adds a prompt, or removes it again.
pub(crate) fn list(is_changed: bool) -> Value {
    let argument = |name: &str| json!({"name": name, "description": "A word.", "required": true});
    let prompt = |name: &str, arguments: Vec<Value>| json!({"name": name, "description": "For the conformance suite.", "arguments": arguments});
    let mut prompts = vec![
        prompt("test_simple_prompt", vec![]),
        prompt("test_prompt_with_arguments", vec![argument("arg1"), argument("arg2")]),
        prompt("test_prompt_with_embedded_resource", vec![argument("resourceUri")]),
        prompt("test_prompt_with_image", vec![]),
        prompt(PROMPT, vec![]),
    ];
    if is_changed {
        prompts.push(prompt("test_new_prompt", vec![]));
    }
    json!({"prompts": prompts})
}

/// The content of a prompt. `None` if it does not exist.
pub(crate) fn messages(name: &str, arguments: &BTreeMap<String, String>) -> Option<Value> {
    let given = |name: &str| arguments.get(name).map_or("", String::as_str);
    let contents = match name {
        "test_simple_prompt" | "test_new_prompt" => vec![text("A simple prompt.")],
        "test_prompt_with_arguments" => {
            vec![text(&format!("arg1='{}', arg2='{}'", given("arg1"), given("arg2")))]
        }
        "test_prompt_with_embedded_resource" => vec![
            resource(given("resourceUri"), "text/plain", "What is embedded."),
            text("Please look at the resource above."),
        ],
        "test_prompt_with_image" => vec![picture(), text("Please look at the picture above.")],
        _ => return None,
    };
    Some(of_user(contents))
}

/// Messages of the user, with these contents.
pub(crate) fn of_user(contents: Vec<Value>) -> Value {
    let messages = contents.into_iter().map(|content| json!({"role": "user", "content": content}));
    json!({"messages": messages.collect::<Vec<Value>>()})
}

/// A piece of text.
pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Completions of an argument.
pub(crate) fn completions(begun: &str) -> Value {
    let words = ["paris", "park", "party", "test"].into_iter();
    let fit: Vec<&str> = words.filter(|word| word.starts_with(begun)).collect();
    json!({"completion": {"total": fit.len(), "values": fit, "hasMore": false}})
}
