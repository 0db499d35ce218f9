//! Archives with the same bytes for the same content: sorted entries, no owner, one fixed timestamp.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::{Compression, GzBuilder};
use toolcrib_devtools::error::Result;

use super::archive_entry::Entry;
use super::build::Program;
use super::man_and_completions::ManAndCompletions;
use super::release_info::Release;
use super::{Artefact, licences};

/// The archive for people who want files and no package manager.
pub(super) fn release_tarball(
    release: &Release,
    program: &Program,
    pages: &ManAndCompletions,
) -> Result<Artefact> {
    let top = format!("toolcrib-{}-{}", release.version, program.target.name);
    let mut entries = vec![Entry::program("toolcrib", program.bytes()?)];
    entries.extend(licences::entries()?);
    let manuals = pages.manuals.iter();
    entries.extend(manuals.map(|(name, text)| Entry::file(format!("man/{name}"), text.as_bytes())));
    let scripts = pages.completions.iter();
    entries.extend(
        scripts.map(|(name, _, text)| Entry::file(format!("completions/{name}"), text.as_bytes())),
    );
    for entry in &mut entries {
        entry.path = format!("{top}/{}", entry.path);
    }
    let bytes = gzip(&tar(entries, release.time)?)?;
    Ok(Artefact { name: format!("{top}.tar.gz"), bytes })
}

/// The files below a directory, with paths from there. Those in `bin` are to be run.
pub(super) fn files_below(directory: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for file in
        fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?
    {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        if file.file_type()?.is_dir() {
            // Left behind by an interpreter that has tried them.
            if name == "__pycache__" || name == "node_modules" {
                continue;
            }
            let is_program = name == "bin";
            entries.extend(files_below(&file.path())?.into_iter().map(|entry| Entry {
                path: format!("{name}/{}", entry.path),
                mode: if is_program { 0o755 } else { entry.mode },
                ..entry
            }));
        } else {
            entries.push(Entry::file(name, fs::read(file.path())?));
        }
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

/// A tar archive, with the directories that its files are in.
pub(super) fn tar(mut entries: Vec<Entry>, time: u64) -> Result<Vec<u8>> {
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let mut archive = tar::Builder::new(Vec::new());
    let mut made: Vec<String> = Vec::new();
    for entry in entries {
        for (end, _) in entry.path.match_indices('/') {
            let directory = entry.path.get(..=end).unwrap_or_default();
            // Of `./a`, `./` is no more than the place itself.
            if directory != "./" && !made.iter().any(|made| made == directory) {
                let mut header = header(tar::EntryType::Directory, 0o755, 0, time);
                archive.append_data(&mut header, directory, std::io::empty())?;
                made.push(directory.to_owned());
            }
        }
        let size = entry.bytes.len() as u64;
        let mut header = header(tar::EntryType::Regular, entry.mode, size, time);
        archive.append_data(&mut header, &entry.path, entry.bytes.as_slice())?;
    }
    Ok(archive.into_inner()?)
}

fn header(kind: tar::EntryType, mode: u32, size: u64, time: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Compressed, without a name and a time.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut compressed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    compressed.write_all(bytes)?;
    Ok(compressed.finish()?)
}

/// A size for people.
pub(super) fn readable_size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_entries_does_not_matter() {
        let one = || Entry::file("b/c/one", "1");
        let two = || Entry::program("a", "2");
        let bytes = tar(vec![one(), two()], 7).unwrap();
        assert_eq!(bytes, tar(vec![two(), one()], 7).unwrap());
        assert_eq!(gzip(&bytes).unwrap(), gzip(&bytes).unwrap());
    }

    #[test]
    fn an_archive_has_directories_modes_and_the_time_and_no_owner() {
        let bytes = tar(vec![Entry::program("a/b/run", "x"), Entry::file("a/t", "y")], 7).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let listed: Vec<(String, u32, u64, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let (path, header) = (entry.path().unwrap().display().to_string(), entry.header());
                let owner = header.uid().unwrap() + header.gid().unwrap();
                (path, header.mode().unwrap(), header.mtime().unwrap(), owner)
            })
            .collect();
        let expected = [("a/", 0o755), ("a/b/", 0o755), ("a/b/run", 0o755), ("a/t", 0o644)];
        let expected: Vec<_> =
            expected.iter().map(|&(path, mode)| (path.to_owned(), mode, 7, 0)).collect();
        assert_eq!(listed, expected);
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!(readable_size(5), "5 B");
        assert_eq!(readable_size(12_345), "12 kB");
        assert_eq!(readable_size(9_876_543), "9.8 MB");
    }
}
