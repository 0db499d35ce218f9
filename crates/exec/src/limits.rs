//! The resource limits of a command, as data.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A limit in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Amount {
    /// There is no limit.
    Unlimited,
    /// This percentage of what there is.
    Percent(u8),
    /// This number of bytes.
    Bytes(u64),
}

impl Amount {
    /// The number of bytes, if there are `total`, which only a percentage needs. `None` if there is no limit.
    pub fn of(self, total: impl FnOnce() -> u64) -> Option<u64> {
        match self {
            Amount::Unlimited => None,
            Amount::Percent(percent) => Some(total() / 100 * u64::from(percent)),
            Amount::Bytes(bytes) => Some(bytes),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Unlimited => f.write_str("none"),
            Amount::Percent(percent) => write!(f, "{percent}%"),
            Amount::Bytes(bytes) => f.write_str(&size_text(*bytes)),
        }
    }
}

/// The resource limits of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The largest number of processes and threads at a time.
    pub processes: u32,
    /// The memory of all its processes together. It is measured, and the command is killed above the limit.
    /// A percentage is one of the memory of this machine.
    pub memory: Amount,
    /// The private writable memory of each process. The kernel enforces it; sanitizers of compilers do not
    /// start with it. A percentage is one of the memory of this machine.
    pub process_memory: Amount,
    /// The size of a file that it writes. The kernel enforces it. It must be at least
    /// [`Limits::LEAST_FILE_SIZE`], and no percentage.
    pub file_size: Amount,
    /// The size of the session's `/tmp`. It is measured, and commands that write there are killed above the
    /// limit. A percentage is one of the space that was free when the directory was created.
    pub tmp_size: Amount,
}

impl Limits {
    /// The number of processes is more than a large build on many cores needs. A fork bomb reaches it in a
    /// moment, and stops.
    pub const DEFAULT: Limits = Limits {
        processes: 4096,
        memory: Amount::Percent(75),
        process_memory: Amount::Unlimited,
        file_size: Amount::Unlimited,
        tmp_size: Amount::Percent(50),
    };

    /// The script, the input and the environment of a command are files, too.
    pub const LEAST_FILE_SIZE: u64 = 16 << 20;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// A limit that a command exceeded, so that it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExceededLimit {
    /// The limit.
    pub limit: MeasuredLimit,
    /// The number of bytes in use when it was measured.
    pub used: u64,
    /// The number of bytes that are allowed.
    pub allowed: u64,
}

/// A limit that is measured while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredLimit {
    /// [`Limits::memory`].
    Memory,
    /// [`Limits::tmp_size`].
    TmpSize,
}

impl MeasuredLimit {
    /// The name of the setting.
    pub fn name(self) -> &'static str {
        match self {
            MeasuredLimit::Memory => "memory",
            MeasuredLimit::TmpSize => "tmp_size",
        }
    }
}

/// A number of bytes in the largest unit in which it is at least 1: `1.5 GiB`.
pub fn size_text(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    // Two significant digits after the point would pretend exactness.
    let rounded = (value * 10.0).round() / 10.0;
    format!("{rounded} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_computed_and_shown() {
        assert_eq!(Amount::Percent(75).of(|| 400), Some(300));
        assert_eq!(Amount::Bytes(7).of(|| 400), Some(7));
        assert_eq!(Amount::Unlimited.of(|| 400), None);
        for (amount, text) in [
            (Amount::Percent(75), "75%"),
            (Amount::Unlimited, "none"),
            (Amount::Bytes(512), "512 B"),
            (Amount::Bytes(4 << 30), "4 GiB"),
            (Amount::Bytes(1_600 << 20), "1.6 GiB"),
        ] {
            assert_eq!(amount.to_string(), text);
        }
    }
}
