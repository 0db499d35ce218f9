//! The table of built-in tools: one file each, one line each.

mod apply_patch;
mod bash;
mod bash_output;
mod changed_files;
mod command_messages;
mod edit;
mod glob;
mod grep;
mod history;
mod invisible_notes;
mod kill_shell;
mod list_shells;
mod ls;
mod multi_edit;
mod notebook_edit;
mod read;
mod replacement;
mod search_messages;
mod shell_output;
mod shown_diff;
mod timeout;
mod undo;
mod write;

use crate::tool::Entry;

/// Every tool, in the order in which a model reads them.
pub(crate) const TOOLS: &[Entry] = &[
    Entry::of::<read::Read>(),
    Entry::of::<write::Write>(),
    Entry::of::<edit::Edit>(),
    Entry::of::<multi_edit::MultiEdit>(),
    Entry::of::<apply_patch::ApplyPatch>(),
    Entry::of::<notebook_edit::NotebookEdit>(),
    Entry::of::<ls::Ls>(),
    Entry::of::<glob::Glob>(),
    Entry::of::<grep::Grep>(),
    Entry::of::<bash::Bash>(),
    Entry::of::<bash_output::BashOutput>(),
    Entry::of::<kill_shell::KillShell>(),
    Entry::of::<list_shells::ListShells>(),
    Entry::of::<undo::Undo>(),
    Entry::of::<history::History>(),
];

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::tool_table::Table;

    /// What registering asks of a library user's tool holds for ours too.
    #[test]
    fn every_tool_could_be_registered() {
        let table = Table::new(TOOLS);
        for row in table.rows() {
            assert_eq!(table.fault(row), None, "{}", row.entry.name);
        }
    }

    /// Names that models know from elsewhere, or that the description of the tool explains: each more word
    /// is paid for in every conversation.
    const SAY_IT_THEMSELVES: &[&str] = &[
        "-A",
        "-B",
        "-C",
        "-i",
        "bash_id",
        "cell_id",
        "cell_number",
        "cell_type",
        "command",
        "content",
        "cwd",
        "description",
        "diff",
        "edits",
        "expected_hash",
        "file_path",
        "files",
        "head_lines",
        "hidden",
        "id",
        "ignored",
        "line_endings",
        "literal",
        "multiline",
        "near_line",
        "new_source",
        "new_string",
        "notebook_path",
        "offset",
        "old_string",
        "patch",
        "path",
        "pattern",
        "recursive",
        "replace_all",
        "running",
        "stdin",
        "tail_lines",
    ];

    #[test]
    fn every_field_of_every_tool_is_described_and_has_one_type() {
        fn check(place: &str, schema: &Value) {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            for (name, property) in properties {
                let place = format!("{place}.{name}");
                assert!(property["type"].is_string(), "{place} has no single type");
                let is_described = property["description"].is_string()
                    || SAY_IT_THEMSELVES.contains(&name.as_str());
                assert!(is_described, "{place} has no doc comment");
                check(&place, property);
                if let Some(items) = property.get("items") {
                    check(&place, items);
                }
            }
        }
        for row in Table::new(TOOLS).rows() {
            let schema = Value::Object(row.schema().arguments.clone());
            assert_eq!(
                schema["additionalProperties"], false,
                "{} takes unknown fields",
                row.entry.name
            );
            check(row.entry.name, &schema);
        }
    }

    #[test]
    fn every_alias_means_a_field_and_hides_none() {
        fn fields(schema: &Value) -> Vec<String> {
            let properties = schema.get("properties").and_then(Value::as_object);
            let own = properties.into_iter().flatten().flat_map(|(name, property)| {
                let inner = property.get("items").map(fields).unwrap_or_default();
                std::iter::once(name.clone()).chain(inner)
            });
            own.collect()
        }
        for row in Table::new(TOOLS).rows() {
            let fields = fields(&Value::Object(row.schema().arguments.clone()));
            let has = |name: &str| fields.iter().any(|field| field == name);
            for (alias, field) in row.entry.aliases {
                assert!(has(field), "{}: no field {field}", row.entry.name);
                assert!(!has(alias), "{}: {alias} is a field", row.entry.name);
            }
        }
    }

    #[test]
    fn hints_do_not_contradict_each_other() {
        for row in Table::new(TOOLS).rows() {
            let hints = row.entry.hints;
            assert!(!(hints.read_only && hints.destructive), "{}", row.entry.name);
        }
    }
}
