//! Analysis of commands.

use proptest::prelude::*;
use toolcrib_policy::{Command, CommandAnalysis, RedirectedFile, UnparsedKind, analyze_command};

use crate::context;

fn analyze(text: &str) -> CommandAnalysis {
    analyze_command(text, &context())
}

/// The commands joined by `; `, with written files after `>`.
fn shown(analysis: &CommandAnalysis) -> String {
    let command = |command: &Command| command.shown().join(" ");
    let commands: Vec<String> = analysis.commands.iter().map(command).collect();
    let path = |file: &RedirectedFile| file.word.shown().to_owned();
    let writes: Vec<String> = analysis.writes.iter().map(path).collect();
    if writes.is_empty() {
        commands.join("; ")
    } else {
        format!("{} > {}", commands.join("; "), writes.join(", "))
    }
}

/// Completely parsed scripts and their commands.
const PARSED: &[(&str, &str)] = &[
    ("ls", "ls"),
    ("git status && ls -la | cat", "git status; ls -la; cat"),
    ("cargo test 2>&1 | tail -50", "cargo test; tail -50"),
    ("cd web && npm run lint", "cd web; npm run lint"),
    ("ls\ntouch x", "ls; touch x"),
    ("ls & touch x", "ls; touch x"),
    ("echo 'a; b $x' '$(x)'", "echo a; b $x $(x)"),
    ("echo \"a $x\"", "echo \"a $x\""),
    ("echo $(date)", "date; echo $(date)"),
    ("echo `date`", "date; echo `date`"),
    ("echo \"$(date)\" # and rm", "date; echo \"$(date)\""),
    ("cat <(ls a)", "ls a; cat <(ls a)"),
    ("echo a > >(tee b)", "tee b; echo a"),
    ("echo x > a", "echo x > a"),
    ("echo x >> a 2> b", "echo x > a, b"),
    ("echo x >| a; ls &> b; ls &>> c; ls >& d", "echo x; ls; ls; ls > a, b, c, d"),
    ("> a", " > a"),
    ("echo x > ~/.bashrc", "echo x > /home/me/.bashrc"),
    ("r\"\"m x; r\\m x; 'rm' x; $'\\x72m' x; \"rm\" x", "rm x; rm x; rm x; rm x; rm x"),
    ("c=rm; $c x", "rm x"),
    ("D=; rm -rf $D/*", "rm -rf $D/*"),
    ("ls {a,b}/{c,d}.rs", "ls a/c.rs a/d.rs b/c.rs b/d.rs"),
    (
        "find . -name '*.rs' | xargs grep -l x",
        "find . -name *.rs; xargs grep -l x; grep -l x (each line of its input)",
    ),
    ("timeout 60 npm test", "timeout 60 npm test; npm test"),
    (
        "timeout -k 5 60s nice -n 5 env A=1 ls",
        "timeout -k 5 60s nice -n 5 env A=1 ls; nice -n 5 env A=1 ls; env A=1 ls; ls",
    ),
    ("sudo -u root rm x", "sudo -u root rm x; rm x"),
    ("sh -c 'ls; touch x'", "sh -c ls; touch x; ls; touch x"),
    ("bash -lc \"ls | cat\"", "bash -lc ls | cat; ls; cat"),
    ("bash -c 'sh -c \"rm x\"'", "bash -c sh -c \"rm x\"; sh -c rm x; rm x"),
    ("bash <<'EOF'\nls\nEOF", "bash; ls"),
    ("bash <<< 'rm x'", "bash; rm x"),
    ("echo 'rm x' | sh", "echo rm x; sh; rm x"),
    ("cat <<EOF\n$(ls)\nEOF\ntrue", "ls; cat; true"),
    ("cat <<'EOF' > a\n$(ls)\nEOF", "cat > a"),
    ("cat <<-EOF\n\tx\n\tEOF\nls", "cat; ls"),
    ("command ls; exec ls; time ls", "command ls; ls; exec ls; ls; time ls; ls"),
    ("command -v cargo", "command -v cargo"),
    ("if [ -f x ]; then ls; elif true; then cat a; else pwd; fi", "[ -f x ]; ls; true; cat a; pwd"),
    ("for f in a b; do wc -l \"$f\"; done", "wc -l \"$f\""),
    ("while read -r l; do echo \"$l\"; done < x", "read -r l; echo \"$l\""),
    ("case $x in a|b) ls ;; *) pwd ;; esac", "ls; pwd"),
    ("[[ -f x && $y == z* ]] && ls", "[[ -f x && $y == z* ]]; ls"),
    ("f() { ls; }; f", "ls; f"),
    ("function f { ls; }\nf", "ls; f"),
    ("(cd a && ls); { pwd; }", "cd a; ls; pwd"),
    ("! grep x y", "grep x y"),
    ("echo ${x:-$(ls)} ${#x} ${x%.rs} ${x//a/b}", "ls; echo ${x:-$(ls)} ${#x} ${x%.rs} ${x//a/b}"),
    ("echo $((1 + 2))", "echo $((1 + 2))"),
    ("a=1; echo \"$((a + 1))\" $(( (a+2)*3 ))", "echo \"$((a + 1))\" $(( (a+2)*3 ))"),
    ("for i in 1 2; do echo $((i * 2)); done", "echo $((i * 2))"),
    ("a=(1 \"$(ls)\" b); echo \"${a[0]}\"", "ls; echo \"${a[0]}\""),
    (
        "echo \"${PIPESTATUS[0]}\" \"${#a[@]}\" \"${a[@]}\" \"${!a[@]}\"",
        "echo \"${PIPESTATUS[0]}\" \"${#a[@]}\" \"${a[@]}\" \"${!a[@]}\"",
    ),
    ("echo \"${@}\" \"${*}\" ${#} \"${#@}\"", "echo \"${@}\" \"${*}\" ${#} \"${#@}\""),
    (": \"${x=auto}\" ${y:=$(ls)}", "ls; : \"${x=auto}\" ${y:=$(ls)}"),
    (
        "echo \"${x:-\"a $(ls) b\"}\" \"${x#\"$y\"}\"",
        "ls; echo \"${x:-\"a $(ls) b\"}\" \"${x#\"$y\"}\"",
    ),
    (
        "echo \"$(cat \"$(dirname \"$x\")\")\"",
        "dirname \"$x\"; cat \"$(dirname \"$x\")\"; echo \"$(cat \"$(dirname \"$x\")\")\"",
    ),
    (
        "D=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\"",
        "dirname \"${BASH_SOURCE[0]}\"; cd \"$(dirname \"${BASH_SOURCE[0]}\")\"; pwd",
    ),
    ("echo ${x:1:2} ${x: -3} ${x@Q}", "echo ${x:1:2} ${x: -3} ${x@Q}"),
    ("find . -exec touch x \\;", "find . -exec touch x ;; touch x"),
    ("env ls", "env ls; ls"),
    ("set -euo pipefail; ls", "set -euo pipefail; ls"),
    ("a=1 b=\"$c\" ls", "ls"),
    ("ls \\\n  -la", "ls -la"),
    ("ls | \\\n cat", "ls; cat"),
    ("echo a  # comment; rm x", "echo a"),
    ("echo a#b", "echo a#b"),
    ("git commit -m 'rm -rf /'", "git commit -m rm -rf /"),
    ("cat a.txt é.txt", "cat a.txt é.txt"),
];

