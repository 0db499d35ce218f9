//! Runs the policy on the shell scripts of this machine: none that bash accepts is denied as unparsed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toolcrib::Decision;

use crate::sandboxed::Sandboxed;

/// Directories with scripts.
const SCRIPT_DIRECTORIES: [&str; 5] = ["/usr/bin", "/usr/sbin", "/usr/lib", "/usr/share", "/etc"];

/// Limits: number of scripts, and bytes of one.
const MAX_SCRIPTS: usize = 400;
const MAX_BYTES: u64 = 1 << 20;

/// Depth of the search: enough for packages, and fast.
const MAX_DEPTH: usize = 5;

#[test]
#[expect(
    clippy::print_stdout,
    reason = "how many scripts a machine has says what the test is worth"
)]
fn scripts_accepted_by_bash_are_parsed() {
    let sandboxed = Sandboxed::new();
    let mut scripts = Vec::new();
    for place in SCRIPT_DIRECTORIES {
        collect(Path::new(place), MAX_DEPTH, &mut scripts);
    }
    let (mut tried, mut whole, mut refused) = (0, 0, Vec::new());
    for path in scripts {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if !bash_accepts(&path) {
            continue;
        }
        let explanation = sandboxed.runtime.explain_command(&sandboxed.session, &text);
        tried += 1;
        whole += usize::from(explanation.commands.iter().all(|seen| seen.unparsed.is_none()));
        // A script may be denied for its effects.
        let is_for_its_deeds = ["danger", "protected"].contains(&explanation.rule.as_str());
        if explanation.decision != Decision::Allow && !is_for_its_deeds {
            refused.push(format!("{}: {}", path.display(), explanation.why));
        }
    }
    println!("{tried} scripts that bash accepts, {whole} of them understood as a whole");
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Collects scripts of sh and bash below a directory, up to the limit.
fn collect(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if found.len() >= MAX_SCRIPTS {
            return;
        }
        let (Ok(kind), path) = (entry.file_type(), entry.path()) else { continue };
        if kind.is_dir() && depth > 0 {
            collect(&path, depth - 1, found);
        } else if kind.is_file() && is_script(&path) {
            found.push(path);
        }
    }
}

fn is_script(path: &Path) -> bool {
    use std::io::Read as _;
    let is_small = path.metadata().is_ok_and(|about| about.len() <= MAX_BYTES);
    let mut first = Vec::new();
    let opened = std::fs::File::open(path);
    if !is_small || opened.and_then(|file| file.take(64).read_to_end(&mut first)).is_err() {
        return false;
    }
    let first = String::from_utf8_lossy(&first);
    let line = first.lines().next().unwrap_or_default();
    let interpreter = line.strip_prefix("#!").unwrap_or_default().split_whitespace();
    let names = interpreter.filter_map(|word| word.rsplit('/').next());
    names.take(2).any(|name| matches!(name, "sh" | "bash" | "dash"))
        || path.extension().is_some_and(|extension| extension == "sh")
}

fn bash_accepts(path: &Path) -> bool {
    let mut bash = Command::new("bash");
    bash.arg("-n").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    bash.status().is_ok_and(|status| status.success())
}
