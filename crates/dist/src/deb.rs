//! The Debian package: an `ar` archive of two tar archives. The static program needs no other package.

use std::fmt::Write as _;

use toolcrib_devtools::error::Result;

use super::Artefact;
use super::archive::{gzip, tar};
use super::archive_entry::Entry;
use super::build::Program;
use super::licences;
use super::man_and_completions::ManAndCompletions;
use super::release_info::{Release, SUMMARY};

/// The artefact for a program.
pub(super) fn package(
    release: &Release,
    program: &Program,
    pages: &ManAndCompletions,
) -> Result<Artefact> {
    let architecture = program.target.debian.ok_or("this target has no Debian package")?;
    let files = files(program.bytes()?, pages)?;
    let control = vec![Entry::file("./control", control(&release.version, architecture, &files))];
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&tar(control, release.time)?)?),
        ("data.tar.gz", gzip(&tar(files, release.time)?)?),
    ];
    let name = format!("toolcrib_{}-1_{architecture}.deb", release.version);
    Ok(Artefact { name, bytes: ar(&members, release.time)? })
}

fn files(program: Vec<u8>, pages: &ManAndCompletions) -> Result<Vec<Entry>> {
    let share = |path: String| format!("./usr/share/{path}");
    let mut files = vec![Entry::program("./usr/bin/toolcrib", program)];
    files.push(Entry::file(share("doc/toolcrib/copyright".into()), copyright()?));
    for (name, text) in &pages.manuals {
        let path = share(format!("man/man1/{name}.gz"));
        files.push(Entry::file(path, gzip(text.as_bytes())?));
    }
    for (_, place, script) in &pages.completions {
        files.push(Entry::file(share((*place).to_owned()), script.as_bytes()));
    }
    Ok(files)
}

/// All licence texts, in the one place where Debian has them.
fn copyright() -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for entry in licences::entries()? {
        text.extend_from_slice(&entry.bytes);
        text.extend_from_slice(b"\n\n");
    }
    Ok(text)
}

fn control(version: &str, architecture: &str, files: &[Entry]) -> String {
    let kilobytes: usize = files.iter().map(|file| file.bytes.len().div_ceil(1024)).sum();
    let mut control = String::new();
    for (field, value) in [
        ("Package", "toolcrib"),
        ("Version", &format!("{version}-1")),
        ("Architecture", architecture),
        ("Maintainer", "The Toolcrib authors"),
        ("Installed-Size", &kilobytes.to_string()),
        ("Section", "devel"),
        ("Priority", "optional"),
        ("Suggests", "bubblewrap, git"),
        ("Description", SUMMARY),
    ] {
        let _ = writeln!(control, "{field}: {value}");
    }
    control
}

/// The common `ar` format: a line of sixty bytes before each member, and an even length.
fn ar(members: &[(&str, Vec<u8>)], time: u64) -> Result<Vec<u8>> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let length = bytes.len();
        let header = format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{length:<10}`\n", 0, 0, "100644");
        if header.len() != 60 {
            return Err(format!("`{name}` does not fit into an ar archive").into());
        }
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(bytes);
        if length % 2 == 1 {
            archive.push(b'\n');
        }
    }
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_file_has_what_dpkg_requires() {
        let files = [Entry::program("./usr/bin/toolcrib", vec![0; 2_000])];
        let control = control("1.2.3", "amd64", &files);
        for line in
            ["Package: toolcrib", "Version: 1.2.3-1", "Architecture: amd64", "Installed-Size: 2"]
        {
            assert!(control.lines().any(|found| found == line), "{line}: {control}");
        }
        assert!(control.ends_with('\n') && !control.contains("\n\n"));
    }

    #[test]
    fn members_begin_at_even_places() {
        let archive = ar(&[("one", b"abc".to_vec()), ("two", b"x".to_vec())], 7).unwrap();
        assert_eq!(archive.len(), 8 + 60 + 4 + 60 + 2);
        assert_eq!(&archive[8..11], b"one");
        assert_eq!(&archive[72..75], b"two");
    }

    #[test]
    fn a_long_name_is_an_error() {
        assert!(ar(&[("a-name-of-many-letters", Vec::new())], 7).is_err());
    }
}
