//! Files that a login shell reads.

use std::path::{Path, PathBuf};

use toolcrib_fs::Stamp;

use super::{Variables, home};

/// Files by shell: of the system, and in the user's home. For a directory, its entries count.
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

/// Returns the files that a shell reads at login, existing or not. Files that these include are not known.
pub fn login_files(shell: &Path, home: &Path) -> Vec<PathBuf> {
    let name = shell.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let known = FILES.iter().find(|(known, ..)| *known == name || known.is_empty());
    let (_, system, own) = known.copied().unwrap_or_default();
    let system = system.iter().map(PathBuf::from);
    system.chain(own.iter().map(|file| home.join(file))).collect()
}

/// Identifies the result of a login: the shell, its files, and the initial environment.
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
