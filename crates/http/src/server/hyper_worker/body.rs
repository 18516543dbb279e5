//! Bodies as hyper wants them: pieces of the shared block, without a copy.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::server::content::{Content, Filling};

/// A body that is left to send.
pub(super) struct Payload {
    content: Arc<Content>,
    filling: Filling,
    offset: u64,
    left_bytes: u64,
    /// Bytes of a piece.
    piece_bytes: u64,
    /// The head announces the length.
    is_announced: bool,
}

/// A stretch of a block.
struct Stretch {
    content: Arc<Content>,
    filling: Filling,
    offset: u64,
    len: u64,
}

impl AsRef<[u8]> for Stretch {
    fn as_ref(&self) -> &[u8] {
        self.content.block(self.filling).run(self.offset, self.len)
    }
}

impl Payload {
    /// A body of this length; `chunk_bytes` for one whose length is not announced.
    pub(super) fn new(content: Arc<Content>, filling: Filling, bytes: u64, chunk_bytes: Option<u64>) -> Self {
        Self {
            content,
            filling,
            offset: 0,
            left_bytes: bytes,
            piece_bytes: chunk_bytes.unwrap_or(PIECE_BYTES).clamp(1, PIECE_BYTES),
            is_announced: chunk_bytes.is_none(),
        }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.left_bytes == 0 {
            return Poll::Ready(None);
        }
        let piece = Bytes::from_owner(Stretch {
            content: Arc::clone(&this.content),
            filling: this.filling,
            offset: this.offset,
            len: this.left_bytes.min(this.piece_bytes),
        });
        this.offset += piece.len() as u64;
        this.left_bytes -= piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_announced && self.left_bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_announced {
            SizeHint::with_exact(self.left_bytes)
        } else {
            SizeHint::default()
        }
    }
}

/// Large enough that the pieces do not matter, small enough to be encrypted without holding up others.
const PIECE_BYTES: u64 = 64 * 1024;
