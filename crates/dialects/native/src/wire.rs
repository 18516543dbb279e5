//! The native protocol without I/O: recognition on the shared port, control messages, heads of
//! streams and datagrams.
//!
//! Nothing here opens a socket, reads a clock or starts a thread. The machines of [`client`] and
//! [`server`] take bytes of the control connection, local inputs and the current time, and are
//! polled for actions; everything else is a parser, an emitter or a counter. Input from the peer is
//! bounded before it is stored and never leads to a panic.
//!
//! All integers on the wire are big-endian.

/// Shows these members alone: the others are secrets.
macro_rules! debug_without_secrets {
    ($name:ident $(: $($member:ident),+)?) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    $($(.field(stringify!($member), &self.$member))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}

mod bytes;
pub mod client;
pub mod datagram;
mod exchange;
pub mod hex;
pub mod message;
pub mod opening;
mod sequence;
pub mod server;
pub mod stream_frame;
pub mod stream_head;
