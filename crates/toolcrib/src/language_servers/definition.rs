//! The known language servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

/// A language server that can report the errors of edited files: it answers `textDocument/diagnostic`, or says for
/// which version of a text its errors are.
#[derive(Debug, Clone, PartialEq)]
pub struct LanguageServer {
    /// Its name in replies.
    pub name: String,
    /// Its program: an absolute path, or a name to find on the user's `PATH`, outside the roots.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Extensions of file names, each with the name of the language.
    pub languages: Vec<(String, String)>,
    /// Initialization options.
    pub options: Value,
    /// Whether its answers count only after `experimental/serverStatus` has said that the project is loaded.
    pub waits_for_quiescence: bool,
    /// How long it may take for one text, once it has loaded the project. A server that takes longer twice is not used
    /// any more.
    pub answer_time: Duration,
    /// Whether files of the project can make it run programs of their choice. It then runs only where the agent may run
    /// commands, too.
    pub runs_project_programs: bool,
    /// If not empty, one of these files must be in a directory above the file: without it the server guesses.
    pub needs: Vec<String>,
    /// Names of files with settings. The server is started again when one changes.
    pub settings_files: Vec<String>,
    /// Paths relative to the root, which may be ignored. The server is started again when one changes.
    pub environment: Vec<String>,
}

/// The usual time for one text.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Versions of Python whose packages are looked for.
const PYTHON_MINORS: std::ops::Range<u32> = 8..20;

impl LanguageServer {
    /// A server without options, for files with one of these extensions, which is also the name of their language.
    pub fn new(name: &str, program: impl Into<PathBuf>, extensions: &[&str]) -> LanguageServer {
        let own = |extension: &&str| ((*extension).to_owned(), (*extension).to_owned());
        LanguageServer {
            name: name.to_owned(),
            program: program.into(),
            arguments: Vec::new(),
            languages: extensions.iter().map(own).collect(),
            options: Value::Null,
            waits_for_quiescence: false,
            answer_time: ANSWER_TIME,
            runs_project_programs: false,
            needs: Vec::new(),
            settings_files: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// The servers that are known to report errors for the text that they were given: ruff, ty, TypeScript 7,
    /// rust-analyzer, clangd and gopls.
    pub fn known() -> Vec<LanguageServer> {
        let mut python = vec!["pyvenv.cfg".to_owned()];
        for environment in [".venv", "venv"] {
            python.push(format!("{environment}/pyvenv.cfg"));
            let packages = |minor| format!("{environment}/lib/python3.{minor}/site-packages");
            python.extend(PYTHON_MINORS.map(packages));
        }
        let node = [
            "node_modules",
            "node_modules/.package-lock.json",
            "node_modules/.modules.yaml",
            "node_modules/.yarn-state.yml",
        ];
        vec![
            LanguageServer {
                settings_files: names(&["pyproject.toml", "ruff.toml", ".ruff.toml"]),
                ..known("ruff", &["server"], PYTHON)
            },
            LanguageServer {
                settings_files: names(&["pyproject.toml", "ty.toml"]),
                environment: python,
                ..known("ty", &["server"], PYTHON)
            },
            LanguageServer {
                settings_files: names(&["tsconfig.json", "jsconfig.json", "package.json"]),
                environment: names(&node),
                ..known("tsc", &["--lsp", "--stdio"], TYPESCRIPT)
            },
            LanguageServer {
                // It neither builds the project nor runs its build scripts and macros.
                options: json!({
                    "checkOnSave": false,
                    "cargo": {"buildScripts": {"enable": false}},
                    "procMacro": {"enable": false},
                    "cachePriming": {"enable": false},
                    "files": {"watcher": "client"},
                }),
                waits_for_quiescence: true,
                // The compiler in `rust-toolchain.toml` and `.cargo/config.toml`, and commands in `rust-analyzer.toml`.
                runs_project_programs: true,
                needs: names(&["Cargo.toml", "rust-project.json"]),
                settings_files: names(&[
                    "Cargo.toml",
                    "Cargo.lock",
                    "rust-project.json",
                    "rust-analyzer.toml",
                ]),
                ..known("rust-analyzer", &[], &[("rs", "rust")])
            },
            LanguageServer {
                // Without the flags of the compiler it does not find headers.
                needs: names(&[
                    "compile_commands.json",
                    "compile_flags.txt",
                    "build/compile_commands.json",
                ]),
                settings_files: names(&["compile_commands.json", "compile_flags.txt", ".clangd"]),
                environment: names(&["build/compile_commands.json", "compile_commands.json"]),
                ..known("clangd", &["--background-index=false", "--log=error"], C)
            },
            LanguageServer {
                options: json!({"pullDiagnostics": true}),
                needs: names(&["go.mod", "go.work"]),
                settings_files: names(&["go.mod", "go.sum", "go.work"]),
                ..known("gopls", &[], &[("go", "go")])
            },
        ]
    }

    pub(crate) fn language_of(&self, extension: &str) -> Option<&str> {
        let found = self.languages.iter().find(|(known, _)| known == extension);
        found.map(|(_, language)| language.as_str())
    }

    /// Whether the server reads files of this name.
    pub(crate) fn reads(&self, name: &str) -> bool {
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        self.has_settings(name)
            || extension.is_some_and(|extension| self.language_of(extension).is_some())
    }

    pub(crate) fn has_settings(&self, name: &str) -> bool {
        self.settings_files.iter().any(|known| known == name)
    }
}

const PYTHON: &[(&str, &str)] = &[("py", "python"), ("pyi", "python")];

const TYPESCRIPT: &[(&str, &str)] = &[
    ("ts", "typescript"),
    ("mts", "typescript"),
    ("cts", "typescript"),
    ("tsx", "typescriptreact"),
    ("js", "javascript"),
    ("mjs", "javascript"),
    ("cjs", "javascript"),
    ("jsx", "javascriptreact"),
];

const C: &[(&str, &str)] = &[
    ("c", "c"),
    ("h", "c"),
    ("cc", "cpp"),
    ("cpp", "cpp"),
    ("cxx", "cpp"),
    ("hh", "cpp"),
    ("hpp", "cpp"),
    ("hxx", "cpp"),
];

fn known(name: &str, arguments: &[&str], languages: &[(&str, &str)]) -> LanguageServer {
    let languages = languages.iter();
    LanguageServer {
        arguments: names(arguments),
        languages: languages.map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect(),
        ..LanguageServer::new(name, name, &[])
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
