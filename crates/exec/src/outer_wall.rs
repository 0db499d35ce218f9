//! A sandbox around this whole system, in which commands can run without one of ours.

use rustix::system::uname;

use crate::sandbox::read_kernel_log;

/// A sandbox around this system, which the operator has declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OuterWall {
    /// gVisor: a kernel of its own, without Landlock and without the namespaces that our sandbox needs.
    Gvisor,
}

/// More than gVisor's kernel log has.
const MAX_LOG_BYTES: usize = 16 << 10;

/// The release and the version that gVisor's kernel reports, whatever its own version is.
const GVISOR_UNAME: (&[u8], &[u8]) = (b"4.4.0", b"#1 SMP Sun Jan 10 15:06:54 PST 2016");

impl OuterWall {
    /// All of them.
    pub const ALL: [OuterWall; 1] = [OuterWall::Gvisor];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            OuterWall::Gvisor => "gvisor",
        }
    }

    /// Its name for people.
    pub fn shown(self) -> &'static str {
        match self {
            OuterWall::Gvisor => "gVisor",
        }
    }

    /// Whether this system is inside it.
    pub fn is_here(self) -> bool {
        match self {
            OuterWall::Gvisor => {
                let mut log = [0; MAX_LOG_BYTES];
                match read_kernel_log(&mut log) {
                    Ok(bytes) => is_log_of_gvisor(&log[..bytes]),
                    // A system call filter may refuse it.
                    Err(_) => {
                        let names = uname();
                        (names.release().to_bytes(), names.version().to_bytes()) == GVISOR_UNAME
                    }
                }
            }
        }
    }
}

/// Whether this is the kernel log of gVisor, which names itself in its first line.
fn is_log_of_gvisor(log: &[u8]) -> bool {
    let first = log.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(first).ends_with("] Starting gVisor...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gvisor_is_known_by_the_first_line_of_its_log() {
        let log =
            "<6>[    0.000000] Starting gVisor...\n<6>[    0.119333] Reticulating splines...\n";
        assert!(is_log_of_gvisor(log.as_bytes()));
        for other in [
            "",
            "<6>[    0.000000] Linux version 6.1.0\n",
            "<6>[    0.000000] Linux version 6.1.0\n<6>[    1.0] Starting gVisor...\n",
            "<6>[    9.000000] x: Starting gVisor... not\n",
        ] {
            assert!(!is_log_of_gvisor(other.as_bytes()), "{other}");
        }
    }
}
