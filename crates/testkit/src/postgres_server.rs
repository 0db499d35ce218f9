//! A real PostgreSQL server in a temporary directory, for tests of the store. Only its unix socket and one loopback port lead
//! to it. It does not run as root.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The password of the administrator.
const PASSWORD: &str = "admin-secret-0f3a";

/// Where Debian and its derivatives have the programs of the server.
const PROGRAMS: &str = "/usr/lib/postgresql";

/// Set where the tests must not be skipped.
const REQUIRED: &str = "TOOLCRIB_NEEDS_POSTGRES";

/// A server. It ends with this value.
#[derive(Debug)]
pub struct PostgresServer {
    top: tempfile::TempDir,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    port: u16,
    settings: Vec<String>,
    postmaster: Option<Child>,
}

impl PostgresServer {
    /// Starts a server. `None` if PostgreSQL is not installed; the reason is printed.
    ///
    /// # Panics
    ///
    /// Panics if the server does not start, or if it is missing where it is required.
    pub fn start() -> Option<PostgresServer> {
        PostgresServer::start_with(&[], |_| {})
    }

    /// Starts a server with these settings, such as `ssl=on`, after its directory was prepared.
    ///
    /// # Panics
    ///
    /// Panics if the server does not start, or if it is missing where it is required.
    #[expect(clippy::print_stderr, reason = "a test says why it is skipped")]
    pub fn start_with(settings: &[&str], prepare: impl FnOnce(&Path)) -> Option<PostgresServer> {
        let Some(programs) = programs() else {
            assert!(
                std::env::var_os(REQUIRED).is_none(),
                "{REQUIRED} is set, but PostgreSQL is not installed"
            );
            eprintln!(
                "skipped: PostgreSQL is not installed in {PROGRAMS}; the package is `postgresql`"
            );
            return None;
        };
        let top = tempfile::tempdir().expect("a temporary directory");
        let user = server_user();
        let words = top.path().join("password");
        std::fs::write(&words, PASSWORD).expect("a file with the password");
        for path in [top.path(), &words] {
            user.inspect(|&(uid, gid)| chown(path, Some(uid), Some(gid)).expect("a changed owner"));
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("the port").port();
        drop(listener);
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut server = PostgresServer { top, programs, user, port, settings, postmaster: None };
        let made = server
            .command("initdb")
            .args(["--no-sync", "--auth=scram-sha-256", "--username=admin", "--encoding=UTF8"])
            .args(["--locale=C", "--no-instructions", "--pwfile"])
            .arg(&words)
            .arg("--pgdata")
            .arg(server.data())
            .output()
            .expect("initdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        prepare(&server.data());
        if let Some((uid, gid)) = server.user {
            let owned = Command::new("chown")
                .arg("-R")
                .arg(format!("{uid}:{gid}"))
                .arg(server.data())
                .status();
            assert!(owned.expect("chown").success());
        }
        server.restart();
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.top.path().join("data")
    }

    /// A program of the server, as its user.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.env_remove("PGDATA").env("PGPASSWORD", PASSWORD).stdin(Stdio::null());
        command.current_dir(self.top.path());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Starts the server, after it was killed or stopped.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    pub fn restart(&mut self) {
        // Processes of the killed server may hold its memory for a moment.
        for _ in 0..50 {
            let mut command = self.command("postgres");
            let log = self.top.path().join("log");
            let log = std::fs::File::options().create(true).append(true).open(log).expect("a log");
            let socket = self.top.path().display().to_string();
            let settings = [
                format!("unix_socket_directories={socket}"),
                format!("port={}", self.port),
                "listen_addresses=127.0.0.1".to_owned(),
                "fsync=off".to_owned(),
                "shared_buffers=16MB".to_owned(),
                "max_connections=40".to_owned(),
            ];
            command.arg("-D").arg(self.data());
            for setting in settings.iter().chain(&self.settings) {
                command.arg("-c").arg(setting);
            }
            let mut child = command.stdout(Stdio::null()).stderr(log).spawn().expect("postgres");
            while child.try_wait().expect("its state").is_none() {
                if self.try_psql("admin", PASSWORD, "postgres", "SELECT 1").status.success() {
                    self.postmaster = Some(child);
                    return;
                }
                std::thread::sleep(Duration::from_millis(30));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{}", std::fs::read_to_string(self.top.path().join("log")).unwrap_or_default());
    }

    /// Kills the server without a chance to clean up.
    ///
    /// # Panics
    ///
    /// Panics if it does not run.
    pub fn kill(&mut self) {
        let children = self.children();
        let mut postmaster = self.postmaster.take().expect("a running server");
        postmaster.kill().expect("a signal");
        postmaster.wait().expect("its end");
        children.iter().for_each(|child| signal("KILL", *child));
    }

    /// Stops all processes of the server, or lets them go on: a server that accepts connections and does not answer.
    ///
    /// # Panics
    ///
    /// Panics if it does not run.
    pub fn freeze(&self, is_frozen: bool) {
        let name = if is_frozen { "STOP" } else { "CONT" };
        let postmaster = self.postmaster.as_ref().expect("a running server").id();
        signal(name, postmaster);
        self.children().iter().for_each(|child| signal(name, *child));
    }

    fn children(&self) -> Vec<u32> {
        let Some(postmaster) = &self.postmaster else { return Vec::new() };
        let path = format!("/proc/{0}/task/{0}/children", postmaster.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// The address of a database for a user, over the unix socket.
    pub fn url(&self, user: &str, password: &str, database: &str) -> String {
        let socket = self.top.path().display();
        format!("postgres://{user}:{password}@/{database}?host={socket}&port={}", self.port)
    }

    /// The address of the administrator.
    pub fn admin_url(&self, database: &str) -> String {
        self.url("admin", PASSWORD, database)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The password of the administrator.
    pub fn admin_password(&self) -> &'static str {
        PASSWORD
    }

    /// Runs statements with psql as the administrator, and returns what it prints.
    ///
    /// # Panics
    ///
    /// Panics if they fail.
    pub fn psql(&self, database: &str, statements: &str) -> String {
        let done = self.try_psql("admin", PASSWORD, database, statements);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Runs statements with psql as a user.
    ///
    /// # Panics
    ///
    /// Panics if psql is missing.
    pub fn try_psql(&self, user: &str, password: &str, database: &str, statements: &str) -> Output {
        let socket = self.top.path().display().to_string();
        let port = self.port.to_string();
        let mut psql = Command::new(self.programs.join("psql"));
        psql.env("PGPASSWORD", password).env("PGCONNECT_TIMEOUT", "5").current_dir("/");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", &socket, "-p", &port]);
        psql.args(["-U", user, "-d", database, "-c", statements]).output().expect("psql")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.postmaster.is_some() {
            self.kill();
        }
    }
}

fn signal(name: &str, process: u32) {
    let _ = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status();
}

/// The directory with the programs of the newest installed server.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(PROGRAMS).ok()?.flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(number)?.join("bin");
    ["initdb", "postgres", "psql"].iter().all(|name| newest.join(name).exists()).then_some(newest)
}

/// The user of the server if this process is root, which the server refuses.
fn server_user() -> Option<(u32, u32)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    is_root.then(|| ids("postgres").or_else(|| ids("nobody")).unwrap_or((65_534, 65_534)))
}

/// Makes a key of the server readable for it only.
///
/// # Panics
///
/// Panics if the file is missing.
pub fn make_private(file: &Path) {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
}
