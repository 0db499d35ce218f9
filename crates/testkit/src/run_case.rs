//! Runs a case: creates the files, makes the calls and compares everything.

use std::collections::BTreeSet;
use std::iter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde_json::{Map, Value};

use crate::case_settings::Setup;
use crate::directory_snapshot::Snapshot;
use crate::markdown_page::{Document, Segment};
use crate::sandbox_visible_directory::sandbox_visible_directory;
use crate::step::{FileBlock, Step};
use crate::transport::Transport;

/// One test for each case below a directory. The name of a test is `transport::directory::page`. With `UPDATE=1` in the
/// environment, the test writes the actual replies into the page. With `TOOLCRIB_TEST_COMMANDS=0`, the tests that run
/// commands are ignored: an emulated program has no sandbox.
pub fn case_tests<D: Transport + 'static>(
    transport: &str,
    directory: &Path,
    open: impl Fn(&Path, &Setup) -> D + Copy + Send + 'static,
) -> Vec<Trial> {
    let pages = pages(directory);
    assert!(!pages.is_empty(), "no cases in {}", directory.display());
    let test = |path: PathBuf| {
        let relative = path.strip_prefix(directory).unwrap_or(&path).with_extension("");
        let names = relative.iter().map(|name| name.to_string_lossy().into_owned());
        let names: Vec<String> = iter::once(transport.to_owned()).chain(names).collect();
        let is_ignored = is_set("TOOLCRIB_TEST_COMMANDS", "0") && runs_commands(&path);
        Trial::test(names.join("::"), move || check_case(&path, open).map_err(Failed::from))
            .with_ignored_flag(is_ignored)
    };
    pages.into_iter().map(test).collect()
}

fn is_set(variable: &str, value: &str) -> bool {
    std::env::var_os(variable).is_some_and(|actual| actual == value)
}

fn runs_commands(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text.contains("```call Bash"))
}

/// Runs a case and compares its page with the result.
fn check_case<D: Transport>(path: &Path, open: impl Fn(&Path, &Setup) -> D) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let document = Document::parse(&text);
    let actual = document.and_then(|document| run_case(document, &open));
    let actual = actual.map_err(|error| format!("{}: {error}", path.display()))?.render();
    if actual == text {
        return Ok(());
    }
    if is_set("UPDATE", "1") {
        return std::fs::write(path, actual).map_err(|error| error.to_string());
    }
    let difference = difference(&text, &actual);
    Err(format!("{} (UPDATE=1 writes the actual replies):\n{difference}", path.display()))
}

/// Runs every case in a directory and those below without comparing replies, for transports that inspect them. Panics
/// if a case cannot be run.
pub fn play_cases<D: Transport>(directory: &Path, open: impl Fn(&Path, &Setup) -> D) {
    for path in pages(directory) {
        let text = std::fs::read_to_string(&path).expect("a case is text");
        let played = Document::parse(&text).and_then(|document| run_case(document, &open));
        if let Err(error) = played {
            panic!("{}: {error}", path.display());
        }
    }
}

/// Runs a case. Returns the page with the actual results in its blocks.
fn run_case<D: Transport>(
    document: Document,
    open: &impl Fn(&Path, &Setup) -> D,
) -> Result<Document, String> {
    let place = sandbox_visible_directory(cargo_tmp()?).map_err(|error| error.to_string())?;
    let top = tempfile::tempdir_in(place).map_err(|error| error.to_string())?;
    let own = tempfile::tempdir().map_err(|error| error.to_string())?;
    let workspace = top.path().join("ws");
    std::fs::create_dir(&workspace).map_err(|error| error.to_string())?;
    let mut run = CaseRun {
        top: top.path().canonicalize().map_err(|error| error.to_string())?,
        workspace: workspace.canonicalize().map_err(|error| error.to_string())?,
        setup: Setup { state: own.path().join("state"), ..Setup::default() },
        transport: None,
        reply: None,
        reply_written: true,
        unmentioned_changes: BTreeSet::new(),
        actual: Vec::new(),
        open,
    };
    for segment in document.segments {
        run.segment(segment)?;
    }
    run.finish()
}

/// Cargo's temporary directory.
fn cargo_tmp() -> Result<PathBuf, String> {
    let tests = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = tests.ancestors().nth(3).ok_or("the test is not in target/debug/deps")?;
    let cargo_tmp = target.join("tmp");
    std::fs::create_dir_all(&cargo_tmp).map_err(|error| error.to_string())?;
    Ok(cargo_tmp)
}

