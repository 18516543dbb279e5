//! The server's end of HTTP/2 (RFC 9113), as a test of responsiveness uses it: requests with short
//! responses, bodies of which the octets are counted alone, and bodies of any octets.

mod error;
mod hpack;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use super::request::{HEAD_BYTES_MAX, Request};
use super::response;
pub use error::Http2Error;
use error::{
    ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, HTTP_1_1_REQUIRED, PROTOCOL_ERROR,
    REFUSED_STREAM, check,
};
use hpack::{Decoder, Field};

/// A connection with a client.
pub struct Http2 {
    has_preface: bool,
    /// The begin of a frame.
    partial: Vec<u8>,
    decoder: Decoder,
    /// The fields of a request that are not complete.
    block: Option<Block>,
    data: Data,
    /// Octets of bodies that are not counted yet.
    payload: u64,
    streams: BTreeMap<u32, Stream>,
    last_stream: u32,
    requests: VecDeque<(u32, Request)>,
    outgoing: Vec<u8>,
    /// Octets that the client takes, of all streams, and at first of a new one.
    window: i64,
    first_window: i64,
    /// Octets that the client may send.
    consumed: u32,
    /// The stream whose turn it was.
    turn: u32,
    /// Frames in the second that began at this time.
    frames: (u64, u32),
}

struct Block {
    stream: u32,
    is_last: bool,
    bytes: Vec<u8>,
}

/// The frame of a body that arrives.
#[derive(Default)]
struct Data {
    stream: u32,
    is_last: bool,
    len: u32,
    left: usize,
}

/// A stream with a request whose response has not ended.
struct Stream {
    window: i64,
    /// Octets of the response that are not sent.
    left: i64,
    consumed: u32,
    /// The response follows the body of the request, and that has ended.
    is_counted: bool,
    has_ended: bool,
}

#[derive(Clone, Copy)]
struct Head {
    len: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

/// What a client sends first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Length of the head of a frame.
pub const FRAME_HEAD_BYTES: usize = 9;

// Kinds of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

// Flags.
const ACK: u8 = 0x1;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

// Settings.
const MAX_CONCURRENT_STREAMS: u8 = 3;
const INITIAL_WINDOW_SIZE: u8 = 4;

/// Longest frame of both ends; a longer one would have to be agreed.
const FRAME_BYTES_MAX: usize = 1 << 14;
/// Streams at once, and requests of them that wait: a reference of one octet may be a field of 4 KiB.
const STREAMS_MAX: u32 = 100;
const REQUESTS_MAX: usize = 2;
const DEFAULT_WINDOW: i64 = 65_535;
const WINDOW_MAX: i64 = (1 << 31) - 1;
/// Octets that the client may have under way: TCP is what bounds them.
const RECEIVE_WINDOW: u32 = 1 << 30;
/// Octets after which the client gets as many again.
const REFILL_BYTES: u32 = 1 << 20;
/// Frames per second that move no octets of a body. A client probes a hundred times.
const FRAMES_PER_S_MAX: u32 = 1000;
/// Frames by which a client takes one of a body: updates of two windows per few KiB.
const UPDATES_PER_FRAME: u32 = 8;
/// Shorter frames of a body count as those that move none.
const DATA_BYTES_MIN: usize = 256;
/// What a client leaves unread.
const OUTGOING_BYTES_MAX: usize = 1 << 16;
const SECOND_NS: u64 = 1_000_000_000;

impl Default for Http2 {
    /// Before the client's preface.
    fn default() -> Self {
        let mut http2 = Self {
            has_preface: false,
            partial: Vec::new(),
            decoder: Decoder::default(),
            block: None,
            data: Data::default(),
            payload: 0,
            streams: BTreeMap::new(),
            last_stream: 0,
            requests: VecDeque::new(),
            outgoing: Vec::new(),
            window: DEFAULT_WINDOW,
            first_window: DEFAULT_WINDOW,
            consumed: 0,
            turn: 0,
            frames: (0, 0),
        };
        let mut settings = Vec::new();
        for (setting, value) in [
            (MAX_CONCURRENT_STREAMS, STREAMS_MAX),
            (INITIAL_WINDOW_SIZE, RECEIVE_WINDOW),
        ] {
            settings.extend([0, setting]);
            settings.extend(value.to_be_bytes());
        }
        http2.push(SETTINGS, 0, 0, &settings);
        http2.push(WINDOW_UPDATE, 0, 0, &RECEIVE_WINDOW.to_be_bytes());
        http2
    }
}

impl Http2 {
    /// Takes octets of the client, cut anywhere.
    ///
    /// # Errors
    /// What ends the connection; a last frame is in [`Self::take_outgoing`].
    pub fn feed(&mut self, bytes: &[u8], now_ns: u64) -> Result<(), Http2Error> {
        let fed = self.take(bytes, now_ns);
        if let Err(error) = fed {
            self.go_away(error.0);
        }
        fed
    }

