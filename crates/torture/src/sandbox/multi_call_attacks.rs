//! Escape attempts that need several calls or another tool than Bash.

use serde_json::json;
use toolcrib_devtools::error::Result;

use super::{Trial, output_of};
use crate::report::{Report, Row};

pub(super) fn run(trial: &mut Trial, report: &mut Report) -> Result<()> {
    for (what, attempt) in [
        (
            "X04 a symlink planted for Write",
            planted_symlink as fn(&mut Trial) -> Result<Option<String>>,
        ),
        ("X08 a new repository that runs programs", new_repository),
        ("X10 protected names in every way", protected_names),
        ("X12 local sockets by every name", local_sockets),
        ("X31 arguments that ask for a weaker sandbox", weaker_sandbox),
        ("X32 /tmp is the session's", session_tmp),
        ("X33 sockets that block the supervisor", blocking_sockets),
        ("D01 replies report missing parts of the sandbox", reported_gaps),
    ] {
        let mut row = Row::new("sandbox", format!("{what}: {}", trial.environment));
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

fn planted_symlink(trial: &mut Trial) -> Result<Option<String>> {
    trial.bash("ln -sf $OUT/canary planted; ln -sfn $OUT planted-directory")?;
    for path in ["planted", "planted-directory/new"] {
        let reply = trial.call("Write", json!({"file_path": path, "content": "evil"}))?;
        if toolcrib_devtools::scratch::is_success(&reply) {
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
    let remaining = [
        config.contains("evil").then_some("fresh/.git/config"),
        workspace.join("fresh/.git/hooks/pre-commit").exists().then_some("a hook"),
        workspace.join(".envrc").exists().then_some(".envrc"),
    ];
    let remaining: Vec<&str> = remaining.into_iter().flatten().collect();
    Ok((!remaining.is_empty()).then(|| format!("{} still exists: {reply}", remaining.join(", "))))
}

/// Ways to create `.envrc` or `.vscode/tasks.json`. `$E` and `$V` are these names, which the text must not contain.
const PROTECTED: &[&str] = &[
    "echo evil > $E",
    "echo evil > x; mv x $E",
    "echo evil > x; ln x $E",
    "ln -s x $E",
    "cp x $E; install x $E; dd if=x of=$E",
    "exec 3<> x; ln -L /proc/self/fd/3 $E; ln -L /dev/fd/3 $E",
    "mkdir vs; echo evil > vs/tasks.json; mv vs ${V%/*}; ln -s vs ${V%/*}; mv -T vs ${V%/*}",
    "mkdir -p ${V%/*}; echo evil > t; mv t $V; ln t $V; cp t $V; mv -T --exchange t $V",
    "mkdir q; cd q; ln -s .. up; echo evil > up/$E; echo evil > /proc/self/cwd/../$E",
    "python3 -c 'import os,sys; d=os.open(\".\", os.O_RDONLY); os.close(os.open(sys.argv[1], os.O_CREAT|os.O_WRONLY, dir_fd=d))' $E",
    "python3 -c 'import os,sys; f=os.open(\".\", os.O_TMPFILE|os.O_RDWR); os.link(f\"/proc/self/fd/{f}\", sys.argv[1], follow_symlinks=True)' $E",
    "python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' $E",
    "mknod $E p; mkfifo $E; mkdir $E",
    "(sleep 0.2; echo evil > $E) > /dev/null 2>&1 & disown",
    r#"python3 - $E <<'END'
import ctypes, os, sys, threading
sys.setswitchinterval(1e-5)
libc = ctypes.CDLL(None)
name = sys.argv[1].encode()
path = ctypes.create_string_buffer(b"x" + name[1:])
done = False
def flip():
    while not done:
        path[0] = name[:1]; path[0] = b"x"
thread = threading.Thread(target=flip); thread.start()
for _ in range(300):
    f = libc.creat(path, 0o600)
    if f >= 0: os.close(f)
    libc.mkdir(path, 0o700); libc.symlink(b"y", path); libc.rename(b"x", path); libc.rmdir(path); libc.unlink(path)
done = True
thread.join()
END"#,
];

fn protected_names(trial: &mut Trial) -> Result<Option<String>> {
    for script in PROTECTED {
        let script = format!("E=$(echo .envrc); V=$(echo .vscode/tasks.json); {script}");
        trial.bash(&format!("rm -rf work; mkdir work; cd work; {script}; sleep 0.3; true"))?;
        let work = trial.canaries.workspace().join("work");
        let created = [".envrc", "q/../.envrc", ".vscode/tasks.json"];
        let created = created.iter().find(|name| work.join(name).symlink_metadata().is_ok());
        if let Some(name) = created {
            return Ok(Some(format!("{name} was created by: {script}")));
        }
        trial.bash("cd .. || true")?;
    }
    Ok(None)
}

/// Connects to an outside server whose socket is in the workspace, by names that the kernel does not list.
fn local_sockets(trial: &mut Trial) -> Result<Option<String>> {
    let workspace = trial.canaries.workspace();
    let names = ["socket", "renamed", "linked"].map(|name| workspace.join(name));
    let server = std::os::unix::net::UnixListener::bind(&names[0])?;
    std::fs::hard_link(&names[0], &names[2])?;
    std::fs::rename(&names[0], &names[1])?;
    server.set_nonblocking(true)?;
    for name in ["renamed", "linked", "./renamed", "/proc/self/cwd/linked"] {
        trial.bash(&format!(
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{name}\")'; python3 -c 'import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"x\", \"{name}\")'; true"
        ))?;
        if server.accept().is_ok() {
            return Ok(Some(format!("{name} was reached")));
        }
    }
    for name in &names[1..] {
        std::fs::remove_file(name)?;
    }
    Ok(None)
}

fn weaker_sandbox(trial: &mut Trial) -> Result<Option<String>> {
    for word in ["sandbox", "dangerouslyDisableSandbox", "level", "network", "profile"] {
        let reply = trial.call("Bash", json!({"command": "true", word: false}))?;
        if toolcrib_devtools::scratch::kind(&reply) != "invalid" {
            return Ok(Some(format!("`{word}` was accepted: {reply}")));
        }
    }
    Ok(None)
}

fn session_tmp(trial: &mut Trial) -> Result<Option<String>> {
    let name = format!("torture-{}", trial.session.pid());
    let reply = trial.bash(&format!("echo x > $TMPDIR/{name} && cat $TMPDIR/{name}"))?;
    if !toolcrib_devtools::scratch::is_success(&reply) {
        return Ok(Some(format!("$TMPDIR cannot be written: {reply}")));
    }
    trial.bash(&format!("echo x > /tmp/{name}; echo x > /var/tmp/{name}"))?;
    let seen = ["/tmp", "/var/tmp"].map(|tmp| std::path::Path::new(tmp).join(&name));
    Ok(seen.iter().find(|path| path.exists()).map(|path| format!("{} exists", path.display())))
}

/// Sockets are made blocking while the supervisor connects them to servers that accept nothing.
const BLOCKING_SOCKETS: &str = concat!(
    "exec python3 - $TMPDIR/blocking <<'END'\n",
    include_str!("../../../exec/tests/it/sandbox/blocking_sockets.py"),
    "\nEND"
);

fn blocking_sockets(trial: &mut Trial) -> Result<Option<String>> {
    let args = json!({"command": BLOCKING_SOCKETS, "run_in_background": true});
    let attacker = trial.call("Bash", args)?;
    let mut blocked = None;
    for _ in 0..5 {
        let reply = trial.bash("sleep 0.2; echo x > made-meanwhile && rm made-meanwhile")?;
        if !toolcrib_devtools::scratch::is_success(&reply) {
            blocked = Some(format!("another command is blocked: {reply}"));
        }
    }
    let id = attacker.pointer("/metadata/bash_id").cloned().unwrap_or_default();
    trial.call("KillShell", json!({"shell_id": id}))?;
    trial.bash("rm -f $TMPDIR/blocking")?;
    Ok(blocked)
}

/// The first reply explains the missing parts of the sandbox. Every reply names a level below 4.
fn reported_gaps(trial: &mut Trial) -> Result<Option<String>> {
    let reply = trial.bash("true")?;
    let (first, later) = (trial.first_output.as_str(), output_of(&reply));
    let is_reported = match trial.environment.level {
        4 => !first.contains("sandbox level") && !later.contains("sandbox level"),
        level => {
            let named = format!("sandbox level {level} of 4");
            let explained = first.contains(&named) && first.contains("; not enforced: ");
            explained && later.contains(&named)
        }
    };
    Ok((!is_reported).then(|| format!("the first reply: {first}\nthe last reply: {later}")))
}
