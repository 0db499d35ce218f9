// The library prints nothing: one stray line on stdout breaks MCP on stdio. These macros replace those of the
// standard library, and a line that uses one does not compile. Not a `//!` comment: doctests include this file.

macro_rules! print {
    ($($anything:tt)*) => {
        compile_error!("the library prints nothing: return a `Reply`")
    };
}
macro_rules! println {
    ($($anything:tt)*) => {
        compile_error!("the library prints nothing: return a `Reply`")
    };
}
macro_rules! eprint {
    ($($anything:tt)*) => {
        compile_error!("the library prints nothing: return an `Error`")
    };
}
macro_rules! eprintln {
    ($($anything:tt)*) => {
        compile_error!("the library prints nothing: return an `Error`")
    };
}
macro_rules! dbg {
    ($($anything:tt)*) => {
        compile_error!("the library prints nothing, while you debug it too")
    };
}
