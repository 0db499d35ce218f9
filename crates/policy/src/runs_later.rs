//! Files in a workspace that other programs run later, outside any sandbox: when a person or CI builds or tests.
//!
//! These are ordinary project files, so tools may write them. The reply notes what the next build does with them.
//! Files that run without such a step, as editors and git run them, are protected instead. Dockerfiles are not
//! listed: their commands run in a container.

use std::path::Path;

/// A file name, what runs, and the program that runs it.
struct Row {
    /// The file name. A leading `*` matches any prefix. Preceding directories must match too.
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

/// Describes what a later build or test runs because of this file, as a phrase that follows the file name.
/// `None` for most files.
pub fn runs_later(path: &Path) -> Option<String> {
    let row = ROWS.iter().find(|row| row.matches(path))?;
    Some(format!("{} outside the sandbox when a person or CI runs {}", row.what, row.by))
}

impl Row {
    fn matches(&self, path: &Path) -> bool {
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

    fn note(path: &str) -> Option<String> {
        runs_later(Path::new(path))
    }

    #[test]
    fn recognizes_build_files_in_any_directory() {
        let npm = "its scripts run outside the sandbox when a person or CI runs npm";
        assert_eq!(note("/w/package.json").as_deref(), Some(npm));
        for path in [
            "/w/a/Makefile",
            "/w/crates/x/build.rs",
            "/w/tests/conftest.py",
            "/w/.github/workflows/ci.yml",
            "/w/rules.mk",
            "/w/vite.config.ts",
            "/w/app/build.gradle.kts",
        ] {
            assert!(note(path).is_some(), "{path}");
        }
    }

    #[test]
    fn ignores_other_files() {
        for path in
            ["/w/src/main.rs", "/w/Cargo.toml", "/w/workflows/ci.yml", "/w/README.md", "/", ""]
        {
            assert_eq!(note(path), None, "{path}");
        }
    }
}
