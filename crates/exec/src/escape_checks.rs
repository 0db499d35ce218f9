//! Attempts to escape from a sandbox, to find out whether it holds on this system.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::command::{Command, Exit};
use crate::error::JobError;
use crate::guard::AllowAll;
use crate::job::Status;
use crate::jobs::Jobs;
use crate::sandbox::Sandbox;
use crate::shim_messages::Ending;
use crate::start_options::StartOptions;

/// The time limit of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);

/// An address that is reserved for documentation (RFC 5737) and so has no host.
const UNUSED_ADDRESS: &str = "192.0.2.1";

/// Bytes of an attempt's output that are kept.
const MAX_OUTPUT: usize = 300;

/// One attempt and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscapeAttempt {
    /// The action that was attempted.
    pub description: &'static str,
    /// Whether the sandbox blocked it.
    pub blocked: bool,
    /// The output of the attempt.
    pub output: String,
}

/// Scripts about a home directory that commands may not write.
const HOME_SCRIPTS: [(&str, &str); 2] = [
    (
        "create a file in the home directory",
        "touch \"$HOME/.toolcrib-doctor\" && rm \"$HOME/.toolcrib-doctor\"",
    ),
    ("change the mode of the home directory", "chmod --reference=\"$HOME\" \"$HOME\""),
];

/// Scripts that exit with 0 if they escaped, and undo their change. `$RUNTIME` is the pid of this process.
const SCRIPTS: [(&str, &str); 18] = [
    ("create a file in /etc", "touch /etc/.toolcrib-doctor && rm /etc/.toolcrib-doctor"),
    ("list ~/.ssh", "ls -A \"$HOME/.ssh\" | grep -q ."),
    ("see the Toolcrib process", "readlink /proc/$RUNTIME/exe"),
    ("read Toolcrib's memory", "head -c 1 /proc/$RUNTIME/mem"),
    ("read Toolcrib's environment", "head -c 1 /proc/$RUNTIME/environ"),
    ("send Toolcrib a signal", "kill -0 $RUNTIME"),
    ("write to the terminal", "echo > /dev/tty"),
    ("mount a file system", "mount -t tmpfs none /mnt && umount /mnt"),
    ("remount / as writable", "mount -o remount,rw /"),
    ("create a device file", "mknod \"$TMPDIR/device\" c 1 3 && rm \"$TMPDIR/device\""),
    ("change the root directory", "chroot / true"),
    ("create a user namespace", "unshare -Ur true"),
    ("write a sysctl", "read -r v < /proc/sys/vm/swappiness && echo $v > /proc/sys/vm/swappiness"),
    ("set the hostname", "hostname \"$(hostname)\""),
    ("read the kernel log", "dmesg | grep -q ."),
    (
        "read a disk or physical memory",
        "head -c 1 /dev/mem || head -c 1 /dev/sda || head -c 1 /dev/nvme0n1 || head -c 1 /dev/vda",
    ),
    ("hold a capability", "! grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status"),
    ("gain privileges from a program", "! grep -q '^NoNewPrivs:[[:space:]]*1' /proc/self/status"),
];

/// Makes all attempts. `command` provides the shell, the environment and the directory. Fails if a command
/// cannot be started.
pub fn try_to_escape(
    jobs: &Jobs,
    sandbox: &Sandbox,
    command: &Command,
) -> Result<Vec<EscapeAttempt>, JobError> {
    let mut attempts = Vec::new();
    let of_home = HOME_SCRIPTS.iter().filter(|_| !has_writable_home(sandbox, command));
    for (description, script) in of_home.chain(&SCRIPTS) {
        attempts.push(attempt(jobs, sandbox, command, description, script)?);
    }
    // A server outside the sandbox.
    let server = TcpListener::bind("127.0.0.1:0").ok();
    let port = server.as_ref().and_then(|server| server.local_addr().ok());
    if let Some(address) = port.filter(|_| sandbox.network.is_private()) {
        let script = format!("exec 3<> /dev/tcp/127.0.0.1/{}", address.port());
        attempts.push(attempt(
            jobs,
            sandbox,
            command,
            "connect to a server on this machine",
            &script,
        )?);
        // Nothing is sent: a route is enough.
        let script = format!("exec 3<> /dev/udp/{UNUSED_ADDRESS}/9");
        attempts.push(attempt(jobs, sandbox, command, "have a route to another machine", &script)?);
    }
    attempts.push(outlive_command(jobs, sandbox, command)?);
    Ok(attempts)
}

