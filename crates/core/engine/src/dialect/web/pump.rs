//! One data connection: payload in one direction in frames of WebSocket, measurements of ndt7 to the
//! client.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_sys::tcp_info::tcp_info;
use linerate_sys::{OsError, clock};
use linerate_web::wire::frame::{self, FrameReader, HEAD_BYTES_MAX, Message, Opcode};
use linerate_web::wire::measurement::{AppInfo, ConnectionInfo, Measurement, TcpInfo};
use linerate_web::wire::{self};

use crate::data::duplex::Duplex;
use crate::data::run::PumpInputs;
use crate::data::worker::{Ended, FramePayload, Pump, Pumped, Scratch};
use crate::layer::Layer;
use crate::measure::counters::StreamCounters;

/// What a data connection does.
pub(super) struct DataPlan {
    /// The server sends.
    pub is_download: bool,
    pub ends: ConnectionInfo,
    pub duration_ns: u64,
    pub layer: Layer,
    /// Bytes that arrived with the request.
    pub early: Vec<u8>,
}

/// Moves the data of one connection.
pub(super) struct WebPump {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    plan: DataPlan,
    reader: FrameReader,
    payload: Option<FramePayload>,
    /// The data frame under way.
    current: Option<DataFrame>,
    /// Measurements and control frames that wait for its end.
    messages: Vec<u8>,
    other_bytes: u64,
    start_ns: u64,
    next_measurement_ns: u64,
    next_read_ns: u64,
    /// This end has sent its close frame, or is about to.
    is_closing: bool,
    close_deadline_ns: u64,
    peer_closed: bool,
}

struct DataFrame {
    head: [u8; HEAD_BYTES_MAX],
    head_len: usize,
    len: usize,
    written: usize,
}

/// Longest data frame: browsers keep a message until it is complete.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// Between two measurements: at most four per second (ndt7-protocol.md).
const MEASUREMENT_NS: u64 = 250_000_000;
/// Time for the close frame of the client, and the poll period meanwhile.
const CLOSE_NS: u64 = 2_000_000_000;
const CLOSE_POLL_NS: u64 = 20_000_000;
/// Messages that wait; a ping beyond them is not answered.
const MESSAGES_BYTES_MAX: usize = 4096;
/// Payload from which it is discarded in the kernel instead of copied and skipped.
const DISCARD_BYTES_MIN: usize = 32 << 10;

impl WebPump {
    pub(super) fn new(inputs: PumpInputs, plan: DataPlan) -> Result<Self, OsError> {
        let PumpInputs { fd, counters, .. } = inputs;
        let now_ns = clock::monotonic_ns();
        let payload = if plan.is_download {
            Some(FramePayload::new(&fd, FRAME_BYTES_MAX, now_ns)?)
        } else {
            None
        };

        Ok(Self {
            fd,
            counters,
            plan,
            reader: FrameReader::counting(),
            payload,
            current: None,
            messages: Vec::new(),
            other_bytes: 0,
            start_ns: now_ns,
            next_measurement_ns: now_ns,
            next_read_ns: 0,
            is_closing: false,
            close_deadline_ns: 0,
            peer_closed: false,
        })
    }

    fn advance(&mut self, now_ns: u64, scratch: &mut Scratch) -> Result<Pumped, Ended> {
        let early = std::mem::take(&mut self.plan.early);
        self.feed(&early)?;
        self.on_time(now_ns);
        self.flush()?;

        let goes_again = self.take_turns(now_ns, scratch)?;
        if self.peer_closed && self.current.is_none() && !self.has_unsent() {
            return Err(Ended::AmountReached);
        }

        if goes_again {
            return Ok(Pumped::Again);
        }
        if !self.is_closing {
            return Ok(Pumped::Blocked);
        }
        // A client that does not answer the close frame would hold its test.
        if now_ns >= self.close_deadline_ns {
            return Err(Ended::Eof);
        }
        Ok(Pumped::Until(now_ns + CLOSE_POLL_NS))
    }

