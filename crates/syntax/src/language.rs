//! The supported languages, by file name.

use std::sync::OnceLock;

use crate::languages::{
    self, Row, Rules, c_family, csharp, go, java, javascript, kotlin, php, python, ruby, rust,
    swift,
};

/// A language with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "names of languages")]
pub enum Language {
    Bash,
    C,
    CSharp,
    Cpp,
    Go,
    Java,
    JavaScript,
    Kotlin,
    Php,
    Python,
    Ruby,
    Rust,
    Swift,
    Tsx,
    TypeScript,
}

const EXTENSIONS: &[(Language, &[&str])] = &[
    (Language::Bash, &["bash", "sh"]),
    (Language::C, &["c", "h"]),
    (Language::CSharp, &["cs"]),
    (Language::Cpp, &["cc", "cpp", "cxx", "hh", "hpp", "hxx", "inl", "ipp"]),
    (Language::Go, &["go"]),
    (Language::Java, &["java"]),
    (Language::JavaScript, &["cjs", "js", "jsx", "mjs"]),
    (Language::Kotlin, &["kt", "kts"]),
    (Language::Php, &["php"]),
    (Language::Python, &["py", "pyi", "pyw"]),
    (Language::Ruby, &["gemspec", "rake", "rb"]),
    (Language::Rust, &["rs"]),
    (Language::Swift, &["swift"]),
    (Language::Tsx, &["tsx"]),
    (Language::TypeScript, &["cts", "mts", "ts"]),
];

/// A grammar with the table of its definitions.
#[derive(Debug)]
struct Loaded {
    grammar: tree_sitter::Language,
    rules: Rules,
}

impl Language {
    /// All languages.
    pub fn all() -> impl Iterator<Item = Language> {
        EXTENSIONS.iter().map(|(language, _)| *language)
    }

    /// The language of a file, by the end of its name. `None` if it is not supported.
    pub fn of_name(name: &str) -> Option<Language> {
        if !cfg!(feature = "grammars") {
            return None;
        }
        let (_, extension) = name.rsplit_once('.')?;
        let has = |names: &[&str]| names.iter().any(|name| extension.eq_ignore_ascii_case(name));
        EXTENSIONS.iter().find(|(_, names)| has(names)).map(|(language, _)| *language)
    }

    /// The language of a file, by the end of its name and its text: a `.h` file can be C++, and a script without an
    /// extension names its interpreter.
    pub fn of_file(name: &str, text: &[u8]) -> Option<Language> {
        match Language::of_name(name) {
            Some(Language::C) if is_header(name) && is_cpp(text) => Some(Language::Cpp),
            None if cfg!(feature = "grammars") && !name.contains('.') => of_interpreter(text),
            language => language,
        }
    }

    /// Whether ordinary code of the language has constructs that the grammar does not know: macros.
    pub fn has_macros(self) -> bool {
        matches!(self, Language::C | Language::Cpp)
    }

    pub(crate) fn grammar(self) -> Option<&'static tree_sitter::Language> {
        self.loaded().map(|loaded| &loaded.grammar)
    }

    pub(crate) fn rules(self) -> Option<&'static Rules> {
        self.loaded().map(|loaded| &loaded.rules)
    }

    /// The grammar and its table, made at the first use.
    fn loaded(self) -> Option<&'static Loaded> {
        static LOADED: [OnceLock<Option<Loaded>>; EXTENSIONS.len()] =
            [const { OnceLock::new() }; EXTENSIONS.len()];
        let cell = LOADED.get(self as usize)?;
        cell.get_or_init(|| {
            let grammar = grammar(self)?;
            let rules = Rules::new(&grammar, table(self));
            Some(Loaded { grammar, rules })
        })
        .as_ref()
    }
}

fn is_header(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("h"))
}

/// Whether a header has a line that only C++ has.
fn is_cpp(text: &[u8]) -> bool {
    const BEGINNINGS: &[&[u8]] =
        &[b"class ", b"namespace ", b"private:", b"protected:", b"public:", b"template", b"using "];
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    lines.any(|line| BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)))
}

/// The language of a script, by its first line.
fn of_interpreter(text: &[u8]) -> Option<Language> {
    const INTERPRETERS: &[(&[u8], Language)] = &[
        (b"bash", Language::Bash),
        (b"node", Language::JavaScript),
        (b"php", Language::Php),
        (b"python", Language::Python),
        (b"python3", Language::Python),
        (b"ruby", Language::Ruby),
        (b"sh", Language::Bash),
    ];
    let line = text.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'/' | b'\r'));
    words.find_map(|word| {
        INTERPRETERS.iter().find(|(name, _)| *name == word).map(|(_, language)| *language)
    })
}

/// The table of a language.
fn table(language: Language) -> &'static [Row] {
    match language {
        Language::Bash => languages::BASH,
        Language::C => c_family::C,
        Language::CSharp => csharp::TABLE,
        Language::Cpp => c_family::CPP,
        Language::Go => go::TABLE,
        Language::Java => java::TABLE,
        Language::JavaScript => javascript::JAVASCRIPT,
        Language::Kotlin => kotlin::TABLE,
        Language::Php => php::TABLE,
        Language::Python => python::TABLE,
        Language::Ruby => ruby::TABLE,
        Language::Rust => rust::TABLE,
        Language::Swift => swift::TABLE,
        Language::Tsx | Language::TypeScript => javascript::TYPESCRIPT,
    }
}

#[cfg(feature = "grammars")]
fn grammar(language: Language) -> Option<tree_sitter::Language> {
    let grammar = match language {
        Language::Bash => tree_sitter_bash::LANGUAGE,
        Language::C => tree_sitter_c::LANGUAGE,
        Language::CSharp => tree_sitter_c_sharp::LANGUAGE,
        Language::Cpp => tree_sitter_cpp::LANGUAGE,
        Language::Go => tree_sitter_go::LANGUAGE,
        Language::Java => tree_sitter_java::LANGUAGE,
        Language::JavaScript => tree_sitter_javascript::LANGUAGE,
        Language::Kotlin => tree_sitter_kotlin_ng::LANGUAGE,
        Language::Php => tree_sitter_php::LANGUAGE_PHP,
        Language::Python => tree_sitter_python::LANGUAGE,
        Language::Ruby => tree_sitter_ruby::LANGUAGE,
        Language::Rust => tree_sitter_rust::LANGUAGE,
        Language::Swift => tree_sitter_swift::LANGUAGE,
        Language::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
        Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
    };
    Some(grammar.into())
}

#[cfg(not(feature = "grammars"))]
fn grammar(_: Language) -> Option<tree_sitter::Language> {
    None
}
