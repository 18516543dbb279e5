//! Writing headers as the release they name writes them.

use super::{
    CONGESTION_LEN_MAX, DATAGRAM_PREFIX_LEN, FRAME_WORDS_LEN, FRAMES_LEN, FrameSettings, Header,
    HeaderTail, Mode, NARROW_LEN, PERMIT_KEY_LEN_MAX, Rate, TCP_TAIL, UDP_LEN_MAX, UDP_TAIL,
    WIDE_LEN, at,
};
use crate::wire::header::{first, lower, upper};
use crate::wire::{put_half, put_word};

impl Header {
    /// The header as the first bytes of a TCP connection.
    pub fn emit_tcp(&self) -> Vec<u8> {
        let key = self
            .permit_key
            .as_deref()
            .filter(|key| !key.is_empty() && key.len() <= PERMIT_KEY_LEN_MAX);
        let len = self.tcp_len() + if key.is_some() { 2 } else { 0 };
        let mut bytes = vec![0; len.max(TCP_TAIL.frames + FRAMES_LEN)];
        self.write(&mut bytes, TCP_TAIL);
        self.write_congestion(&mut bytes);
        bytes.truncate(len);

        let mut flags = self.flags(len);
        if self.mode.server_sends() || self.detect_peer {
            flags |= first::SECOND_GENERATION;
        }

        if self.detect_peer {
            flags |= first::DETECT_PEER;
        }

        if let Some(key) = key {
            flags |= first::KEY;
            // The header ends with the length of the key, which follows it.
            put_half(&mut bytes, len - 2, key.len() as u16);
            bytes.extend_from_slice(key);
        }

        put_word(&mut bytes, at::FLAGS, flags);
        bytes
    }

    /// The header as in every datagram, with number and time before it left 0.
    pub fn emit_udp(&self) -> Vec<u8> {
        let mut bytes = vec![0; UDP_LEN_MAX];
        self.write(&mut bytes, UDP_TAIL);
        let mut flags = self.flags(DATAGRAM_PREFIX_LEN + self.udp_len()) | first::WIDE_NUMBERS;

        if self.upper() != 0 {
            flags |= first::UDP_TESTS;
        }

        if self.mode.server_sends() {
            // Marks fields that older servers do not read.
            flags |= first::SECOND_GENERATION;
        }

        put_word(&mut bytes, at::FLAGS, flags);
        [vec![0; DATAGRAM_PREFIX_LEN], bytes].concat()
    }

    /// Bytes of a TCP header without a key.
    fn tcp_len(&self) -> usize {
        let mut len = self.extended_len();
        if self.sends_start() {
            len = TCP_TAIL.frames;
        }

        if self.frames.is_some() {
            len += FRAMES_LEN;
        }

        match self.congestion_name() {
            Some(name) => at::CONGESTION + 2 + name.len(),
            None => len,
        }
    }

    /// Bytes of a UDP header that its length counts.
    pub(super) fn udp_len(&self) -> usize {
        let words = if self.trip_times || self.isochronous {
            FRAME_WORDS_LEN
        } else {
            0
        };
        self.extended_len() + words
    }

    fn extended_len(&self) -> usize {
        if self.version.has_wide_header() {
            WIDE_LEN
        } else {
            NARROW_LEN
        }
    }

    /// An amount for the server must not be cut off; real clients cut it off.
    fn sends_start(&self) -> bool {
        let frames_for_server = self.frames.is_some() && self.mode.server_sends();
        self.start.is_some() || self.fq_rate_bytes_per_s.is_some() || frames_for_server
    }

    fn flags(&self, len: usize) -> u32 {
        let back = match self.mode {
            Mode::Dual => first::CONNECT_BACK | first::AT_ONCE,
            Mode::TradeOff => first::CONNECT_BACK,
            _ if self.transfer_id.is_some() => first::CONNECT_BACK,
            _ => 0,
        };
        first::EXTENDED | first::LENGTH | back | ((len as u32) << 1 & first::LENGTH_FIELD)
    }

