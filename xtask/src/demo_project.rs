//! A throw-away project for demonstrations. Every line of output comes from the program itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

/// The files of the project.
const FILES: &[(&str, &str)] = &[
    (
        "src/main.rs",
        "mod parser;\n\nfn main() {\n    println!(\"{}\", parser::parse(\"6 * 7\"));\n}\n",
    ),
    (
        "src/parser.rs",
        "/// Two weeks of work.\npub fn parse(text: &str) -> i64 {\n    let (left, right) = text.split_once(\" * \").unwrap();\n    \
         left.parse::<i64>().unwrap() * right.parse::<i64>().unwrap()\n}\n",
    ),
];

/// The project with a state directory of its own. Gone when dropped.
pub(crate) struct DemoProject {
    binary: PathBuf,
    directory: TempDir,
}

impl DemoProject {
    /// Writes the files of the project below `place`.
    pub(crate) fn new(binary: PathBuf, place: &Path) -> Result<DemoProject> {
        fs::create_dir_all(place)?;
        let demo = DemoProject { binary, directory: tempfile::tempdir_in(place)? };
        for (path, content) in FILES {
            let path = demo.project().join(path);
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            fs::write(path, content)?;
        }
        Ok(demo)
    }

    /// What a command of the session prints. `toolcrib` is the program that is shown.
    pub(crate) fn play(&self, words: &[&str]) -> Result<String> {
        let (program, arguments) = words.split_first().ok_or("an empty command")?;
        let program = if *program == "toolcrib" { &self.binary } else { Path::new(program) };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.project());
        command
            .env("XDG_CONFIG_HOME", self.directory.path().join("config"))
            .env("XDG_STATE_HOME", self.directory.path().join("state"));
        process::capture(&mut command)
    }

    /// Whether every file has its first content.
    pub(crate) fn is_unchanged(&self) -> bool {
        FILES.iter().all(|(path, content)| {
            fs::read_to_string(self.project().join(path)).is_ok_and(|found| found == *content)
        })
    }

    fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }
}
