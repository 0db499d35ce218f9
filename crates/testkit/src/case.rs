//! Running a case: lay out the files, make the calls, compare everything.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toolcrib::{Outside, Profile};

use crate::document::{Document, Segment};
use crate::snapshot::Snapshot;
use crate::step::{FileBlock, Step};
use crate::transport::Door;

/// How a case wants the door opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setup {
    /// The profile.
    pub profile: Profile,
    /// What file tools may do outside, where it is not what the profile says.
    pub outside: Option<Outside>,
    /// Whether the workspace may only be read.
    pub read_only: bool,
    /// Whether paths must be absolute.
    pub absolute_paths: bool,
    /// Whether other names of a file get its new content.
    pub write_through: bool,
    /// Where the journal is.
    pub state: PathBuf,
}

impl Setup {
    /// The same as flags of the command line, with a configuration beside the journal.
    pub(crate) fn flags(&self, workspace: &Path) -> Vec<String> {
        let config = self.state.with_file_name("config.toml");
        let hard_links = if self.write_through { "write_through" } else { "break" };
        let written =
            format!("absolute_paths = {}\nhard_links = \"{hard_links}\"\n", self.absolute_paths);
        std::fs::write(&config, written).expect("the directory of the case can be written");
        let mode = if self.read_only { ":ro" } else { "" };
        let outside = self.outside.map(|outside| format!("--outside={outside}"));
        let flags = [
            format!("--root={}{mode}", workspace.display()),
            format!("--profile={}", self.profile.name()),
            format!("--config={}", config.display()),
            format!("--state={}", self.state.display()),
        ];
        flags.into_iter().chain(outside).collect()
    }

    /// The environment of a program: a home beside the workspace, and what programs keep elsewhere.
    pub(crate) fn variables(&self, workspace: &Path) -> [(&'static str, PathBuf); 2] {
        let kept = self.state.with_file_name("kept");
        [("HOME", Setup::home(workspace)), ("XDG_STATE_HOME", kept)]
    }

    /// The home of the case's user.
    pub(crate) fn home(workspace: &Path) -> PathBuf {
        workspace.with_file_name("home")
    }

    fn parse(&self, body: &str) -> Result<Setup, String> {
        let mut setup = self.clone();
        for line in body.lines() {
            match line.split_once(": ") {
                Some(("profile", name)) => {
                    setup.profile = name.parse().map_err(|error| format!("{error}"))?;
                }
                Some(("outside", word)) => {
                    setup.outside = Some(word.parse().map_err(|error| format!("{error}"))?);
                }
                Some(("root", "ro")) => setup.read_only = true,
                Some(("paths", "absolute")) => setup.absolute_paths = true,
                Some(("hard_links", "write_through")) => setup.write_through = true,
                _ => return Err(format!("no such setting: {line}")),
            }
        }
        Ok(setup)
    }
}

/// Runs every case in a directory and those below, through one kind of door. With `UPDATE=1` in the
/// environment the real replies are written into the pages. Panics with all that failed.
pub fn run_cases<D: Door>(directory: &Path, open: impl Fn(&Path, &Setup) -> D) {
    let update = std::env::var_os("UPDATE").is_some_and(|value| value == "1");
    let pages = pages(directory);
    assert!(!pages.is_empty(), "no cases in {}", directory.display());
    let mut failures = Vec::new();
    for path in &pages {
        let text = std::fs::read_to_string(path).expect("a case is text");
        let outcome = Document::parse(&text).and_then(|document| run_case(document, &open));
        match outcome {
            Ok(real) if real.render() == text => {}
            Ok(real) if update => {
                std::fs::write(path, real.render()).expect("the page can be written");
            }
            Ok(real) => {
                failures.push(format!(
                    "{}:\n{}",
                    path.display(),
                    difference(&text, &real.render())
                ));
            }
            Err(error) => failures.push(format!("{}: {error}", path.display())),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} cases failed (UPDATE=1 writes the real replies in):\n\n{}",
        failures.len(),
        pages.len(),
        failures.join("\n\n")
    );
}

/// Runs every case in a directory and those below without comparing replies, for doors that look at them. Panics if a
/// case cannot be run.
pub fn play_cases<D: Door>(directory: &Path, open: impl Fn(&Path, &Setup) -> D) {
    for path in pages(directory) {
        let text = std::fs::read_to_string(&path).expect("a case is text");
        let played = Document::parse(&text).and_then(|document| run_case(document, &open));
        if let Err(error) = played {
            panic!("{}: {error}", path.display());
        }
    }
}

/// Runs a case and gives it back with what really happened in its blocks.
fn run_case<D: Door>(
    document: Document,
    open: &impl Fn(&Path, &Setup) -> D,
) -> Result<Document, String> {
    // Not in /tmp: commands and file tools have another one.
    let top = tempfile::tempdir_in(scratch()?).map_err(|error| error.to_string())?;
    let own = tempfile::tempdir().map_err(|error| error.to_string())?;
    let workspace = top.path().join("ws");
    std::fs::create_dir(&workspace).map_err(|error| error.to_string())?;
    let mut running = Running {
        top: top.path().canonicalize().map_err(|error| error.to_string())?,
        workspace: workspace.canonicalize().map_err(|error| error.to_string())?,
        setup: Setup { state: own.path().join("state"), ..Setup::default() },
        door: None,
        reply: None,
        reply_told: true,
        unaccounted: BTreeSet::new(),
        real: Vec::new(),
        open,
    };
    for segment in document.segments {
        running.segment(segment)?;
    }
    running.finish()
}

/// Where cargo's own temporary directory is.
fn scratch() -> Result<PathBuf, String> {
    let tests = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = tests.ancestors().nth(3).ok_or("the test is not in target/debug/deps")?;
    let scratch = target.join("tmp");
    std::fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    Ok(scratch)
}

struct Running<'a, D, O: Fn(&Path, &Setup) -> D> {
    top: PathBuf,
    workspace: PathBuf,
    setup: Setup,
    door: Option<D>,
    reply: Option<Map<String, Value>>,
    reply_told: bool,
    /// What the last call changed and no `after` or `absent` block has spoken of.
    unaccounted: BTreeSet<PathBuf>,
    real: Vec<Segment>,
    open: &'a O,
}

