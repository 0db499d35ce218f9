//! A container image as an OCI layout in a tar archive, made without a container engine: one layer with the static program.

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;

use super::Artefact;
use super::archive::{gzip, tar};
use super::archive_entry::Entry;
use super::build::Program;
use super::checksums::sha256;
use super::licences;
use super::release_info::{Release, SUMMARY};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIGURATION: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The artefact: an image for each platform, under one name.
pub(super) fn image(release: &Release, programs: &[Program]) -> Result<Artefact> {
    let mut layout = Layout::default();
    let mut manifests = Vec::new();
    for program in programs {
        if let Some(architecture) = program.target.container {
            manifests.push(platform(&mut layout, release, architecture, program.bytes()?)?);
        }
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let mut index = layout.add_json(INDEX, &index)?;
    index["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let top = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [index]});
    layout.files.push(Entry::file("index.json", serde_json::to_vec(&top)?));
    layout.files.push(Entry::file("oci-layout", r#"{"imageLayoutVersion": "1.0.0"}"#));
    let name = format!("toolcrib-{}-oci.tar", release.version);
    Ok(Artefact { name, bytes: tar(layout.files, release.time)? })
}

/// Adds the image of one platform, and returns its descriptor.
fn platform(
    layout: &mut Layout,
    release: &Release,
    architecture: &str,
    program: Vec<u8>,
) -> Result<Value> {
    let mut files = vec![Entry::program("usr/bin/toolcrib", program)];
    files.extend(
        licences::entries()?
            .into_iter()
            .map(|entry| Entry { path: format!("usr/share/doc/toolcrib/{}", entry.path), ..entry }),
    );
    let layer = tar(files, release.time)?;
    let configuration = json!({
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/toolcrib"],
            "Cmd": ["serve"],
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/root"],
            "WorkingDir": "/workspace",
            "Labels": {
                "org.opencontainers.image.title": "toolcrib",
                "org.opencontainers.image.description": SUMMARY,
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))]},
    });
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": layout.add_json(CONFIGURATION, &configuration)?,
        "layers": [layout.add(LAYER, gzip(&layer)?)],
    });
    let mut descriptor = layout.add_json(MANIFEST, &manifest)?;
    descriptor["platform"] = json!({"architecture": architecture, "os": "linux"});
    Ok(descriptor)
}

/// The files of the layout so far.
#[derive(Default)]
struct Layout {
    files: Vec<Entry>,
}

impl Layout {
    /// Adds a blob, and returns its descriptor.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let (hash, size) = (sha256(&bytes), bytes.len());
        self.files.push(Entry::file(format!("blobs/sha256/{hash}"), bytes));
        json!({"mediaType": media_type, "digest": format!("sha256:{hash}"), "size": size})
    }

    fn add_json(&mut self, media_type: &str, value: &Value) -> Result<Value> {
        Ok(self.add(media_type, serde_json::to_vec(value)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_named_by_its_content() {
        let mut layout = Layout::default();
        let descriptor = layout.add(LAYER, b"abc".to_vec());
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(descriptor["digest"], format!("sha256:{hash}"));
        assert_eq!(descriptor["size"], 3);
        assert_eq!(layout.files[0].path, format!("blobs/sha256/{hash}"));
    }
}