    fn upper(&self) -> u16 {
        let in_datagrams =
            matches!(self.rate, Some(Rate::DatagramsPerSecond(_))) && self.mode.server_sends();
        let frames_for_server =
            self.frames.is_some() && self.isochronous && self.mode.server_sends();

        let bits = [
            (self.isochronous, upper::ISOCHRONOUS),
            (self.without_final_report, upper::NO_FINAL_REPORT),
            (self.trip_times, upper::TRIP_TIMES),
            (frames_for_server, upper::ISOCHRONOUS_SETTINGS),
            (in_datagrams, upper::DATAGRAMS_PER_S),
            (self.fq_rate_bytes_per_s.is_some(), upper::FQ_RATE),
            (self.mode == Mode::Reverse, upper::REVERSE),
            (self.mode == Mode::FullDuplex, upper::FULL_DUPLEX),
            (self.start_is_scheduled, upper::START_TIME),
            (self.bursts, upper::BURSTS),
            (self.unsent_limit_bytes.is_some(), upper::UNSENT_LIMIT),
            (self.quick_ack, upper::QUICK_ACK),
        ];
        bits.iter()
            .filter(|(set, _)| *set)
            .fold(0, |word, (_, bit)| word | bit)
    }

    fn write(&self, bytes: &mut [u8], tail: HeaderTail) {
        let streams = match self.transfer_id {
            Some(id) => 0x8000_0000 | u32::from(id & 0x7ff) << 20 | (self.streams & 0x000f_ffff),
            None => self.streams,
        };
        put_word(bytes, at::STREAMS, streams);
        // The port for a connection back.
        put_word(bytes, at::PORT, u32::from(self.port));
        put_word(bytes, at::BLOCK_LEN, self.block_len_bytes.unwrap_or(0));
        put_word(bytes, at::AMOUNT, self.amount.to_word());
        put_half(bytes, at::UPPER, self.upper());
        put_half(bytes, at::LOWER, self.lower());

        let (upper_word, lower_word) = self.version.to_words();
        put_word(bytes, at::VERSION, upper_word);
        put_word(bytes, at::VERSION + 4, lower_word);
        put_half(bytes, at::TOS, u16::from(self.tos));

        if let Some(Rate::BitsPerSecond(rate) | Rate::DatagramsPerSecond(rate)) = self.rate {
            put_long(bytes, at::RATE, rate);
        }

        put_word(
            bytes,
            at::UNSENT_LIMIT,
            self.unsent_limit_bytes.unwrap_or(0),
        );
        if self.version.has_wide_header() {
            put_word(bytes, at::BARRIER, self.barrier_us.unwrap_or(0));
        }

        self.start.unwrap_or_default().write(bytes, tail.start);
        put_long(bytes, tail.fq_rate, self.fq_rate_bytes_per_s.unwrap_or(0));

        if let Some(frames) = self.frames {
            write_frames(&frames, bytes, tail.frames);
        }
    }

    fn lower(&self) -> u16 {
        let wide = self.version.has_wide_header();
        let barrier = if wide && self.barrier_us.is_some() {
            lower::BARRIER
        } else {
            0
        };

        let congestion = if self.congestion_name().is_some() {
            lower::CONGESTION
        } else {
            0
        };
        barrier | congestion
    }

    /// Releases before 2.2 do not know the field.
    fn congestion_name(&self) -> Option<&str> {
        let name = self
            .congestion
            .as_deref()
            .filter(|_| self.version.has_wide_header())?;
        (1..=CONGESTION_LEN_MAX)
            .contains(&name.len())
            .then_some(name)
    }

    fn write_congestion(&self, bytes: &mut [u8]) {
        if let Some(name) = self.congestion_name() {
            put_half(bytes, at::CONGESTION, name.len() as u16);
            for (target, byte) in bytes.iter_mut().skip(at::CONGESTION + 2).zip(name.bytes()) {
                *target = byte;
            }
        }
    }
}

fn write_frames(frames: &FrameSettings, bytes: &mut [u8], offset: usize) {
    let numbers = [frames.per_s, frames.mean, frames.variance, frames.gap_s];
    for (number, at) in numbers.iter().zip((offset..).step_by(8)) {
        // Conversions of floats saturate, so nothing here can overflow.
        let millionths = (number.fract() * 1e6).round() as u32;
        put_word(bytes, at, number.trunc() as u32);
        put_word(bytes, at + 4, millionths.min(999_999));
    }
}

fn put_long(bytes: &mut [u8], offset: usize, value: u64) {
    put_word(bytes, offset, value as u32);
    put_word(bytes, offset + 4, ((value >> 32) as u32) << 8);
}
