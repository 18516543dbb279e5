//! Numbers and times in the datagrams of a test.

use linerate_iperf3::wire::sequence::SequenceTracker;
use linerate_iperf3::wire::udp_header::UdpHeader;
use linerate_model::spec::SequenceCheck;

use crate::data::worker::{DatagramFormat, DatagramKind, SequenceReader, SequenceWriter};
use crate::measure::counters::StreamCounters;

pub(super) const FORMAT: DatagramFormat = DatagramFormat {
    writer: |spec| {
        Box::new(HeaderWriter {
            wide: spec.udp.counters_64bit,
        })
    },
    reader: |spec| Box::new(HeaderReader::new(spec.udp.counters_64bit, spec.udp.check)),
};

/// Writes the header of each datagram.
struct HeaderWriter {
    wide: bool,
}

impl SequenceWriter for HeaderWriter {
    fn write(&mut self, datagram: &mut [u8], number: u64, now_ns: u64) {
        let header = UdpHeader::at(now_ns, number);
        header.emit(datagram, self.wide);
    }
}

/// Follows the numbers of what arrives.
struct HeaderReader {
    tracker: SequenceTracker,
    wide: bool,
    check: SequenceCheck,
}

impl HeaderReader {
    fn new(wide: bool, check: SequenceCheck) -> Self {
        Self {
            tracker: SequenceTracker::new(wide),
            wide,
            check,
        }
    }
}

impl SequenceReader for HeaderReader {
    fn take(&mut self, datagram: &[u8], arrival_ns: u64) -> DatagramKind {
        // A repeated hello, or anything else too short for a header, is no data.
        let Some(header) = UdpHeader::parse(datagram, self.wide) else {
            return DatagramKind::Foreign;
        };
        self.tracker
            .on_datagram(header.counter, header.sent_ns(), arrival_ns);
        DatagramKind::Data
    }

    fn check(&self) -> SequenceCheck {
        self.check
    }

    fn take_burst(&mut self, first: &[u8], datagrams: u64, arrival_ns: u64) -> DatagramKind {
        let Some(header) = UdpHeader::parse(first, self.wide) else {
            return DatagramKind::Foreign;
        };
        for position in 0..datagrams {
            let counter = header.counter.saturating_add(position);
            self.tracker
                .on_datagram(counter, header.sent_ns(), arrival_ns);
        }

        DatagramKind::Data
    }

    fn publish(&mut self, counters: &StreamCounters) {
        let t = &self.tracker;
        counters.set_sequence(t.highest(), t.lost(), t.out_of_order(), t.jitter_s());
    }

    fn reset_jitter(&mut self) {
        self.tracker.reset_jitter();
    }
}
