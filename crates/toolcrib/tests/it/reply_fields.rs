//! The tables of metadata fields and error kinds, compared with real replies.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};
use toolcrib::{COMMON_METADATA, ErrorKind, MetadataField, Runtime};
use toolcrib_testkit::{InProcessTransport, Setup, Transport, play_cases};

/// Fields that neither a Markdown case nor the session below shows: they depend on timing, on large or binary files, on
/// the machine, or on damage. Tests in Rust have them.
const NOT_SHOWN: &[(&str, &str)] = &[
    ("", "clipped_chars"),
    ("", "new_errors"),
    ("", "unknown_errors"),
    ("Read", "total_lines_at_least"),
    ("Read", "total_pages"),
    ("Read", "first_page"),
    ("Read", "pages_read"),
    ("Read", "media_type"),
    ("Read", "width"),
    ("Read", "height"),
    ("Read", "shown_width"),
    ("Read", "shown_height"),
    ("LS", "at_least"),
    ("Glob", "at_least"),
    ("Bash", "dropped_bytes"),
    ("Bash", "refused[].address"),
    ("BashOutput", "escaped_lines"),
    ("BashOutput", "ports"),
    ("BashOutput", "refused[].address"),
    ("Bash", "limit"),
    ("BashOutput", "limit"),
    ("Bash", "hosts"),
    ("Bash", "hosts[].host"),
    ("Bash", "hosts[].request"),
    ("Bash", "hosts[].decision"),
    ("Bash", "hosts[].rule"),
    ("Bash", "hosts[].why"),
    ("BashOutput", "hosts"),
    ("BashOutput", "hosts[].host"),
    ("BashOutput", "hosts[].request"),
    ("BashOutput", "hosts[].decision"),
    ("BashOutput", "hosts[].rule"),
    ("BashOutput", "hosts[].why"),
    ("History", "damaged"),
    ("History", "damaged[].first"),
    ("History", "damaged[].last"),
];

/// Kinds that are not shown, for the same reasons.
const KINDS_NOT_SHOWN: &[&str] =
    &["already_exists", "not_empty", "too_large", "permission", "timeout", "cancelled", "internal"];

#[derive(Default)]
struct Seen {
    /// The types of each field of each tool.
    fields: BTreeMap<(String, String), BTreeSet<String>>,
    kinds: BTreeSet<String>,
}

/// A transport that notes the metadata of every reply.
struct Watched<'a> {
    transport: InProcessTransport,
    tools: &'a Runtime,
    seen: &'a RefCell<Seen>,
}

impl Transport for Watched<'_> {
    fn call(&mut self, tool: &str, args: &Value, dry_run: bool) -> Map<String, Value> {
        let reply = self.transport.call(tool, args, dry_run);
        let mut seen = self.seen.borrow_mut();
        if let Some(kind) = reply.get("error").and_then(|error| error["kind"].as_str()) {
            seen.kinds.insert(kind.to_owned());
        }
        if let Some(tool) = self.tools.tool_named(tool) {
            let mut fields = Vec::new();
            collect("", &reply["metadata"], &mut fields);
            for (name, kind) in fields {
                seen.fields.entry((tool.name.to_owned(), name)).or_default().insert(kind);
            }
        }
        reply
    }
}

/// Every field of a value with its type: `files[].path` for the objects of an array.
fn collect(prefix: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    let Value::Object(object) = value else { return };
    for (key, value) in object {
        let name = format!("{prefix}{key}");
        fields.push((name.clone(), kind(value)));
        collect(&format!("{name}."), value, fields);
        for item in value.as_array().into_iter().flatten() {
            collect(&format!("{name}[]."), item, fields);
        }
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(_) => "integer".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Object(_) => "object".to_owned(),
        Value::Array(items) => match items.first() {
            None => "array".to_owned(),
            Some(item) => format!("array of {}", kind(item)),
        },
    }
}

/// Whether a value of this type may be in a field: an empty array does not show the type of its items.
fn fits(field: &MetadataField, kind: &str) -> bool {
    kind == field.kind
        || (kind == "array" && field.kind.starts_with("array"))
        || (kind == "null" && field.when.contains("null"))
}

