//! Files: nothing changes outside, and everything inside works except changes of protected files.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;

/// Errors of a denied write, by the mounts or by Landlock.
const REFUSED: &[&str] = &[
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Device or resource busy",
];

#[test]
fn nothing_outside_changes() {
    for fixture in Fixture::for_each_sandbox() {
        for script in [
            "echo x > $T/out/canary",
            "echo x > $T/out/new",
            "truncate -s 0 $T/out/canary",
            "rm -f $T/out/canary",
            "mv $T/out/canary $T/ws/",
            "mv $T/out/canary $T/out/other",
            "mv file $T/out/",
            "mkdir $T/out/d",
            "chmod 777 $T/out/canary",
            "chown $(id -u) $T/out/canary",
            "touch -d 2001-01-01 $T/out/canary",
            "ln $T/out/canary $T/out/link",
            "ln -s $T/out/canary link && echo x > link",
            "setfattr -n user.x -v y $T/out/canary || /usr/bin/python3 -c 'import os; os.setxattr(\"'$T'/out/canary\", \"user.x\", b\"y\")'",
            "echo x > $T/new",
            "echo x > ../new",
            "find $T/out -name canary -exec sh -c 'echo x > {}' \\; -quit; false | cat $T/nothing $T/out/new",
            "sort -o $T/out/new file",
            "sed -n \"w $T/out/new\" file",
            "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=\"touch $T/out/new\" file; ls $T/out/new && exit 0; echo Permission denied; exit 1",
            "dd if=/dev/zero of=$T/out/canary",
        ] {
            let mut words = REFUSED.to_vec();
            words.push("No such file");
            fixture.assert_refused(script, &words);
        }
        // A hard link to a file outside would make that file writable.
        fixture
            .assert_refused("ln $T/out/canary link2", &["cross-device", "Operation not permitted"]);
        fixture.assert_canary_unchanged();
        assert_eq!(read(&fixture.path("home/.ssh/id_rsa")), "secret key");
        assert!(
            fixture
                .run("rm -rf --no-preserve-root $T/home /etc/hostname; true")
                .output
                .contains("rm:")
        );
        assert!(fixture.path("home/.netrc").exists());
    }
}

#[test]
fn changes_in_the_workspace_persist() {
    for fixture in Fixture::for_each_sandbox() {
        fixture
            .run_ok("echo x > new; mkdir -p a/b; mv new a/b/c; ln a/b/c d; chmod 755 d; rm file");
        assert_eq!(read(&fixture.path("ws/a/b/c")), "x\n");
        assert!(!fixture.path("ws/file").exists());
    }
}

