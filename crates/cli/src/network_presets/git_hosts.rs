//! Reads hosts of git repositories from the configuration of git on this machine.

use super::machine_config::MachineConfig;

/// The URLs in the configuration of git.
pub(super) fn git(machine: &MachineConfig) -> Vec<String> {
    let texts = machine.files(&[".gitconfig", ".config/git/config"], &["etc/gitconfig"]);
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim);
    // Sections such as `[url "https://example.com/"]`, and the URLs of remotes.
    let url = |line: &str| match line.strip_prefix('[') {
        Some(section) => section.split('"').nth(1).map(str::to_owned),
        None => {
            let (key, value) = line.split_once('=')?;
            let key = key.trim().to_ascii_lowercase();
            matches!(key.as_str(), "url" | "insteadof").then(|| value.trim().to_owned())
        }
    };
    lines.filter_map(url).collect()
}
