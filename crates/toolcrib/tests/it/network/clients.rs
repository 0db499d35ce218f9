//! Real clients, without proxy variables.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;

/// Whether a program is installed.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}

/// What a client runs, and what its output contains if it was allowed and if it was refused.
const CLIENTS: &[(&str, &str, &str, &str)] = &[
    (
        "curl",
        "curl -sS --cacert @CA@ https://HOST/hello; curl -sS http://HOST/hello",
        "hello\nhello\n",
        "access denied",
    ),
    ("wget", "wget -nv --ca-certificate=@CA@ -O - https://HOST/hello", "hello\n", "HOST"),
    (
        "git",
        "rm -rf clone; GIT_SSL_CAINFO=@CA@ git clone -q https://HOST/repo.git clone && cat clone/file",
        "content\n",
        "denied",
    ),
    (
        "python3",
        "SSL_CERT_FILE=@CA@ python3 -c 'import urllib.request as u; print(u.urlopen(\"https://HOST/hello\").read())'",
        "b'hello\\n'",
        "denied",
    ),
    (
        "python3",
        "python3 -c 'import socket; s = socket.create_connection((\"HOST\", 80)); s.sendall(b\"GET /hello HTTP/1.0\\r\\n\\r\\n\"); print(s.makefile().read())'",
        "hello",
        "403 Forbidden",
    ),
    (
        "node",
        "NODE_EXTRA_CA_CERTS=@CA@ node -e 'fetch(\"https://HOST/hello\").then(r => r.text()).then(console.log).catch(e => console.log(e.cause))'",
        "hello",
        "access denied",
    ),
    (
        "node",
        "NODE_EXTRA_CA_CERTS=@CA@ node -e 'require(\"https\").get(\"https://HOST/hello\", r => r.pipe(process.stdout)).on(\"error\", e => console.log(e.message))'",
        "hello",
        "access denied",
    ),
    (
        "npm",
        "rm -rf node_modules package.json; npm_config_cache=/tmp/npm npm_config_cafile=@CA@ npm install --no-audit --no-fund --fetch-retries=0 --registry=https://HOST tiny; cat node_modules/tiny/package.json",
        "\"name\": \"tiny\"",
        "access denied",
    ),
    (
        "pip",
        "PIP_CONFIG_FILE=/dev/null PIP_INDEX_URL=https://HOST/simple PIP_CERT=@CA@ pip install --no-cache-dir --disable-pip-version-check --retries 0 --target lib tiny",
        "Successfully installed tiny",
        "HOST",
    ),
    (
        "java",
        "cat > Get.java <<'END'\nimport java.net.*; import java.net.http.*;\nclass Get { public static void main(String[] a) throws Exception {\nvar r = HttpRequest.newBuilder(URI.create(\"http://HOST/hello\")).build();\nSystem.out.println(HttpClient.newHttpClient().send(r, HttpResponse.BodyHandlers.ofString())); } }\nEND\njava Get.java",
        " 200",
        " 403",
    ),
    (
        "cargo",
        "mkdir -p rust-HOST/src; cd rust-HOST; touch src/lib.rs\n\
         printf '[workspace]\\n[package]\\nname = \"rust\"\\nversion = \"0.1.0\"\\n[dependencies]\\ntiny = { version = \"1\", registry = \"t\" }\\n' > Cargo.toml\n\
         export RUSTC=$(dirname @CARGO@)/rustc CARGO_HOME=$PWD/home CARGO_HTTP_CAINFO=@CA@ CARGO_NET_RETRY=0\n\
         CARGO_REGISTRIES_T_INDEX=sparse+https://HOST/index/ @CARGO@ fetch; ls home/registry/cache/*",
        "tiny-1.0.0.crate",
        "denied",
    ),
    (
        "go",
        "mkdir go-HOST; cd go-HOST; export GOPATH=$PWD GOCACHE=$PWD/cache GOFLAGS=-modcacherw GONOSUMDB=* GOTOOLCHAIN=local\n\
         GOPROXY=http://HOST/go go mod download -x example.org/tiny@v1.0.0; cat pkg/mod/example.org/*/go.mod",
        "module example.org/tiny",
        "403 Forbidden",
    ),
    (
        "apt-get",
        "mkdir -p apt-HOST/lists/partial apt-HOST/cache/archives/partial; cd apt-HOST\n\
         echo 'deb [trusted=yes allow-insecure=yes] http://HOST/debs ./' > sources\n\
         apt-get -o Dir::Etc::sourcelist=$PWD/sources -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$PWD/lists \\\n\
         -o Dir::Cache=$PWD/cache -o APT::Sandbox::User=root -o Acquire::Retries=0 update; ls lists",
        "_debs_._Packages",
        "403",
    ),
];

/// The path of cargo, which has rustc beside it. The proxies of rustup need the home directory.
fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