/// Calls about background commands, whose ids and times differ from run to run, and about hard links.
fn play_session(mut call: impl FnMut(&str, Value) -> Map<String, Value>) {
    let started =
        call("Bash", json!({"command": "echo x > made.txt; sleep 600", "run_in_background": true}));
    let id = started["metadata"]["bash_id"].clone();
    call("BashOutput", json!({"bash_id": id, "timeout": 0}));
    call("ListShells", json!({}));
    call("KillShell", json!({"shell_id": id}));
    call("BashOutput", json!({"bash_id": id, "wait_for": "exit"}));
    call("Bash", json!({"command": "sleep 600", "timeout": 1000}));
    let left = call("Bash", json!({"command": "sleep 600 & seq 100000"}));
    call("BashOutput", json!({"bash_id": left["metadata"]["bash_id"]}));
    call("Read", json!({"file_path": "one.txt"}));
    call("Write", json!({"file_path": "one.txt", "content": "new\n"}));
    let twice = json!([{"old_string": "new", "new_string": "a longer text than before"},
        {"old_string": "absent", "new_string": "a longer text than before"}]);
    call("MultiEdit", json!({"file_path": "one.txt", "edits": twice}));
}

#[test]
fn the_tables_of_fields_and_kinds_agree_with_real_replies() {
    let tools = Runtime::builder().root(env!("CARGO_MANIFEST_DIR")).build().unwrap();
    let seen = RefCell::default();
    let open = |workspace: &Path, setup: &Setup| Watched {
        transport: InProcessTransport::open(workspace, setup),
        tools: &tools,
        seen: &seen,
    };
    play_cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"), open);
    for write_through in [false, true] {
        let top = crate::command_directory();
        let workspace = top.path().join("ws");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(workspace.join("one.txt"), "old\n").unwrap();
        std::fs::hard_link(workspace.join("one.txt"), workspace.join("two.txt")).unwrap();
        let setup = Setup { state: top.path().join("state"), write_through, ..Setup::default() };
        let mut transport = open(&workspace, &setup);
        transport.call("Read", &json!({"file_path": "one.txt"}), false);
        std::fs::write(workspace.join("one.txt"), "changed by another program\n").unwrap();
        transport.call("ListShells", &json!({}), false);
        play_session(|tool, args| transport.call(tool, &args, false));
    }
    let seen = seen.into_inner();
    let mut faults = unknown_fields(&tools, &seen);
    faults.extend(unshown_fields(&tools, &seen));
    for kind in ErrorKind::ALL {
        let occurs = seen.kinds.contains(kind.name());
        if occurs == KINDS_NOT_SHOWN.contains(&kind.name()) {
            faults.push(format!("error kind \"{}\", shown: {occurs}", kind.name()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Fields of replies that are in no table, or of another type there.
fn unknown_fields(tools: &Runtime, seen: &Seen) -> Vec<String> {
    let mut faults = Vec::new();
    for ((tool, name), kinds) in &seen.fields {
        let own = tools.tool_named(tool).unwrap().metadata.concat();
        match own.iter().chain(COMMON_METADATA).find(|field| field.name == name) {
            None => faults.push(format!("{tool}: {name} is in no table")),
            Some(field) => {
                faults.extend(kinds.iter().filter(|kind| !fits(field, kind)).map(|kind| {
                    format!("{tool}: {name} is said to be {}, and is {kind}", field.kind)
                }));
            }
        }
    }
    faults
}

/// Fields of the tables that no reply shows. A table that several tools share counts once.
fn unshown_fields(tools: &Runtime, seen: &Seen) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |tool: &str, field: &MetadataField, of: &dyn Fn(&str) -> bool| {
        let name = field.name;
        let shown = seen.fields.keys().any(|(tool, field)| field == name && of(tool));
        if shown == NOT_SHOWN.contains(&(tool, name)) {
            faults.push(format!("(\"{tool}\", \"{name}\"), shown: {shown}"));
        }
    };
    COMMON_METADATA.iter().for_each(|field| check("", field, &|_| true));
    for tool in tools.tools() {
        for table in tool.metadata {
            let has_it = |name: &str| {
                let metadata = tools.tool_named(name).unwrap().metadata;
                metadata.iter().any(|other| std::ptr::eq(*other, *table))
            };
            table.iter().for_each(|field| check(tool.name, field, &has_it));
        }
    }
    faults
}