/// Makes a repository with protected files.
fn repository(fixture: &Fixture) {
    fs::create_dir_all(fixture.path("ws/.git/hooks")).unwrap();
    for directory in ["objects", "refs/heads", "info"] {
        fs::create_dir_all(fixture.path("ws/.git").join(directory)).unwrap();
    }
    fs::write(fixture.path("ws/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(fixture.path("ws/.git/config"), "[core]\n\tbare = false\n").unwrap();
    fs::write(fixture.path("ws/.git/hooks/pre-commit.sample"), "#!/bin/sh\n").unwrap();
    if rustix::process::geteuid().is_root() {
        use std::os::unix::fs::MetadataExt as _;
        fixture.chown_all(fs::metadata(fixture.path("ws")).unwrap().uid());
    }
}

#[test]
fn protected_files_cannot_be_written_or_moved() {
    for fixture in Fixture::for_each_sandbox() {
        repository(&fixture);
        for script in [
            "echo evil > .git/hooks/pre-commit",
            "echo evil > .git/hooks/pre-commit.sample",
            "echo evil >> .git/config",
            "git config core.fsmonitor evil",
            "mv .git .g2",
            "mv .git/hooks .git/h2",
            "mv .git/config .git/c2",
            "rm -rf .git/hooks",
            "rm -f .git/config",
            "rmdir .git/hooks",
            "chmod 777 .git/hooks .git/config",
            "mkdir new && mv -T new .git/hooks",
            "echo evil > new2 && mv -f new2 .git/config",
            "ln -sfn /var .git/hooks && ls .git/hooks/lib",
            "mkdir g3 && mv --exchange .git g3 || mv -T g3 .git",
            "mv ../ws ../ws2",
            "mount --bind . .git/hooks",
            "umount .git/hooks",
            "umount -l .git",
        ] {
            let mut words = REFUSED.to_vec();
            words.extend([
                "could not write config",
                "not a directory",
                "must be superuser",
                "cannot overwrite",
                "cannot remove",
                "not permitted",
                "not empty",
                "not mounted",
            ]);
            fixture.assert_refused(script, &words);
        }
        let result = fixture.run("git commit -q --allow-empty -m one && git log --oneline | wc -l");
        assert_eq!((result.exit, result.output.trim()), (Exit::Code(0), "1"), "{}", result.output);
        assert_eq!(read(&fixture.path("ws/.git/config")), "[core]\n\tbare = false\n");
        let hooks: Vec<_> =
            fs::read_dir(fixture.path("ws/.git/hooks")).unwrap().flatten().collect();
        assert_eq!(hooks.len(), 1, "{hooks:?}");
        assert!(!fixture.path("ws/.g2").exists());
    }
}

#[test]
fn hidden_paths_cannot_be_read() {
    for mut fixture in Fixture::for_each_sandbox() {
        fs::create_dir(fixture.path("ws/private")).unwrap();
        fs::write(fixture.path("ws/private/.env"), "TOKEN=1").unwrap();
        fixture.sandbox.hidden.add(&[fixture.path("ws/private/.env")]);
        for script in ["cat ~/.ssh/id_rsa", "cat ~/.netrc", "cat private/.env", "cp ~/.netrc x"] {
            fixture.assert_refused(script, &["No such file", "Permission denied"]);
        }
        for script in ["echo x > ~/.ssh/id_rsa", "rm -r ~/.ssh", "chmod 700 ~/.netrc"] {
            fixture.assert_refused(script, REFUSED);
        }
        // Otherwise the next command would find it under another name.
        fixture.assert_refused("mv private public", &["busy"]);
        fixture.assert_refused("mv private/.env private/env", &["busy", "Permission denied"]);
        fixture.assert_refused("ln private/.env env", &["cross-device", "not permitted"]);
        assert_eq!(fixture.run_ok("ls -A ~/.ssh; grep -r secret ~ 2>/dev/null || true"), "");
        assert_eq!(read(&fixture.path("ws/private/.env")), "TOKEN=1");
    }
}

#[test]
fn a_running_command_cannot_read_what_takes_the_place_of_hidden_paths() {
    for fixture in Fixture::for_each_sandbox() {
        let script =
            "touch ready; until [ -e go ]; do sleep 0.01; done; cat ~/.netrc ~/.ssh/id_rsa";
        let job = fixture.start(script);
        eventually("the command runs", || fixture.path("ws/ready").exists());
        fs::write(fixture.path("home/new"), "another secret").unwrap();
        fs::rename(fixture.path("home/new"), fixture.path("home/.netrc")).unwrap();
        fs::rename(fixture.path("home/.ssh"), fixture.path("home/.old")).unwrap();
        fs::create_dir(fixture.path("home/.ssh")).unwrap();
        fs::write(fixture.path("home/.ssh/id_rsa"), "another secret").unwrap();
        fs::write(fixture.path("ws/go"), "").unwrap();
        let output = wait_for_result(&job).output;
        assert!(!output.contains("secret"), "{output}");
        assert_eq!(output.matches("Permission denied").count(), 2, "{output}");
    }
}

#[test]
fn commands_see_what_appeared_since_the_last_one_except_secrets() {
    let fixtures = Fixture::for_each_sandbox();
    for fixture in &fixtures {
        fs::write(fixture.path("home/soon-secret"), "secret").unwrap();
    }
    // Rules are used again only if nothing around the hidden paths has just been changed.
    std::thread::sleep(Duration::from_secs(4));
    for fixture in fixtures {
        assert_eq!(fixture.run_ok("cat ~/soon-secret"), "secret");
        assert_eq!(fixture.run_ok("cat ~/soon-secret"), "secret");
        fs::rename(fixture.path("home/soon-secret"), fixture.path("home/.aws")).unwrap();
        fs::write(fixture.path("home/plain"), "plain").unwrap();
        fs::create_dir(fixture.path("home/new")).unwrap();
        fs::write(fixture.path("home/new/plain"), "plain").unwrap();
        assert_eq!(fixture.run_ok("cat ~/plain ~/new/plain"), "plainplain");
        fixture.assert_refused("cat ~/.aws", &["No such file", "Permission denied"]);
        // A command that had the rules could allow more to the next one.
        assert_eq!(fixture.run_ok("ls -l /proc/[0-9]*/fd 2>&1 | grep -c landlock || true"), "0\n");
    }
}

#[test]
fn secrets_that_appear_while_commands_start_are_never_read() {
    let fixture = Fixture::new();
    let secret = fixture.path("home/.aws");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let appears = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::write(&secret, "secret").unwrap();
                std::thread::sleep(Duration::from_millis(3));
                fs::remove_file(&secret).unwrap();
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let run = || {
            // A path that appears and disappears all the time may keep a command from starting.
            let start = || fixture.try_to_start("cat ~/.aws ~/.netrc");
            let started = (0..40).filter_map(|_| start().ok().map(|job| wait_for_result(&job)));
            started.map(|result| result.output).collect::<String>()
        };
        let outputs = [scope.spawn(run), scope.spawn(run), scope.spawn(run)];
        let outputs = outputs.map(|output| output.join().unwrap());
        done.store(true, Ordering::Relaxed);
        appears.join().unwrap();
        for output in outputs {
            assert!(output.contains("No such file") || output.contains("denied"), "{output}");
            assert!(!output.contains("secret"), "{output}");
        }
    });
}