    fn take(&mut self, mut bytes: &[u8], now_ns: u64) -> Result<(), Http2Error> {
        while !bytes.is_empty() {
            let counted = self.data.left.min(bytes.len());
            let wanted = match Head::parse(&self.partial) {
                _ if counted > 0 => counted,
                _ if !self.has_preface => PREFACE.len() - self.partial.len(),
                Some(head) => FRAME_HEAD_BYTES + head.len - self.partial.len(),
                None => FRAME_HEAD_BYTES - self.partial.len(),
            };
            let (part, rest) = bytes.split_at(wanted.min(bytes.len()));
            bytes = rest;
            if counted > 0 {
                self.payload += counted as u64;
                self.data.left -= counted;
                if self.data.left == 0 {
                    self.on_data_end();
                }
                continue;
            }
            self.partial.extend_from_slice(part);
            if part.len() == wanted {
                self.on_part(now_ns)?;
            }
        }
        Ok(())
    }

    /// Octets of bodies that have arrived since the last call.
    pub fn take_payload(&mut self) -> u64 {
        std::mem::take(&mut self.payload)
    }

    /// The next request, and its stream.
    pub fn take_request(&mut self) -> Option<(u32, Request)> {
        self.requests.pop_front()
    }

    /// Makes a request the next one again.
    pub fn return_request(&mut self, stream: u32, request: Request) {
        self.requests.push_front((stream, request));
    }

    /// Frames for the client.
    pub fn take_outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// Responds with a whole message in the form of HTTP/1.1. A client that has not room for it has
    /// to use that.
    pub fn respond(&mut self, stream: u32, message: &[u8]) {
        let Some(open) = self.streams.remove(&stream) else {
            return;
        };
        let end = message.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let (head, body) = message.split_at(end.map_or(message.len(), |end| end + 4));
        let len = body.len() as i64;
        if len > self.window.min(open.window) {
            return self.reset(stream, HTTP_1_1_REQUIRED);
        }

        self.push_head(stream, head, if len == 0 { END_STREAM } else { 0 });
        self.window -= len;
        let mut parts = body.chunks(FRAME_BYTES_MAX).peekable();
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_none() {
                END_STREAM
            } else {
                0
            };
            self.push(DATA, flags, stream, part);
        }
    }

    /// Begins a response whose body the caller sends by [`Self::next_data`].
    pub fn begin_body(&mut self, stream: u32, head: &[u8], len: i64) {
        if let Some(open) = self.streams.get_mut(&stream) {
            open.left = len;
            self.push_head(stream, head, 0);
        }
    }

    /// Responds when the body of the request has ended.
    pub fn count_body(&mut self, stream: u32) {
        if let Some(open) = self.streams.get_mut(&stream) {
            open.is_counted = true;
            if open.has_ended {
                self.respond(stream, &response::line("200 OK", ""));
            }
        }
    }

    /// The head of a frame with the next octets of a body, and their number; `None` without one that
    /// the client takes.
    pub fn next_data(&mut self, len_max: usize) -> Option<([u8; FRAME_HEAD_BYTES], usize)> {
        let after = self.streams.range(self.turn + 1..);
        let mut turns = after.chain(self.streams.range(..=self.turn));
        let id = *turns
            .find(|(_, stream)| stream.left.min(stream.window) > 0)?
            .0;
        let stream = self.streams.get_mut(&id)?;
        let room = stream.left.min(stream.window).min(self.window);
        let len = usize::try_from(room)
            .ok()?
            .min(len_max)
            .min(FRAME_BYTES_MAX);
        if len == 0 {
            return None;
        }

        stream.left -= len as i64;
        stream.window -= len as i64;
        self.window -= len as i64;
        self.turn = id;
        self.frames.1 = self.frames.1.saturating_sub(UPDATES_PER_FRAME);
        let is_last = stream.left == 0;
        if is_last {
            self.streams.remove(&id);
        }
        Some((head(len, DATA, u8::from(is_last) * END_STREAM, id), len))
    }

    /// Announces the end of the connection.
    pub fn end(&mut self) {
        self.go_away(0);
    }

    fn go_away(&mut self, code: u32) {
        let words = [self.last_stream, code].map(u32::to_be_bytes);
        self.push(GOAWAY, 0, 0, words.as_flattened());
    }

    fn reset(&mut self, stream: u32, code: u32) {
        self.streams.remove(&stream);
        self.push(RST_STREAM, 0, stream, &code.to_be_bytes());
    }

    fn push(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.outgoing
            .extend(head(payload.len(), kind, flags, stream));
        self.outgoing.extend(payload);
    }

