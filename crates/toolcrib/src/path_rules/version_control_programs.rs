//! Recognizes version control programs by name. No protection depends on it.

use std::ffi::OsStr;
use std::path::Path;

use toolcrib_exec::Program;

/// Options of git itself whose value is the next argument.
const WITH_VALUE: [&str; 8] = [
    "-C",
    "-c",
    "--attr-source",
    "--config-env",
    "--git-dir",
    "--namespace",
    "--super-prefix",
    "--work-tree",
];

/// Whether a program is git and applies patches. It closes a file and stats it at once, before a review is
/// done.
pub(super) fn applies_patches(program: &Program) -> bool {
    is_version_control_program(program)
        && git_command(program).is_some_and(|command| command == "am" || command == "apply")
}

/// Whether a program is `git clean`.
pub(super) fn is_git_clean(program: &Program) -> bool {
    git_command(program).is_some_and(|command| command == "clean")
}

/// Whether a program is a version control program, by its file name.
pub(super) fn is_version_control_program(program: &Program) -> bool {
    const KNOWN: [&str; 4] = ["git", "jj", "hg", "svn"];
    let name = program.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    KNOWN.iter().any(|known| {
        name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// The command of git, such as `clean`: the first argument that is no option, or the end of the name `git-clean`.
fn git_command(program: &Program) -> Option<&OsStr> {
    let (name, arguments) = program.arguments.split_first()?;
    let name = Path::new(name).file_name().and_then(OsStr::to_str).unwrap_or_default();
    if let Some(command) = name.strip_prefix("git-") {
        return Some(OsStr::new(command));
    }
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if WITH_VALUE.iter().any(|option| argument == option) {
            arguments.next();
        } else if !argument.as_encoded_bytes().starts_with(b"-") {
            return Some(argument);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_git_is_its_first_argument_that_is_no_option() {
        for (line, expected) in [
            ("git clean -fdx", Some("clean")),
            ("git -C clean -c am.x=y --no-pager status clean", Some("status")),
            ("git --git-dir=.git --work-tree clean commit -m clean", Some("commit")),
            ("/usr/lib/git-core/git-am --clean", Some("am")),
            ("git --version", None),
            ("git -C", None),
        ] {
            let arguments = line.split(' ').map(Into::into).collect();
            let program = Program { path: "/usr/bin/git".into(), arguments };
            assert_eq!(git_command(&program), expected.map(OsStr::new), "{line}");
        }
    }
}
