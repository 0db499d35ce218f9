//! `Undo {since}` restores the exact tree after any calls of tools and commands, and undoing that restores the
//! tree after them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::{Call, Options, Runtime, Session};

const NAMES: [&str; 8] = ["a", "b", "d", "d/x", "d/e", "d/e/y", "f/g", "l"];

/// An action of a model. Many actions fail, as in practice.
#[derive(Debug, Clone)]
enum Action {
    Command(String),
    Tool(&'static str, Value),
    UndoNewest,
}

fn any_action() -> impl Strategy<Value = Action> {
    let name = || prop::sample::select(NAMES.to_vec());
    let command = (0..13usize, name(), name(), 0..100u32).prop_map(|(kind, one, two, number)| {
        let command = match kind {
            0 => format!("echo {number} > {one}"),
            1 => format!("echo {number} >> {one}; echo {number} >> {two}"),
            2 => format!("rm -rf {one}"),
            3 => format!("mkdir -p {one}"),
            4 => format!("mv {one} {two}"),
            5 => format!("ln -sfn {two} {one}"),
            6 => {
                format!("[ -L {one} ] || [ ! -f {one} ] || chmod {} {one}", 600 + number % 2 * 155)
            }
            7 => format!("cp -r {one} {two}"),
            8 => format!("rm -rf {one}; mkdir -p {one}; echo {number} > {one}/new"),
            9 => format!("rm -rf {one}; ln -s {two} {one}; echo {number} > {two}"),
            10 => format!("rm -rf {one}; echo {number} > {one}; rm -rf {two}"),
            11 => format!("mv {one} t; mv {two} {one}; mv t {two}"),
            _ => format!("mkdir -p {one}/p/q; mkdir -p {two}; rmdir {two}"),
        };
        Action::Command(format!("( {command} ) 2> /dev/null; true"))
    });
    let write = (name(), 0..100u32).prop_map(|(name, number)| {
        Action::Tool("Write", json!({"file_path": name, "content": format!("{number}\nlast\n")}))
    });
    let undo = (name(), 0..4u64).prop_map(|(name, kind)| match kind {
        0 => Action::Tool("Undo", json!({})),
        1 => Action::Tool("Undo", json!({"path": name})),
        2 => Action::Tool("Undo", json!({"steps": 2})),
        _ => Action::UndoNewest,
    });
    prop_oneof![6 => command, 2 => write, 2 => undo]
}

struct Fixture {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

impl Fixture {
    fn new() -> Fixture {
        // Not in /tmp: commands have a private one.
        let top = crate::command_directory();
        fs::create_dir_all(top.path().join("ws/d/e")).unwrap();
        fs::write(top.path().join("ws/a"), "one\ntwo\n").unwrap();
        fs::write(top.path().join("ws/d/x"), [0, 1, 255]).unwrap();
        let runtime = crate::workspace_runtime(top.path());
        let session = runtime.session();
        Fixture { top, runtime, session }
    }

    fn call(&self, tool: &str, args: Value) -> Result<toolcrib::Reply, toolcrib::Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    fn last_id(&self) -> u64 {
        self.runtime.history().unwrap().last().map_or(0, |change| change.id)
    }

    fn perform(&self, action: &Action) {
        let _ = match action {
            Action::Command(command) => self.call("Bash", json!({"command": command})),
            Action::Tool(tool, args) => self.call(tool, args.clone()),
            Action::UndoNewest => self.call("Undo", json!({"id": self.last_id()})),
        };
    }

    /// Mode of each path, with the content of a file or the target of a symlink.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
        let (mut tree, mut open) = (BTreeMap::new(), vec![self.top.path().join("ws")]);
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                if metadata.is_dir() {
                    open.push(path.clone());
                }
                tree.insert(
                    path.clone(),
                    (metadata.permissions().mode(), content(&path, &metadata)),
                );
            }
        }
        tree
    }
}

fn content(path: &Path, metadata: &fs::Metadata) -> Option<Vec<u8>> {
    if metadata.is_symlink() {
        Some(fs::read_link(path).unwrap().into_os_string().into_encoded_bytes())
    } else {
        metadata.is_file().then(|| fs::read(path).unwrap())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(24, |cases| cases.parse().unwrap()),
        max_shrink_iters: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn undo_since_restores_the_exact_tree(
        before in prop::collection::vec(any_action(), 0..3),
        after in prop::collection::vec(any_action(), 1..7),
    ) {
        let fixture = Fixture::new();
        before.iter().for_each(|action| fixture.perform(action));
        let (last, tree) = (fixture.last_id(), fixture.tree());
        after.iter().for_each(|action| fixture.perform(action));
        let changed = fixture.tree();
        let history = fixture.runtime.history().unwrap();
        if let Some(first) = history.iter().find(|change| change.id > last) {
            match fixture.call("Undo", json!({"since": first.id})) {
                Ok(reply) => {
                    prop_assert_eq!(fixture.tree(), tree, "{}", reply.output());
                    let undo = reply.metadata()["change"].clone();
                    let reply = fixture.call("Undo", json!({"id": undo}));
                    prop_assert!(reply.is_ok(), "{reply:?}");
                    prop_assert_eq!(fixture.tree(), changed, "{}", reply.unwrap().output());
                }
                // All changes were undone one by one.
                Err(error) => {
                    prop_assert_eq!(error.kind(), toolcrib::ErrorKind::AlreadyApplied, "{}", error);
                    prop_assert_eq!(fixture.tree(), tree);
                }
            }
        }
    }
}
