//! Wheels: the program as a script of a Python package.

use std::fmt::Write as _;
use std::fs;
use std::io::{Cursor, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::workspace;
use zip::write::SimpleFileOptions;

use super::Artefact;
use super::archive::files_below;
use super::archive_entry::Entry;
use super::build::Program;
use super::licences;
use super::release_info::{Release, SUMMARY};

/// The largest wheel that we accept. The grammars of 14 languages take 3.5 MB of it.
pub(super) const MAX_BYTES: usize = 14_000_000;

/// Where the sources of the Python package are.
const SOURCES: &str = "packaging/python";

/// The artefact for a program.
pub(super) fn wheel(release: &Release, program: &Program) -> Result<Artefact> {
    let platforms = program.target.wheel.ok_or("this target has no wheel")?;
    let version = &release.version;
    let info = format!("toolcrib-{version}.dist-info");
    let sources = workspace::root().join(SOURCES);
    let mut entries = files_below(&sources.join("toolcrib"))?;
    for entry in &mut entries {
        entry.path = format!("toolcrib/{}", entry.path);
    }
    let script = format!("toolcrib-{version}.data/scripts/toolcrib");
    entries.push(Entry::program(script, program.bytes()?));
    let licences = licences::entries()?;
    let names: Vec<String> = licences.iter().map(|entry| entry.path.clone()).collect();
    entries.extend(
        licences
            .into_iter()
            .map(|entry| Entry { path: format!("{info}/licenses/{}", entry.path), ..entry }),
    );
    let description = fs::read_to_string(sources.join("README.md"))?;
    let metadata = metadata(version, &names, &description);
    entries.push(Entry::file(format!("{info}/METADATA"), metadata));
    entries.push(Entry::file(format!("{info}/WHEEL"), format_file(platforms)));
    entries.push(record(&entries, format!("{info}/RECORD")));
    let bytes = zip(&entries)?;
    if bytes.len() > MAX_BYTES {
        return Err(format!("the wheel has {} bytes, more than {MAX_BYTES}", bytes.len()).into());
    }
    Ok(Artefact { name: format!("toolcrib-{version}-py3-none-{platforms}.whl"), bytes })
}

fn metadata(version: &str, licences: &[String], description: &str) -> String {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: toolcrib\nVersion: {version}\nSummary: {SUMMARY}\n\
         Keywords: mcp,coding-agent,sandbox,undo\nLicense-Expression: MIT OR Apache-2.0\n"
    );
    for licence in licences {
        let _ = writeln!(text, "License-File: {licence}");
    }
    text.push_str(
        "Classifier: Environment :: Console\nClassifier: Operating System :: POSIX :: Linux\n\
         Classifier: Programming Language :: Python :: 3\nClassifier: Typing :: Typed\n",
    );
    text.push_str("Requires-Python: >=3.10\nDescription-Content-Type: text/markdown\n\n");
    text + description
}

/// The file `WHEEL`, with a line for each platform.
fn format_file(platforms: &str) -> String {
    let mut text =
        "Wheel-Version: 1.0\nGenerator: toolcrib xtask\nRoot-Is-Purelib: false\n".to_owned();
    for platform in platforms.split('.') {
        let _ = writeln!(text, "Tag: py3-none-{platform}");
    }
    text
}

/// The file `RECORD`: a checksum and a size for each other file.
fn record(entries: &[Entry], path: String) -> Entry {
    let mut text = String::new();
    for entry in entries {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&entry.bytes));
        let _ = writeln!(text, "{},sha256={hash},{}", entry.path, entry.bytes.len());
    }
    let _ = writeln!(text, "{path},,");
    Entry::file(path, text)
}

/// In the order given: installers want the metadata at the end.
fn zip(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .compression_level(Some(9))
        // The first day that the format knows.
        .last_modified_time(zip::DateTime::from_date_and_time(1980, 1, 1, 0, 0, 0)?);
    for entry in entries {
        archive.start_file(&*entry.path, options.unix_permissions(entry.mode))?;
        archive.write_all(&entry.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_tag_set_is_one_line_a_tag() {
        let text = format_file("manylinux_2_17_x86_64.musllinux_1_1_x86_64");
        let tags: Vec<&str> = text.lines().filter(|line| line.starts_with("Tag: ")).collect();
        let expected =
            ["Tag: py3-none-manylinux_2_17_x86_64", "Tag: py3-none-musllinux_1_1_x86_64"];
        assert_eq!(tags, expected);
    }

    #[test]
    fn the_record_lists_each_file_and_itself() {
        let entries = [Entry::file("toolcrib/__init__.py", "abc")];
        let record = record(&entries, "x/RECORD".to_owned());
        let text = String::from_utf8(record.bytes).unwrap();
        let hash = "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0";
        assert_eq!(text, format!("toolcrib/__init__.py,sha256={hash},3\nx/RECORD,,\n"));
    }

    #[test]
    fn the_archive_keeps_modes_and_is_the_same_twice() {
        let entries = [Entry::program("run", "x"), Entry::file("text", "y")];
        let bytes = zip(&entries).unwrap();
        assert_eq!(bytes, zip(&entries).unwrap());
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut mode = |name| archive.by_name(name).unwrap().unix_mode().unwrap() & 0o777;
        assert_eq!((mode("run"), mode("text")), (0o755, 0o644));
    }

    #[test]
    fn metadata_names_every_licence_file_before_the_description() {
        let text = metadata("1.2.3", &["LICENSE-MIT".to_owned()], "# Toolcrib\n");
        let (headers, description) = text.split_once("\n\n").unwrap();
        assert!(headers.contains("License-File: LICENSE-MIT"));
        assert_eq!(description, "# Toolcrib\n");
    }
}
