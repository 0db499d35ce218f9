//! Names of tools and fields in messages, spelled in the dialect of the call.
//!
//! Every message writes such a name through a [`Name`], as in `format!("{LS} lists a directory")`. The dialect is that
//! of the call that runs on this thread: messages are made deep inside, where no caller could pass it on, and a call
//! stays on its thread. Without a call, names are Toolcrib's own.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use crate::dialect::Dialect;

thread_local! {
    static DIALECT: Cell<Dialect> = const { Cell::new(Dialect::Toolcrib) };
}

/// Spells the names of tools and fields in messages in a dialect, on this thread, until it is dropped. A call sets the
/// dialect of its options itself.
#[derive(Debug)]
#[must_use]
pub struct Spelling {
    before: Dialect,
    _this_thread: PhantomData<*const ()>,
}

impl Spelling {
    /// Sets the dialect of this thread.
    pub fn of(dialect: Dialect) -> Spelling {
        Spelling { before: DIALECT.replace(dialect), _this_thread: PhantomData }
    }
}

impl Drop for Spelling {
    fn drop(&mut self) {
        DIALECT.set(self.before);
    }
}

/// The dialect of the call on this thread.
pub(crate) fn current() -> Dialect {
    DIALECT.get()
}

/// A tool, or a field of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name<'a> {
    tool: &'a str,
    field: Option<&'a str>,
    /// The message suggests to use the tool.
    is_suggested: bool,
}

impl<'a> Name<'a> {
    /// A tool that a message is about.
    pub(crate) const fn tool(tool: &'a str) -> Name<'a> {
        Name { tool, field: None, is_suggested: false }
    }

    /// A tool that a message suggests.
    const fn suggested(tool: &'a str) -> Name<'a> {
        Name { tool, field: None, is_suggested: true }
    }

    pub(crate) const fn field(tool: &'a str, field: &'a str) -> Name<'a> {
        Name { tool, field: Some(field), is_suggested: false }
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.field {
            None if self.is_suggested => current().suggested_tool(self.tool),
            None => current().tool_name(self.tool),
            Some(field) => current().field_name(self.tool, field),
        };
        f.pad(&name)
    }
}

/// The tool that runs commands.
pub(crate) const SHELL_TOOL: &str = "Bash";

pub(crate) const READ: Name<'static> = Name::suggested("Read");
pub(crate) const WRITE: Name<'static> = Name::suggested("Write");
pub(crate) const EDIT: Name<'static> = Name::suggested("Edit");
pub(crate) const MULTI_EDIT: Name<'static> = Name::suggested("MultiEdit");
pub(crate) const LS: Name<'static> = Name::suggested("LS");
pub(crate) const GLOB: Name<'static> = Name::suggested("Glob");
pub(crate) const BASH: Name<'static> = Name::suggested("Bash");
pub(crate) const BASH_OUTPUT: Name<'static> = Name::suggested("BashOutput");
pub(crate) const KILL_SHELL: Name<'static> = Name::suggested("KillShell");
pub(crate) const LIST_SHELLS: Name<'static> = Name::suggested("ListShells");
pub(crate) const UNDO: Name<'static> = Name::suggested("Undo");
pub(crate) const HISTORY: Name<'static> = Name::suggested("History");
pub(crate) const FILE_PATH: Name<'static> = Name::field("Read", "file_path");
pub(crate) const SYMBOL: Name<'static> = Name::field("Read", "symbol");
pub(crate) const OUTLINE: Name<'static> = Name::field("Read", "outline");
pub(crate) const EXPECTED_HASH: Name<'static> = Name::field("Write", "expected_hash");
pub(crate) const OLD_STRING: Name<'static> = Name::field("Edit", "old_string");
pub(crate) const NEW_STRING: Name<'static> = Name::field("Edit", "new_string");
pub(crate) const REPLACE_ALL: Name<'static> = Name::field("Edit", "replace_all");
pub(crate) const NEAR_LINE: Name<'static> = Name::field("Edit", "near_line");
pub(crate) const CELL_ID: Name<'static> = Name::field("NotebookEdit", "cell_id");
pub(crate) const CELL_NUMBER: Name<'static> = Name::field("NotebookEdit", "cell_number");
pub(crate) const NEW_SOURCE: Name<'static> = Name::field("NotebookEdit", "new_source");
pub(crate) const EDIT_MODE: Name<'static> = Name::field("NotebookEdit", "edit_mode");
pub(crate) const OUTPUT_MODE: Name<'static> = Name::field("Grep", "output_mode");
pub(crate) const CWD: Name<'static> = Name::field("Bash", "cwd");
pub(crate) const RUN_IN_BACKGROUND: Name<'static> = Name::field("Bash", "run_in_background");
pub(crate) const SEPARATE_STREAMS: Name<'static> = Name::field("Bash", "separate_streams");
pub(crate) const HEAD_LINES: Name<'static> = Name::field("Bash", "head_lines");
pub(crate) const TAIL_LINES: Name<'static> = Name::field("Bash", "tail_lines");
pub(crate) const BASH_ID: Name<'static> = Name::field("BashOutput", "bash_id");
pub(crate) const WAIT_FOR: Name<'static> = Name::field("BashOutput", "wait_for");

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reads the source of this crate")]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::tool_table::Table;
    use crate::tools::TOOLS;