#[test]
fn tmp_belongs_to_the_session() {
    for fixture in Fixture::for_each_sandbox() {
        fixture.run_ok("echo one > /tmp/mark-of-a-test; mktemp; test -d /var/tmp");
        assert_eq!(fixture.run_ok("cat /tmp/mark-of-a-test /var/tmp/mark-of-a-test"), "one\none\n");
        assert!(!Path::new("/tmp/mark-of-a-test").exists());
        assert_eq!(read(&fixture.path("tmp/mark-of-a-test")), "one\n");
        assert_eq!(fixture.run_ok("ls -A /run"), "");
    }
}

#[test]
fn a_root_may_be_in_tmp_or_in_a_hidden_directory() {
    let mut fixture = Fixture::new();
    let in_tmp = tempfile::tempdir().unwrap();
    fs::create_dir(fixture.path("home/.ssh/project")).unwrap();
    fs::write(fixture.path("home/.ssh/project/f"), "f").unwrap();
    fixture.sandbox.writable.push(pinned(in_tmp.path()));
    fixture.sandbox.read_only.push(pinned(&fixture.path("home/.ssh/project")));
    let script =
        format!("echo x > {}/new; cat ~/.ssh/project/f; ls ~/.ssh", in_tmp.path().display());
    assert_eq!(fixture.run_ok(&script), "fproject\n");
    assert_eq!(read(&in_tmp.path().join("new")), "x\n");
    fixture.assert_refused("echo x > ~/.ssh/project/f", REFUSED);
}

