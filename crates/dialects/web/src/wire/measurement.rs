//! Measurement messages of ndt7 (ndt-server, `spec/ndt7-protocol.md`). Times are microseconds.

use serde::{Deserialize, Serialize};

/// One of them. What the kernel does not report is absent.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Measurement<'a> {
    /// Progress of the test.
    pub app_info: AppInfo,
    /// Both ends, in the first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_info: Option<&'a ConnectionInfo>,
    /// Always `server`.
    pub origin: &'static str,
    /// `download` or `upload`.
    pub test: &'static str,
    /// State of the connection in the server's kernel.
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none")]
    pub tcp_info: Option<TcpInfo>,
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
#[derive(Debug, Clone, Default, Serialize)]
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
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
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
    pub elapsed_time: u64,
    /// Smallest round trip.
    #[serde(rename = "MinRTT", skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<u32>,
    /// Smoothed round trip.
    #[serde(rename = "RTT")]
    pub rtt: u32,
    /// Deviation of the round trip.
    #[serde(rename = "RTTVar")]
    pub rtt_var: u32,
    /// Time limited by the client's window.
    #[serde(rename = "RWndLimited", skip_serializing_if = "Option::is_none")]
    pub rwnd_limited: Option<u64>,
    /// Time limited by the server's send buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_buf_limited: Option<u64>,
    /// Payload of a full segment.
    #[serde(rename = "SndMSS")]
    pub snd_mss: u32,
    /// Segments sent again.
    pub total_retrans: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_specification_and_unmeasured_ones_are_absent() {
        let measurement = Measurement {
            origin: "server",
            test: "download",
            tcp_info: Some(TcpInfo {
                rwnd_limited: Some(7),
                ..TcpInfo::default()
            }),
            ..Measurement::default()
        };
        let text = serde_json::to_string(&measurement).expect("plain data");
        assert_eq!(
            text,
            r#"{"AppInfo":{"ElapsedTime":0,"NumBytes":0},"Origin":"server","Test":"download","TCPInfo":{"ElapsedTime":0,"RTT":0,"RTTVar":0,"RWndLimited":7,"SndMSS":0,"TotalRetrans":0}}"#
        );
    }
}