    /// Sends a measurement when one is due, and ends the test when its time is up.
    fn on_time(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        if self.is_closing {
            return;
        }
        if elapsed_ns >= self.plan.duration_ns {
            self.close(frame::NORMAL, "");
            return;
        }
        if now_ns >= self.next_measurement_ns && self.messages.is_empty() {
            let is_first = self.next_measurement_ns == self.start_ns;
            self.next_measurement_ns = now_ns + MEASUREMENT_NS;
            let message = self.measurement(elapsed_ns / 1000, is_first);
            self.messages.extend(message);
        }
    }

    fn measurement(&self, elapsed_us: u64, is_first: bool) -> Vec<u8> {
        let tcp_info = tcp_info(&self.fd).ok().map(|info| TcpInfo {
            busy_time: info.busy_us,
            bytes_acked: info.bytes_acked,
            bytes_received: info.bytes_received,
            bytes_retrans: info.bytes_retransmitted,
            delivery_rate: info.delivery_rate_bps.map(|rate| rate / 8),
            elapsed_time: Some(elapsed_us),
            min_rtt: info.min_rtt_us,
            rtt: Some(info.rtt_us),
            rtt_var: Some(info.rttvar_us),
            rwnd_limited: info.rwnd_limited_us,
            snd_buf_limited: info.sndbuf_limited_us,
            snd_mss: Some(info.snd_mss_bytes),
            total_retrans: Some(info.retransmits_total),
        });
        wire::json(&Measurement {
            app_info: Some(AppInfo {
                elapsed_time: elapsed_us,
                num_bytes: self.counters.read().bytes,
            }),
            connection_info: is_first.then(|| self.plan.ends.clone()),
            origin: "server",
            test: if self.plan.is_download {
                "download"
            } else {
                "upload"
            },
            tcp_info,
        })
    }

    fn close(&mut self, code: u16, reason: &str) {
        if !self.is_closing {
            self.is_closing = true;
            self.close_deadline_ns = clock::monotonic_ns() + CLOSE_NS;
            self.messages.extend(frame::close(code, reason));
        }
    }

    /// Bytes of a read; `None` when nothing has arrived.
    fn received(&self, read: io::Result<usize>) -> Result<Option<usize>, Ended> {
        match read {
            Ok(0) if self.may_leave() => Err(Ended::Eof),
            Ok(0) => Err(Ended::Failed(ErrorKind::UnexpectedEof.into())),
            Ok(len) => Ok(Some(len)),
            Err(error) => self.blocked(error).map(|()| None),
        }
    }