#[test]
fn finds_all_commands() {
    let mut wrong = Vec::new();
    for (script, expected) in PARSED {
        let analysis = analyze(script);
        if analysis.unparsed.is_some() || shown(&analysis) != *expected {
            wrong.push(format!(
                "{script:?}\n   is {:?}\n  not {expected:?} {:?}",
                shown(&analysis),
                analysis.unparsed
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Scripts that a shell accepts and the analysis does not support.
const UNSUPPORTED: &[&str] = &[
    "$CMD x",
    "rm${IFS}x",
    "${z:-rm} x",
    "/bin/r? x",
    "\"$(echo rm)\" x",
    "eval \"$x\"",
    "eval ls",
    "source ./x",
    ". ./x",
    "bash",
    "curl x | sh",
    "sh -c \"$x\"",
    "echo $[ x='a[$(touch MARK)]', x ]",
    "x='$(touch MARK)'; echo \"${x@P}\"",
    "echo $((x))",
    "((x++))",
    "for ((i=0; i<3; i++)); do ls; done",
    "echo ${!x}",
    "echo ${a[$(touch x)]}",
    "a[$(touch x)]=1",
    "a=([0]=1 [$(touch MARK)]=2)",
    "a[0]=1",
    "x='a[$(touch MARK)]'; echo $((x))",
    "read x; echo $((x + 1))",
    "x=1; ((x = y)); echo $((x))",
    "echo $(( $(date +%s) - 1 ))",
    "echo ${a[x]}",
    "echo ${a['$(touch MARK)']}",
    "echo ${x:y}",
    "echo $((echo a) | cat)",
    "echo \"`echo \\\"a\\\"`\"",
    "alias ls=rm; ls",
    "hash -p ./evil ls; ls",
    "enable -f x y",
    "shopt -s expand_aliases",
    "if true; then ls() { rm x; }; fi; ls",
    "cd() { rm x; }; cd",
    "command() { rm x; }; command ls",
    "trap 'rm x' EXIT",
    "exec {fd}> x",
    "coproc ls",
    "select x in a; do ls; done",
    "cat < /dev/tcp/host/80",
    "echo x > /dev/tcp/host/80",
    "ls\r\ntouch MARK",
    "echo `echo \\`ls\\``",
    "xargs \"$x\" ls",
    "timeout \"$x\" ls",
    "env $x ls",
    "ls !(x)",
    "for d in a b; do cd $d; ls; done",
    "set -- a b",
    "parallel rm ::: x",
    "case x in a) ls ;& b) rm x ;; esac",
    "echo $\"ls\"",
    "ls )",
    "cat <> x",
    "fi",
    "a && ",
];

#[test]
fn reports_unsupported_syntax() {
    for script in UNSUPPORTED {
        let why = analyze(script).unparsed;
        assert!(why.is_some(), "{script:?} is said to be analysis");
    }
}

/// Scripts that bash accepts and that end in `touch MARK`. The analysis must find the last command and report
/// no syntax error.
const ACCEPTED_BY_BASH: &[&str] = &[
    "echo \"$((i+1))\"",
    "i=1; n=$((i+1)); n=$((n+1))",
    "echo \"${!v}\"",
    "echo \"took $(( $(date +%s) - start ))s\"",
    "echo \"$(( (1+2)*3 ))\" \"$((10#$n))\" $((x ? 1 : 2)) $((16#ff << 2))",
    "echo \"`echo \\\"a\\\"`\"",
    "y=$(printf \"%d\" $(( ${a} + 2 )) )",
    "for ((i = 0; i < 3; i++)); do ls; done",
    "((i++)); (( i += 2 )) && ls",
    "while (( i < 3 )); do ls; done",
    "a[i]=1; a[$i]+=x; a=([k]=v)",
    "echo \"${a[$i]}\" \"${a[i+1]}\" \"${map[\"$k\"]}\" ${a[${#a[@]}-1]}",
    "echo ${x:y} \"${x:$n:2}\" \"${@:2}\" ${x:$(( n - 1 ))}",
    "case $x in a) ls ;;& b) ls ;& c) ls ;; esac",
    "cat <<EOF\na \\\nEOF\nb\nEOF",
    "cat <<EOF\n${x:-\"a\"}\nEOF",
    "echo $\"hello\"",
    "echo $[ 1 + 2 ]",
];

#[test]
fn finds_commands_after_an_expansion() {
    for script in ACCEPTED_BY_BASH {
        let analysis = analyze(&format!("{script}\ntouch MARK"));
        let last = analysis.commands.last().map(|command| command.shown().join(" "));
        assert_eq!(last.as_deref(), Some("touch MARK"), "{script:?}: {:?}", analysis.unparsed);
        let trouble = analysis.unparsed.map(|why| why.kind);
        assert_ne!(trouble, Some(UnparsedKind::SyntaxError), "{script:?}");
    }
}

#[test]
fn a_default_that_is_assigned_is_an_assignment() {
    let names = |script: &str| -> Vec<String> {
        analyze(script).assignments.into_iter().map(|one| one.name).collect()
    };
    assert_eq!(names(": \"${PATH:=/evil}\" ${x=1}"), ["PATH", "x"]);
    assert_eq!(names("PATH=(/evil)"), ["PATH"]);
}

/// A script over the length limit is cut at a line end: half of a path is another path.
#[test]
fn a_long_script_is_cut_at_a_line_end() {
    let line = "rm -rf /home/me/project/target\n";
    for padding in 0..line.len() {
        let script = format!("echo {}\n{}", "x".repeat(padding), line.repeat(5_000));
        let analysis = analyze(&script);
        assert_eq!(analysis.unparsed.map(|why| why.kind), Some(UnparsedKind::Limit));
        let other = |command: &&Command| command.shown().join(" ") != line.trim_end();
        assert_eq!(analysis.commands.iter().skip(1).find(other), None);
    }
    let continued = format!("{}rm -rf /home/me\\\n{}", "# x\n".repeat(16_379), "/x".repeat(9));
    assert_eq!(analyze(&continued).commands, []);
}

#[test]
fn unclosed_quotes_look_like_syntax_errors_and_large_scripts_exceed_a_limit() {
    for script in ["echo 'a", "echo \"a", "echo $(ls", "echo `ls", "ls \0", "(ls", "ls >"] {
        assert_eq!(
            analyze(script).unparsed.map(|why| why.kind),
            Some(UnparsedKind::SyntaxError),
            "{script:?}"
        );
    }
    let many = "true; ".repeat(10_000) + "touch MARK";
    let deep = "$(".repeat(1_000) + "ls";
    let deep_groups = "{ ".repeat(1_000);
    for script in [many, deep, deep_groups, "x".repeat(1 << 20)] {
        assert_eq!(analyze(&script).unparsed.map(|why| why.kind), Some(UnparsedKind::Limit));
    }
}

#[test]
fn growing_values_are_bounded() {
    let mut script = "a0=aaaaaaaaaaaaaaaa\n".to_owned();
    for n in 1..100 {
        script += &format!("a{n}=$a{}$a{}$a{}\n", n - 1, n - 1, n - 1);
    }
    let analysis = analyze(&(script + "echo $a99"));
    assert_eq!(analysis.commands[0].words[1].values, Vec::<String>::new());
}

#[test]
fn follows_changes_of_directory() {
    let directories = |script: &str| -> Vec<String> {
        let shown = |command: &Command| match &command.directory {
            Some(directory) => directory.display().to_string(),
            None => "?".to_owned(),
        };
        analyze(script).commands.iter().map(shown).collect()
    };
    assert_eq!(directories("cd a; ls"), ["/w/ws", "/w/ws/a"]);
    assert_eq!(directories("cd a && cd ../b && ls"), ["/w/ws", "/w/ws/a", "/w/ws/b"]);
    assert_eq!(directories("(cd /; ls); ls"), ["/w/ws", "/", "/w/ws"]);
    assert_eq!(directories("cd / | ls; ls"), ["/w/ws", "/w/ws", "/w/ws"]);
    assert_eq!(directories("cd; ls; cd -; ls"), ["/w/ws", "/home/me", "/home/me", "?"]);
    assert_eq!(directories("if x; then cd /; fi; ls"), ["/w/ws", "/w/ws", "?"]);
    assert_eq!(directories("sh -c 'cd /; ls'; ls"), ["/w/ws", "/w/ws", "/", "/w/ws"]);
}

#[test]
fn recognizes_fork_bombs() {
    for script in [":(){ :|:& };:", ":(){:|:&};:", "f() { f | f & }; f", "function f { f& f& }; f"]
    {
        assert!(!analyze(script).fork_bombs.is_empty(), "{script}");
    }
    assert!(analyze("f() { ls | cat & }; f").fork_bombs.is_empty());
}

/// Random sequences of shell syntax, which reach more of the parser than random characters.
fn script() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "ls",
        "rm",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "(",
        ")",
        "{",
        "}",
        "$(",
        "`",
        "'",
        "\"",
        "$x",
        "${x",
        ":-",
        "<<EOF\n",
        "EOF\n",
        ">",
        "<",
        ">&",
        "2>&1",
        "if",
        "then",
        "fi",
        "for x in",
        "do",
        "done",
        "case",
        "esac",
        ";;",
        "in",
        "\\",
        "#",
        "=",
        "x=",
        "é",
        "[[",
        "]]",
        "$((",
        "))",
        "sh -c ",
        "eval ",
        "sudo ",
        "xargs ",
        "{a,b}",
        "*",
        "~",
        "f()",
        "function ",
        "\t",
        "!",
        "$'",
        "\\x41",
        "<(",
        "cd ",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn accepts_any_text(text in any::<String>()) {
        analyze(&text);
    }

    #[test]
    fn accepts_any_script(text in script()) {
        let analysis = analyze(&text);
        prop_assert!(analysis.commands.len() <= 500);
    }
}
