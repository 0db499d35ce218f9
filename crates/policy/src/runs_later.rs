//! Files in a workspace that other programs run later, outside any sandbox: when a person or CI builds or tests.
//!
//! They are ordinary files of a project, so they are written like any other; who reads the reply should know what
//! the next build does with them. Files that run without such a step, as editors and git run them, are protected
//! instead. Dockerfiles are left out: what they run, runs in a container.

use std::path::Path;

/// Which file, and what happens to it when which program is run.
struct Row {
    /// The file's name; `*` at the beginning stands for any beginning, and directories before it must be there.
    name: &'static str,
    what: &'static str,
    by: &'static str,
}

const fn row(name: &'static str, what: &'static str, by: &'static str) -> Row {
    Row { name, what, by }
}

const ROWS: &[Row] = &[
    row("package.json", "its scripts run", "npm"),
    row("Makefile", "its rules run", "make"),
    row("makefile", "its rules run", "make"),
    row("GNUmakefile", "its rules run", "make"),
    row("*.mk", "its rules run", "make"),
    row("justfile", "its recipes run", "just"),
    row("Justfile", "its recipes run", "just"),
    row(".justfile", "its recipes run", "just"),
    row("Taskfile.yml", "its tasks run", "task"),
    row("Taskfile.yaml", "its tasks run", "task"),
    row("build.rs", "it runs", "cargo"),
    row("conftest.py", "it runs", "pytest"),
    row("setup.py", "it runs", "pip"),
    row("pyproject.toml", "its build hooks and test plugins run", "pip or pytest"),
    row("noxfile.py", "it runs", "nox"),
    row("tox.ini", "its commands run", "tox"),
    row("CMakeLists.txt", "its commands run", "cmake"),
    row("*.cmake", "its commands run", "cmake"),
    row("meson.build", "its commands run", "meson"),
    row("configure", "it runs", "configure"),
    row("*.gradle", "it runs", "gradle"),
    row("*.gradle.kts", "it runs", "gradle"),
    row("gradlew", "it runs", "gradle"),
    row("mvnw", "it runs", "maven"),
    row("pom.xml", "its plugins run", "maven"),
    row("Rakefile", "its tasks run", "rake"),
    row("Gemfile", "it runs", "bundler"),
    row("*.gemspec", "it runs", "bundler"),
    row("mix.exs", "it runs", "mix"),
    row("Package.swift", "it runs", "swift"),
    row("build.zig", "it runs", "zig"),
    row("*.config.js", "it runs", "its build or test tool"),
    row("*.config.cjs", "it runs", "its build or test tool"),
    row("*.config.mjs", "it runs", "its build or test tool"),
    row("*.config.ts", "it runs", "its build or test tool"),
    row("*.config.mts", "it runs", "its build or test tool"),
    row(".github/workflows/*.yml", "its steps run", "GitHub Actions"),
    row(".github/workflows/*.yaml", "its steps run", "GitHub Actions"),
    row("action.yml", "its steps run", "GitHub Actions"),
    row("action.yaml", "its steps run", "GitHub Actions"),
    row(".gitlab-ci.yml", "its jobs run", "GitLab CI"),
    row(".circleci/config.yml", "its jobs run", "CircleCI"),
    row("azure-pipelines.yml", "its jobs run", "Azure Pipelines"),
    row("bitbucket-pipelines.yml", "its jobs run", "Bitbucket Pipelines"),
    row("Jenkinsfile", "it runs", "Jenkins"),
];

/// What a later build or test does with this file, in words that follow its name; nothing for most files.
pub fn runs_later(path: &Path) -> Option<String> {
    let row = ROWS.iter().find(|row| row.is_for(path))?;
    Some(format!("{} outside the sandbox when a person or CI runs {}", row.what, row.by))
}

impl Row {
    fn is_for(&self, path: &Path) -> bool {
        let mut parts = path.iter().rev().map(|part| part.to_str());
        self.name.rsplit('/').all(|wanted| {
            let Some(Some(part)) = parts.next() else { return false };
            match wanted.strip_prefix('*') {
                Some(end) => part.ends_with(end),
                None => part == wanted,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(path: &str) -> Option<String> {
        runs_later(Path::new(path))
    }

    #[test]
    fn files_that_a_build_runs_are_known_in_any_directory() {
        let npm = "its scripts run outside the sandbox when a person or CI runs npm";
        assert_eq!(says("/w/package.json").as_deref(), Some(npm));
        for path in [
            "/w/a/Makefile",
            "/w/crates/x/build.rs",
            "/w/tests/conftest.py",
            "/w/.github/workflows/ci.yml",
            "/w/rules.mk",
            "/w/vite.config.ts",
            "/w/app/build.gradle.kts",
        ] {
            assert!(says(path).is_some(), "{path}");
        }
    }

    #[test]
    fn other_files_are_not() {
        for path in
            ["/w/src/main.rs", "/w/Cargo.toml", "/w/workflows/ci.yml", "/w/README.md", "/", ""]
        {
            assert_eq!(says(path), None, "{path}");
        }
    }
}
