//! What a task returns when it did not work out.

use std::error::Error;
use std::fmt;

/// Boxed: nobody branches on these errors, somebody reads them.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The command line made no sense. Told apart from a failed task by the exit code: 2, not 1.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// For tasks that take nothing: an argument that would be ignored is an error instead.
pub(crate) fn no_arguments(task: &str, arguments: &[String]) -> Result<()> {
    match arguments.first() {
        None => Ok(()),
        Some(word) => Err(Usage(format!("`{task}` takes no arguments, and got `{word}`")).into()),
    }
}