#[test]
fn clients_reach_allowed_hosts_and_print_refusals() {
    let listed = Listed::new();
    for (program, script, allowed, refused) in CLIENTS {
        if !is_installed(program) {
            continue;
        }
        // Directories that it enters are not kept.
        let script = format!("(\n{}\n)", script.replace("@CARGO@", &cargo()));
        let host = if *program == "npm" { "npm.ok.test" } else { "a.ok.test" };
        let reply = listed.bash(&script.replace("HOST", host));
        assert!(reply.contains(allowed), "{program}\n{reply}");
        assert!(reply.contains(&format!("[network: {host}:")), "{program}\n{reply}");
        // In a file: otherwise the command would be refused before it starts.
        let script = script.replace("HOST", "no.other.test");
        let script = script.replace("@CA@", &listed.server.certificate);
        std::fs::write(listed.top.path().join("ws/run.sh"), script).unwrap();
        let reply = listed.bash("bash ./run.sh");
        let refused = refused.replace("HOST", "no.other.test");
        assert!(reply.contains(&refused), "{program}\n{reply}");
        assert!(reply.contains("[network: no.other.test:"), "{program}\n{reply}");
        assert!(!reply.contains(allowed), "{program}\n{reply}");
    }
}

/// npm warns of variables that begin with `npm_config_` and that it does not know. Older versions of pnpm need one.
#[test]
fn npm_does_not_warn_of_the_store_of_pnpm() {
    let listed = Listed::new();
    listed.bash("export HOME=/home/me");
    let variables = "echo \"[$npm_config_store_dir] [$pnpm_config_store_dir] [$PNPM_HOME]\"";
    let reply = listed.bash(&format!("{variables} # for pnpm"));
    let expected = "[/tmp/cache/pnpm/store] [/tmp/cache/pnpm/store] [/tmp/cache/pnpm]\n";
    assert!(reply.contains(expected), "{reply}");
    let reply = listed.bash("echo \"[$npm_config_store_dir] [$PNPM_HOME]\"");
    assert!(reply.contains("[] [/tmp/cache/pnpm]\n"), "{reply}");
    if is_installed("npm") {
        let reply = listed.bash("npm ls");
        assert!(reply.contains("(empty)") && !reply.contains("Unknown env config"), "{reply}");
    }
}

#[test]
fn ssh_prints_the_reason_of_a_refusal() {
    if !is_installed("ssh") {
        return;
    }
    let listed = Listed::new();
    let reply = listed
        .bash("h=$(echo other.test); ssh -o StrictHostKeyChecking=no -o BatchMode=yes me@$h true");
    assert!(reply.contains("Toolcrib refused the connection to other.test:22"), "{reply}");
}

#[test]
fn git_fetches_over_ssh() {
    let Some(sshd) = Sshd::start() else { return };
    let ports = [(22, sshd.port)];
    let listed = Listed::with(&[], UpstreamProxies::default(), &ports);
    let key = listed.top.path().join("ws/key");
    std::fs::copy(sshd.top.path().join("user_key"), &key).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let repository = sshd.top.path().join("repo.git");
    let reply = listed.bash(&format!(
        "export GIT_SSH_COMMAND='ssh -F none -i {} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null'\n\
         git clone -q ssh://$(id -un)@git.ok.test{} clone && cat clone/file",
        key.display(),
        repository.display()
    ));
    assert!(reply.contains("content\n"), "{reply}");
    assert!(reply.contains("[network: git.ok.test:22 allowed by rule:tests]"), "{reply}");
}

/// A real server of OpenSSH, which ends with the test, and a repository.
struct Sshd {
    top: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Sshd {
    /// `None` without sshd, which `cargo xtask ci test` installs.
    fn start() -> Option<Sshd> {
        const PROGRAM: &str = "/usr/sbin/sshd";
        if !Path::new(PROGRAM).exists() {
            return None;
        }
        let top = crate::command_directory();
        let at = |name: &str| top.path().join(name).display().to_string();
        for key in ["host_key", "user_key"] {
            run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]);
        }
        let work = at("work");
        run("git", &["init", "-q", &work]);
        std::fs::write(top.path().join("work/file"), "content\n").unwrap();
        run("git", &["-C", &work, "add", "file"]);
        let author = ["-c", "user.name=t", "-c", "user.email=t@t"];
        run("git", &[&author[..], &["-C", &work, "commit", "-q", "-m", "first"]].concat());
        run("git", &["clone", "-q", "--bare", &work, &at("repo.git")]);
        // The server needs it if it runs as root.
        let _ = std::fs::create_dir("/run/sshd");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\n",
            at("host_key"),
            at("user_key.pub")
        );
        std::fs::write(at("sshd_config"), settings).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["-D", "-e", "-f", &at("sshd_config")]).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        crate::eventually(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Sshd { top, port, child })
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(program: &str, words: &[&str]) {
    assert!(Command::new(program).args(words).status().unwrap().success(), "{program} {words:?}");
}

/// Large transfers in both directions, several at a time.
#[test]
fn large_files_are_copied_whole() {
    let listed = Listed::new();
    let reply = listed.bash(
        "for i in 1 2 3 4; do curl -s http://a.ok.test/large -o large$i & done; wait; cat large? | wc -c; \
         sha256sum large? | cut -d' ' -f1 | sort -u | wc -l; \
         curl -s -T large1 -X POST http://a.ok.test/ -w '%{http_code} %{size_upload}\\n'",
    );
    assert!(reply.starts_with("33554432\n1\n200 8388608\n"), "{reply}");
    let most = |field: fn(&toolcrib::ConnectionEntry) -> u64| {
        let all = listed.connections("a.ok.test");
        all.iter().map(field).max().unwrap_or(0)
    };
    crate::eventually(|| most(|entry| entry.sent) > 8_388_608);
    assert!(most(|entry| entry.received) > 8_388_608);
}
