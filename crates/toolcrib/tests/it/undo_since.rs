//! Whatever tools and commands did since a change, `Undo {since}` brings back the exact tree, and taking that
//! back brings back the tree after it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib::{Call, Options, Runtime, Session};

const NAMES: [&str; 8] = ["a", "b", "d", "d/x", "d/e", "d/e/y", "f/g", "l"];

/// Something that a model may do. Many of them fail, as they do in practice.
#[derive(Debug, Clone)]
enum Doing {
    Command(String),
    Tool(&'static str, Value),
    UndoNewest,
}

fn doing() -> impl Strategy<Value = Doing> {
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
        Doing::Command(format!("( {command} ) 2> /dev/null; true"))
    });
    let write = (name(), 0..100u32).prop_map(|(name, number)| {
        Doing::Tool("Write", json!({"file_path": name, "content": format!("{number}\nlast\n")}))
    });
    let undo = (name(), 0..4u64).prop_map(|(name, kind)| match kind {
        0 => Doing::Tool("Undo", json!({})),
        1 => Doing::Tool("Undo", json!({"path": name})),
        2 => Doing::Tool("Undo", json!({"steps": 2})),
        _ => Doing::UndoNewest,
    });
    prop_oneof![6 => command, 2 => write, 2 => undo]
}

struct Place {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

impl Place {
    fn new() -> Place {
        // Not in /tmp: commands have another one.
        let top = crate::command_directory();
        fs::create_dir_all(top.path().join("ws/d/e")).unwrap();
        fs::write(top.path().join("ws/a"), "one\ntwo\n").unwrap();
        fs::write(top.path().join("ws/d/x"), [0, 1, 255]).unwrap();
        let runtime = crate::workspace_runtime(top.path());
        let session = runtime.session();
        Place { top, runtime, session }
    }

    fn call(&self, tool: &str, args: Value) -> Result<toolcrib::Reply, toolcrib::Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    fn last_id(&self) -> u64 {
        self.runtime.history().unwrap().last().map_or(0, |change| change.id)
    }

    fn make(&self, doing: &Doing) {
        let _ = match doing {
            Doing::Command(command) => self.call("Bash", json!({"command": command})),
            Doing::Tool(tool, args) => self.call(tool, args.clone()),
            Doing::UndoNewest => self.call("Undo", json!({"id": self.last_id()})),
        };
    }

    /// The mode of each name, with what a file says or where a symlink leads.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
        let (mut tree, mut open) = (BTreeMap::new(), vec![self.top.path().join("ws")]);
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let about = path.symlink_metadata().unwrap();
                if about.is_dir() {
                    open.push(path.clone());
                }
                tree.insert(path.clone(), (about.permissions().mode(), says(&path, &about)));
            }
        }
        tree
    }
}

fn says(path: &Path, about: &fs::Metadata) -> Option<Vec<u8>> {
    match about.is_symlink() {
        true => Some(fs::read_link(path).unwrap().into_os_string().into_encoded_bytes()),
        false => about.is_file().then(|| fs::read(path).unwrap()),
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
    fn undo_since_brings_back_the_exact_tree(
        before in prop::collection::vec(doing(), 0..3),
        after in prop::collection::vec(doing(), 1..7),
    ) {
        let place = Place::new();
        before.iter().for_each(|doing| place.make(doing));
        let (last, tree) = (place.last_id(), place.tree());
        after.iter().for_each(|doing| place.make(doing));
        let changed = place.tree();
        let history = place.runtime.history().unwrap();
        if let Some(first) = history.iter().find(|change| change.id > last) {
            match place.call("Undo", json!({"since": first.id})) {
                Ok(reply) => {
                    prop_assert_eq!(place.tree(), tree, "{}", reply.output());
                    let undo = reply.metadata()["change"].clone();
                    let reply = place.call("Undo", json!({"id": undo}));
                    prop_assert!(reply.is_ok(), "{reply:?}");
                    prop_assert_eq!(place.tree(), changed, "{}", reply.unwrap().output());
                }
                // All of them were taken back one by one.
                Err(error) => {
                    prop_assert_eq!(error.kind(), toolcrib::ErrorKind::AlreadyApplied, "{}", error);
                    prop_assert_eq!(place.tree(), tree);
                }
            }
        }
    }
}