    /// Nothing, if the socket is not ready.
    fn blocked(&self, error: io::Error) -> Result<(), Ended> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(()),
            // Clients reset what they do not read any more.
            _ if self.may_leave() => Err(Ended::Eof),
            _ => Err(Ended::Failed(error)),
        }
    }

    /// The client may end the connection without a close frame: ndt7 clients do at the end.
    fn may_leave(&self) -> bool {
        let elapsed_ns = clock::monotonic_ns().saturating_sub(self.start_ns);
        self.is_closing || elapsed_ns >= self.plan.duration_ns / 10 * 9
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        let messages = &mut self.messages;
        let mut peer_closed = false;
        let fed = self.reader.feed(bytes, |message| match message {
            Message::Ping(payload) if messages.len() < MESSAGES_BYTES_MAX => {
                messages.extend(frame::message(Opcode::Pong, &payload));
            }
            Message::Close => peer_closed = true,
            _ => {}
        });
        match fed {
            Ok(payload) => {
                self.other_bytes += (bytes.len() as u64).saturating_sub(payload);
                if self.payload.is_none() {
                    self.counters.add(payload, 1);
                }
            }
            Err(error) => {
                // The last message, if there is room for it; what it follows does not matter.
                let _ = self.plan.layer.send(
                    &self.fd,
                    &frame::close(error.close_code(), &error.to_string()),
                );
                return Err(Ended::Failed(io::Error::new(
                    ErrorKind::InvalidData,
                    error.to_string(),
                )));
            }
        }

        if peer_closed {
            self.peer_closed = true;
            self.close(frame::NORMAL, "");
        }
        Ok(())
    }

    /// Sends what the layer has taken.
    fn flush(&mut self) -> Result<(), Ended> {
        let flushed = self.plan.layer.flush(&self.fd);
        flushed.or_else(|error| self.blocked(error))
    }

    fn has_unsent(&self) -> bool {
        !self.messages.is_empty() || self.plan.layer.has_unsent()
    }

    fn write_messages(&mut self) -> io::Result<()> {
        let written = self.plan.layer.send(&self.fd, &self.messages)?;
        self.messages.drain(..written);
        self.other_bytes += written as u64;
        Ok(())
    }

    /// Begins the next data frame; false if there is none, or no room.
    fn begin_frame(&mut self) -> bool {
        let Some(payload) = self
            .payload
            .as_ref()
            .filter(|payload| !self.is_closing && !payload.waits_for_room(&self.fd))
        else {
            return false;
        };
        let len = payload.len();
        let (head, head_len) = frame::head(Opcode::Binary, len);
        self.current = Some(DataFrame {
            head,
            head_len,
            len,
            written: 0,
        });
        true
    }

    fn write_frame(&mut self) -> io::Result<()> {
        let (Some(payload), Some(frame)) = (&mut self.payload, &mut self.current) else {
            return Ok(());
        };
        let head = frame
            .head
            .get(frame.written.min(frame.head_len)..frame.head_len)
            .unwrap_or_default();
        let left = frame.len - frame.written.saturating_sub(frame.head_len);
        let parts = [
            IoSlice::new(head),
            IoSlice::new(payload.part(head.len(), left)),
        ];
        let written = self.plan.layer.send_slices(&self.fd, &parts)?;

        let of_payload = written.saturating_sub(head.len());
        frame.written += written;
        payload.account(written as u64, &self.fd, clock::monotonic_ns());
        self.counters.add(of_payload as u64, 1);
        self.other_bytes += (written - of_payload) as u64;
        if of_payload == left {
            self.current = None;
        }
        Ok(())
    }
}

impl Duplex for WebPump {
    fn is_sender(&self) -> bool {
        self.payload.is_some()
    }

    fn moved_bytes(&self) -> u64 {
        self.counters.read().bytes + self.other_bytes
    }

    fn next_read_ns(&mut self) -> &mut u64 {
        &mut self.next_read_ns
    }

    fn read(&mut self, scratch: &mut Scratch, room: usize) -> Result<bool, Ended> {
        let counted = self.reader.counted_left().min(room);
        if counted >= DISCARD_BYTES_MIN {
            let discarded = self.plan.layer.discard(&self.fd, counted);
            return match self.received(discarded)? {
                Some(len) => {
                    self.reader.skip(len);
                    self.counters.add(len as u64, 1);
                    Ok(true)
                }
                None => Ok(false),
            };
        }

        let buffer = scratch.bytes().map_err(Ended::Failed)?;
        let room = room.min(buffer.len());
        let buffer = buffer.get_mut(..room).unwrap_or_default();
        let received = self.plan.layer.recv(&self.fd, buffer);
        match self.received(received)? {
            Some(len) => self
                .feed(buffer.get(..len).unwrap_or_default())
                .map(|()| true),
            None => Ok(false),
        }
    }

    fn write(&mut self) -> Result<bool, Ended> {
        let is_between = self.current.is_none();
        let written = if is_between && !self.messages.is_empty() {
            self.write_messages()
        } else if is_between && !self.begin_frame() {
            return Ok(false);
        } else {
            self.write_frame()
        };
        match written {
            Ok(()) => Ok(true),
            Err(error) => self.blocked(error).map(|()| false),
        }
    }
}

impl Pump for WebPump {
    fn is_duplex(&self) -> bool {
        true
    }

    fn other_bytes(&self) -> u64 {
        self.other_bytes
    }

    fn pump(&mut self, now_ns: u64, scratch: &mut Scratch) -> Pumped {
        self.advance(now_ns, scratch).unwrap_or_else(Pumped::Ended)
    }
}
