//! What the user can do so that the sandbox reaches a higher level, with the commands for this distribution.

use std::path::Path;

/// The lowest level with namespaces.
const WITH_NAMESPACES: u8 = 3;

const BWRAP: [&str; 3] = ["usr/bin/bwrap", "bin/bwrap", "usr/local/bin/bwrap"];

/// Files that container engines create.
const CONTAINER: [&str; 2] = [".dockerenv", "run/.containerenv"];

/// Sentences for a level without namespaces. `root` is the root directory of the machine.
pub(super) fn advice(root: &Path, level: u8) -> Vec<String> {
    let mut sentences = Vec::new();
    if level >= WITH_NAMESPACES {
        return sentences;
    }
    let setting = |name: &str| read(root, &format!("proc/sys/{}", name.replace('.', "/")));
    let is = |name: &str, value: &str| setting(name).is_some_and(|text| text.trim() == value);
    for (name, off, on) in
        [("kernel.unprivileged_userns_clone", "0", "1"), ("user.max_user_namespaces", "0", "15000")]
    {
        if is(name, off) {
            sentences.push(format!(
                "{name} is {off}, so there are no user namespaces. Until the next start: sudo sysctl -w {name}={on}"
            ));
        }
    }
    if CONTAINER.iter().any(|file| root.join(file).exists()) {
        sentences.push(
            "This is a container. Start it so that programs in it may make user namespaces and mounts."
                .to_owned(),
        );
    } else if !BWRAP.iter().any(|file| root.join(file).exists()) {
        let why = if is("kernel.apparmor_restrict_unprivileged_userns", "1") {
            "AppArmor restricts user namespaces to some programs. bubblewrap is one of them"
        } else {
            "bubblewrap can often make namespaces where other programs cannot"
        };
        let release = read(root, "etc/os-release").unwrap_or_default();
        sentences.push(match install_command(&release) {
            Some(command) => format!("{why}: {command} bubblewrap"),
            None => format!("{why}; install the package bubblewrap."),
        });
    }
    sentences
}

/// The command of the distribution that installs a package.
fn install_command(release: &str) -> Option<&'static str> {
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let (id, like) = (value("ID"), value("ID_LIKE"));
    let command = |name: &str| match name {
        "debian" | "ubuntu" => Some("sudo apt install"),
        "fedora" | "rhel" | "centos" => Some("sudo dnf install"),
        "arch" => Some("sudo pacman -S"),
        "suse" | "opensuse" | "opensuse-tumbleweed" | "opensuse-leap" => {
            Some("sudo zypper install")
        }
        "alpine" => Some("sudo apk add"),
        _ => None,
    };
    command(&id).or_else(|| like.split_whitespace().find_map(command))
}

fn read(root: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(root.join(file)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        root
    }

    #[test]
    fn advice_has_the_command_of_the_distribution() {
        let restricted = "proc/sys/kernel/apparmor_restrict_unprivileged_userns";
        for (release, expected) in [
            ("ID=ubuntu\nID_LIKE=debian\n", "one of them: sudo apt install bubblewrap"),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "sudo apt install bubblewrap"),
            ("ID=fedora\n", "sudo dnf install bubblewrap"),
            ("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "sudo zypper install bubblewrap"),
            ("ID=unknown\n", "install the package bubblewrap."),
        ] {
            let root = machine(&[("etc/os-release", release), (restricted, "1\n")]);
            let said = advice(root.path(), 2);
            assert!(said.len() == 1 && said[0].contains(expected), "{said:?}");
            assert_eq!(advice(root.path(), 3), Vec::<String>::new());
        }
    }

    #[test]
    fn settings_of_the_kernel_and_containers_are_recognized() {
        let root = machine(&[
            ("proc/sys/user/max_user_namespaces", "0\n"),
            ("proc/sys/kernel/unprivileged_userns_clone", "1\n"),
            ("usr/bin/bwrap", ""),
        ]);
        let said = advice(root.path(), 2);
        assert!(said.len() == 1, "{said:?}");
        assert!(said[0].ends_with("sudo sysctl -w user.max_user_namespaces=15000"), "{said:?}");
        let container = machine(&[(".dockerenv", "")]);
        assert!(advice(container.path(), 0)[0].starts_with("This is a container."));
    }
}
