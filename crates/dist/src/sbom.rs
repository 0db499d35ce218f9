//! The bill of materials, as CycloneDX 1.5.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, python};

use super::Artefact;
use super::components::{self, Component};
use super::release_info::Release;

/// The artefact. It has no serial number and no time: both would differ between two builds.
pub(super) fn bill_of_materials(release: &Release) -> Result<Artefact> {
    let bill = document(&components::of_product()?)?;
    let name = format!("toolcrib-{}.cdx.json", release.version);
    Ok(Artefact { name, bytes: (serde_json::to_string_pretty(&bill)? + "\n").into_bytes() })
}

/// Judged by the library of CycloneDX.
pub(super) fn check(file: &Path) -> Result<()> {
    let python = python::with_libraries("installer-requirements.txt", "installer-venv")?;
    let script = python::oracles().join("bill_of_materials.py");
    process::run(Command::new(python).arg(script).arg(file))
}

fn document(components: &[Component]) -> Result<Value> {
    let is_product = |component: &&Component| component.name == "toolcrib-cli";
    let product = components.iter().find(is_product).ok_or("the product has no entry")?;
    let mut product_entry = entry(product);
    product_entry["type"] = "application".into();
    let others = components.iter().filter(|component| !is_product(component));
    let edges = components
        .iter()
        .map(|component| json!({"ref": component.package_url(), "dependsOn": component.uses}));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": product_entry},
        "components": others.map(entry).collect::<Vec<Value>>(),
        "dependencies": edges.collect::<Vec<Value>>(),
    }))
}

fn entry(component: &Component) -> Value {
    let url = component.package_url();
    let mut entry = json!({
        "type": "library",
        "bom-ref": url,
        "name": component.name,
        "version": component.version,
        "scope": if component.is_macro { "excluded" } else { "required" },
        "purl": url,
    });
    if let Some(licence) = &component.licence {
        // Old manifests have a slash for "or".
        entry["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    if let Some(checksum) = &component.checksum {
        entry["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &str, uses: &[&str]) -> Component {
        Component {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: Some("MIT/Apache-2.0".to_owned()),
            checksum: Some("00ff".to_owned()),
            directory: "/".into(),
            is_macro: name.ends_with("derive"),
            uses: uses.iter().map(|&url| url.to_owned()).collect(),
        }
    }

    #[test]
    fn every_crate_has_its_entry_and_its_edges() {
        let uses = ["pkg:cargo/serde@1.0.0", "pkg:cargo/serde_derive@1.0.0"];
        let components = [
            component("serde", &[]),
            component("serde_derive", &[]),
            component("toolcrib-cli", &uses),
        ];
        let bill = document(&components).unwrap();
        assert_eq!(bill["metadata"]["component"]["type"], "application");
        assert_eq!(bill["components"].as_array().unwrap().len(), 2);
        assert_eq!(bill["components"][0]["purl"], "pkg:cargo/serde@1.0.0");
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["components"][0]["hashes"][0]["content"], "00ff");
        assert_eq!(bill["components"][1]["scope"], "excluded");
        assert_eq!(bill["dependencies"][2]["dependsOn"], json!(uses));
    }
}