struct CaseRun<'a, D, O: Fn(&Path, &Setup) -> D> {
    top: PathBuf,
    workspace: PathBuf,
    setup: Setup,
    transport: Option<D>,
    reply: Option<Map<String, Value>>,
    reply_written: bool,
    /// Paths that the last call changed and no `after` or `absent` block has mentioned.
    unmentioned_changes: BTreeSet<PathBuf>,
    actual: Vec<Segment>,
    open: &'a O,
}

impl<D: Transport, O: Fn(&Path, &Setup) -> D> CaseRun<'_, D, O> {
    fn segment(&mut self, segment: Segment) -> Result<(), String> {
        let step = Step::parse(&segment)?;
        // The reply of a call without a reply block is inserted before the next segment.
        let is_reply = matches!(step, Some((Step::Output | Step::Error(_), _)));
        if !self.reply_written && !is_reply {
            self.write_reply("```");
        }
        let Some((step, body)) = step else {
            self.actual.push(segment);
            return Ok(());
        };
        let body = body.to_owned();
        match step {
            Step::Setup => {
                if self.transport.is_some() {
                    return Err("`setup` comes before the first call".to_owned());
                }
                self.setup = self.setup.parse(&body)?;
            }
            Step::File(file) => self.create_file(&file, &body)?,
            Step::Directory(path) => {
                std::fs::create_dir_all(self.absolute(&path)).map_err(|error| error.to_string())?;
            }
            Step::Symlink(path) => {
                let target = self.expand(body.trim_end());
                let link = std::os::unix::fs::symlink(target, self.absolute(&path));
                link.map_err(|error| error.to_string())?;
            }
            Step::HardLink(path) => {
                let file = self.absolute(Path::new(body.trim_end()));
                std::fs::hard_link(file, self.absolute(&path))
                    .map_err(|error| error.to_string())?;
            }
            Step::Fifo(path) => {
                let made = std::process::Command::new("mkfifo").arg(self.absolute(&path)).status();
                made.map_err(|error| error.to_string())?;
            }
            Step::Call { tool, dry_run } => self.call(&tool, &body, dry_run)?,
            Step::Output | Step::Error(_) => {
                let Segment::Block { fence, .. } = &segment else {
                    return Ok(());
                };
                if self.reply_written {
                    return Err("a reply without a call before it".to_owned());
                }
                let fence = fence.clone();
                self.write_reply(&fence);
                return Ok(());
            }
            Step::Metadata => return self.write_metadata(segment, &body),
            Step::After(file) => return self.write_file(segment, &file),
            Step::AfterSymlink(path) => return self.write_symlink(segment, &path),
            Step::AfterDirectory(path) => {
                let path = self.absolute(&path);
                if !path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                    return Err(format!("{} is no directory", path.display()));
                }
                self.unmentioned_changes.retain(|changed| !changed.starts_with(&path));
            }
            Step::Absent(path) => {
                let path = self.absolute(&path);
                if path.symlink_metadata().is_ok() {
                    return Err(format!("{} is there", path.display()));
                }
                self.unmentioned_changes.retain(|changed| !changed.starts_with(&path));
            }
        }
        self.actual.push(segment);
        Ok(())
    }

    fn finish(mut self) -> Result<Document, String> {
        if !self.reply_written {
            self.write_reply("```");
        }
        self.require_all_changes_mentioned()?;
        if self.reply.is_none() {
            return Err("a case without a call shows nothing".to_owned());
        }
        Ok(Document { segments: self.actual })
    }

    fn create_file(&self, file: &FileBlock, body: &str) -> Result<(), String> {
        let path = self.absolute(&file.path);
        let write = || -> std::io::Result<()> {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let content = file.encoding.decode(body).map_err(std::io::Error::other)?;
            std::fs::write(&path, content)?;
            if let Some(age) = file.age {
                let then = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
                std::fs::File::options().append(true).open(&path)?.set_modified(then)?;
            }
            match file.mode {
                Some(mode) => std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)),
                None => Ok(()),
            }
        };
        write().map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Makes a call. Fails if a failed call or a dry run changed the disk.
    fn call(&mut self, tool: &str, body: &str, dry_run: bool) -> Result<(), String> {
        self.require_all_changes_mentioned()?;
        let args = serde_json::from_str(&self.expand(body))
            .map_err(|error| format!("the arguments of {tool}: {error}"))?;
        let transport =
            self.transport.get_or_insert_with(|| (self.open)(&self.workspace, &self.setup));
        let before = Snapshot::of(&self.top).map_err(|error| error.to_string())?;
        let reply = transport.call(tool, &args, dry_run);
        let after = Snapshot::of(&self.top).map_err(|error| error.to_string())?;
        let changed = after.changed_since(&before);
        let failed = reply["success"] != true;
        if (failed || dry_run) && !changed.is_empty() {
            return Err(format!("a failed or dry call of {tool} changed {changed:?}"));
        }
        self.unmentioned_changes = changed.into_iter().collect();
        self.reply = Some(reply);
        self.reply_written = false;
        Ok(())
    }

    fn require_all_changes_mentioned(&self) -> Result<(), String> {
        match self.unmentioned_changes.first() {
            None => Ok(()),
            Some(path) => {
                Err(format!("{} changed, and no `after` block mentions it", path.display()))
            }
        }
    }

    fn write_reply(&mut self, fence: &str) {
        let Some(reply) = &self.reply else { return };
        let info = match reply.get("error") {
            None => "output".to_owned(),
            Some(error) => format!("error {}", error["kind"].as_str().unwrap_or("?")),
        };
        let text = reply["output"].as_str().unwrap_or("?");
        let mut body = self.contract(text);
        if !body.is_empty() && !body.ends_with('\n') {
            body.push('\n');
        }
        self.actual.push(Segment::Block { fence: fence.to_owned(), info, body });
        self.reply_written = true;
    }

    /// Writes the actual values of the metadata that the page names.
    fn write_metadata(&mut self, segment: Segment, body: &str) -> Result<(), String> {
        let Segment::Block { fence, info, .. } = segment else {
            return Ok(());
        };
        let named: Map<String, Value> =
            serde_json::from_str(&self.expand(body)).map_err(|error| error.to_string())?;
        let metadata = self.reply.as_ref().map(|reply| reply["metadata"].clone());
        let metadata = metadata.unwrap_or_default();
        let actual: Map<String, Value> =
            named.keys().map(|key| (key.clone(), metadata[key].clone())).collect();
        let body = if actual == named {
            body.to_owned()
        } else {
            self.contract(&format!("{}\n", Value::Object(actual)))
        };
        self.actual.push(Segment::Block { fence, info, body });
        Ok(())
    }

    /// Writes the actual content of a file.
    fn write_file(&mut self, segment: Segment, file: &FileBlock) -> Result<(), String> {
        let Segment::Block { fence, info, body } = segment else {
            return Ok(());
        };
        let path = self.absolute(&file.path);
        let content =
            std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if let Some(mode) = file.mode {
            let actual = path.metadata().map_err(|error| error.to_string())?.permissions().mode();
            if actual & 0o7777 != mode {
                return Err(format!("{} has mode {:o}", path.display(), actual & 0o7777));
            }
        }
        self.unmentioned_changes.remove(&path.canonicalize().unwrap_or(path));
        let same = file.encoding.decode(&body).is_ok_and(|expected| expected == content);
        let body = if same { body } else { file.encoding.encode(&content) };
        self.actual.push(Segment::Block { fence, info, body });
        Ok(())
    }

    /// Writes the actual target of a symlink.
    fn write_symlink(&mut self, segment: Segment, path: &Path) -> Result<(), String> {
        let Segment::Block { fence, info, .. } = segment else {
            return Ok(());
        };
        let path = self.absolute(path);
        let target = path.read_link().map_err(|error| format!("{}: {error}", path.display()))?;
        // A directory at this path is gone with everything beneath it.
        self.unmentioned_changes.retain(|changed| !changed.starts_with(&path));
        let body = self.contract(&format!("{}\n", target.display()));
        self.actual.push(Segment::Block { fence, info, body });
        Ok(())
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        let mut absolute = self.workspace.clone();
        for name in path {
            match name.to_str() {
                Some("..") => assert!(absolute.pop(), "a case stays below its directory"),
                _ => absolute.push(name),
            }
        }
        absolute
    }

    /// Replaces `$TOP` by the directory that contains the workspace `ws`.
    fn expand(&self, text: &str) -> String {
        text.replace("$TOP", &self.top.to_string_lossy())
    }

    fn contract(&self, text: &str) -> String {
        text.replace(&*self.top.to_string_lossy(), "$TOP")
    }
}

fn pages(directory: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in directory.read_dir().expect("the directory of cases is there") {
            let path = entry.expect("its entries can be read").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The lines from the first difference on, of both texts.
fn difference(expected: &str, actual: &str) -> String {
    let (expected, actual): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), actual.lines().collect());
    let length = expected.len().max(actual.len());
    let at = (0..length).find(|&at| expected.get(at) != actual.get(at)).unwrap_or(0);
    let show = |lines: &[&str]| {
        let shown: Vec<&str> = lines.iter().skip(at).take(8).copied().collect();
        shown.join("\n    ")
    };
    format!(
        "  line {}, the page:\n    {}\n  actual:\n    {}",
        at + 1,
        show(&expected),
        show(&actual)
    )
}
