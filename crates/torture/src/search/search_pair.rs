//! Both sides of a comparison: `toolcrib` in one long session, ripgrep and fd as one process per query.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::peers::Peers;

use super::settings;

/// The default excludes of our tools, as an ignore file of the lowest precedence.
const DEFAULT_EXCLUDES: &str = "node_modules/\n__pycache__/\n.venv/\nvenv/\n.tox/\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\n*.pyc\n*.pyo\n";
/// Additional default excludes for trees without an ignore file.
const EXCLUDES_WITHOUT_IGNORE_FILE: &str = "dist/\nbuild/\n";

/// The searched tree with both programs.
pub(super) struct SearchPair<'a> {
    peers: &'a Peers,
    tree: PathBuf,
    top: TempDir,
    conversation: LineProcess,
    calls: usize,
}

/// The matches by file: lines, or a count.
pub(super) type Lines = BTreeMap<String, Vec<String>>;

impl<'a> SearchPair<'a> {
    pub(super) fn begin(binary: &Path, peers: &'a Peers, tree: &Path) -> Result<SearchPair<'a>> {
        let top = tempfile::tempdir()?;
        let tree = tree.canonicalize()?;
        let config = settings(top.path())?;
        let mut command = Command::new(binary);
        command.arg("run").arg(format!("--root={}:ro", tree.display()));
        command.arg(format!("--config={}", config.display()));
        command.arg(format!("--state={}", top.path().join("state").display()));
        let both =
            SearchPair { peers, tree, top, conversation: LineProcess::start(command)?, calls: 0 };
        both.write_default_excludes()?;
        Ok(both)
    }

    /// Makes a call. Fails if the call does.
    pub(super) fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.calls += 1;
        let reply = self.conversation.ask(&call_line(self.calls, tool, arguments, true))?;
        if reply["success"] == true {
            Ok(reply)
        } else {
            Err(format!("{tool} {arguments}: {}", reply["output"]).into())
        }
    }

    /// All files that Grep searches by default.
    pub(super) fn files(&mut self) -> Result<BTreeSet<String>> {
        let arguments = json!({"pattern": "**/*", "hidden": true, "limit": 1000});
        let reply = self.ask("Glob", &arguments)?;
        // There may be more than one page: count the empty match, page by page.
        if reply["metadata"]["truncated"] == true {
            return Ok(self.counts("^", &json!({}))?.into_keys().collect());
        }
        Ok(strings(&reply["metadata"]["files"]))
    }

    /// The number of matches by file.
    pub(super) fn counts(&mut self, pattern: &str, more: &Value) -> Result<Lines> {
        const PAGE: usize = 10_000;
        let mut counts = Lines::new();
        loop {
            let mut arguments = json!({
                "pattern": pattern, "output_mode": "count", "sort": "path",
                "head_limit": PAGE, "offset": counts.len(),
            });
            add(&mut arguments, more);
            let reply = self.ask("Grep", &arguments)?;
            let before = counts.len();
            for line in output(&reply).lines().filter(|line| !line.starts_with('[')) {
                if let Some((path, count)) = line.rsplit_once(':') {
                    counts.insert(path.to_owned(), vec![count.to_owned()]);
                }
            }
            if counts.len() < before + PAGE || reply["metadata"]["complete"] == true {
                return Ok(counts);
            }
        }
    }

    /// The matching files.
    pub(super) fn matching(&mut self, pattern: &str, more: &Value) -> Result<BTreeSet<String>> {
        let mut arguments = json!({"pattern": pattern, "head_limit": 0});
        add(&mut arguments, more);
        let reply = self.ask("Grep", &arguments)?;
        Ok(strings(&reply["metadata"]["files"]))
    }

    /// The matching lines by file, each with its number, separator and text.
    pub(super) fn lines(&mut self, pattern: &str, more: &Value) -> Result<Lines> {
        let mut arguments =
            json!({"pattern": pattern, "output_mode": "content", "head_limit": 10_000});
        add(&mut arguments, more);
        let reply = self.ask("Grep", &arguments)?;
        Ok(by_heading(output(&reply)))
    }