/// Whether the home directory is in a directory that commands may write, such as the workspace.
fn has_writable_home(sandbox: &Sandbox, command: &Command) -> bool {
    let home = command.environment.iter().find(|(name, _)| name == "HOME");
    let home = home.and_then(|(_, home)| std::fs::canonicalize(home).ok());
    home.is_some_and(|home| sandbox.writable.iter().any(|pinned| home.starts_with(&pinned.path)))
}

/// Whether denied actions of a command are reported. Tests it with writes that must be denied.
pub fn reports_denials(
    jobs: &Jobs,
    sandbox: &Sandbox,
    command: &Command,
) -> Result<bool, JobError> {
    // For a file that exists, the kernel checks the permissions of an unprivileged user before those of the sandbox.
    let script =
        b": >> /etc/hostname; : >> /etc/passwd; new=/etc/.toolcrib-$$; : >> $new && rm $new";
    let command = Command { script: script.to_vec(), ..command.clone() };
    let job = jobs.start(&command, StartOptions::sandboxed(sandbox, Arc::new(AllowAll)))?;
    job.wait(ATTEMPT_TIMEOUT, |now| !now.status.is_running());
    job.end(Ending::Immediate, Status::Killed);
    Ok(!job.refusals().is_empty())
}

fn attempt(
    jobs: &Jobs,
    sandbox: &Sandbox,
    command: &Command,
    description: &'static str,
    script: &str,
) -> Result<EscapeAttempt, JobError> {
    let mut command = Command { script: script.into(), ..command.clone() };
    command.environment.push(("RUNTIME".into(), std::process::id().to_string().into()));
    let job = jobs.start(&command, StartOptions::sandboxed(sandbox, Arc::new(AllowAll)))?;
    let ended = job.wait(ATTEMPT_TIMEOUT, |now| !now.status.is_running() && now.closed).ended;
    job.end(Ending::Immediate, Status::Killed);
    let (_, output) = job.read(0, MAX_OUTPUT);
    let output = String::from_utf8_lossy(&output).trim().to_owned();
    let blocked = ended.is_none_or(|ended| ended.exit != Exit::Code(0));
    Ok(EscapeAttempt { description, blocked, output })
}

/// Starts a process that detaches itself from its shell, and ends the command.
fn outlive_command(
    jobs: &Jobs,
    sandbox: &Sandbox,
    command: &Command,
) -> Result<EscapeAttempt, JobError> {
    let script = b"(setsid sleep 600 > /dev/null 2>&1 < /dev/null &)".to_vec();
    let command = Command { script, ..command.clone() };
    let job = jobs.start(&command, StartOptions::sandboxed(sandbox, Arc::new(AllowAll)))?;
    job.wait(ATTEMPT_TIMEOUT, |now| !now.status.is_running());
    let left = job.processes();
    job.end(Ending::Immediate, Status::Killed);
    let all_exited = job.wait(ATTEMPT_TIMEOUT, |now| now.all_exited).all_exited;
    let lives = |pid: i32| Path::new("/proc").join(pid.to_string()).exists();
    let alive = left.iter().filter(|process| lives(process.pid)).count();
    let output = format!(
        "{} background processes, {alive} still running after the command was killed",
        left.len()
    );
    Ok(EscapeAttempt {
        description: "survive the command",
        blocked: all_exited && alive == 0,
        output,
    })
}
