#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    toolcrib_fuzz::run("lsp", input);
});
