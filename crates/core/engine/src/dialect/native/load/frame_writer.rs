//! Writer of a load stream: echoes as soon as the frame under way is complete, and data frames
//! between them.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::AsFd;

use linerate_native::wire::stream_frame::{DATA_MAX, FrameHead, FrameType, HEAD_LEN};
use linerate_sys::Result as OsResult;

use crate::data::worker::FramePayload;
use crate::layer::Layer;

/// Writes frames to one stream.
pub(super) struct FrameWriter {
    stream: u16,
    /// Stamps of echo replies that wait.
    replies: VecDeque<u64>,
    wants_request: bool,
    current: Option<Frame>,
    data: Option<FramePayload>,
}

/// A frame of which a part is written.
struct Frame {
    head: [u8; HEAD_LEN],
    payload_len: usize,
    /// Bytes of head and payload written so far.
    written: usize,
    /// The stamp is set when the first byte is written.
    is_request: bool,
}

/// Result of a write.
pub(super) enum WriteResult {
    /// Payload bytes of data frames.
    Payload(u64),
    /// There is nothing to write.
    Nothing,
}

/// Replies that may wait; requests come one at a time.
const REPLIES_MAX: usize = 16;

impl FrameWriter {
    /// Writer of an end that sends echoes only.
    pub(super) fn of_echoes(stream: u16) -> Self {
        Self {
            stream,
            replies: VecDeque::new(),
            wants_request: false,
            current: None,
            data: None,
        }
    }

    /// Writer of an end that sends data over this socket.
    pub(super) fn of_data(stream: u16, fd: impl AsFd, now_ns: u64) -> OsResult<Self> {
        let data = FramePayload::new(fd, DATA_MAX as usize, now_ns)?;
        Ok(Self {
            data: Some(data),
            ..Self::of_echoes(stream)
        })
    }

    /// A request leaves after the frame under way.
    pub(super) fn request_echo(&mut self) {
        self.wants_request = true;
    }

    /// A reply leaves after the frame under way. Of a peer that does not read, the oldest are
    /// dropped.
    pub(super) fn reply(&mut self, stamp_ns: u64) {
        if self.replies.len() >= REPLIES_MAX {
            // A peer without reads loses its oldest answers; the memory for them stays bounded.
            self.replies.pop_front();
        }
        self.replies.push_back(stamp_ns);
    }

    /// One write.
    pub(super) fn write(
        &mut self,
        layer: &mut Layer,
        fd: impl AsFd,
        now_ns: u64,
    ) -> io::Result<WriteResult> {
        if self.current.is_none() {
            if self.waits_for_room(&fd) {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.current = self.next_frame();
        }

        let Some(frame) = &mut self.current else {
            return Ok(WriteResult::Nothing);
        };
        if frame.is_request && frame.written == 0 {
            frame.head = self::head(FrameType::EchoRequest, self.stream, 0, now_ns);
        }

        let head = frame.head.get(frame.written..).unwrap_or_default();
        let payload_written = frame.written.saturating_sub(HEAD_LEN);
        let written = match &self.data {
            Some(data) if frame.payload_len > 0 => {
                let payload = data.part(head.len(), frame.payload_len - payload_written);
                layer.send_slices(&fd, &[IoSlice::new(head), IoSlice::new(payload)])?
            }
            _ => layer.send_slices(&fd, &[IoSlice::new(head)])?,
        };
        let head_written = written.min(head.len());

        frame.written += written;
        if frame.written >= HEAD_LEN + frame.payload_len {
            self.current = None;
        }

        if let Some(data) = &mut self.data {
            data.account(written as u64, &fd, now_ns);
        }

        Ok(WriteResult::Payload((written - head_written) as u64))
    }

    /// The next frame is one of data, and more waits unsent in the socket than is allowed.
    fn waits_for_room(&self, fd: impl AsFd) -> bool {
        let is_data = self.replies.is_empty() && !self.wants_request;
        let data = self.data.as_ref().filter(|_| is_data);
        data.is_some_and(|data| data.waits_for_room(&fd))
    }

    fn next_frame(&mut self) -> Option<Frame> {
        let frame = |head, payload_len, is_request| {
            Some(Frame {
                head,
                payload_len,
                written: 0,
                is_request,
            })
        };
        if let Some(stamp_ns) = self.replies.pop_front() {
            return frame(
                head(FrameType::EchoReply, self.stream, 0, stamp_ns),
                0,
                false,
            );
        }
        if std::mem::take(&mut self.wants_request) {
            return frame([0; HEAD_LEN], 0, true);
        }

        let payload_len = self.data.as_ref()?.len();
        let len = u32::try_from(payload_len).unwrap_or(DATA_MAX);
        frame(
            head(FrameType::Data, self.stream, len, 0),
            payload_len,
            false,
        )
    }
}

fn head(frame_type: FrameType, stream: u16, len: u32, stamp: u64) -> [u8; HEAD_LEN] {
    FrameHead {
        frame_type,
        stream,
        len,
        stamp,
    }
    .encode()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use linerate_sys::sockopt;

    use super::*;
    use crate::data::worker::METER_NS;

    /// A receiver that does not read, with a small window: all that is written waits unsent.
    #[test]
    fn data_waits_and_echoes_do_not_while_too_much_is_unsent() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        sockopt::SO_RCVBUF
            .set(&listener, 4096)
            .expect("a receive buffer");
        let sender = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        sender.set_nonblocking(true).expect("a socket");

        let _receiver = listener.accept().expect("a connection");
        let mut writer = FrameWriter::of_data(0, &sender, 0).expect("memory");
        let write = |writer: &mut FrameWriter, now_ns| match writer.write(
            &mut Layer::plain(),
            sender.as_fd(),
            now_ns,
        ) {
            Ok(WriteResult::Payload(bytes)) => Some(bytes as usize),
            Ok(WriteResult::Nothing) => panic!("a sender of data has more"),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        };

        // Before the rate is known, too: a part of the first frame is in the window of the
        // receiver.
        let first = (0..8)
            .map_while(|_| write(&mut writer, METER_NS / 2))
            .count();
        assert!(
            (1..=3).contains(&first),
            "{first} frames before the rate is known"
        );
        assert_eq!(write(&mut writer, METER_NS), None);
        writer.request_echo();
        assert_eq!(
            write(&mut writer, METER_NS),
            Some(0),
            "a frame without payload"
        );
        assert_eq!(write(&mut writer, METER_NS), None);
    }
}
