//! `toolcrib sandboxd`: files over REST, and who may use them. `cargo xtask sandboxd` checks processes, with a client of gRPC.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::{PROGRAM, isolated_home, text, toolcrib};

struct Server {
    directory: tempfile::TempDir,
    child: Child,
    said: String,
}

impl Server {
    fn start(flags: &[&str]) -> Server {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("ws")).unwrap();
        let mut child = Command::new(PROGRAM)
            .args(["sandboxd", "--root", "ws", "--state", "state", "--rest", "0", "--grpc", "0"])
            .args(flags)
            .current_dir(directory.path())
            .envs(isolated_home())
            .env("SANDBOX_ID", "one")
            .env("SANDBOX_TOKEN", "secret")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        Server { directory, child, said }
    }

    /// The status and the body of the response to a request.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String) {
        let port = self.said.split("http://127.0.0.1:").nth(1).unwrap().split('/').next().unwrap();
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        let length = body.len();
        let host = if headers.contains("Host:") { "" } else { "Host: localhost\r\n" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        let response = String::from_utf8(response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn status(&self, method: &str, path: &str) -> u16 {
        self.ask(method, path, "", b"x").0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn files_are_written_listed_and_removed_in_the_workspace_only() {
    let server = Server::start(&["--trust-network"]);
    let root = server.directory.path().join("ws");
    let (status, body) = server.ask("PUT", "/v1/files/dir%2Fa.txt?mode=0750", "", b"one");
    assert_eq!(status, 204, "{body}");
    assert_eq!(std::fs::read(root.join("dir/a.txt")).unwrap(), b"one");
    let mode = std::fs::metadata(root.join("dir/a.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert_eq!(server.ask("GET", "/v1/files/dir/a.txt", "", b""), (200, "one".to_owned()));
    let listing: Value =
        serde_json::from_str(&server.ask("GET", "/v1/files/dir", "", b"").1).unwrap();
    assert_eq!(listing["path"], "/dir");
    let entry = &listing["entries"][0];
    let facts = [&entry["name"], &entry["type"], &entry["size"], &entry["mode"]];
    assert_eq!(facts, [&Value::from("a.txt"), &"file".into(), &3.into(), &"0750".into()]);
    symlink("/etc", root.join("link")).unwrap();
    for (method, path, expected) in [
        ("GET", "/v1/files/link/passwd", 403),
        ("PUT", "/v1/files/link/x", 403),
        ("GET", "/v1/files/%2e%2e/state", 403),
        ("GET", "/v1/files/%2fetc%2fpasswd", 404),
        ("PUT", "/v1/files/b?mode=777", 400),
        ("PUT", "/v1/files/dir", 400),
        ("DELETE", "/v1/files/dir", 409),
        ("POST", "/v1/files/dir", 405),
        ("GET", "/v1/filesystem", 404),
        ("DELETE", "/v1/files/dir?recursive=true", 204),
        ("HEAD", "/v1/files/dir", 404),
    ] {
        assert_eq!(server.status(method, path), expected, "{method} {path}");
    }
    let undone =
        toolcrib(server.directory.path(), &["undo", "--root", "ws", "--state", "state", "-y"], b"");
    assert!(undone.status.success(), "{}", text(&undone.stderr));
    assert_eq!(std::fs::read(root.join("dir/a.txt")).unwrap(), b"one");
}

#[test]
fn a_workspace_is_emptied_as_a_whole_or_not_at_all() {
    let server = Server::start(&["--trust-network"]);
    let root = server.directory.path().join("ws");
    for name in ["a/b/c.txt", "d.txt", "e.txt"] {
        let (status, body) = server.ask("PUT", &format!("/v1/files/{name}"), "", b"text");
        assert_eq!(status, 204, "{body}");
    }
    let socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    assert_eq!(server.status("DELETE", "/v1/files/?recursive=true"), 400);
    assert!(root.join("a/b/c.txt").exists() && root.join("d.txt").exists());
    drop(socket);
    std::fs::remove_file(root.join("socket")).unwrap();
    assert_eq!(server.status("DELETE", "/v1/files/?recursive=true"), 204);
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
    let undone =
        toolcrib(server.directory.path(), &["undo", "--root", "ws", "--state", "state", "-y"], b"");
    assert!(undone.status.success(), "{}", text(&undone.stderr));
    for name in ["a/b/c.txt", "d.txt", "e.txt"] {
        assert_eq!(std::fs::read(root.join(name)).unwrap(), b"text");
    }
}

#[test]
fn a_token_is_needed_and_health_checks_are_not_refused() {
    let server = Server::start(&[]);
    let file = server.said.split("the token is in ").nth(1).unwrap().trim();
    let token = std::fs::read_to_string(file).unwrap();
    let bearer = format!("Authorization: Bearer {}\r\n", token.trim());
    assert_eq!(server.status("GET", "/v1/health"), 200);
    assert_eq!(server.status("GET", "/v1/files/"), 401);
    let (status, metadata) = server.ask("GET", "/v1/metadata", &bearer, b"");
    assert_eq!(status, 200);
    assert!(metadata.contains("SANDBOX_ID") && !metadata.contains("secret"), "{metadata}");
    for headers in ["Host: evil.example\r\n", "Origin: http://localhost\r\n"] {
        let (status, _) = server.ask("GET", "/v1/files/", &format!("{headers}{bearer}"), b"");
        assert_eq!(status, 403, "{headers}");
    }
    let words = ["sandboxd", "--rest", "0.0.0.0:0", "--state", "other"];
    let refused = toolcrib(server.directory.path(), &words, b"");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--trust-network"), "{}", text(&refused.stderr));
}
