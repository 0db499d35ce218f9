//! The errors of tasks.

use std::error::Error;
use std::fmt;

/// Boxed, because these errors are only printed.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// An invalid command line. The exit code is 2; that of a failed task is 1.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// Fails if a task without arguments got one.
pub(crate) fn no_arguments(task: &str, arguments: &[String]) -> Result<()> {
    match arguments.first() {
        None => Ok(()),
        Some(word) => Err(Usage(format!("`{task}` takes no arguments, but got `{word}`")).into()),
    }
}
