//! The library prints nothing. A doctest shows that the macros in `no_print.rs` do not compile; this test shows
//! that the library defines them before all modules.

#[test]
fn disabled_print_macros_come_before_all_modules() {
    let lib = include_str!("../../src/lib.rs");
    let first = lib.lines().find(|line| line.starts_with("mod ") || line.starts_with("pub mod "));
    assert_eq!(first, Some("mod no_print;"));
    assert!(lib.contains("#[macro_use]\n"));
    for name in ["print", "println", "eprint", "eprintln", "dbg"] {
        let no_print = include_str!("../../src/no_print.rs");
        assert!(no_print.contains(&format!("macro_rules! {name} {{")), "{name} is not disabled");
    }
}
