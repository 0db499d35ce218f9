//! HTTP/2 on both sides, with node as the server and as the client.

use super::*;

/// Serves HTTP/2 and prints its port. Logs requests like the other server.
const SERVER: &str = r#"
const http2 = require("http2"), fs = require("fs");
const server = http2.createSecureServer({ key: fs.readFileSync("key.pem"), cert: fs.readFileSync("cert.pem"), allowHTTP1: false });
server.on("stream", (stream, headers) => {
  fs.appendFileSync("requests.log", JSON.stringify([headers[":method"], headers[":path"], Object.entries(headers).map(([k, v]) => [k, String(v)])]) + "\n");
  let size = 0, sum = "none";
  stream.on("trailers", (trailers) => { sum = trailers["x-sum"]; });
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": sum }));
  stream.on("data", (part) => { size += part.length; });
  stream.on("end", () => { stream.respond({ ":status": 200 }, { waitForTrailers: true }); stream.end(`h2 ${headers[":method"]} ${size}\n`); });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit()).resume();
"#;

/// Opens a session and sends requests whose pseudo headers it chooses.
const CLIENT: &str = r#"
const http2 = require("http2");
const session = http2.connect("https://h2.ok.test:8443");
session.on("error", (e) => console.log("session", e.message));
const send = (headers, body) => new Promise((done) => {
  const stream = session.request(headers, { waitForTrailers: true });
  let text = "", status;
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "7" }));
  stream.on("trailers", (trailers) => { text += ` trailer ${trailers["x-sum"]}`; });
  stream.on("response", (head) => { status = head[":status"]; });
  stream.on("data", (part) => { text += part; });
  stream.on("error", (e) => done(`error ${e.code}`));
  stream.on("close", () => done(`${status} ${text.replace("\n", "")}`));
  stream.end(body);
});
(async () => {
  console.log("get", await send({ ":path": "/v1/x" }));
  console.log("post", await send({ ":path": "/v1/size", ":method": "POST" }, "x".repeat(300000)));
  console.log("delete", await send({ ":path": "/v1/x", ":method": "DELETE" }));
  console.log("private", await send({ ":path": "/v1/private" }));
  console.log("dots", await send({ ":path": "/v1/../x" }));
  console.log("authority", await send({ ":path": "/v1/x", ":authority": "open.ok.test:8443" }));
  console.log("host", await send({ ":path": "/v1/x", host: "open.ok.test:8443" }));
  console.log("both", await send({ ":path": "/v1/x", ":authority": "h2.ok.test:8443", host: "open.ok.test:8443" }));
  console.log("scheme", await send({ ":path": "/v1/x", ":scheme": "http" }));
  console.log("connect", await send({ ":method": "CONNECT", ":authority": "open.ok.test:443" }));
  console.log("many", (await Promise.all([...Array(50)].map((_, i) => send({ ":path": `/v1/many${i}` })))).every((r) => r.startsWith("200")));
  session.close();
})();
"#;

#[test]
fn requests_of_http2_are_decided_on_one_by_one() {
    if !is_installed("node") {
        return;
    }
    let server = Server::running(INSPECTED_SERVER, "ca.pem");
    let directory = Path::new(&server.certificate).parent().unwrap().to_owned();
    let mut node = Command::new("node")
        .args(["-e", SERVER])
        .current_dir(&directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(node.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ports = HashMap::from([(8443, line.trim().parse().unwrap())]);
    let secret = "s3cret-0f-http2";
    let injection = Injection {
        host: "h2.ok.test".to_owned(),
        port: 8443,
        header: "X-Key".to_owned(),
        format: "{}".to_owned(),
        secret: secret.to_owned(),
        placeholder: None,
    };
    let inspected = Inspected::on(server, RULES, vec![injection], ports, Vec::new());
    std::fs::write(inspected.top.path().join("ws/client.js"), CLIENT).unwrap();
    let reply = inspected.bash("node client.js");
    for line in [
        "get 200 h2 GET 0",
        "post 200 h2 POST 300000 trailer 7",
        "delete 403 Toolcrib refused DELETE /v1/x",
        "private 403",
        "dots 403",
        "authority 403",
        "many true",
    ] {
        assert!(reply.contains(line), "{line}\n{reply}");
    }
    let arrived = inspected.arrived();
    let allowed = |line: &String| {
        line == "GET /v1/x" || line == "POST /v1/size" || line.starts_with("GET /v1/many")
    };
    assert!(arrived.iter().all(|(line, _)| allowed(line)), "{arrived:?}");
    assert_eq!(arrived.iter().filter(|(line, _)| line == "GET /v1/x").count(), 1, "{reply}");
    let has_key = |headers: &Vec<(String, String)>| {
        headers.iter().any(|(name, value)| name == "x-key" && value == secret)
    };
    assert!(arrived.iter().all(|(_, headers)| has_key(headers)));
    if is_installed("curl") {
        let reply =
            inspected.bash("curl -sS --http2 -w '%{http_version}\\n' https://h2.ok.test:8443/v1/x");
        assert!(reply.starts_with("h2 GET 0\n2\n"), "{reply}");
    }
    drop(node.stdin.take());
    let _ = node.kill();
    let _ = node.wait();
}
