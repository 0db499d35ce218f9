//! The container image: its layer is unpacked, and its entry point run there. Needs root, as chroot does.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{metadata, process};

use crate::checksums::sha256;
use crate::release_info::Release;
use crate::target::TARGETS;

pub(super) fn run(release: &Release) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let (layout, root) = (scratch.path().join("layout"), scratch.path().join("root"));
    fs::create_dir(&layout)?;
    fs::create_dir_all(root.join("workspace"))?;
    let file = crate::directory().join(format!("toolcrib-{}-oci.tar", release.version));
    process::run(Command::new("tar").arg("-xf").arg(file).arg("-C").arg(&layout))?;
    let top: Value = serde_json::from_slice(&fs::read(layout.join("index.json"))?)?;
    let index = blob(&layout, &metadata::list(&top, "manifests")?[0])?;
    let here = TARGETS.iter().find(|target| target.runs_here()).and_then(|target| target.container);
    let manifests = metadata::list(&index, "manifests")?;
    let is_here = |one: &&Value| one["platform"]["architecture"].as_str() == here;
    let manifest = blob(&layout, manifests.iter().find(is_here).ok_or("no image for here")?)?;
    let configuration = blob(&layout, &manifest["config"])?;
    let layer = path(&layout, &manifest["layers"][0])?;
    process::run(Command::new("tar").arg("-xzf").arg(layer).arg("-C").arg(&root))?;
    let entry_point = &configuration["config"]["Entrypoint"][0];
    let entry_point = entry_point.as_str().ok_or("the image has no entry point")?;
    let chrooted = |words: &[&str]| {
        let mut command = Command::new("chroot");
        command.arg(&root).arg(entry_point).args(words).env_clear();
        command.env("HOME", "/root").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        process::capture(&mut command)
    };
    let version = chrooted(&["--version"])?;
    let listing = chrooted(&["--root", "/usr/share/doc/toolcrib", "--text", "call", "LS", "{}"])?;
    if version.trim() != format!("toolcrib {}", release.version) || !listing.contains("LICENSE-MIT")
    {
        return Err(format!("the image does not work: {version}\n{listing}").into());
    }
    println!("   {entry_point} runs in the image, without a shell and a C library");
    Ok(())
}

/// The JSON behind a descriptor.
fn blob(layout: &Path, descriptor: &Value) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(path(layout, descriptor)?)?)?)
}

/// The file behind a descriptor; its content must be what the descriptor says.
fn path(layout: &Path, descriptor: &Value) -> Result<std::path::PathBuf> {
    let digest = metadata::text(descriptor, "digest")?;
    let hash = digest.strip_prefix("sha256:").ok_or("a digest of another kind")?;
    let path = layout.join("blobs/sha256").join(hash);
    if sha256(&fs::read(&path)?) == hash {
        Ok(path)
    } else {
        Err(format!("{digest} has another content").into())
    }
}
