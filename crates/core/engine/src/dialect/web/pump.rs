//! One data connection: payload in one direction, in frames of WebSocket with measurements of ndt7 to
//! the client, or in bodies of HTTP/2 with short requests beside them.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_sys::tcp_info::tcp_info;
use linerate_sys::{OsError, clock};
use linerate_web::wire::frame::{self, FrameReader, HEAD_BYTES_MAX, Message, Opcode};
use linerate_web::wire::http2::{FRAME_HEAD_BYTES, Http2};
use linerate_web::wire::measurement::{AppInfo, ConnectionInfo, Measurement, TcpInfo};
use linerate_web::wire::responsiveness::{self, LARGE_BYTES};
use linerate_web::wire::{self};

use crate::data::duplex::Duplex;
use crate::data::run::PumpInputs;
use crate::data::worker::{Ended, FramePayload, Pump, Pumped, Scratch};
use crate::layer::Layer;
use crate::measure::counters::StreamCounters;

/// What a data connection does.
pub(super) struct DataPlan {
    pub opening: Opening,
    pub ends: ConnectionInfo,
    pub duration_ns: u64,
    pub layer: Layer,
}

/// What its request has said.
pub(super) struct Opening {
    /// The server sends.
    pub is_download: bool,
    pub framing: Framing,
    /// Bytes that arrived with the request.
    pub early: Vec<u8>,
}

/// How payload lies in the bytes of a connection.
pub(super) enum Framing {
    WebSocket(FrameReader),
    Http2(Box<Http2>),
}

/// Moves the data of one connection.
pub(super) struct WebPump {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    plan: DataPlan,
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
        let payload = if plan.opening.is_download {
            Some(FramePayload::new(&fd, FRAME_BYTES_MAX, now_ns)?)
        } else {
            None
        };

        Ok(Self {
            fd,
            counters,
            plan,
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
        let early = std::mem::take(&mut self.plan.opening.early);
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
        let measures = matches!(self.plan.opening.framing, Framing::WebSocket(_));
        if measures && now_ns >= self.next_measurement_ns && self.messages.is_empty() {
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
            test: if self.plan.opening.is_download {
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
            self.messages.extend(match &mut self.plan.opening.framing {
                Framing::WebSocket(_) => frame::close(code, reason),
                Framing::Http2(http2) => {
                    http2.end();
                    http2.take_outgoing()
                }
            });
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

    /// The client may end the connection without a close frame: ndt7 clients do at the end, and
    /// HTTP/2 has none.
    fn may_leave(&self) -> bool {
        let elapsed_ns = clock::monotonic_ns().saturating_sub(self.start_ns);
        let has_close = matches!(self.plan.opening.framing, Framing::WebSocket(_));
        self.is_closing || !has_close || elapsed_ns >= self.plan.duration_ns / 10 * 9
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        let messages = &mut self.messages;
        let mut peer_closed = false;
        let fed = match &mut self.plan.opening.framing {
            Framing::WebSocket(reader) => {
                let fed = reader.feed(bytes, |message| match message {
                    Message::Ping(payload) if messages.len() < MESSAGES_BYTES_MAX => {
                        messages.extend(frame::message(Opcode::Pong, &payload));
                    }
                    Message::Close => peer_closed = true,
                    _ => {}
                });
                fed.map_err(|error| {
                    let text = error.to_string();
                    (frame::close(error.close_code(), &text), text)
                })
            }
            Framing::Http2(http2) => {
                let fed = http2.feed(bytes, clock::monotonic_ns());
                fed.map(|()| http2.take_payload())
                    .map_err(|error| (http2.take_outgoing(), error.to_string()))
            }
        };
        let payload = fed.map_err(|(last, text)| {
            // The last message, if there is room for it; what it follows does not matter.
            let _ = self.plan.layer.send(&self.fd, &last);
            Ended::Failed(io::Error::new(ErrorKind::InvalidData, text))
        })?;
        self.count_received(bytes.len(), payload);
        self.answer();

        if peer_closed {
            self.peer_closed = true;
            self.close(frame::NORMAL, "");
        }
        Ok(())
    }

    /// Payload is what the test sends: a client may send some during a download as well.
    fn count_received(&mut self, len: usize, payload: u64) {
        let mut counted = 0;
        if self.payload.is_none() && payload > 0 {
            counted = payload;
            self.counters.add(payload, 1);
        }

        self.other_bytes += (len as u64).saturating_sub(counted);
    }

    /// Answers requests of HTTP/2.
    fn answer(&mut self) {
        let Framing::Http2(http2) = &mut self.plan.opening.framing else {
            return;
        };
        while let Some((stream, request)) = http2.take_request() {
            match responsiveness::load(&request) {
                Some(responsiveness::Load::Download) if self.payload.is_some() => {
                    let head = responsiveness::large_head();
                    http2.begin_body(stream, head.as_bytes(), LARGE_BYTES);
                }
                Some(responsiveness::Load::Upload) if self.payload.is_none() => {
                    http2.count_body(stream);
                }
                _ => {
                    let document = responsiveness::document(&request);
                    http2.respond(
                        stream,
                        &document.unwrap_or_else(responsiveness::misdirected),
                    );
                }
            }
        }
        self.messages.extend(http2.take_outgoing());
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
        let mut len = payload.len();
        let (mut head, mut head_len) = frame::head(Opcode::Binary, len);
        if let Framing::Http2(http2) = &mut self.plan.opening.framing {
            let Some((data, data_len)) = http2.next_data(len) else {
                return false;
            };
            (len, head_len) = (data_len, FRAME_HEAD_BYTES);
            head[..FRAME_HEAD_BYTES].copy_from_slice(&data);
        }
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
        let counted = match &self.plan.opening.framing {
            Framing::WebSocket(reader) => reader.counted_left(),
            // Its frames are short.
            Framing::Http2(_) => 0,
        };
        let counted = counted.min(room);
        if counted >= DISCARD_BYTES_MIN {
            let discarded = self.plan.layer.discard(&self.fd, counted);
            let Some(len) = self.received(discarded)? else {
                return Ok(false);
            };
            if let Framing::WebSocket(reader) = &mut self.plan.opening.framing {
                reader.skip(len);
            }
            self.count_received(len, len as u64);
            return Ok(true);
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
