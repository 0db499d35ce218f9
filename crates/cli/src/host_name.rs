//! The name of this machine, for records that others read.

/// The name of this machine. Empty if the kernel does not tell it.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}
