"""Runs a command as in an ordinary pod: another user, no capabilities, no new namespaces, and a system call filter like that of
container runtimes.

Usage: pod.py DIRECTORY COMMAND…

DIRECTORY is the home in the pod, and the only place besides /tmp that can be written. It needs bubblewrap and libseccomp.
"""

import ctypes
import errno
import os
import sys
import tempfile

# What the default profile of containerd and CRI-O refuses to a process without capabilities, as far as a sandbox could use it.
REFUSED = """
    acct add_key bpf chroot clock_settime delete_module fanotify_init finit_module fsconfig fsmount fsopen fspick init_module
    io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mount
    mount_setattr move_mount move_pages name_to_handle_at nfsservctl open_by_handle_at open_tree perf_event_open pivot_root
    quotactl reboot request_key sethostname setdomainname setns settimeofday swapoff swapon syslog umount umount2 unshare
    userfaultfd vhangup
""".split()

ALLOW = 0x7FFF0000
ERRNO = 0x00050000
MASKED_EQUAL = 7
NEW_NAMESPACES = 0x7E020000


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("mask", ctypes.c_uint64), ("value", ctypes.c_uint64)]


def filter_file() -> int:
    """A descriptor of the compiled filter."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))

    def refuse(name: str, error: int, *comparisons: Comparison) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number == -1:
            return
        array = (Comparison * len(comparisons))(*comparisons)
        added = library.seccomp_rule_add_array(context, ctypes.c_uint32(ERRNO | error), number, len(comparisons), array)
        # A call that this processor does not have.
        assert added in (0, -errno.EDOM), (name, added)

    for name in REFUSED:
        refuse(name, errno.EPERM)
    # A filter cannot look into the arguments of clone3, so that C libraries fall back to clone.
    refuse("clone3", errno.ENOSYS)
    for bit in range(64):
        if NEW_NAMESPACES >> bit & 1:
            refuse("clone", errno.EPERM, Comparison(0, MASKED_EQUAL, 1 << bit, 1 << bit))
    file = tempfile.TemporaryFile()
    assert library.seccomp_export_bpf(context, file.fileno()) == 0
    file.seek(0)
    descriptor = os.dup(file.fileno())
    os.set_inheritable(descriptor, True)
    return descriptor


def main() -> None:
    home, *command = sys.argv[1:]
    around = ["bwrap", "--unshare-all", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--die-with-parent",
              "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run",
              "--bind", home, home, "--setenv", "HOME", home, "--chdir", home,
              "--unsetenv", "XDG_RUNTIME_DIR", "--seccomp", str(filter_file())]
    os.execvp("bwrap", [*around, "--", *command])


if __name__ == "__main__":
    main()
