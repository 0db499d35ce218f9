//! The server with tools that the protocol's own conformance suite asks for, on our handler and our HTTP. For
//! that suite alone: `cargo xtask clients` starts it.
//!
//! `conformance DIRECTORY TOKEN-FILE` serves until it is ended, and says where on standard error.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    reason = "a door for a test: it reads its arguments, listens, and says where"
)]

use std::net::TcpListener;
use std::time::Duration;

use serde::Deserialize;
use toolcrib::{
    Access, Category, Cx, Error, ErrorKind, Hints, JsonSchema, Picture, Progress, Reply, Runtime,
    Tool,
};
use toolcrib_mcp::{HttpOptions, Listener, ServeOptions, Token, serve_http};

/// Longer than the pause that the server keeps between two messages about progress.
const STEP: Duration = Duration::from_millis(150);

/// A PNG of one red pixel.
const PIXEL: &[u8] = &[
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0,
    0, 0, 144, 119, 83, 222, 0, 0, 0, 12, 73, 68, 65, 84, 120, 156, 99, 248, 207, 192, 0, 0, 3, 1,
    1, 0, 201, 254, 146, 239, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
];

/// A tool for the suite: its name, what it touches, what it does.
macro_rules! fixture {
    ($tool:ident, $name:literal, $access:expr, $run:expr) => {
        /// For the conformance suite.
        #[derive(Deserialize, JsonSchema)]
        #[schemars(crate = "toolcrib::schemars")]
        struct $tool {
            #[expect(dead_code, reason = "some scenarios give one")]
            message: Option<String>,
        }

        impl Tool for $tool {
            const NAME: &'static str = $name;
            const CATEGORY: Category = Category::Other;
            const HINTS: Hints = Hints::READS;

            fn access(&self) -> Vec<Access> {
                $access
            }

            fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
                let run: fn(&mut Cx<'_>) -> Result<Reply, Error> = $run;
                run(cx)
            }
        }
    };
}

fixture!(SimpleText, "test_simple_text", vec![], |_| Ok(Reply::new("A simple text.")));
fixture!(Image, "test_image_content", vec![], |_| {
    let picture = Picture { media_type: "image/png", bytes: PIXEL.to_vec() };
    Ok(Reply::new("A picture.").picture(picture))
});
fixture!(Fails, "test_error_handling", vec![], |_| {
    Err(Error::new(ErrorKind::Failed, "This tool always fails."))
});
fixture!(Slow, "test_tool_with_progress", vec![], |cx| {
    for done in [10, 50, 100] {
        std::thread::sleep(STEP);
        cx.progress(Progress { done, total: Some(100), message: "on its way" });
    }
    std::thread::sleep(STEP);
    Ok(Reply::new("It took its time."))
});
// What reaches outside is asked about.
fixture!(Asks, "test_elicitation", asks(), |_| Ok(Reply::new("It was allowed.")));
fixture!(AsksState, "test_input_required_result_request_state", asks(), |_| {
    Ok(Reply::new("state-ok"))
});
fixture!(AsksSealed, "test_input_required_result_tampered_state", asks(), |_| {
    Ok(Reply::new("It was allowed."))
});

fn asks() -> Vec<Access> {
    vec![Access::Reach("do something outside".to_owned())]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let (Some(directory), Some(file)) = (words.next(), words.next()) else {
        return Err("conformance DIRECTORY TOKEN-FILE".into());
    };
    let mut runtime = Runtime::builder().root(directory).build().map_err(|error| error.text())?;
    let registered = [
        runtime.register::<SimpleText>(),
        runtime.register::<Image>(),
        runtime.register::<Fails>(),
        runtime.register::<Slow>(),
        runtime.register::<Asks>(),
        runtime.register::<AsksState>(),
        runtime.register::<AsksSealed>(),
    ];
    registered.into_iter().collect::<Result<(), Error>>().map_err(|error| error.text())?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let token = Token::new(&std::fs::read_to_string(&file)?)?;
    let file = file.display();
    eprintln!("serving MCP at http://127.0.0.1:{port}/mcp; the token is in {file}");
    let http = HttpOptions { listener: Listener::Tcp(listener), token, hosts: Vec::new() };
    let options = ServeOptions {
        program: ("conformance".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ..ServeOptions::default()
    };
    match serve_http(runtime, options, http)? {}
}
