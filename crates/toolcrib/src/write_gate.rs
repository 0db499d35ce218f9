//! Whether this process may change the workspace now, as its host decides.

use crate::call_command::CallCommand;

/// Decides, call by call, whether the workspace may be changed. For hosts of which several could serve the same
/// workspace, and only one at a time may write it.
///
/// It is asked after the permission of a call, right before a call runs that may write files or run a command.
pub trait WriteGate: Send + Sync {
    /// Succeeds if the workspace may be changed now. Fails with the reason, as a clause.
    ///
    /// # Errors
    ///
    /// Fails if it may not be changed.
    fn check(&self) -> Result<(), String>;

    /// A call has started a command, which can go on after its call. The gate stops it when the workspace may not be changed
    /// any more.
    fn command_started(&self, command: CallCommand);
}