    fn push_head(&mut self, stream: u32, message: &[u8], flags: u8) {
        let text = str::from_utf8(message).unwrap_or_default();
        let (status, lines) = text.split_once("\r\n").unwrap_or((text, ""));
        let mut block = hpack::literal(":status", status.get(9..12).unwrap_or("500"));
        for (name, value) in lines.lines().filter_map(|line| line.split_once(": ")) {
            // It has no meaning here (section 8.2.2).
            if name != "Connection" {
                block.extend(hpack::literal(&name.to_ascii_lowercase(), value));
            }
        }
        self.push(HEADERS, flags | END_HEADERS, stream, &block);
    }

    /// The preface, the head of a frame, or all of it is there.
    fn on_part(&mut self, now_ns: u64) -> Result<(), Http2Error> {
        if !self.has_preface {
            self.has_preface = self.partial == PREFACE;
            self.partial.clear();
            return check(self.has_preface, PROTOCOL_ERROR, "another preface");
        }
        let Some(head) = Head::parse(&self.partial) else {
            return Ok(());
        };
        let len_max = match head.kind {
            DATA => FRAME_BYTES_MAX,
            _ => HEAD_BYTES_MAX,
        };
        check(head.len <= len_max, FRAME_SIZE_ERROR, "a long frame")?;
        if head.kind != DATA && self.partial.len() < FRAME_HEAD_BYTES + head.len {
            return Ok(());
        }

        if head.kind != DATA || head.len < DATA_BYTES_MIN {
            self.charge(now_ns)?;
        }
        let frame = std::mem::take(&mut self.partial);
        self.on_frame(head, frame.get(FRAME_HEAD_BYTES..).unwrap_or_default())
    }

    /// Bounds what a client costs that moves no data, and what it leaves unread.
    fn charge(&mut self, now_ns: u64) -> Result<(), Http2Error> {
        let (since_ns, frames) = &mut self.frames;
        if now_ns.saturating_sub(*since_ns) >= SECOND_NS {
            (*since_ns, *frames) = (now_ns, 0);
        }
        *frames += 1;
        let is_bounded = *frames <= FRAMES_PER_S_MAX && self.outgoing.len() <= OUTGOING_BYTES_MAX;
        check(is_bounded, ENHANCE_YOUR_CALM, "too many frames")
    }

    fn on_frame(&mut self, head: Head, payload: &[u8]) -> Result<(), Http2Error> {
        let continues = head.kind == CONTINUATION;
        let expected = self.block.as_ref().map(|block| block.stream);
        check(
            expected == continues.then_some(head.stream),
            PROTOCOL_ERROR,
            "fields that are interrupted",
        )?;

        match (head.kind, payload) {
            (DATA, _) => return self.on_data(head),
            (HEADERS, _) => return self.on_headers(head, payload),
            (CONTINUATION, _) => return self.on_fragment(head, payload),
            (RST_STREAM, _) => {
                self.streams.remove(&head.stream);
                self.requests.retain(|(stream, _)| *stream != head.stream);
            }
            (SETTINGS, _) if head.flags & ACK == 0 => return self.on_settings(payload),
            (PING, _) if head.flags & ACK == 0 => self.push(PING, ACK, 0, payload),
            (PUSH_PROMISE, _) => return Err(Http2Error(PROTOCOL_ERROR, "a promise of a client")),
            (WINDOW_UPDATE, &[a, b, c, d]) => {
                let more = u32::from_be_bytes([a & 0x7f, b, c, d]);
                return self.on_window(head.stream, more.into());
            }
            _ => {}
        }
        Ok(())
    }

    fn on_data(&mut self, head: Head) -> Result<(), Http2Error> {
        // Its stream may have been answered meanwhile.
        let has_request = (1..=self.last_stream).contains(&head.stream);
        check(has_request, PROTOCOL_ERROR, "a body without a request")?;
        self.data = Data {
            stream: head.stream,
            is_last: head.flags & END_STREAM != 0,
            len: head.len as u32,
            left: head.len,
        };
        if head.len == 0 {
            self.on_data_end();
        }
        Ok(())
    }

    fn on_data_end(&mut self) {
        let Data {
            stream,
            is_last,
            len,
            ..
        } = std::mem::take(&mut self.data);
        let open = self.streams.get_mut(&stream).map(|open| &mut open.consumed);
        let mut refills = Vec::new();
        for (id, consumed) in open
            .map(|open| (stream, open))
            .into_iter()
            .chain([(0, &mut self.consumed)])
        {
            *consumed += len;
            if *consumed >= REFILL_BYTES {
                refills.push((id, std::mem::take(consumed)));
            }
        }
        for (id, consumed) in refills {
            self.push(WINDOW_UPDATE, 0, id, &consumed.to_be_bytes());
        }
        if is_last {
            self.on_body_end(stream);
        }
    }

