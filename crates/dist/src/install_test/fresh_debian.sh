# Runs in the root of a fresh Debian: apt installs the package, a command is run and undone, and apt removes the package.
set -e
export HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin

# Without the places of logs and package lists.
files() {
    find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /var \) -prune -o -print | sort
}

files > /tmp/before
apt-get install --quiet --yes --no-install-recommends /tmp/toolcrib.deb > /tmp/apt.log
toolcrib --version
mkdir /root/project && cd /root/project
toolcrib --text call Write '{"file_path": "a.txt", "content": "one\n"}'
toolcrib --text call Bash '{"command": "cat a.txt && rm a.txt"}'
test ! -e a.txt
toolcrib undo --yes
grep -q one a.txt
apt-get purge --quiet --yes toolcrib >> /tmp/apt.log
cd / && rm -r /root/project /root/.local
files > /tmp/after
diff /tmp/before /tmp/after
