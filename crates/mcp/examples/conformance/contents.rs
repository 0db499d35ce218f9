//! Tools with constant results, in content kinds that no tool of the product returns.

use serde_json::{Value, json};
use toolcrib::Picture;

/// A PNG of one red pixel.
pub(crate) const PIXEL: &[u8] = &[
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0,
    0, 0, 144, 119, 83, 222, 0, 0, 0, 12, 73, 68, 65, 84, 120, 156, 99, 248, 207, 192, 0, 0, 3, 1,
    1, 0, 201, 254, 146, 239, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
];

/// A WAV without samples: one channel, 8,000 bytes per second.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// The tools.
pub(crate) const TOOLS: &[&str] = &[
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_reconnection",
    SCHEMA_TOOL,
    HEADER_TOOL,
];

/// The two tools that exist for their schemas.
pub(crate) const SCHEMA_TOOL: &str = "json_schema_2020_12_tool";
pub(crate) const HEADER_TOOL: &str = "test_header_parameter";

/// The result of a tool.
pub(crate) fn content(tool: &str) -> Option<Value> {
    Some(match tool {
        "test_audio_content" => {
            json!([{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}])
        }
        "test_embedded_resource" => {
            json!([resource("test://embedded-resource", "text/plain", "Embedded.")])
        }
        "test_multiple_content_types" => json!([
            {"type": "text", "text": "Several kinds of content:"},
            picture(),
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data"}"#),
        ]),
        "test_reconnection" | SCHEMA_TOOL | HEADER_TOOL => {
            json!([{"type": "text", "text": "Fine."}])
        }
        _ => return None,
    })
}

/// The red pixel, as content.
pub(crate) fn picture() -> Value {
    json!({"type": "image", "data": pixel(), "mimeType": "image/png"})
}

/// The red pixel in base64.
pub(crate) fn pixel() -> String {
    Picture { media_type: "image/png", bytes: PIXEL.to_vec() }.base64()
}

/// An embedded resource.
pub(crate) fn resource(uri: &str, media_type: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": text}})
}

/// The arguments of a tool.
pub(crate) fn schema(tool: &str) -> Value {
    match tool {
        SCHEMA_TOOL => with_many_words(),
        HEADER_TOOL => json!({
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
            "required": ["region"],
        }),
        _ => json!({"type": "object"}),
    }
}

/// A schema with keywords that a server could drop.
fn with_many_words() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"town": {"type": "string"}},
            },
        },
        "properties": {
            "home": {"$ref": "#/$defs/address"},
            "way": {"type": "string"},
            "post": {"type": "string"},
            "call": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["post"]}, {"required": ["call"]}]}],
        "if": {"properties": {"way": {"const": "post"}}, "required": ["way"]},
        "then": {"required": ["post"]},
        "else": {"required": ["call"]},
        "additionalProperties": false,
    })
}
