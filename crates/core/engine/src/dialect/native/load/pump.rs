//! One stream of a load: data frames in one direction, echo frames in both.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use linerate_native::wire::stream_frame::{Frame, FrameError, FrameReader};
use linerate_sys::{OsError, clock};

use super::EchoSchedule;
use super::frame_writer::{FrameWriter, WriteResult};
use crate::data::duplex::Duplex;
use crate::data::run::PumpInputs;
use crate::data::worker::{Ended, Pump, Pumped, Scratch};
use crate::layer::Layer;
use crate::measure::counters::StreamCounters;
use crate::wait::if_ready;

/// Sends or receives a load, requests echoes if it has a schedule, and answers those of the peer.
pub(super) struct LoadPump {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    layer: Layer,
    reader: FrameReader,
    writer: FrameWriter,
    echo: Option<EchoSchedule>,
    is_sender: bool,
    /// Bytes beside the payload: echoes, and the replies to them.
    other_bytes: u64,
    next_read_ns: u64,
}

impl LoadPump {
    pub(super) fn new(
        inputs: PumpInputs,
        stream: u16,
        is_sender: bool,
        layer: Layer,
        echo: Option<EchoSchedule>,
    ) -> Result<Self, OsError> {
        let PumpInputs {
            fd,
            counters,
            start_ns,
        } = inputs;
        let writer = if is_sender {
            FrameWriter::of_data(stream, &fd, start_ns)?
        } else {
            FrameWriter::of_echoes(stream)
        };

        let reader = FrameReader::default();
        Ok(Self {
            fd,
            counters,
            layer,
            reader,
            writer,
            echo,
            is_sender,
            other_bytes: 0,
            next_read_ns: 0,
        })
    }
}

impl Duplex for LoadPump {
    fn is_sender(&self) -> bool {
        self.is_sender
    }

    fn moved_bytes(&self) -> u64 {
        self.counters.read().bytes + self.other_bytes
    }

    fn next_read_ns(&mut self) -> &mut u64 {
        &mut self.next_read_ns
    }

    fn read(&mut self, scratch: &mut Scratch, room: usize) -> Result<bool, Ended> {
        let buffer = scratch.bytes().map_err(Ended::Failed)?;
        let room = room.min(buffer.len());
        let buffer = buffer.get_mut(..room).unwrap_or_default();

        let len = match if_ready(self.layer.recv(&self.fd, buffer)).map_err(Ended::Failed)? {
            Some(0) => return Err(Ended::Eof),
            Some(len) => len,
            None => return Ok(false),
        };
        let now_ns = clock::monotonic_ns();
        let writer = &mut self.writer;
        let echo = &mut self.echo;
        let mut is_over = false;
        let fed = self
            .reader
            .feed(buffer.get(..len).unwrap_or_default(), |frame| match frame {
                Frame::EchoRequest { stamp } => writer.reply(stamp),
                Frame::EchoReply { stamp } => {
                    if let Some(echo) = echo {
                        echo.on_reply(stamp, now_ns);
                    }
                }
                Frame::End => is_over = true,
            });

        let invalid = |error: FrameError| io::Error::new(ErrorKind::InvalidData, error.to_string());
        let payload = fed.map_err(|error| Ended::Failed(invalid(error)))?;
        // A reply is as long as its request.
        self.other_bytes += 2 * (len as u64).saturating_sub(payload);
        if !self.is_sender {
            self.counters.add(payload, 1);
        }

        if is_over { Err(Ended::Eof) } else { Ok(true) }
    }

    fn write(&mut self) -> Result<bool, Ended> {
        // A fresh reading: it is the stamp of an echo, and a read of 1 MiB takes 100 µs.
        let now_ns = clock::monotonic_ns();
        if self.echo.as_mut().is_some_and(|echo| echo.is_due(now_ns)) {
            self.writer.request_echo();
        }

        let written = self.writer.write(&mut self.layer, self.fd.as_fd(), now_ns);
        match if_ready(written).map_err(Ended::Failed)? {
            Some(WriteResult::Payload(bytes)) => {
                if bytes > 0 {
                    self.counters.add(bytes, 1);
                }
                Ok(true)
            }
            // What is encrypted may still wait.
            Some(WriteResult::Nothing) => {
                let flushed = self.layer.flush(&self.fd);
                flushed.map(|()| false).map_err(Ended::Failed)
            }
            None => Ok(false),
        }
    }
}

impl Pump for LoadPump {
    fn is_duplex(&self) -> bool {
        true
    }

    fn other_bytes(&self) -> u64 {
        self.other_bytes
    }

    fn pump(&mut self, now_ns: u64, scratch: &mut Scratch) -> Pumped {
        match self.take_turns(now_ns, scratch) {
            Ok(true) => Pumped::Again,
            Ok(false) => Pumped::Blocked,
            Err(ended) => Pumped::Ended(ended),
        }
    }
}
