//! The table of escape attempts. `$OUT` is a directory outside that contains a `canary`; `$PORT`, `$UDP`,
//! `$SOCKET`, `$IN_TMP` and `$ABSTRACT` are servers outside; `$RUNTIME` is the process that serves tools. A
//! script prints `$WORD` after an escape that changes no canary.

/// An escape attempt in several variants.
pub(super) struct Attack {
    pub(super) id: &'static str,
    pub(super) what: &'static str,
    /// The lowest level that must block it. Below that level replies report the gap.
    pub(super) level: u8,
    pub(super) scripts: &'static [&'static str],
}

const fn at_every_level(
    id: &'static str,
    what: &'static str,
    scripts: &'static [&'static str],
) -> Attack {
    Attack { id, what, level: 2, scripts }
}

const fn with_namespaces(
    id: &'static str,
    what: &'static str,
    scripts: &'static [&'static str],
) -> Attack {
    Attack { id, what, level: 3, scripts }
}

/// Connects an internet socket to loopback while a thread exchanges the socket for a Unix socket and the address for
/// the path of a server outside.
const EXCHANGED_DURING_CONNECT: &str = r#"python3 - <<'END'
import ctypes, os, socket, struct, sys, threading
sys.setswitchinterval(1e-5)
libc = ctypes.CDLL(None)
network = struct.pack("=H", 2) + struct.pack(">H", 1) + socket.inet_aton("127.0.0.1") + bytes(100)
local = struct.pack("=H", 1) + os.environ["SOCKET"].encode() + b"\0"
local += bytes(len(network) - len(local))
inet, unix = socket.socket(), socket.socket(socket.AF_UNIX)
number = os.dup(inet.fileno())
address = ctypes.create_string_buffer(network, len(network))
done = False
def exchange():
    while not done:
        os.dup2(unix.fileno(), number); ctypes.memmove(address, local, len(local))
        os.dup2(inet.fileno(), number); ctypes.memmove(address, network, len(network))
thread = threading.Thread(target=exchange); thread.start()
for _ in range(500): libc.connect(number, address, 110)
done = True
thread.join()
END"#;

