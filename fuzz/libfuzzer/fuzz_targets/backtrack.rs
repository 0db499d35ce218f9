#![no_main]

libfuzzer_sys::fuzz_target!(
    init: {
        // As a child of ourselves, to match a pattern.
        if let Some(code) = toolcrib::run_helper(std::env::args_os()) {
            std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
        }
    },
    |input: &[u8]| {
        toolcrib_fuzz::run("backtrack", input);
    }
);