#[test]
fn a_root_may_be_below_a_replaced_directory() {
    for mut fixture in Fixture::for_each_sandbox() {
        let roots = ["/dev/shm", "/var/tmp", "/run"].map(|place| {
            let root = tempfile::Builder::new().prefix("root-").tempdir_in(place).unwrap();
            fs::write(root.path().join("config"), "mine").unwrap();
            if fixture.run_ok("id -u") != "0\n" {
                chown(root.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            }
            root
        });
        let protected = roots.iter().map(|root| root.path().join("config")).collect();
        fixture.guard = Arc::new(ProtectPaths(protected, Mutex::default()));
        fixture.sandbox.writable.extend(roots.iter().map(|root| pinned(root.path())));
        for root in &roots {
            let path = root.path().display();
            fixture.run_ok(&format!("cd {path} && echo x > new && cat config"));
            assert_eq!(read(&root.path().join("new")), "x\n");
            fixture.assert_refused(&format!("echo x > {path}/config"), REFUSED);
            fixture.assert_refused(&format!("mv {path} {path}2"), REFUSED);
        }
        // No other files from outside are visible.
        assert_eq!(fixture.run_ok("ls -A /dev/shm | wc -l"), "1\n");
        fixture.run_ok("echo x > /dev/shm/mark-of-a-test");
        assert!(!Path::new("/dev/shm/mark-of-a-test").exists());
    }
}

#[test]
fn read_only_paths_cannot_be_written_within_a_writable_root() {
    let mut fixture = Fixture::new();
    fs::create_dir(fixture.path("ws/vendor")).unwrap();
    fixture.sandbox.read_only.push(pinned(&fixture.path("ws/vendor")));
    fixture.assert_refused("echo x > vendor/new", REFUSED);
    fixture.sandbox.writable.clear();
    fixture.assert_refused("echo x > new", REFUSED);
    assert_eq!(fixture.run_ok("cat file"), "mine");
}

#[test]
fn system_files_and_devices_are_out_of_reach() {
    for fixture in Fixture::for_each_sandbox() {
        for script in [
            "echo 1 > /proc/sys/vm/drop_caches",
            "echo x > /proc/sys/kernel/core_pattern",
            "echo h > /proc/sysrq-trigger",
            "echo 0 > /sys/kernel/mm/transparent_hugepage/enabled",
            "mknod node c 1 5 && cat node",
            "cat /dev/mem",
            "cat /dev/vda",
        ] {
            let mut words = REFUSED.to_vec();
            words.push("No such file");
            fixture.assert_refused(script, &words);
        }
        let devices = "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero";
        // bubblewrap adds a symlink, to a file that only root can open.
        let found = fixture.run_ok("echo $(ls /dev)").replace("core ", "");
        assert_eq!(found.trim(), devices);
    }
}

#[test]
fn the_session_directory_is_removed_with_the_session() {
    let mut fixture = Fixture::new();
    fixture.sandbox.tmp = fixture.jobs.tmp(&fixture.path("state")).unwrap();
    fixture.run_ok("echo x > /tmp/f");
    assert_eq!(read(&fixture.sandbox.tmp.join("f")), "x\n");
    assert_eq!(fixture.jobs.tmp(&fixture.path("elsewhere")).unwrap(), fixture.sandbox.tmp);
    let Fixture { top, jobs, .. } = fixture;
    drop(jobs);
    assert_eq!(fs::read_dir(top.path().join("state")).unwrap().count(), 0);
}

#[test]
fn the_root_directory_cannot_be_writable() {
    let mut fixture = Fixture::new();
    fixture.sandbox.writable = vec![pinned(Path::new("/"))];
    let error = fixture.try_to_start("true").unwrap_err();
    assert!(error.to_string().contains("make everything writable in /"), "{error}");
}

/// Two roots, one within the other, and a command that replaces the inner one by a symlink.
#[test]
fn a_root_within_another_cannot_be_moved() {
    for mut fixture in Fixture::for_each_sandbox() {
        fs::create_dir_all(fixture.path("ws/x/deep")).unwrap();
        fs::create_dir_all(fixture.path("ws/y/read")).unwrap();
        if fixture.run_ok("id -u") != "0\n" {
            fixture.chown_all(NOBODY);
        }
        fixture.sandbox.writable.push(pinned(&fixture.path("ws/x/deep")));
        fixture.sandbox.read_only.push(pinned(&fixture.path("ws/y/read")));
        fixture.assert_refused("mv x x2", REFUSED);
        fixture.assert_refused("mv y y2", REFUSED);
        fixture.assert_refused("rm -r x", REFUSED);
        fixture.run_ok("echo x > x/deep/new; echo y > x/new");
        // If the inner root was replaced from outside, no command runs.
        fs::rename(fixture.path("ws/x"), fixture.path("ws/x2")).unwrap();
        fs::create_dir(fixture.path("ws/x")).unwrap();
        symlink(fixture.path("out"), fixture.path("ws/x/deep")).unwrap();
        let error = fixture.try_to_start("echo PWNED > $T/out/escaped").unwrap_err().to_string();
        assert!(error.contains("ws/x/deep"), "{error}");
        fs::remove_file(fixture.path("ws/x/deep")).unwrap();
        fs::create_dir(fixture.path("ws/x/deep")).unwrap();
        let error = fixture.try_to_start("true").unwrap_err().to_string();
        assert!(error.contains("renamed or replaced"), "{error}");
        fixture.assert_canary_unchanged();
    }
}

/// Files and directories that show others are read-only, also where the path did not exist.
#[test]
fn replaced_paths_show_other_files() {
    for mut fixture in Fixture::for_each_sandbox() {
        let top = fixture.top.path().to_owned();
        let at = |name: &str| top.join(name);
        fs::create_dir(at("etc")).unwrap();
        fs::write(at("etc/all.crt"), "one").unwrap();
        fs::write(at("etc/kept"), "kept").unwrap();
        let mut files = toolcrib_exec::ReplacementFiles::make(&at("made")).unwrap();
        files.file(Path::new("/run/toolcrib/added"), b"added").unwrap();
        files.file(&at("out/canary"), b"other").unwrap();
        files.directory(&at("etc"), &[("all.crt", b"two"), ("12345678.0", b"new")]).unwrap();
        let owner = fs::metadata(at("ws")).unwrap().uid();
        fixture.chown_all(owner);
        fixture.sandbox.replaced = files.replacements().to_vec();
        let seen = fixture.run_ok(
            "cat /run/toolcrib/added $T/out/canary $T/etc/all.crt $T/etc/12345678.0 $T/etc/kept",
        );
        assert_eq!(seen, "addedothertwonewkept");
        for script in [
            "echo x > /run/toolcrib/added",
            "rm /run/toolcrib/added",
            "echo x > $T/out/canary",
            "echo x > $T/etc/all.crt",
            "touch $T/etc/new",
        ] {
            fixture.assert_refused(script, REFUSED);
        }
        assert_eq!(fs::read_to_string(at("etc/all.crt")).unwrap(), "one");
        assert_eq!(fs::read_to_string(at("out/canary")).unwrap(), "canary");
    }
}
