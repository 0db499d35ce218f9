//! Wheels: served by a local index, and started by uvx, pipx and pip.

use std::fs;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, python};

use super::listening_process::{Server, free_port};
use super::new_user::NewUser;
use crate::release_info::Release;

pub(super) fn run(release: &Release) -> Result<()> {
    let user = NewUser::new()?;
    let port = free_port()?;
    let _index = index(&user, port)?;
    let url = format!("http://127.0.0.1:{port}/simple/");
    user.write(".config/uv/uv.toml", &format!("[[index]]\nurl = \"{url}\"\ndefault = true\n"))?;
    user.write(".config/pip/pip.conf", &format!("[global]\nindex-url = {url}\n"))?;
    let python = python::with_libraries("installer-requirements.txt", "installer-venv")?;
    let tool = |name: &str| python.with_file_name(name).display().to_string();
    user.try_out(release, &[&tool("uvx"), "toolcrib"])?;
    user.try_out(release, &[&tool("pipx"), "run", "--backend", "uv", "toolcrib"])?;
    let environment = user.at("venv");
    process::run(user.command("python3").args(["-m", "venv"]).arg(&environment))?;
    let interpreter = environment.join("bin/python").display().to_string();
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "toolcrib"];
    process::run(user.command(&interpreter).args(install))?;
    user.try_out(release, &[&interpreter, "-m", "toolcrib"])
}

/// A directory with the wheels, in the form of a package index.
fn index(user: &NewUser, port: u16) -> Result<Server> {
    let place = user.at("index/simple/toolcrib");
    fs::create_dir_all(&place)?;
    let mut page = String::from("<!DOCTYPE html>\n<html><body>\n");
    for file in fs::read_dir(crate::directory())? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        if name.ends_with(".whl") {
            fs::copy(file.path(), place.join(&name))?;
            page.push_str(&format!("<a href=\"{name}\">{name}</a>\n"));
        }
    }
    fs::write(place.join("index.html"), page + "</body></html>\n")?;
    let mut command = user.command("python3");
    command.args(["-m", "http.server", &port.to_string(), "--bind", "127.0.0.1", "--directory"]);
    command.arg(user.at("index"));
    Server::start(&mut command, port)
}
