//! Tests with real sockets.

mod sockets;
