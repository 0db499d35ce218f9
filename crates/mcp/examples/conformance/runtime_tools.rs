//! Tools like those of the product: they use our runtime, our policy and our progress reports.

use std::time::Duration;

use serde::Deserialize;
use toolcrib::{
    Access, Category, Cx, Error, ErrorKind, Hints, JsonSchema, Picture, Progress, Reply,
    RuntimeBuilder, Tool,
};

use crate::contents::PIXEL;

/// Longer than the server's interval between two progress reports.
const STEP: Duration = Duration::from_millis(150);

/// A tool for the suite: its name, its accesses and its function.
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
// Access outside requires approval.
fixture!(Asks, "test_elicitation", asks(), |_| Ok(Reply::new("It was allowed.")));
fixture!(AsksOnAStream, "test_streaming_elicitation", asks(), |_| Ok(Reply::new("Allowed.")));
fixture!(AsksState, "test_input_required_result_request_state", asks(), |_| {
    Ok(Reply::new("state-ok"))
});
fixture!(AsksSealed, "test_input_required_result_tampered_state", asks(), |_| {
    Ok(Reply::new("It was allowed."))
});

fn asks() -> Vec<Access> {
    vec![Access::Reach("do something outside".to_owned())]
}

/// Adds all of them.
pub(crate) fn register(runtime: RuntimeBuilder) -> RuntimeBuilder {
    runtime
        .register::<SimpleText>()
        .register::<Image>()
        .register::<Fails>()
        .register::<Slow>()
        .register::<Asks>()
        .register::<AsksOnAStream>()
        .register::<AsksState>()
        .register::<AsksSealed>()
}
