//! Real clients, without proxy variables.

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
];

#[test]
fn clients_reach_allowed_hosts_and_print_refusals() {
    let listed = Listed::new();
    for (program, script, allowed, refused) in CLIENTS {
        if !is_installed(program) {
            continue;
        }
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
