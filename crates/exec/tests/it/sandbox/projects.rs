//! Whole projects are set up, built and tested with the installed tools and without downloads. Missing tools
//! are skipped, and that is reported.

use super::*;

/// A session with our own namespaces, and one with bubblewrap's.
fn fixtures() -> Vec<Fixture> {
    [Fixture::new()].into_iter().chain(bubblewrap::fixtures().into_iter().take(1)).collect()
}

/// Whether a script succeeds on this machine, without a sandbox.
fn is_available(script: &str) -> bool {
    let asked = std::process::Command::new("/bin/sh").args(["-c", script]).output();
    let there = asked.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("not tried: `{script}` fails");
    }
    there
}

fn write_files(fixture: &Fixture, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = fixture.path("ws").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn python_project_with_venv_package_and_tests() {
    if !is_available("/usr/bin/python3 -c 'import venv, ensurepip'") {
        return;
    }
    let has_pytest = is_available("/usr/bin/python3 -c 'import pytest'");
    for fixture in fixtures() {
        // A Python package is a ZIP of a few files.
        let wheel = "
import zipfile
with zipfile.ZipFile('mini-1.0-py3-none-any.whl', 'w') as z:
    z.writestr('mini.py', 'def one(): return 1\\n')
    z.writestr('mini-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: mini\\nVersion: 1.0\\n')
    z.writestr('mini-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('mini-1.0.dist-info/RECORD', '')
";
        let test = "import unittest, mini\nclass T(unittest.TestCase):\n    def test_one(self): self.assertEqual(mini.one(), 1)\n";
        write_files(&fixture, &[("wheel.py", wheel), ("test_mini.py", test)]);
        fixture.run_ok(
            "/usr/bin/python3 wheel.py && /usr/bin/python3 -m venv --system-site-packages v",
        );
        fixture.run_ok("v/bin/pip install -q --no-index ./mini-1.0-py3-none-any.whl 2>&1");
        fixture.run_ok("v/bin/python -m unittest 2>&1");
        if has_pytest {
            let out = fixture.run_ok("v/bin/python -m pytest -q 2>&1");
            assert!(out.contains("1 passed"), "{out}");
        }
    }
}

#[test]
fn node_project_with_package_and_tests() {
    if !is_available("node --version && npm --version") {
        return;
    }
    for fixture in fixtures() {
        let test = "require('node:test')('one', () => require('node:assert').equal(require('mini'), 1));\n";
        write_files(
            &fixture,
            &[
                ("mini/package.json", r#"{"name": "mini", "version": "1.0.0", "main": "m.js"}"#),
                ("mini/m.js", "module.exports = 1;\n"),
                ("app/package.json", r#"{"scripts": {"test": "node --test"}}"#),
                ("app/a.test.js", test),
            ],
        );
        let settings = "export npm_config_cache=$T/ws/.npm npm_config_offline=true";
        fixture.run_ok(&format!("{settings}; npm pack ./mini 2>&1"));
        fixture.run_ok(&format!("{settings}; cd app && npm install ../mini-1.0.0.tgz 2>&1"));
        let out = fixture.run_ok(&format!("{settings}; cd app && npm test 2>&1"));
        assert!(out.contains("pass 1"), "{out}");
    }
}

#[test]
fn java_project_with_tests() {
    if !is_available("javac --version && java --version") {
        return;
    }
    for fixture in fixtures() {
        let main = "class Main { public static void main(String[] a) { if (new Sum().of(1, 1) != 2) throw new Error(); System.out.println(\"fine\"); } }";
        write_files(
            &fixture,
            &[
                ("Sum.java", "class Sum { int of(int a, int b) { return a + b; } }"),
                ("Main.java", main),
            ],
        );
        assert_eq!(fixture.run_ok("javac -d out *.java && java -cp out Main"), "fine\n");
    }
}

#[test]
fn rust_project_with_path_dependency_and_tests() {
    for mut fixture in fixtures() {
        for (name, tools) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let home = std::env::var_os("HOME").unwrap_or_default();
            let place = std::env::var_os(name).map(PathBuf::from);
            let place = place.unwrap_or_else(|| Path::new(&home).join(tools));
            fixture.sandbox.writable.push(pinned(&place));
            fixture.variables.push((name.into(), place.into()));
        }
        let package = |name: &str, rest: &str| {
            format!(
                "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{rest}\n"
            )
        };
        write_files(
            &fixture,
            &[
                (
                    "Cargo.toml",
                    &package("p", "[dependencies]\nmini = { path = \"mini\" }\n[workspace]"),
                ),
                ("src/lib.rs", "#[test]\nfn one() { assert_eq!(mini::one(), 1) }\n"),
                // A build script, which writes a file.
                ("mini/Cargo.toml", &package("mini", "build = \"build.rs\"")),
                (
                    "mini/build.rs",
                    "fn main() { let out = std::env::var(\"OUT_DIR\").unwrap(); std::fs::write(out + \"/one.rs\", \"1\").unwrap(); }",
                ),
                (
                    "mini/src/lib.rs",
                    "pub fn one() -> u8 { include!(concat!(env!(\"OUT_DIR\"), \"/one.rs\")) }\n",
                ),
            ],
        );
        let out = fixture.run_ok("cargo test --offline 2>&1");
        assert!(out.contains("1 passed"), "{out}");
    }
}
