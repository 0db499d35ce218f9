//! Another machine: a real sshd on loopback, with its own home directory.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{PROGRAM, command_directory, text};

const SSHD: &str = "/usr/sbin/sshd";

/// The server, the home directory of this machine, and the one of the other.
pub(super) struct LoopbackBox {
    top: tempfile::TempDir,
    sshd: Child,
}

impl LoopbackBox {
    /// Starts the server. `None` without sshd, which `cargo xtask ci test` installs.
    pub(super) fn start() -> Option<LoopbackBox> {
        if !Path::new(SSHD).exists() {
            return None;
        }
        let top = command_directory();
        for name in ["here", "there", "there/ws"] {
            std::fs::create_dir(top.path().join(name)).unwrap();
        }
        for key in ["host_key", "user_key"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
            let made = Command::new("ssh-keygen").args(words).arg(top.path().join(key)).status();
            assert!(made.unwrap().success());
        }
        // The server needs it if it runs as root.
        let _ = std::fs::create_dir("/run/sshd");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = |name: &str| top.path().join(name).display().to_string();
        let settings = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
             SetEnv HOME={home} XDG_CONFIG_HOME={home}/.config XDG_STATE_HOME={home}/.state\n",
            at("host_key"),
            at("user_key.pub"),
            home = at("there")
        );
        std::fs::write(top.path().join("sshd_config"), settings).unwrap();
        let host_key = std::fs::read_to_string(top.path().join("host_key.pub")).unwrap();
        std::fs::write(at("known_hosts"), format!("[127.0.0.1]:{port} {host_key}")).unwrap();
        let client = format!(
            "Host box other\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {}\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n",
            at("user_key"),
            at("known_hosts")
        );
        std::fs::write(at("ssh_config"), client).unwrap();
        let sshd = Command::new(SSHD)
            .args(["-D", "-e", "-f"])
            .arg(top.path().join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(at("sshd_log")).unwrap())
            .spawn()
            .unwrap();
        let mut started = LoopbackBox { top, sshd };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = started.sshd.try_wait().unwrap() {
                panic!(
                    "sshd ended: {status} {:?}",
                    std::fs::read_to_string(started.path("sshd_log"))
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(started)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// The ssh command of the user.
    pub(super) fn ssh(&self) -> String {
        format!("ssh -F {}", self.path("ssh_config").display())
    }

    /// Runs the program on this machine.
    pub(super) fn toolcrib(&self, words: &[&str]) -> Output {
        self.toolcrib_with(&self.ssh(), words)
    }

    pub(super) fn toolcrib_with(&self, ssh: &str, words: &[&str]) -> Output {
        let here = self.path("here");
        Command::new(PROGRAM)
            .args(words)
            .current_dir(&here)
            .env("HOME", &here)
            .env("XDG_CONFIG_HOME", here.join(".config"))
            .env("XDG_STATE_HOME", here.join(".state"))
            .env("TOOLCRIB_SSH", ssh)
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("CODEX_HOME")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The stdout of a command that must succeed.
    pub(super) fn answer(&self, words: &[&str]) -> String {
        let done = self.toolcrib(words);
        assert!(done.status.success(), "{words:?}: {}", text(&done.stderr));
        text(&done.stdout).to_owned()
    }

    /// The stderr of a command that must fail.
    pub(super) fn refusal(&self, words: &[&str]) -> String {
        let done = self.toolcrib(words);
        assert!(!done.status.success(), "{words:?}: {}", text(&done.stdout));
        text(&done.stderr).to_owned()
    }

    /// Installs the program there without copying all of it.
    pub(super) fn link_program(&self) {
        let directory = self.path("there/.local/bin");
        std::fs::create_dir_all(&directory).unwrap();
        std::os::unix::fs::symlink(PROGRAM, directory.join("toolcrib")).unwrap();
    }

    /// Starts the server as Claude Code would.
    pub(super) fn connect(&self, server: &str) -> Connection {
        let file = std::fs::read(self.path("here/.claude.json")).unwrap();
        let file: Value = serde_json::from_slice(&file).unwrap();
        let entry = &file["mcpServers"][server];
        let arguments = entry["args"].as_array().unwrap();
        let arguments = arguments.iter().map(|argument| argument.as_str().unwrap().to_owned());
        let program = entry["command"].as_str().unwrap();
        let mut ssh = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (ssh.stdin.take().unwrap(), ssh.stdout.take().unwrap());
        Connection { ssh, input, output: BufReader::new(output), calls: 0 }
    }

    /// The processes that sshd and its commands have started, with their names.
    pub(super) fn processes(&self) -> Vec<(u32, String)> {
        let home = format!("HOME={}", self.path("there").display());
        let mut found = descendants(self.sshd.id());
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let is_ours = environment.split(|&byte| byte == 0).any(|one| one == home.as_bytes());
            if is_ours && found.iter().all(|(other, _)| *other != id) {
                found.push((id, name_of(id)));
            }
        }
        found
    }

    /// Waits until nothing is left of any connection.
    pub(super) fn wait_until_idle(&self) {
        while !self.processes().is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the processes of sshd that serve connections.
    pub(super) fn kill_sessions(&self) {
        for (id, name) in descendants(self.sshd.id()) {
            if name.starts_with("sshd") {
                kill(id);
            }
        }
    }
}

impl Drop for LoopbackBox {
    fn drop(&mut self) {
        self.kill_sessions();
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

/// A client with a server on the other machine.
pub(super) struct Connection {
    ssh: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Connection {
    /// The text of a reply.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> String {
        self.start_call(tool, arguments);
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.calls, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Sends a call and does not wait.
    pub(super) fn start_call(&mut self, tool: &str, arguments: Value) {
        self.calls += 1;
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let call =
            json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params});
        writeln!(self.input, "{call}").unwrap();
    }

    /// Kills the ssh process of the client.
    pub(super) fn kill(&mut self) {
        self.ssh.kill().unwrap();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}

fn kill(id: u32) {
    // It may have ended already.
    let _ = Command::new("kill").arg("-KILL").arg(id.to_string()).stderr(Stdio::null()).status();
}

fn name_of(id: u32) -> String {
    std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default().trim().to_owned()
}

fn descendants(id: u32) -> Vec<(u32, String)> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse::<u32>().ok());
    let with_name = children.flat_map(|child| {
        let mut all = vec![(child, name_of(child))];
        all.extend(descendants(child));
        all
    });
    with_name.collect()
}
