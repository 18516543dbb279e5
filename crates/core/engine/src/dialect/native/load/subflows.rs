//! Subflows of a stream over Multipath TCP.

use std::os::fd::AsFd;

use linerate_model::path::SubflowRow;
use linerate_sys::mptcp::{self, Subflow};

/// Rows of the subflows that have carried data, or why there are none, as a sentence.
pub(super) fn rows(stream: u16, is_sender: bool, fd: impl AsFd) -> Result<Vec<SubflowRow>, String> {
    match mptcp::subflows(&fd) {
        Ok(subflows) => Ok(rows_of(stream, is_sender, &subflows)),
        Err(error) if error.is_unsupported() => {
            Err("Multipath TCP is not used: a connection fell back to TCP".to_owned())
        }
        Err(error) => Err(format!(
            "subflows of stream {stream} are not known: {error}"
        )),
    }
}

fn rows_of(stream: u16, is_sender: bool, subflows: &[Subflow]) -> Vec<SubflowRow> {
    let bytes = |subflow: &Subflow| {
        let info = &subflow.info;
        if is_sender {
            info.bytes_acked
        } else {
            info.bytes_received
        }
    };
    // The handshake of one without a round trip is not complete.
    let complete = || subflows.iter().filter(|subflow| subflow.info.rtt_us > 0);
    let all: u64 = complete().filter_map(bytes).sum();

    let row = |subflow: &Subflow| {
        let bytes = bytes(subflow)?;
        Some(SubflowRow {
            stream: stream.into(),
            local: subflow.local?.to_string(),
            remote: subflow.remote?.to_string(),
            bytes,
            share: bytes as f64 / all.max(1) as f64,
            rtt_us: subflow.info.rtt_us,
            retransmits: subflow.info.retransmits_total,
            is_backup: None,
        })
    };
    complete().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use linerate_sys::tcp_info::TcpInfo;

    use super::*;

    #[test]
    fn shares_are_those_of_the_direction_and_add_up() {
        let subflow = |port: u16, rtt_us, acked, received| Subflow {
            id: None,
            local: Some(([192, 0, 2, 1], port).into()),
            remote: Some(([192, 0, 2, 9], 5201).into()),
            info: TcpInfo {
                rtt_us,
                bytes_acked: Some(acked),
                bytes_received: Some(received),
                ..TcpInfo::default()
            },
        };
        let subflows = [
            subflow(1, 100, 300, 16),
            subflow(2, 200, 100, 48),
            subflow(3, 0, 0, 0),
        ];
        let shares = |is_sender| {
            let rows = rows_of(7, is_sender, &subflows);
            rows.into_iter()
                .map(|row| (row.local, row.bytes, row.share))
                .collect::<Vec<_>>()
        };

        let [first, second] = ["192.0.2.1:1".to_owned(), "192.0.2.1:2".to_owned()];
        assert_eq!(
            shares(true),
            [(first.clone(), 300, 0.75), (second.clone(), 100, 0.25)]
        );
        assert_eq!(shares(false), [(first, 16, 0.25), (second, 48, 0.75)]);
    }
}
