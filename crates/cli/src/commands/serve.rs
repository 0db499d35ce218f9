//! `toolcrib serve`: the tools over MCP.

use std::process::ExitCode;

use toolcrib::Runtime;
use toolcrib_mcp::{ServeOptions, serve_stdio};

use crate::args::Common;
use crate::print;

pub(crate) fn serve(common: &Common, runtime: Runtime) -> Result<ExitCode, String> {
    let options = ServeOptions {
        dry_run: common.dry_run,
        program: (env!("CARGO_BIN_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        roots: common.roots.iter().map(|root| root.directory.display().to_string()).collect(),
    };
    match serve_stdio(runtime, options) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            print::usage_error(&error.to_string());
            Ok(ExitCode::FAILURE)
        }
    }
}
