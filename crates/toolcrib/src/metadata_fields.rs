//! Descriptions of the metadata of replies. Each table is next to the code that sets its fields;
//! `docs/replies.md` is generated from them, and `tests/it/reply_fields.rs` compares them with real replies.

/// A metadata field of a reply, for the reference documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataField {
    /// Its name. `files[].path` is the field `path` of each object in the array `files`.
    pub name: &'static str,
    /// Its JSON type: `string`, `integer`, `boolean`, `object`, or `array of` one of these.
    pub kind: &'static str,
    /// When a reply has it.
    pub when: &'static str,
    /// Meaning of the value.
    pub meaning: &'static str,
}

impl MetadataField {
    /// A row of a table.
    pub const fn new(
        name: &'static str,
        kind: &'static str,
        when: &'static str,
        meaning: &'static str,
    ) -> MetadataField {
        MetadataField { name, kind, when, meaning }
    }
}

/// Metadata fields that the runtime adds to the replies of every tool.
pub const COMMON: &[MetadataField] = &[
    MetadataField::new("dry_run", "boolean", "dry run", "`true`: nothing was changed."),
    MetadataField::new(
        "would_ask",
        "object",
        "dry run of a call that needs approval",
        "The question that the call would ask.",
    ),
    MetadataField::new("would_ask.rule", "string", "with its object", "The rule that asks."),
    MetadataField::new("would_ask.why", "string", "with its object", "The reason."),
    MetadataField::new(
        "would_ask.always",
        "string",
        "with its object; null if no rule can allow it",
        "The rule that would always allow it.",
    ),
    MetadataField::new(
        "clipped_chars",
        "integer",
        "the text exceeds `reply_chars`",
        "Number of characters omitted from the text.",
    ),
    MetadataField::new(
        "runs_later",
        "array of string",
        "a written file runs later outside the sandbox; once per file and session",
        "Paths of these files.",
    ),
    MetadataField::new(
        "changed_files",
        "array of string",
        "others changed files since the session read or wrote them; once per change",
        "Paths of these files.",
    ),
    MetadataField::new(
        "new_errors",
        "array of string",
        "a language server found errors that edits of the session introduced (`check = \"errors\"`)",
        "At most 5: path, line, message, server and code.",
    ),
    MetadataField::new(
        "unknown_errors",
        "array of string",
        "a language server has not checked an edit yet (`check = \"errors\"`)",
        "Paths of the edited files. A later reply has their errors.",
    ),
    MetadataField::new("rule", "string", "error `denied`", "The rule that decided."),
    MetadataField::new(
        "protected_by",
        "string",
        "error `protected`, for a protected name",
        "The pattern that protects the path.",
    ),
    MetadataField::new(
        "hidden_by",
        "string",
        "error `protected`, for a hidden path",
        "The hidden directory or file.",
    ),
];
