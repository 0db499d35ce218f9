//! `cargo xtask sandboxd`: checks `toolcrib sandboxd` with the client of Kubernetes' agent-sandbox, here and as in a pod, and the
//! manifests of packaging/kubernetes with the project's definitions. By scripts of crates/devtools/oracles.

use std::path::{Path, PathBuf};
use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, process, product, python, system_packages, workspace};

/// The commit of agent-sandbox whose definitions are used.
const COMMIT: &str = "2fd412d55ecae90861a101a5424a75473de97c36";

const DEFINITIONS: [&str; 2] = [
    "extensions.agents.x-k8s.io_sandboxtemplates.yaml",
    "extensions.agents.x-k8s.io_sandboxwarmpools.yaml",
];

/// A directory with the definitions, for machines that cannot download them.
const DIRECTORY_VARIABLE: &str = "AGENT_SANDBOX_CRDS";

/// Fails at the first check that fails.
pub(crate) fn check() -> Result<()> {
    let binary = product::build_debug()?;
    let python = python::with_libraries("sandboxd-requirements.txt", "sandboxd-venv")?;
    let script = |name: &str| python::oracles().join(name);
    process::run(Command::new(&python).arg(script("sandboxd.py")).arg(&binary))?;
    system_packages::BUBBLEWRAP.obtain()?;
    println!("as in a pod:");
    let home = cache::directory()?.join("pod-home");
    std::fs::create_dir_all(&home)?;
    let mut in_pod = Command::new("python3");
    in_pod.arg(script("pod.py")).arg(&home).arg(&python).arg(script("sandboxd.py")).arg(&binary);
    process::run(in_pod.args(["--level", "2"]))?;
    match definitions() {
        Ok(directory) => {
            let manifests = workspace::root().join("packaging/kubernetes");
            let mut check = Command::new(&python);
            check.arg(script("kubernetes_manifests.py")).arg(&binary);
            process::run(check.arg(manifests).arg(directory))
        }
        Err(error) => {
            println!("skipped: the manifests were not checked: {error}");
            Ok(())
        }
    }
}

/// The directory of the definitions, which are downloaded once.
fn definitions() -> Result<PathBuf> {
    if let Some(directory) = std::env::var_os(DIRECTORY_VARIABLE) {
        return Ok(directory.into());
    }
    let directory = cache::directory()?.join(format!("agent-sandbox-{COMMIT}"));
    std::fs::create_dir_all(&directory)?;
    for name in DEFINITIONS {
        let file = directory.join(name);
        if !file.exists() {
            download(name, &file)?;
        }
    }
    Ok(directory)
}

fn download(name: &str, file: &Path) -> Result<()> {
    let url = format!(
        "https://raw.githubusercontent.com/kubernetes-sigs/agent-sandbox/{COMMIT}/k8s/crds/{name}"
    );
    let part = file.with_extension("part");
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location", "--max-time", "60", "--output"]);
    if process::probe(curl.arg(&part).arg(&url)).is_none() {
        return Err(format!(
            "{url} cannot be downloaded; {DIRECTORY_VARIABLE} names a directory with the file"
        )
        .into());
    }
    Ok(std::fs::rename(part, file)?)
}
