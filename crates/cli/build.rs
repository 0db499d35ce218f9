//! Compiles the functions that replace those of a C library.

use std::env;

const SOURCE: &str = "src/memory_compare.c";

#[expect(clippy::disallowed_methods, reason = "cargo describes the target in the environment")]
fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    let is_musl = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|name| name == "musl");
    // Another C library keeps its own functions, and only tests call ours.
    let prefix = if is_musl { "" } else { "toolcrib_" };
    let mut build = cc::Build::new();
    build
        .file(SOURCE)
        .define("MEMCMP", format!("{prefix}memcmp").as_str())
        .define("BCMP", format!("{prefix}bcmp").as_str())
        // The package is optimized for size, and a compiler may turn a comparison into a call of these functions.
        .opt_level(2)
        .flag("-fno-builtin");
    if is_musl {
        // The linker prefers an object file to every library.
        for object in build.compile_intermediates() {
            println!("cargo:rustc-link-arg-bins={}", object.display());
        }
    } else {
        build.compile("memory_compare");
    }
}
