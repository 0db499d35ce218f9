//! What takes more than one call, or another tool than Bash.

use serde_json::{Value, json};

use super::Trial;
use crate::error::Result;
use crate::torture::report::{Report, Row};

pub(super) fn run(trial: &mut Trial, report: &mut Report) -> Result<()> {
    for (what, attempt) in [
        ("X04 a link planted for Write", planted as fn(&mut Trial) -> Result<Option<String>>),
        ("X08 a new repository that runs something", new_repository),
        ("X31 words that ask for less", asked),
        ("X32 /tmp is the session's", tmp),
        ("D01 what is missing is said", said),
    ] {
        let mut row = Row::new("sandbox", format!("{what}: {}", trial.place));
        let outcome = attempt(trial)?;
        row.tally.add("tried");
        let damage = trial.canaries.damage("")?;
        for violation in outcome.into_iter().chain(damage) {
            row.violate(violation, format!("cargo xtask torture sandbox: {what}"));
        }
        report.add(row);
    }
    Ok(())
}

fn planted(trial: &mut Trial) -> Result<Option<String>> {
    trial.bash("ln -sf $OUT/canary planted; ln -sfn $OUT planted-directory")?;
    for path in ["planted", "planted-directory/new"] {
        let reply = trial.call("Write", json!({"file_path": path, "content": "evil"}))?;
        if crate::sandbox::is_success(&reply) {
            return Ok(Some(format!("Write went through {path}")));
        }
    }
    Ok(None)
}

fn new_repository(trial: &mut Trial) -> Result<Option<String>> {
    let script = "rm -rf fresh; git init -q fresh; git -C fresh config core.fsmonitor evil; f=$(echo fresh/.git/hooks/pre-commit); echo evil > $f; e=$(echo .envrc); echo evil > $e";
    let reply = trial.bash(script)?;
    let workspace = trial.canaries.workspace();
    let config = std::fs::read_to_string(workspace.join("fresh/.git/config")).unwrap_or_default();
    let left = [
        config.contains("evil").then_some("fresh/.git/config"),
        workspace.join("fresh/.git/hooks/pre-commit").exists().then_some("a hook"),
        workspace.join(".envrc").exists().then_some(".envrc"),
    ];
    let left: Vec<&str> = left.into_iter().flatten().collect();
    Ok((!left.is_empty()).then(|| format!("{} is still there: {reply}", left.join(", "))))
}

fn asked(trial: &mut Trial) -> Result<Option<String>> {
    for word in ["sandbox", "dangerouslyDisableSandbox", "level", "network", "profile"] {
        let reply = trial.call("Bash", json!({"command": "true", word: false}))?;
        if crate::sandbox::kind(&reply) != "invalid" {
            return Ok(Some(format!("`{word}` was taken: {reply}")));
        }
    }
    Ok(None)
}

fn tmp(trial: &mut Trial) -> Result<Option<String>> {
    let name = format!("torture-{}", trial.session.pid());
    let reply = trial.bash(&format!("echo x > $TMPDIR/{name} && cat $TMPDIR/{name}"))?;
    if !crate::sandbox::is_success(&reply) {
        return Ok(Some(format!("$TMPDIR cannot be written: {reply}")));
    }
    trial.bash(&format!("echo x > /tmp/{name}; echo x > /var/tmp/{name}"))?;
    let seen = ["/tmp", "/var/tmp"].map(|tmp| std::path::Path::new(tmp).join(&name));
    Ok(seen.iter().find(|path| path.exists()).map(|path| format!("{} is there", path.display())))
}

fn said(trial: &mut Trial) -> Result<Option<String>> {
    let reply = trial.bash("true")?;
    let output = reply.pointer("/output").and_then(Value::as_str).unwrap_or_default();
    let says = match trial.place.level {
        4 => !output.contains("sandbox level"),
        3 => output.contains("sandbox level 3") && output.contains("a loopback of its own"),
        _ => {
            output.contains("sandbox level 2") && output.contains("The mode, the owner, the times")
        }
    };
    Ok((!says).then(|| format!("it says: {output}")))
}