    const ALL: &[Name<'static>] = &[
        READ,
        WRITE,
        EDIT,
        MULTI_EDIT,
        LS,
        GLOB,
        BASH,
        BASH_OUTPUT,
        KILL_SHELL,
        LIST_SHELLS,
        UNDO,
        HISTORY,
        FILE_PATH,
        SYMBOL,
        OUTLINE,
        EXPECTED_HASH,
        OLD_STRING,
        NEW_STRING,
        REPLACE_ALL,
        NEAR_LINE,
        CELL_ID,
        CELL_NUMBER,
        NEW_SOURCE,
        EDIT_MODE,
        OUTPUT_MODE,
        CWD,
        RUN_IN_BACKGROUND,
        SEPARATE_STREAMS,
        HEAD_LINES,
        TAIL_LINES,
        BASH_ID,
        WAIT_FOR,
    ];

    #[test]
    fn every_name_is_one_of_the_table() {
        let table = Table::new(TOOLS);
        for name in ALL {
            let row = table.rows().iter().find(|row| row.entry.name == name.tool).unwrap();
            if let Some(field) = name.field {
                let schema = &row.schema().arguments;
                assert!(schema["properties"].get(field).is_some(), "{}.{field}", name.tool);
            }
        }
    }

    #[test]
    fn a_name_is_spelled_as_the_call_on_this_thread_wants() {
        assert_eq!(format!("{READ} {OLD_STRING}"), "Read old_string");
        {
            let _camel = Spelling::of(Dialect::Camel);
            assert_eq!(format!("{READ} {OLD_STRING} {CWD}"), "read oldString cwd");
            let _codex = Spelling::of(Dialect::Codex);
            assert_eq!(format!("{READ} {OLD_STRING} {CWD}"), "read_file old_string workdir");
        }
        assert_eq!(READ.to_string(), "Read");
        let _person = Spelling::of(Dialect::CommandLine);
        assert_eq!(format!("{HISTORY} {}", Name::tool("Edit")), "`toolcrib log` Edit");
    }

    /// Names that a dialect spells otherwise.
    fn changing_names() -> BTreeSet<String> {
        let changing = |tool: &str, schema: &Value| -> Vec<String> {
            let properties = schema.get("properties").and_then(Value::as_object);
            let changes = |field: &&String| {
                Dialect::ALL.iter().any(|dialect| dialect.field_name(tool, field) != field.as_str())
            };
            // These are also words of plain English.
            let is_word = |field: &&String| ["path", "patch", "timeout"].contains(&field.as_str());
            let fields = properties.into_iter().flat_map(|properties| properties.keys());
            fields.filter(changes).filter(|field| !is_word(field)).cloned().collect()
        };
        let mut names = BTreeSet::new();
        for row in Table::new(TOOLS).rows() {
            let schema = Value::Object(row.schema().arguments.clone());
            names.extend(changing(row.entry.name, &schema));
            for property in
                schema["properties"].as_object().into_iter().flat_map(|all| all.values())
            {
                names.extend(changing(row.entry.name, &property["items"]));
            }
            names.insert(row.entry.name.to_owned());
        }
        names
    }

    /// No sentence in the source spells out a name that some dialect spells otherwise.
    #[test]
    fn messages_write_names_through_this_module() {
        let names = changing_names();
        assert!(names.contains("old_string") && names.contains("cwd") && names.contains("Undo"));
        let mut found = Vec::new();
        let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        // The openings of notes are listed in all dialects.
        for file in sources.iter().filter(|file| !file.ends_with("output_notes.rs")) {
            let text = std::fs::read_to_string(file).unwrap();
            for sentence in sentences(&text) {
                let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
                let words = sentence.split(|c| !is_name(c)).filter(|word| names.contains(*word));
                found.extend(
                    words.map(|word| format!("{}: {word} in {sentence:?}", file.display())),
                );
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    fn sources(directory: &Path) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        let below = directories.iter().flat_map(|directory| sources(directory));
        below.chain(files).filter(|path| path.extension().is_some_and(|ext| ext == "rs")).collect()
    }

    /// The string literals with a space in them, without their placeholders, outside of comments, tests and the
    /// tables of metadata.
    fn sentences(source: &str) -> Vec<String> {
        let source = source.split("#[cfg(test)]").next().unwrap();
        let mut code = String::new();
        let mut in_table = false;
        for line in source.lines() {
            in_table |= line.contains("&[MetadataField] = &[");
            if !in_table && !line.trim_start().starts_with("//") {
                code += line;
                code.push('\n');
            }
            in_table &= line != "];";
        }
        let (mut sentences, mut literal, mut depth) = (Vec::new(), None::<String>, 0);
        let mut letters = code.chars();
        while let Some(letter) = letters.next() {
            match (&mut literal, letter) {
                (None, '\'') => {
                    // A character, or a lifetime.
                    let mut ahead = letters.clone();
                    let first = ahead.next();
                    let second = ahead.next();
                    if first == Some('\\') || second == Some('\'') {
                        letters
                            .by_ref()
                            .take(if first == Some('\\') { 3 } else { 2 })
                            .for_each(drop);
                    }
                }
                (None, '"') => literal = Some(String::new()),
                (None, _) => {}
                (Some(_), '"') => sentences.extend(literal.take()),
                (Some(_), '\\') => drop(letters.next()),
                (Some(_), '{') => depth += 1,
                (Some(_), '}') => depth -= 1,
                (Some(text), letter) if depth <= 0 => text.push(letter),
                (Some(_), _) => {}
            }
            if literal.is_none() {
                depth = 0;
            }
        }
        sentences.retain(|sentence| sentence.contains(' '));
        sentences
    }
}
