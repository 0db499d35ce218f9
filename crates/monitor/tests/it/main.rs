//! Tests with real sockets.

mod answers;
mod sockets;
