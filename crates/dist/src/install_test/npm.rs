//! npm: published to a local registry, and started by npx.

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{node, process};

use super::listening_process::{Server, free_port};
use super::new_user::NewUser;
use crate::release_info::Release;

pub(super) fn run(release: &Release) -> Result<()> {
    let user = NewUser::new()?;
    let port = free_port()?;
    let _registry = registry(&user, port)?;
    user.write(
        ".npmrc",
        &format!(
            "registry=http://127.0.0.1:{port}/\n//127.0.0.1:{port}/:_authToken=anyone\n\
             update-notifier=false\n"
        ),
    )?;
    for name in ["toolcrib-linux-x64", "toolcrib-linux-arm64", "toolcrib"] {
        let file = crate::directory().join(format!("npm-{name}-{}.tgz", release.version));
        if !file.exists() {
            // Its target was left out.
            println!("   {name} is not in dist/");
            continue;
        }
        let mut publish = user.command("npm");
        process::run(publish.args(["publish", "--silent", "--access", "public"]).arg(file))?;
    }
    user.try_out(release, &["npx", "-y", "toolcrib"])?;
    let prefix = user.at("prefix");
    let mut install = user.command("npm");
    install.args(["install", "--global", "--silent", "--prefix"]).arg(&prefix).arg("toolcrib");
    process::run(&mut install)?;
    user.try_out(release, &[&prefix.join("bin/toolcrib").display().to_string()])
}

/// One without another registry behind it: only what was published here is found.
fn registry(user: &NewUser, port: u16) -> Result<Server> {
    let packages = node::install("npm-registry.json")?;
    user.write(
        "registry.yaml",
        "storage: ./storage\nmax_body_size: 50mb\npackages:\n  '**':\n    access: $all\n    publish: $all\n\
         log: { type: stdout, level: fatal }\n",
    )?;
    let mut command = user.command(packages.file(".bin/node"));
    command.arg(packages.file("verdaccio/bin/verdaccio"));
    command.arg("--config").arg(user.at("registry.yaml"));
    command.arg("--listen").arg(format!("127.0.0.1:{port}"));
    Server::start(&mut command, port)
}
