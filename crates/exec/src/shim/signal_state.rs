//! Resets the signal state that a process inherits: ignored and blocked signals.

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};

/// Restores the default action of all signals and unblocks them. A runtime that was started by `nohup`, in the
/// background of a script, or by a program that blocks signals, inherits that state, and every command would inherit it
/// in turn: a shell cannot trap a signal that was ignored when it started, and Ctrl-C ends no program that blocks it.
pub(super) fn reset_signals() {
    restore_default_actions();
    // Fails for no valid set.
    let _ = SigSet::empty().thread_set_mask();
}

#[expect(
    unsafe_code,
    reason = "nix cannot know that the default action runs no code of this process"
)]
fn restore_default_actions() {
    for one in Signal::iterator() {
        // Rust programs ignore SIGPIPE, and restore it for the programs that they start.
        if !matches!(one, Signal::SIGKILL | Signal::SIGSTOP | Signal::SIGPIPE) {
            // SAFETY: the default action is not a function of this program.
            let _ = unsafe { signal(one, SigHandler::SigDfl) };
        }
    }
}
