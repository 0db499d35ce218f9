//! Destructive commands, and harmless ones that look similar.

use toolcrib_policy::{analyze_command, find_danger};

use crate::{DESTRUCTIVE, context, corpus};

const HARMLESS: &[&str] = &[
    "rm -rf target",
    "rm -rf ./node_modules",
    "rm -rf /w/ws/target",
    "rm -rf \"$PWD/target\"",
    "rm -rf ~/.cache/pip",
    "rm -rf ~/.cargo/registry/*",
    "rm -rf build/*",
    "rm -rf */target",
    "rm -rf dist && mkdir dist",
    "cd target && rm -rf *",
    "rm -rf /tmp/x",
    "rm -rf /tmp/*",
    "rm -rf /var/tmp/build-1",
    "rm -rf \"$TMPDIR/x\"",
    "rm -rf \"${BUILD:?}\"/*",
    "rm -f /w/ws/x",
    "rm /w/ws/x",
    "rm -i /",
    "echo \"rm -rf /\"",
    "echo rm -rf /",
    "echo 'mkfs.ext4 /dev/sda1'",
    "printf 'rm -rf /\\n'",
    "git commit -m 'rm -rf /'",
    "git commit -m \"$(cat <<'EOF'\nrm -rf / is bad\nEOF\n)\"",
    "grep -rn 'rm -rf /' .",
    "rg 'rm -rf /' src",
    "git log --grep 'rm -rf /'",
    "sed -n '/rm -rf /p' x",
    "cat > note.md <<'EOF'\nNever run rm -rf /\nor dd of=/dev/sda\nEOF",
    "python3 -c 'print(\"rm -rf /\")'",
    "# rm -rf /",
    "ls # rm -rf /",
    "ls / ~ /etc",
    "ls -R /",
    "find / -name core",
    "find / -name '*.tmp' -delete",
    "find . -delete -name x",
    "find target -type f -delete",
    "find ~ -type f -exec grep -l x {} +",
    "chmod -R u+w .",
    "chmod -R 755 target",
    "chmod 777 /tmp/x",
    "chmod +x run",
    "chown -R me target",
    "chown -R me ~/.npm",
    "mv a b",
    "mv target/* /tmp",
    "mv /tmp/x .",
    "mv /w/ws/a /w/ws/b",
    "dd if=/dev/zero of=disk.img bs=1M count=1",
    "dd if=/dev/sda of=/dev/null count=1",
    "dd if=/dev/urandom of=key bs=32 count=1",
    "echo x > /dev/null",
    "echo x >/dev/stderr",
    "echo x > /dev/tty",
    "ls 2>/dev/null",
    "cat x > /dev/shm/y",
    "cat /dev/sda | head -c 512",
    "man mkfs.ext4",
    "mkfs.ext4 --help",
    "which mkfs",
    "wipefs --help",
    "f() { ls | wc -l; }; f",
    "f() { echo x & }; f",
    "f() { if true; then f; fi; }; f",
    "cp x /dev/null",
    "ls | tee /dev/stderr",
    "rmdir /",
    "docker run --rm x",
    "npm rm -g x",
    "git rm -r --cached .",
    "cargo rm serde",
    "unlink x",
    "rsync -a a/ b/",
    "truncate -s 0 log",
];

#[test]
fn finds_destructive_commands() {
    let missed: Vec<String> = corpus(DESTRUCTIVE).filter(|script| !is_dangerous(script)).collect();
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

#[test]
fn ignores_harmless_commands() {
    let wrong: Vec<&&str> = HARMLESS.iter().filter(|script| is_dangerous(script)).collect();
    assert!(wrong.is_empty(), "found: {wrong:#?}");
}

#[test]
fn names_the_destructive_part() {
    let found =
        find_danger(&analyze_command("cd x && sudo rm -rf ~/*", &context()), &context()).unwrap();
    assert_eq!(found.what, "rm -rf ~/*");
    assert_eq!(found.why, "it deletes everything in /home/me recursively");
}

fn is_dangerous(script: &str) -> bool {
    find_danger(&analyze_command(script, &context()), &context()).is_some()
}