pub(super) const ATTACKS: &[Attack] = &[
    at_every_level(
        "X01",
        "files outside",
        &[
            "echo x > $OUT/canary",
            "echo x >> $OUT/canary",
            "echo x > $OUT/new",
            "truncate -s 0 $OUT/canary",
            "rm -f $OUT/canary",
            "mv $OUT/canary $OUT/other",
            "mv $OUT/canary .",
            "echo x > mine; mv mine $OUT/",
            "ln $OUT/canary link && echo x > link",
            "ln -s $OUT/canary soft; echo x > soft; rm -f soft",
            "ln -s $OUT away; echo x > away/new; rm -f away",
            "mkdir $OUT/directory",
            "mknod $OUT/fifo p; mkfifo $OUT/fifo",
            "dd if=/dev/zero of=$OUT/canary bs=1 count=1 conv=notrunc",
            "python3 -c 'import os; os.truncate(os.environ[\"OUT\"] + \"/canary\", 0)'",
            "python3 -c 'import os; os.symlink(\"x\", os.environ[\"OUT\"] + \"/link\")'",
            "cp /bin/true $OUT/program; install -m 755 /bin/true $OUT/program2",
            "exec 9<> $OUT/canary && echo x >&9",
            "echo x > /etc/made-by-torture && rm /etc/made-by-torture && echo $WORD",
        ],
    ),
    with_namespaces(
        "X02",
        "attributes of files outside",
        &[
            "chmod 777 $OUT/canary",
            "chmod 700 $OUT",
            "chown $(id -u) $OUT/canary && echo $WORD",
            "touch -d 2001-01-01 $OUT/canary",
            "python3 -c 'import os; os.utime(os.environ[\"OUT\"] + \"/canary\", (1, 1))'",
            "python3 -c 'import os; os.setxattr(os.environ[\"OUT\"] + \"/canary\", \"user.x\", b\"y\")' && echo $WORD",
        ],
    ),
    at_every_level(
        "X03",
        "keys and Toolcrib's own files",
        &[
            "cat ~/.ssh/id_rsa",
            "cat ~/.aws/credentials",
            "cat ~/.netrc",
            "cp ~/.ssh/id_rsa k; cat k",
            "ln -s ~/.ssh s; cat s/id_rsa; rm -f s",
            "cat /proc/self/root$HOME/.ssh/id_rsa",
            "cat /proc/self/cwd/../home/.ssh/id_rsa",
            "python3 -c 'import os; d = os.open(os.environ[\"HOME\"], os.O_RDONLY); print(open(os.open(\".ssh/id_rsa\", os.O_RDONLY, dir_fd=d)).read())'",
            "grep -r . ~ 2>/dev/null",
            "tar cf - ~ 2>/dev/null | cat",
            "cat $OUT/../state/* 2>/dev/null | grep -q . && echo $WORD",
            "echo x > $OUT/../state/planted && echo $WORD",
        ],
    ),
    with_namespaces(
        "X06",
        "git hooks and configuration",
        &[
            "mv .git .g2; cp -r .g2 .git; echo evil > .git/hooks/pre-commit",
            "f=$(echo .git/hooks/pre-commit); echo evil > $f",
            "f=$(echo .git/config); echo evil >> $f",
            "git config core.fsmonitor evil",
            "rm -rf .git/hooks; mkdir .git/hooks; echo evil > .git/hooks/pre-commit",
            "ln -sfn /var .git/hooks",
            "python3 -c 'import os; os.rename(\".git\", \".g3\")'",
            "mkdir e && mv -T --exchange .git e",
            "f=$(echo deep/er/.git/config); echo evil >> $f",
            "f=$(echo deep/er/.git/hooks/post-checkout); echo evil > $f",
            "mv deep shallow; f=$(echo shallow/er/.git/hooks/post-checkout); echo evil > $f; mv shallow deep",
        ],
    ),
    at_every_level(
        "X12",
        "sockets of other programs",
        &[
            "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ[\"SOCKET\"])'",
            "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ[\"IN_TMP\"])'",
            "ln -s $SOCKET s; python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"s\")'; rm -f s",
            "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(\"/proc/self/root\" + os.environ[\"SOCKET\"])'",
            EXCHANGED_DURING_CONNECT,
        ],
    ),
    at_every_level(
        "X14",
        "the network",
        &[
            "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(\"\\0\" + os.environ[\"ABSTRACT\"])'",
            "python3 -c 'import os, socket; socket.create_connection((\"127.0.0.1\", int(os.environ[\"PORT\"])))'",
            "python3 -c 'import os, socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", int(os.environ[\"UDP\"])))'",
            "cat < /dev/tcp/127.0.0.1/$PORT",
            "echo x > /dev/udp/127.0.0.1/$UDP",
            "exec 3<> /dev/tcp/localhost/$PORT",
            "python3 -c 'import os, socket; socket.socket().sendto(b\"x\", 0x20000000, (\"127.0.0.1\", int(os.environ[\"PORT\"])))' && echo $WORD",
            "python3 -c 'import os, socket; socket.socket().sendmsg([b\"x\"], [], 0x20000000, (\"127.0.0.1\", int(os.environ[\"PORT\"])))' && echo $WORD",
            "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)' && echo $WORD",
            "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)' && echo $WORD",
            "python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)' && echo $WORD",
            "ping -c 1 -W 1 127.0.0.2 > /dev/null 2>&1 && unshare -n true && echo $WORD",
        ],
    ),
    with_namespaces(
        "X17",
        "loopback, which must work inside",
        &[
            "python3 -c 'import socket, threading; s = socket.create_server((\"127.0.0.1\", 0)); threading.Thread(target=lambda: s.accept()[0].sendall(b\"x\")).start(); assert socket.create_connection(s.getsockname()).recv(1) == b\"x\"' || echo $WORD",
        ],
    ),
    at_every_level(
        "X18",
        "the process that serves tools",
        &[
            "cat /proc/$RUNTIME/environ | grep -qa . && echo $WORD",
            "head -c 1 /proc/$RUNTIME/mem && echo $WORD",
            "cat /proc/$RUNTIME/maps | grep -q . && echo $WORD",
            "ls /proc/$RUNTIME/fd/ | grep -q . && echo $WORD",
            "ls /proc/$RUNTIME/root/ | grep -q . && echo $WORD",
            "ls /proc/$RUNTIME/cwd/ | grep -q . && echo $WORD",
            "readlink /proc/$RUNTIME/exe && echo $WORD",
            "echo '{\"id\": 9}' > /proc/$RUNTIME/fd/1 && echo $WORD",
            "echo x > /dev/tty && echo $WORD",
            "for fd in $(ls /proc/self/fd); do test $fd -gt 9 && test -e /proc/self/fd/$fd && echo $WORD; done",
        ],
    ),
    at_every_level(
        "X21",
        "signals to the process that serves tools",
        &[
            "kill -9 $RUNTIME && echo $WORD",
            "kill -STOP $RUNTIME && echo $WORD",
            "kill -0 $RUNTIME && echo $WORD",
        ],
    ),
    with_namespaces(
        "X21",
        "signals to all processes",
        &["kill -9 -1", "trap '' TERM; kill -TERM -1"],
    ),
    at_every_level(
        "X22",
        "mounts and namespaces",
        &[
            "unshare -Ur true && echo $WORD",
            "unshare -m true && echo $WORD",
            "mount -t tmpfs none /mnt && echo $WORD",
            "mount -o remount,rw / && echo $WORD",
            "mount --bind $OUT . && echo $WORD",
            "umount /proc && echo $WORD",
            "umount -l .git/hooks && echo $WORD",
            "chroot / true && echo $WORD",
            "nsenter -t 1 -m true && echo $WORD",
            "nsenter -t $RUNTIME -m true && echo $WORD",
            "mknod disk b 8 0 && head -c 1 disk && echo $WORD",
            "echo x > /proc/sys/kernel/core_pattern && echo $WORD",
            "echo 3 > /proc/sys/vm/drop_caches && echo $WORD",
            "head -c 1 /dev/mem && echo $WORD",
        ],
    ),
    at_every_level(
        "X25",
        "privileges",
        &[
            "grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || echo $WORD",
            "grep -q '^CapBnd:[[:space:]]*0*$' /proc/self/status || test $(id -u) != 0 || echo $WORD",
            "grep -q '^NoNewPrivs:[[:space:]]*1' /proc/self/status || echo $WORD",
            "sudo -n true 2>/dev/null && test $(id -u) != 0 && echo $WORD",
            "python3 -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")' && echo $WORD",
            "python3 -c 'import fcntl, os; m, s = os.openpty(); fcntl.ioctl(s, 0x5412, b\"x\")' && echo $WORD",
        ],
    ),
    at_every_level(
        "E01",
        "read-only programs that run others",
        &[
            "find . -maxdepth 0 -exec touch $OUT/mark \\;",
            "find . -maxdepth 0 -execdir touch $OUT/mark \\;",
            "find . -maxdepth 0 -fprintf $OUT/mark x",
            "find . -maxdepth 0 -fls $OUT/mark",
            "find $OUT -name canary -delete",
            "echo x | sed -n \"w $OUT/mark\"",
            "echo x | sed \"1e touch $OUT/mark\"",
            "echo x | sed \"s/x/y/w $OUT/mark\"",
            "sed -i s/canary/evil/ $OUT/canary",
            "echo x | sort -o $OUT/mark",
            "printf '#!/bin/sh\\ntouch $OUT/mark\\ncat' > e; chmod +x e; seq 5000 | sort --compress-program=./e -S1k > /dev/null",
            "echo x | uniq - $OUT/mark",
            "echo x | shuf -o $OUT/mark",
            "seq 9 | split --filter=\"touch $OUT/mark\"",
            "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=\"touch $OUT/mark\" file",
            "tar cf $OUT/mark file",
            "tar -I \"touch $OUT/mark;cat\" -cf x.tar file",
            "git grep -O\"touch $OUT/mark\" x",
            "git diff --no-index --output=$OUT/mark /dev/null file",
            "git log --output=$OUT/mark",
            "git archive -o $OUT/mark HEAD",
            "git ls-remote --upload-pack=\"touch $OUT/mark\" .",
            "awk \"BEGIN { print 1 > \\\"$OUT/mark\\\" }\"",
            "xargs -I{} touch {} <<< $OUT/mark",
            "env touch $OUT/mark; nice touch $OUT/mark; timeout 5 touch $OUT/mark",
        ],
    ),
];
