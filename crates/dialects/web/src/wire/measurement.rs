//! Measurement messages of ndt7 (ndt-server, `spec/ndt7-protocol.md`). Times are microseconds.

use serde::{Deserialize, Serialize};

/// One of them. What a server does not report is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Measurement {
    /// Progress of the test.
    pub app_info: Option<AppInfo>,
    /// Both ends, in the first message.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub connection_info: Option<ConnectionInfo>,
    /// Always `server`.
    #[serde(skip_deserializing)]
    pub origin: &'static str,
    /// `download` or `upload`.
    #[serde(skip_deserializing)]
    pub test: &'static str,
    /// State of the connection in the server's kernel.
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none")]
    pub tcp_info: Option<TcpInfo>,
}

impl Measurement {
    /// Reads a message of text; `None` of one that is no measurement.
    pub fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// Payload that the server received by a time since the start of the test in µs.
    pub fn received(&self) -> Option<(u64, u64)> {
        let by_program = self.app_info.filter(|app| app.num_bytes > 0);
        let by_kernel = || Some((self.tcp_info?.elapsed_time?, self.tcp_info?.bytes_received?));
        by_program
            .map(|app| (app.elapsed_time, app.num_bytes))
            .or_else(by_kernel)
    }
}

/// Progress as the application counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AppInfo {
    /// Since the start of the test.
    pub elapsed_time: u64,
    /// Payload bytes moved.
    pub num_bytes: u64,
}

/// Both ends of a connection.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ConnectionInfo {
    /// The client's end.
    pub client: String,
    /// The server's end.
    pub server: String,
    /// Name of the test at this server.
    #[serde(rename = "UUID")]
    pub uuid: String,
}

/// `TCP_INFO` (tcp(7)) as far as ndt7 names it, and the maximum segment size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TcpInfo {
    /// Time with data to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_time: Option<u64>,
    /// Acknowledged by the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_acked: Option<u64>,
    /// Received in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// Sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_retrans: Option<u64>,
    /// Rate of delivery, bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_rate: Option<u64>,
    /// Since the start of the test.
    pub elapsed_time: Option<u64>,
    /// Smallest round trip.
    #[serde(rename = "MinRTT", skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<u32>,
    /// Smoothed round trip.
    #[serde(rename = "RTT")]
    pub rtt: Option<u32>,
    /// Deviation of the round trip.
    #[serde(rename = "RTTVar")]
    pub rtt_var: Option<u32>,
    /// Time limited by the client's window.
    #[serde(rename = "RWndLimited", skip_serializing_if = "Option::is_none")]
    pub rwnd_limited: Option<u64>,
    /// Time limited by the server's send buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_buf_limited: Option<u64>,
    /// Payload of a full segment.
    #[serde(rename = "SndMSS")]
    pub snd_mss: Option<u32>,
    /// Segments sent again.
    pub total_retrans: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_specification_and_unmeasured_ones_are_absent() {
        let measurement = Measurement {
            app_info: Some(AppInfo::default()),
            origin: "server",
            test: "download",
            tcp_info: Some(TcpInfo {
                elapsed_time: Some(1),
                rtt: Some(2),
                rtt_var: Some(3),
                rwnd_limited: Some(7),
                snd_mss: Some(4),
                total_retrans: Some(5),
                ..TcpInfo::default()
            }),
            ..Measurement::default()
        };
        let text = serde_json::to_string(&measurement).expect("plain data");
        assert_eq!(
            text,
            r#"{"AppInfo":{"ElapsedTime":0,"NumBytes":0},"Origin":"server","Test":"download","TCPInfo":{"ElapsedTime":1,"RTT":2,"RTTVar":3,"RWndLimited":7,"SndMSS":4,"TotalRetrans":5}}"#
        );
    }

    #[test]
    fn measurements_have_what_the_server_reports_and_nothing_else() {
        // As ndt-server 0.20 writes it: without AppInfo, with members that are not read.
        let text = br#"{"BBRInfo":{"BW":1},"ConnectionInfo":{"Client":"a:1"},"Origin":"server",
            "TCPInfo":{"State":1,"RTT":12000,"MinRTT":9000,"TotalRetrans":3,"BytesReceived":500,
            "ElapsedTime":250000,"PacingRate":-1},"Test":"upload"}"#;
        let report = Measurement::parse(text).expect("a measurement");
        let kernel = report.tcp_info.expect("the kernel's state");
        assert_eq!(
            (kernel.rtt, kernel.total_retrans, kernel.busy_time),
            (Some(12_000), Some(3), None)
        );
        assert_eq!(report.received(), Some((250_000, 500)));

        let text = br#"{"AppInfo":{"ElapsedTime":7,"NumBytes":9},"Test":"upload"}"#;
        let report = Measurement::parse(text).expect("a measurement");
        assert_eq!((report.received(), report.tcp_info), (Some((7, 9)), None));
        for garbage in [
            &b""[..],
            b"[]",
            b"{\"TCPInfo\":1}",
            b"{\"TCPInfo\":{\"RTT\":-1}}",
        ] {
            assert_eq!(
                Measurement::parse(garbage).and_then(|report| report.received()),
                None
            );
        }
    }
}
