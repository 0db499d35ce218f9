//! The library prints nothing. A doctest shows that the macros in `silence.rs` do not compile; this test shows
//! that the library defines them before all modules.

#[test]
fn silence_macros_come_before_all_modules() {
    let lib = include_str!("../../src/lib.rs");
    let first = lib.lines().find(|line| line.starts_with("mod ") || line.starts_with("pub mod "));
    assert_eq!(first, Some("mod silence;"));
    assert!(lib.contains("#[macro_use]\n"));
    for name in ["print", "println", "eprint", "eprintln", "dbg"] {
        let silence = include_str!("../../src/silence.rs");
        assert!(silence.contains(&format!("macro_rules! {name} {{")), "{name} is not silenced");
    }
}
