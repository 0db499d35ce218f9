//! The library prints nothing; a doc test shows that the macros in `silence.rs` do not compile, this that
//! the library has them before anything else.

#[test]
fn the_library_silences_itself_before_its_first_module() {
    let lib = include_str!("../../src/lib.rs");
    let first = lib.lines().find(|line| line.starts_with("mod ") || line.starts_with("pub mod "));
    assert_eq!(first, Some("mod silence;"));
    assert!(lib.contains("#[macro_use]\n"));
    for name in ["print", "println", "eprint", "eprintln", "dbg"] {
        let silence = include_str!("../../src/silence.rs");
        assert!(silence.contains(&format!("macro_rules! {name} {{")), "{name} is not silenced");
    }
}
