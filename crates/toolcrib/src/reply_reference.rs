//! The reference page about replies: error kinds and metadata, from the tables in the code.

use std::fmt::Write as _;

use crate::error::ErrorKind;
use crate::metadata_fields::{COMMON, MetadataField};
use crate::runtime::Runtime;

const INTRODUCTION: &str = "\
`toolcrib call --json`, `toolcrib run` and the library's `to_json` return one JSON object for each call:

| field | type | present | |
| --- | --- | --- | --- |
| `success` | boolean | always | Whether the call succeeded. |
| `output` | string | always | The text for the model: the reply, or the error with its hint. |
| `metadata` | object | always | Facts for programs, below. |
| `content` | array of object | replies with images | The images, as MCP content blocks. |
| `error.kind` | string | `success` is false | The error kind, below. |
| `error.message` | string | `success` is false | What happened. |
| `error.hint` | string | `success` is false | What to do next; may be empty. |

Over MCP the text is the first content block. Some clients show `_meta` of a result to the model, so `metadata` and
`error` are sent only to calls that have `\"toolcrib/metadata\": true` in their `_meta`: as
`_meta[\"toolcrib/metadata\"]` and `_meta[\"toolcrib/error\"]` of the result. New fields may be added; existing ones
keep their meaning.

A dot in a field name stands for a nested object: `refused[].path` is the field `path` of each object in the array
`refused`. \"With its object\" means that the field is present whenever that object is.
";

impl Runtime {
    /// The page, as Markdown without its title.
    pub fn reply_reference(&self) -> String {
        let mut page = INTRODUCTION.to_owned();
        page += "\n## Error kinds\n\n| kind | meaning |\n| --- | --- |\n";
        for kind in ErrorKind::ALL {
            let _ = writeln!(page, "| `{}` | {} |", kind.name(), kind.meaning());
        }
        page += "\n## Metadata of every tool\n";
        page += &table(COMMON);
        for tool in self.tools() {
            let _ = writeln!(page, "\n## Metadata of {}", tool.name);
            page += &table(&tool.metadata.concat());
        }
        page
    }
}

fn table(fields: &[MetadataField]) -> String {
    let mut table = "\n| field | type | present | |\n| --- | --- | --- | --- |\n".to_owned();
    for MetadataField { name, kind, when, meaning } in fields {
        let _ = writeln!(table, "| `{name}` | {kind} | {when} | {meaning} |");
    }
    table
}
