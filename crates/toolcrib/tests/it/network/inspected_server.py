"""Serves HTTP and HTTPS, with a git repository that accepts pushes. Logs each request that arrives. Ends with its stdin."""
import base64, hashlib, http.server, json, os, ssl, subprocess, sys, threading

QUIET = dict(check=True, capture_output=True)


def certificates():
    openssl = lambda *args: subprocess.run(["openssl", *args], **QUIET)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "30",
            "-subj", "/CN=test authority")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "leaf.csr", "-subj", "/CN=ok.test")
    open("leaf.ext", "w").write("subjectAltName=DNS:*.ok.test\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
            "-extfile", "leaf.ext", "-out", "cert.pem")


def repository():
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "work"], **QUIET)
    open("work/file", "w").write("content\n")
    subprocess.run([*git, "-C", "work", "add", "file"], **QUIET)
    subprocess.run([*git, "-C", "work", "commit", "-m", "first"], **QUIET)
    os.makedirs("git")
    subprocess.run([*git, "clone", "--bare", "work", "git/repo.git"], **QUIET)
    subprocess.run(["git", "-C", "git/repo.git", "config", "http.receivepack", "true"], **QUIET)


LOG = open("requests.log", "a", buffering=1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def log(self):
        LOG.write(json.dumps([self.command, self.path, self.headers.items()]) + "\n")

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                parts.append(self.rfile.read(size))
                self.rfile.readline()
                if not size:
                    return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, body, headers=(), status=200):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_any(self):
        self.log()
        if self.headers.get("Upgrade") == "websocket":
            return self.echo()
        body = self.body()
        path = self.path.split("?")[0]
        if path.startswith("/repo.git/"):
            return self.git(body)
        if path == "/v1/large":
            return self.reply(b"x" * (8 << 20))
        if path == "/v1/last":
            self.close_connection = True
            return self.reply(b"last\n", [("Connection", "close")])
        if path == "/v1/size":
            return self.reply(b"%d\n" % len(body))
        self.reply(b"%s %s\n" % (self.command.encode(), self.path.encode()))

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do_TRACE = do_CONNECT = handle_any

    def echo(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.wfile.write(b"echo:" + self.rfile.read(5))
        self.wfile.flush()
        self.close_connection = True

    def git(self, body):
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": os.path.abspath("git"), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "t",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
        self.reply(content, [pair for pair in headers if pair[0] != "Status"], status)


certificates(); repository()
plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
secure = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
for server in (plain, secure):
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(plain.server_port, secure.server_port, flush=True)
sys.stdin.read()