impl<D: Door, O: Fn(&Path, &Setup) -> D> Running<'_, D, O> {
    fn segment(&mut self, segment: Segment) -> Result<(), String> {
        let step = Step::of(&segment)?;
        // A call without its reply gets it before anything else is said.
        let is_reply = matches!(step, Some((Step::Output | Step::Error(_), _)));
        if !self.reply_told && !is_reply {
            self.tell_reply("```");
        }
        let Some((step, body)) = step else {
            self.real.push(segment);
            return Ok(());
        };
        let body = body.to_owned();
        match step {
            Step::Setup => {
                if self.door.is_some() {
                    return Err("`setup` comes before the first call".to_owned());
                }
                self.setup = self.setup.parse(&body)?;
            }
            Step::File(file) => self.lay_out(&file, &body)?,
            Step::Directory(path) => {
                std::fs::create_dir_all(self.at(&path)).map_err(|error| error.to_string())?;
            }
            Step::Symlink(path) => {
                let target = self.expand(body.trim_end());
                let link = std::os::unix::fs::symlink(target, self.at(&path));
                link.map_err(|error| error.to_string())?;
            }
            Step::HardLink(path) => {
                let file = self.at(Path::new(body.trim_end()));
                std::fs::hard_link(file, self.at(&path)).map_err(|error| error.to_string())?;
            }
            Step::Fifo(path) => {
                let made = std::process::Command::new("mkfifo").arg(self.at(&path)).status();
                made.map_err(|error| error.to_string())?;
            }
            Step::Call { tool, dry_run } => self.call(&tool, &body, dry_run)?,
            Step::Output | Step::Error(_) => {
                let Segment::Block { fence, .. } = &segment else {
                    return Ok(());
                };
                if self.reply_told {
                    return Err("a reply without a call before it".to_owned());
                }
                let fence = fence.clone();
                self.tell_reply(&fence);
                return Ok(());
            }
            Step::Metadata => return self.tell_metadata(segment, &body),
            Step::After(file) => return self.tell_file(segment, &file),
            Step::AfterSymlink(path) => return self.tell_symlink(segment, &path),
            Step::AfterDirectory(path) => {
                let path = self.at(&path);
                if !path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                    return Err(format!("{} is no directory", path.display()));
                }
                self.unaccounted.retain(|changed| !changed.starts_with(&path));
            }
            Step::Absent(path) => {
                let path = self.at(&path);
                if path.symlink_metadata().is_ok() {
                    return Err(format!("{} is there", path.display()));
                }
                self.unaccounted.retain(|changed| !changed.starts_with(&path));
            }
        }
        self.real.push(segment);
        Ok(())
    }

    fn finish(mut self) -> Result<Document, String> {
        if !self.reply_told {
            self.tell_reply("```");
        }
        self.require_accounted()?;
        if self.reply.is_none() {
            return Err("a case without a call shows nothing".to_owned());
        }
        Ok(Document { segments: self.real })
    }

    fn lay_out(&self, file: &FileBlock, body: &str) -> Result<(), String> {
        let path = self.at(&file.path);
        let write = || -> std::io::Result<()> {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let content = file.spelling.read(body).map_err(std::io::Error::other)?;
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

    /// Makes a call and sees to it that nothing but its success may change anything on disk.
    fn call(&mut self, tool: &str, body: &str, dry_run: bool) -> Result<(), String> {
        self.require_accounted()?;
        let args = serde_json::from_str(&self.expand(body))
            .map_err(|error| format!("the arguments of {tool}: {error}"))?;
        let door = self.door.get_or_insert_with(|| (self.open)(&self.workspace, &self.setup));
        let before = Snapshot::of(&self.top).map_err(|error| error.to_string())?;
        let reply = door.call(tool, &args, dry_run);
        let after = Snapshot::of(&self.top).map_err(|error| error.to_string())?;
        let changed = after.changed_since(&before);
        let failed = reply["success"] != true;
        if (failed || dry_run) && !changed.is_empty() {
            return Err(format!("a failed or dry call of {tool} changed {changed:?}"));
        }
        self.unaccounted = changed.into_iter().collect();
        self.reply = Some(reply);
        self.reply_told = false;
        Ok(())
    }

    fn require_accounted(&self) -> Result<(), String> {
        match self.unaccounted.first() {
            None => Ok(()),
            Some(path) => Err(format!("{} changed, and no `after` block says so", path.display())),
        }
    }

    fn tell_reply(&mut self, fence: &str) {
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
        self.real.push(Segment::Block { fence: fence.to_owned(), info, body });
        self.reply_told = true;
    }

    /// The facts that the page names, as they really are.
    fn tell_metadata(&mut self, segment: Segment, body: &str) -> Result<(), String> {
        let Segment::Block { fence, info, .. } = segment else {
            return Ok(());
        };
        let named: Map<String, Value> =
            serde_json::from_str(&self.expand(body)).map_err(|error| error.to_string())?;
        let metadata = self.reply.as_ref().map(|reply| reply["metadata"].clone());
        let metadata = metadata.unwrap_or_default();
        let real: Map<String, Value> =
            named.keys().map(|key| (key.clone(), metadata[key].clone())).collect();
        let body = if real == named {
            body.to_owned()
        } else {
            self.contract(&format!("{}\n", Value::Object(real)))
        };
        self.real.push(Segment::Block { fence, info, body });
        Ok(())
    }

    /// A file as it really is now.
    fn tell_file(&mut self, segment: Segment, file: &FileBlock) -> Result<(), String> {
        let Segment::Block { fence, info, body } = segment else {
            return Ok(());
        };
        let path = self.at(&file.path);
        let content =
            std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if let Some(mode) = file.mode {
            let real = path.metadata().map_err(|error| error.to_string())?.permissions().mode();
            if real & 0o7777 != mode {
                return Err(format!("{} has mode {:o}", path.display(), real & 0o7777));
            }
        }
        self.unaccounted.remove(&path.canonicalize().unwrap_or(path));
        let same = file.spelling.read(&body).is_ok_and(|expected| expected == content);
        let body = if same { body } else { file.spelling.write(&content) };
        self.real.push(Segment::Block { fence, info, body });
        Ok(())
    }

    /// Where a symlink really leads now.
    fn tell_symlink(&mut self, segment: Segment, path: &Path) -> Result<(), String> {
        let Segment::Block { fence, info, .. } = segment else {
            return Ok(());
        };
        let path = self.at(path);
        let target = path.read_link().map_err(|error| format!("{}: {error}", path.display()))?;
        // What was beneath a directory of this name is gone.
        self.unaccounted.retain(|changed| !changed.starts_with(&path));
        let body = self.contract(&format!("{}\n", target.display()));
        self.real.push(Segment::Block { fence, info, body });
        Ok(())
    }

    fn at(&self, path: &Path) -> PathBuf {
        let mut at = self.workspace.clone();
        for name in path {
            match name.to_str() {
                Some("..") => assert!(at.pop(), "a case stays below its directory"),
                _ => at.push(name),
            }
        }
        at
    }

    /// `$TOP` in a page is the directory that holds the workspace `ws`.
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

/// The lines around the first that differs, of both.
fn difference(expected: &str, real: &str) -> String {
    let (expected, real): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), real.lines().collect());
    let most = expected.len().max(real.len());
    let at = (0..most).find(|&at| expected.get(at) != real.get(at)).unwrap_or(0);
    let show = |lines: &[&str]| {
        let shown: Vec<&str> = lines.iter().skip(at).take(8).copied().collect();
        shown.join("\n    ")
    };
    format!("  line {}, the page:\n    {}\n  really:\n    {}", at + 1, show(&expected), show(&real))
}
