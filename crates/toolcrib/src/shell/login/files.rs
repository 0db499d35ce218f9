//! The files that a login shell reads by itself.

use std::path::{Path, PathBuf};

use toolcrib_fs::Stamp;

use super::{Variables, home};

/// What shells read at a login, by the name of the shell: in the system, and in the home of the user. Of a
/// directory, which files are in it matters.
const FILES: [(&str, &[&str], &[&str]); 4] = [
    (
        "bash",
        &["/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc"],
        &[".bash_profile", ".bash_login", ".profile", ".bashrc"],
    ),
    (
        "zsh",
        &["/etc/zshenv", "/etc/zprofile", "/etc/zshrc", "/etc/zlogin", "/etc/zsh"],
        &[".zshenv", ".zprofile", ".zshrc", ".zlogin"],
    ),
    (
        "fish",
        &["/etc/fish/config.fish", "/etc/fish/conf.d"],
        &[".config/fish/config.fish", ".config/fish/conf.d", ".config/fish/fish_variables"],
    ),
    (
        "",
        &["/etc/profile", "/etc/profile.d"],
        &[".profile", ".kshrc", ".cshrc", ".tcshrc", ".login"],
    ),
];

/// The files that a shell reads at a login, whether they are there or not. Those that these read in turn are not
/// known.
pub fn login_files(shell: &Path, home: &Path) -> Vec<PathBuf> {
    let name = shell.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let known = FILES.iter().find(|(known, ..)| *known == name || known.is_empty());
    let (_, system, own) = known.copied().unwrap_or_default();
    let system = system.iter().map(PathBuf::from);
    system.chain(own.iter().map(|file| home.join(file))).collect()
}

/// What tells whether a login still gives what it gave: the shell, its files, and what it begins with.
pub(super) fn fingerprint(shell: &Path, environment: &Variables) -> String {
    let dotfiles = environment.iter().find(|(name, _)| name == "ZDOTDIR");
    let dotfiles = dotfiles.map(|(_, directory)| PathBuf::from(directory));
    let homes = [home(environment), dotfiles];
    let files = homes.iter().flatten().flat_map(|home| login_files(shell, home));
    let mut text = format!("{environment:?}\n");
    for file in std::iter::once(shell.to_owned()).chain(files) {
        let stamp = Stamp::at(&file).map(|stamp| (stamp.identity, stamp.size, stamp.modified));
        text += &format!("{file:?} {stamp:?}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_has_its_files() {
        let of = |shell: &str| login_files(Path::new(shell), Path::new("/home/me"));
        assert!(of("/bin/bash").contains(&"/home/me/.bashrc".into()));
        assert!(of("/usr/bin/zsh").contains(&"/home/me/.zprofile".into()));
        assert!(of("/usr/bin/fish").contains(&"/home/me/.config/fish/config.fish".into()));
        assert!(of("/bin/dash").contains(&"/home/me/.profile".into()));
    }
}
