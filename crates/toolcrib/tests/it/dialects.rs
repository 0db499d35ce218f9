//! Replies and descriptions in each dialect, without the names of another.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolcrib::{Dialect, Format, Runtime};
use toolcrib_testkit::{InProcessTransport, Setup, Transport, play_cases};

/// Words of plain English that are also fields.
const PLAIN: &[&str] = &["path", "patch", "timeout"];

/// Toolcrib's own names of tools and fields that a dialect spells otherwise.
fn foreign_names(tools: &Runtime, dialect: Dialect) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for tool in tools.tools() {
        if dialect.tool_name(tool.name) != tool.name {
            names.insert(tool.name.to_owned());
        }
        let mut schemas = vec![tool.arguments.clone()];
        while let Some(schema) = schemas.pop() {
            for (name, property) in
                schema.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                if dialect.field_name(tool.name, name) != *name && !PLAIN.contains(&name.as_str()) {
                    names.insert(name.clone());
                }
                schemas.extend(property.get("items").and_then(Value::as_object).cloned());
            }
        }
    }
    names
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
}

/// A transport that looks for foreign names in replies. Words that the case itself brings, in files and arguments, are its
/// content.
struct Watched<'a> {
    transport: InProcessTransport,
    workspace: PathBuf,
    foreign: &'a BTreeSet<String>,
    content: BTreeSet<String>,
    found: &'a RefCell<Vec<String>>,
}

impl Transport for Watched<'_> {
    fn call(&mut self, tool: &str, args: &Value, dry_run: bool) -> Map<String, Value> {
        self.note_strings(args);
        self.note_files(&self.workspace.clone());
        let reply = self.transport.call(tool, args, dry_run);
        self.note_files(&self.workspace.clone());
        let text = reply["output"].as_str().unwrap_or_default();
        let is_foreign =
            |word: &&str| self.foreign.contains(*word) && !self.content.contains(*word);
        if let Some(word) = words(text).find(is_foreign) {
            self.found.borrow_mut().push(format!("{word} in the reply to {tool} {args}:\n{text}"));
        }
        reply
    }
}

impl Watched<'_> {
    fn note(&mut self, text: &str) {
        self.content.extend(words(text).map(str::to_owned));
    }

    fn note_strings(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.note(text),
            Value::Array(items) => items.iter().for_each(|item| self.note_strings(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.note_strings(field)),
            _ => {}
        }
    }

    fn note_files(&mut self, directory: &Path) {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            self.note(&entry.file_name().to_string_lossy());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.note_files(&entry.path()),
                Ok(kind) if kind.is_file() => {
                    let content = std::fs::read(entry.path()).unwrap_or_default();
                    self.note(&String::from_utf8_lossy(&content));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn no_reply_has_names_of_another_dialect() {
    let tools = Runtime::builder().root(env!("CARGO_MANIFEST_DIR")).build().unwrap();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    for dialect in [Dialect::Camel, Dialect::Codex] {
        let foreign = foreign_names(&tools, dialect);
        let found = RefCell::default();
        play_cases(&cases, |workspace: &Path, setup: &Setup| Watched {
            transport: InProcessTransport::open(workspace, setup).in_dialect(dialect),
            workspace: workspace.to_owned(),
            foreign: &foreign,
            content: BTreeSet::new(),
            found: &found,
        });
        let found = found.into_inner();
        assert!(found.is_empty(), "{dialect}: {}", found.join("\n\n"));
    }
}

#[test]
fn no_list_has_names_of_another_dialect() {
    let tools = Runtime::builder().root(env!("CARGO_MANIFEST_DIR")).build().unwrap();
    for dialect in [Dialect::Camel, Dialect::Codex] {
        let foreign = foreign_names(&tools, dialect);
        for format in [Format::Mcp, Format::OpenAi, Format::Anthropic, Format::Gemini] {
            let list = tools.catalogue(format, dialect);
            let found: Vec<&str> = words(&list).filter(|word| foreign.contains(*word)).collect();
            assert!(found.is_empty(), "{dialect} {format:?}: {found:?}");
        }
    }
}

/// The first line is line 1 of Read, and line 0 of callers that count from 0.
#[test]
fn a_dialect_that_counts_from_zero_reads_from_the_first_line() {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("a.txt"), "one\ntwo\n").unwrap();
    let tools = Runtime::builder().root(workspace.path()).build().unwrap();
    let options = toolcrib::Options { dialect: Dialect::Camel, ..Default::default() };
    let call = toolcrib::Call::new("read", json!({"filePath": "a.txt", "offset": 0, "limit": 1}));
    let reply = tools.call(&tools.session(), call, options).unwrap();
    assert!(reply.text().starts_with("     1\tone\n"), "{}", reply.text());
    let call = toolcrib::Call::new("read", json!({"filePath": 5}));
    let error = tools.call(&tools.session(), call, options).unwrap_err();
    let text = error.text();
    assert!(text.contains("`filePath`") && text.contains("read takes {\"filePath\""), "{text}");
}
