//! What lies around a session and must not change: a file with all that is known of it, keys, servers that
//! nobody reaches, a repository's hooks.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::Result;

const CONTENT: &str = "canary\n";
const CONFIG: &str = "[core]\n\tbare = false\n";

/// All of them.
pub(super) struct Canaries {
    top: TempDir,
    /// Another directory, in `/tmp`.
    in_tmp: TempDir,
    /// A word that is nowhere else.
    word: String,
    tcp: TcpListener,
    udp: UdpSocket,
    sockets: Vec<UnixListener>,
    /// What is known of the file: mode, owner, times.
    about: (u32, u32, i64, i64, u64),
}

impl Canaries {
    pub(super) fn make(beneath: &Path) -> Result<Canaries> {
        let top = tempfile::Builder::new().prefix("canaries-").tempdir_in(beneath)?;
        let in_tmp = tempfile::tempdir()?;
        let word =
            format!("{:x}", crate::random::Random::new(u64::from(std::process::id())).next());
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
        // Who may not reach them must not be kept from it by something else.
        for open in [in_tmp.path().to_owned(), in_tmp.path().join("socket"), at("out/socket")] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o777))?;
        }
        // A state directory is not used below one that others can write.
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755))?;
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        tcp.set_nonblocking(true)?;
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        udp.set_nonblocking(true)?;
        let about = about(&at("out/canary"))?;
        Ok(Canaries { top, in_tmp, word, tcp, udp, sockets, about })
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

    /// What a script prints that got out.
    pub(super) fn got_out(&self) -> String {
        format!("got-out-{}", self.word)
    }

    /// Makes somebody the owner of everything, and of the canary: it is not its owner that it is kept from.
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
        self.about = about(&self.top().join("out/canary"))?;
        Ok(())
    }

    /// The variables by which a script finds them.
    pub(super) fn variables(&self, runtime: u32) -> String {
        let port = |address: std::io::Result<std::net::SocketAddr>| {
            address.map_or(0, |address| address.port())
        };
        let word = self.got_out();
        // In two parts, so that the script itself does not have it when it is repeated in a reply.
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

    /// What is not as it was, each as a sentence; it is put right again.
    pub(super) fn damage(&mut self, said: &str) -> Result<Vec<String>> {
        let mut damage = Vec::new();
        if said.contains(&format!("secret-{}", self.word)) {
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
            self.about = about(&canary)?;
        }
        if about(&canary)? != self.about {
            damage.push("the canary's mode, owner or times changed".to_owned());
            self.about = about(&canary)?;
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

fn about(path: &Path) -> Result<(u32, u32, i64, i64, u64)> {
    let about = fs::metadata(path)?;
    Ok((about.mode(), about.uid(), about.mtime(), about.mtime_nsec(), about.nlink()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_to_them_is_seen() {
        let beneath = tempfile::tempdir().unwrap();
        let mut canaries = Canaries::make(beneath.path()).unwrap();
        let top = canaries.top().to_owned();
        let mut seen = |said: &str| canaries.damage(said).unwrap().len();
        assert_eq!(seen("nothing"), 0);
        fs::write(top.join("out/canary"), "evil").unwrap();
        fs::write(top.join("out/new"), "evil").unwrap();
        assert_eq!(seen(""), 2);
        assert_eq!(seen(""), 0);
        fs::set_permissions(top.join("out/canary"), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(seen(""), 1);
        std::os::unix::net::UnixStream::connect(top.join("out/socket")).unwrap();
        assert_eq!(seen(""), 1);
        let key = fs::read_to_string(top.join("home/.netrc")).unwrap();
        assert_eq!(seen(&key), 1);
        fs::write(top.join("ws/deep/er/.git/hooks/pre-commit"), "evil").unwrap();
        assert_eq!(seen(""), 1);
    }
}
