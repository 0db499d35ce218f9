//! A server with everything that the protocol's conformance suite requires: our tools, a handler that wraps ours
//! for the rest, and our HTTP transport. Only for that suite; `cargo xtask clients` starts it.
//!
//! `conformance DIRECTORY TOKEN-FILE` serves until it is killed, and prints its address to stderr.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    reason = "a test server: it reads its arguments, listens, and prints its address"
)]
#![allow(
    deprecated,
    reason = "sampling, roots and logging are on their way out, and the suite still asks for them"
)]

mod asking;
mod changes;
mod contents;
mod input_required_tools;
mod logging;
mod prompts;
mod resources;
mod runtime_tools;
mod suite_handler;

use std::net::TcpListener;

use toolcrib::Runtime;
use toolcrib_mcp::{Access, Handler, HttpOptions, Listener, ServeOptions, Token, serve_handler};

use self::suite_handler::Fixtures;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let (Some(directory), Some(file)) = (words.next(), words.next()) else {
        return Err("conformance DIRECTORY TOKEN-FILE".into());
    };
    let runtime = runtime_tools::register(Runtime::builder().root(directory));
    let runtime = runtime.build().map_err(|error| error.text())?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let token = Token::new(&std::fs::read_to_string(&file)?)?;
    let file = file.display();
    eprintln!("serving MCP at http://127.0.0.1:{port}/mcp; the token is in {file}");
    let http = HttpOptions {
        listener: Listener::Tcp(listener),
        access: Access::Token(token),
        hosts: Vec::new(),
        public_url: None,
        ends_on_signals: false,
    };
    let options = ServeOptions {
        monitor: None,
        program: ("conformance".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ..ServeOptions::default()
    };
    Ok(serve_handler(Fixtures::around(Handler::new(runtime, options)?)?, http)?)
}
