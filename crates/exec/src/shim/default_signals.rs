//! Restores the default action of signals.

use nix::sys::signal::{SigHandler, Signal, signal};

/// Restores the default action of all signals. A runtime that was started by `nohup`, or in the background of a script,
/// ignores some of them, and every program would inherit that: a shell cannot trap a signal that was ignored when it
/// started.
#[expect(
    unsafe_code,
    reason = "nix cannot know that the default action runs no code of this process"
)]
pub(super) fn restore_default_signals() {
    for one in Signal::iterator() {
        // Rust programs ignore SIGPIPE, and restore it for the programs that they start.
        if !matches!(one, Signal::SIGKILL | Signal::SIGSTOP | Signal::SIGPIPE) {
            // SAFETY: the default action is not a function of this program.
            let _ = unsafe { signal(one, SigHandler::SigDfl) };
        }
    }
}