    /// The output of ripgrep with flags that remove the intended differences, and these arguments.
    pub(super) fn rg(&self, words: &[&str]) -> Result<String> {
        let ignore_file = format!("--ignore-file={}", self.excludes_file().display());
        let mut command = Command::new(&self.peers.rg);
        command.args([
            "--no-config",
            "--hidden",
            "--no-require-git",
            "--no-ignore-global",
            "--no-ignore-parent",
            "--crlf",
            "--max-filesize=10M",
            "--color=never",
            "--no-messages",
            "-g=!.git",
            "-g=!.hg",
            "-g=!.svn",
            "-g=!.jj",
            &ignore_file,
        ]);
        run(command.args(words).current_dir(&self.tree))
    }

    /// The files that fd finds for a name pattern.
    pub(super) fn fd(&self, pattern: &str) -> Result<BTreeSet<String>> {
        let ignore_file = format!("--ignore-file={}", self.excludes_file().display());
        let mut command = Command::new(&self.peers.fd);
        command.args(["--glob", "--type=f", "--hidden", "--no-require-git"]);
        command.args(["--no-global-ignore-file", "--no-ignore-parent", "--color=never"]);
        command.args(["--exclude=.git", "--exclude=.hg", "--exclude=.svn", "--exclude=.jj"]);
        command.args([&ignore_file, "--case-sensitive", "--", pattern]);
        let found = run(command.current_dir(&self.tree))?;
        Ok(found.lines().map(|line| line.trim_start_matches("./").to_owned()).collect())
    }

    /// Files on which the programs may differ: those that are not plain UTF-8 text.
    pub(super) fn odd_files(&self, files: &BTreeSet<String>) -> BTreeSet<String> {
        let is_odd = |path: &&String| {
            let Ok(bytes) = std::fs::read(self.tree.join(path)) else { return true };
            bytes.contains(&0)
                || std::str::from_utf8(&bytes).is_err()
                || (!bytes.contains(&b'\n') && bytes.contains(&b'\r'))
        };
        files.iter().filter(is_odd).cloned().collect()
    }

    /// Writes the default excludes, which depend on whether the tree has an ignore file.
    pub(super) fn write_default_excludes(&self) -> Result<()> {
        let speaks = [".gitignore", ".ignore", ".git"];
        let spoken = speaks.iter().any(|name| self.tree.join(name).exists());
        let unspoken = if spoken { "" } else { EXCLUDES_WITHOUT_IGNORE_FILE };
        std::fs::write(self.excludes_file(), format!("{DEFAULT_EXCLUDES}{unspoken}"))?;
        Ok(())
    }

    fn excludes_file(&self) -> PathBuf {
        self.top.path().join("excludes_file")
    }
}

/// Parses the output of `rg --heading -n` and of Grep, which have the same format.
pub(super) fn by_heading(text: &str) -> Lines {
    let mut files = Lines::new();
    let mut current = None;
    for line in text.lines() {
        let numbered = line.split_once([':', '-']).is_some_and(|(number, _)| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        match (&current, line) {
            (Some(_), "") => current = None,
            (_, "--") => {}
            (_, line) if line.starts_with('[') => {}
            (Some(path), line) if numbered => {
                files.entry(String::clone(path)).or_default().push(line.to_owned());
            }
            _ => current = Some(line.to_owned()),
        }
    }
    files
}

fn add(arguments: &mut Value, more: &Value) {
    if let (Value::Object(arguments), Value::Object(more)) = (arguments, more) {
        arguments.extend(more.clone());
    }
}

fn output(reply: &Value) -> &str {
    reply["output"].as_str().unwrap_or_default()
}

fn strings(list: &Value) -> BTreeSet<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

/// The output of a program. Finding nothing and unreadable files are not failures.
fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output()?;
    if output.status.code().is_some_and(|code| code <= 1) || output.stderr.is_empty() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{}`: {stderr}", toolcrib_devtools::process::describe(command)).into())
}
