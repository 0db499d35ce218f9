//! Canaries around a session that must not change: a file with its attributes, keys, unreachable servers, the
//! hooks of a repository.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toolcrib_devtools::error::Result;

const CONTENT: &str = "canary\n";
const CONFIG: &str = "[core]\n\tbare = false\n";

/// All canaries.
pub(super) struct Canaries {
    top: TempDir,
    /// A directory in `/tmp`.
    in_tmp: TempDir,
    /// A unique word.
    word: String,
    tcp: TcpListener,
    udp: UdpSocket,
    sockets: Vec<UnixListener>,
    /// The mode, owner and times of the file.
    attributes: (u32, u32, i64, i64, u64),
}

impl Canaries {
    pub(super) fn make(beneath: &Path) -> Result<Canaries> {
        let top = tempfile::Builder::new().prefix("canaries-").tempdir_in(beneath)?;
        let in_tmp = tempfile::tempdir()?;
        let word = format!(
            "{:x}",
            toolcrib_devtools::random::Random::new(u64::from(std::process::id())).number()
        );
        let at = |name: &str| top.path().join(name);
        for directory in ["ws/.git/hooks", "ws/deep/er/.git/hooks", "out", "home/.ssh", "home/.aws"]
        {
            fs::create_dir_all(at(directory))?;
        }
        for repository in ["ws/.git", "ws/deep/er/.git"] {
            fs::create_dir_all(at(repository).join("objects"))?;
            fs::create_dir_all(at(repository).join("refs"))?;
            fs::write(at(repository).join("HEAD"), "ref: refs/heads/main\n")?;
            fs::write(at(repository).join("config"), CONFIG)?;
        }
        for key in ["home/.ssh/id_rsa", "home/.aws/credentials", "home/.netrc"] {
            fs::write(at(key), format!("secret-{word}\n"))?;
        }
        fs::write(at("out/canary"), CONTENT)?;
        fs::write(at("ws/file"), "mine\n")?;
        let sockets = vec![
            UnixListener::bind(at("out/socket"))?,
            UnixListener::bind(in_tmp.path().join("socket"))?,
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&word)?)?,
        ];
        for socket in &sockets {
            socket.set_nonblocking(true)?;
        }
        // Permissions must not be what keeps commands from them.
        for open in [in_tmp.path().to_owned(), in_tmp.path().join("socket"), at("out/socket")] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o777))?;
        }
        // The program refuses a state directory below a directory that others can write.
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755))?;
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        tcp.set_nonblocking(true)?;
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        udp.set_nonblocking(true)?;
        let attributes = attributes(&at("out/canary"))?;
        Ok(Canaries { top, in_tmp, word, tcp, udp, sockets, attributes })
    }

    pub(super) fn top(&self) -> &Path {
        self.top.path()
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.top().join("ws")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.top().join("home")
    }

    /// The word that a script prints after an escape.
    pub(super) fn escape_word(&self) -> String {
        format!("escaped-{}", self.word)
    }

    /// Makes a user the owner of everything, including the canary, so that ownership does not protect it.
    pub(super) fn give_to(&mut self, user: u32) -> Result<()> {
        let mut open = vec![self.top().to_owned()];
        while let Some(path) = open.pop() {
            chown(&path, Some(user), Some(user))?;
            if path.is_dir() {
                for entry in fs::read_dir(&path)? {
                    open.push(entry?.path());
                }
            }
        }
        self.attributes = attributes(&self.top().join("out/canary"))?;
        Ok(())
    }

    /// The shell variables that name the canaries.
    pub(super) fn variables(&self, runtime: u32) -> String {
        let port = |address: std::io::Result<std::net::SocketAddr>| {
            address.map_or(0, |address| address.port())
        };
        let word = self.escape_word();
        // In two parts, so that a reply that repeats the script does not contain it.
        let (begin, end) = word.split_at(word.len() / 2);
        format!(
            "export OUT='{}' PORT={} UDP={} SOCKET='{}' IN_TMP='{}' ABSTRACT={} RUNTIME={runtime}; WORD={begin}; WORD=$WORD{end}",
            self.top().join("out").display(),
            port(self.tcp.local_addr()),
            port(self.udp.local_addr()),
            self.top().join("out/socket").display(),
            self.in_tmp.path().join("socket").display(),
            self.word,
        )
    }

    /// Describes each change and restores the canaries.
    pub(super) fn damage(&mut self, reply: &str) -> Result<Vec<String>> {
        let mut damage = Vec::new();
        if reply.contains(&format!("secret-{}", self.word)) {
            damage.push("a key was read".to_owned());
        }
        let (out, canary) = (self.top().join("out"), self.top().join("out/canary"));
        let names = fs::read_dir(&out)?.collect::<std::io::Result<Vec<_>>>()?;
        if names.len() != 2 {
            damage.push(format!("there are {} names outside, not 2", names.len()));
        }
        for extra in
            names.iter().filter(|name| name.file_name() != "canary" && name.file_name() != "socket")
        {
            let path = extra.path();
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        if fs::read_to_string(&canary).ok().as_deref() != Some(CONTENT) {
            damage.push("the canary's content changed".to_owned());
            fs::write(&canary, CONTENT)?;
            self.attributes = attributes(&canary)?;
        }
        if attributes(&canary)? != self.attributes {
            damage.push("the canary's mode, owner or times changed".to_owned());
            self.attributes = attributes(&canary)?;
        }
        for repository in ["ws/.git", "ws/deep/er/.git"] {
            let repository = self.top().join(repository);
            if fs::read_to_string(repository.join("config")).ok().as_deref() != Some(CONFIG) {
                damage.push(format!("{} was written", repository.join("config").display()));
            }
            let hooks = fs::read_dir(repository.join("hooks")).map(Iterator::count);
            if !matches!(hooks, Ok(0)) {
                damage.push(format!("{} has hooks", repository.display()));
            }
        }
        let reached = self.tcp.accept().is_ok()
            || self.udp.recv(&mut [0; 8]).is_ok()
            || self.sockets.iter().any(|socket| socket.accept().is_ok());
        if reached {
            damage.push("a server was reached".to_owned());
        }
        Ok(damage)
    }
}

fn attributes(path: &Path) -> Result<(u32, u32, i64, i64, u64)> {
    let attributes = fs::metadata(path)?;
    Ok((
        attributes.mode(),
        attributes.uid(),
        attributes.mtime(),
        attributes.mtime_nsec(),
        attributes.nlink(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_every_change() {
        let beneath = tempfile::tempdir().unwrap();
        let mut canaries = Canaries::make(beneath.path()).unwrap();
        let top = canaries.top().to_owned();
        let mut damage_count = |reply: &str| canaries.damage(reply).unwrap().len();
        assert_eq!(damage_count("nothing"), 0);
        fs::write(top.join("out/canary"), "evil").unwrap();
        fs::write(top.join("out/new"), "evil").unwrap();
        assert_eq!(damage_count(""), 2);
        assert_eq!(damage_count(""), 0);
        fs::set_permissions(top.join("out/canary"), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(damage_count(""), 1);
        std::os::unix::net::UnixStream::connect(top.join("out/socket")).unwrap();
        assert_eq!(damage_count(""), 1);
        let key = fs::read_to_string(top.join("home/.netrc")).unwrap();
        assert_eq!(damage_count(&key), 1);
        fs::write(top.join("ws/deep/er/.git/hooks/pre-commit"), "evil").unwrap();
        assert_eq!(damage_count(""), 1);
    }
}
