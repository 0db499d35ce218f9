"""Serves the current directory by HTTP and HTTPS, with a git repository and packages in it. Ends with its stdin."""
import base64, functools, hashlib, http.server, io, json, os, ssl, subprocess, sys, tarfile, threading, zipfile

NAMES = ["ok.test", "*.ok.test", "*.test", "localhost"]


def certificate():
    names = ",".join("DNS:" + name for name in NAMES)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
         "-days", "30", "-subj", "/CN=ok.test", "-addext", "subjectAltName=" + names],
        check=True, capture_output=True)


def repository():
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    quiet = dict(check=True, capture_output=True)
    subprocess.run([*git, "init", "work"], **quiet)
    open("work/file", "w").write("content\n")
    subprocess.run([*git, "-C", "work", "add", "file"], **quiet)
    subprocess.run([*git, "-C", "work", "commit", "-m", "first"], **quiet)
    subprocess.run([*git, "clone", "--bare", "work", "repo.git"], **quiet)
    subprocess.run([*git, "-C", "repo.git", "update-server-info"], **quiet)


def wheel():
    os.makedirs("simple/tiny", exist_ok=True)
    name = "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile("simple/tiny/" + name, "w") as archive:
        archive.writestr("tiny.py", "print('tiny')\n")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    open("simple/tiny/index.html", "w").write(f'<a href="{name}">{name}</a>')


def package():
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        body = json.dumps({"name": "tiny", "version": "1.0.0"}).encode()
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))
    content = content.getvalue()
    os.makedirs("npm", exist_ok=True)
    open("npm/tiny-1.0.0.tgz", "wb").write(content)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    version = {"name": "tiny", "version": "1.0.0",
               "dist": {"tarball": "https://npm.ok.test/npm/tiny-1.0.0.tgz", "integrity": integrity}}
    open("tiny", "w").write(json.dumps({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))


def crate():
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, body in (("Cargo.toml", '[package]\nname = "tiny"\nversion = "1.0.0"\n'), ("src/lib.rs", "")):
            entry = tarfile.TarInfo("tiny-1.0.0/" + name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body.encode()))
    content = content.getvalue()
    os.makedirs("crates/tiny/1.0.0")
    open("crates/tiny/1.0.0/download", "wb").write(content)
    os.makedirs("index/ti/ny")
    open("index/config.json", "w").write(json.dumps({"dl": "https://a.ok.test/crates"}))
    version = {"name": "tiny", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
               "cksum": hashlib.sha256(content).hexdigest()}
    open("index/ti/ny/tiny", "w").write(json.dumps(version) + "\n")


def go_module():
    os.makedirs("go/example.org/tiny/@v")
    base, text = "go/example.org/tiny/@v/v1.0.0", "module example.org/tiny\n"
    open(base + ".info", "w").write(json.dumps({"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}))
    open(base + ".mod", "w").write(text)
    with zipfile.ZipFile(base + ".zip", "w") as archive:
        archive.writestr("example.org/tiny@v1.0.0/go.mod", text)


def debian_packages():
    os.makedirs("debs")
    open("debs/Packages", "w").write(
        "Package: tiny\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@t>\nFilename: ./tiny.deb\nSize: 1\n"
        "MD5sum: 00000000000000000000000000000000\nDescription: tiny\n")


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "http://private.test/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        super().do_GET()

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        while length > 0:
            length -= len(self.rfile.read(min(length, 65536)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


certificate(); repository(); wheel(); package(); crate(); go_module(); debian_packages()
open("hello", "w").write("hello\n")
open("large", "wb").write(os.urandom(1 << 20) * 8)
plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
secure = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
for server in (plain, secure):
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(plain.server_port, secure.server_port, flush=True)
sys.stdin.read()