    fn on_body_end(&mut self, stream: u32) {
        if let Some(open) = self.streams.get_mut(&stream) {
            open.has_ended = true;
            if open.is_counted {
                self.count_body(stream);
            }
        }
    }

    fn on_headers(&mut self, head: Head, payload: &[u8]) -> Result<(), Http2Error> {
        let is_stream = head.stream % 2 == 1;
        check(is_stream, PROTOCOL_ERROR, "a stream of the server")?;
        let mut fields = payload;
        if head.flags & PADDED != 0
            && let Some((padding, rest)) = payload.split_first()
        {
            let len = rest.len().saturating_sub((*padding).into());
            fields = rest.get(..len).unwrap_or_default();
        }
        if head.flags & PRIORITY != 0 {
            fields = fields.get(5..).unwrap_or_default();
        }
        self.block = Some(Block {
            stream: head.stream,
            is_last: head.flags & END_STREAM != 0,
            bytes: Vec::new(),
        });
        self.on_fragment(head, fields)
    }

    fn on_fragment(&mut self, head: Head, fragment: &[u8]) -> Result<(), Http2Error> {
        let Some(mut block) = self.block.take() else {
            return Ok(());
        };
        block.bytes.extend(fragment);
        let is_bounded = block.bytes.len() <= HEAD_BYTES_MAX;
        check(is_bounded, ENHANCE_YOUR_CALM, "a head beyond its bound")?;
        if head.flags & END_HEADERS == 0 {
            self.block = Some(block);
            return Ok(());
        }

        let fields = self.decoder.decode(&block.bytes)?;
        if block.stream > self.last_stream {
            self.last_stream = block.stream;
            self.on_request(block.stream, &fields)?;
        }
        if block.is_last {
            self.on_body_end(block.stream);
        }
        Ok(())
    }

    fn on_request(&mut self, stream: u32, fields: &[Field]) -> Result<(), Http2Error> {
        if self.streams.len() >= STREAMS_MAX as usize || self.requests.len() >= REQUESTS_MAX {
            self.reset(stream, REFUSED_STREAM);
            return Ok(());
        }
        let open = Stream {
            window: self.first_window,
            left: 0,
            consumed: 0,
            is_counted: false,
            has_ended: false,
        };
        self.streams.insert(stream, open);
        let Ok(Some((request, _))) = Request::parse(http1(fields).as_bytes()) else {
            return Err(Http2Error(PROTOCOL_ERROR, "a request that is none"));
        };
        self.requests.push_back((stream, request));
        Ok(())
    }

    fn on_settings(&mut self, payload: &[u8]) -> Result<(), Http2Error> {
        for setting in payload.as_chunks::<6>().0 {
            let [0, INITIAL_WINDOW_SIZE, value @ ..] = *setting else {
                continue;
            };
            let window = i64::from(u32::from_be_bytes(value));
            check(
                window <= WINDOW_MAX,
                FLOW_CONTROL_ERROR,
                "a window beyond its bound",
            )?;
            for stream in self.streams.values_mut() {
                stream.window += window - self.first_window;
            }
            self.first_window = window;
        }
        self.push(SETTINGS, ACK, 0, &[]);
        Ok(())
    }

    fn on_window(&mut self, stream: u32, more: i64) -> Result<(), Http2Error> {
        let window = match self.streams.get_mut(&stream) {
            Some(open) => &mut open.window,
            None if stream == 0 => &mut self.window,
            None => return Ok(()),
        };
        *window += more;
        check(
            *window <= WINDOW_MAX,
            FLOW_CONTROL_ERROR,
            "a window beyond its bound",
        )
    }
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, s, t, u, v] = *bytes.first_chunk::<FRAME_HEAD_BYTES>()?;
        Some(Self {
            len: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([s & 0x7f, t, u, v]),
        })
    }
}

fn head(len: usize, kind: u8, flags: u8, stream: u32) -> [u8; FRAME_HEAD_BYTES] {
    let [_, a, b, c] = (len as u32).to_be_bytes();
    let [s, t, u, v] = stream.to_be_bytes();
    [a, b, c, kind, flags, s, t, u, v]
}

/// The head of a request as HTTP/1.1 has it. An upgrade has no meaning in HTTP/2.
fn http1(fields: &[Field]) -> String {
    let value = |wanted: &str| {
        let field = fields.iter().find(|(name, _)| name == wanted);
        field.map_or("", |(_, value)| value)
    };
    let mut head = format!(
        "{} {} HTTP/1.1\r\nhost: {}\r\n",
        value(":method"),
        value(":path"),
        value(":authority")
    );
    for (name, value) in fields {
        if !name.starts_with(':') && !["host", "upgrade"].contains(&name.as_str()) {
            head.extend([name.as_str(), ": ", value, "\r\n"]);
        }
    }
    head + "\r\n"
}
