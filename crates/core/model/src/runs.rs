//! Test runs as facts. A run is a group `run.N.` of a snapshot; the program that ran or parsed a
//! test writes them.
//!
//! | fact | meaning |
//! |---|---|
//! | `tool`, `version` | `linerate`, `iperf3`, `iperf2`, `other`; required: a run without a tool does not exist |
//! | `label` | how reports name the run |
//! | `transport`, `family` | `tcp` or `udp`; `ipv4` or `ipv6` |
//! | `path`, `local` | both addresses, in order of the names; the address of this host |
//! | `same_host`, `server`, `reverse`, `interrupted`, `options_known` | switches; `server` is set for what a server printed |
//! | `streams`, `seconds`, `omit_seconds` | as configured; `seconds` as measured where it was not configured ||
//! | `sent_bps`, `received_bps`, `sent_bytes`, `received_bytes` | totals; goodput is what was received |
//! | `first_second_bps`, `later_median_bps`, `later_spread` | rate over time: first second, median and spread of the rest |
//! | `target_bps`, `block_len_bytes`, `window_bytes`, `congestion`, `fq_rate_bps` | options |
//! | `retransmits`, `retransmit_share`, `lost_packets`, `loss_share` | losses; shares of the segments or datagrams sent |
//! | `lost_in_network`, `lost_in_sender`, `lost_in_socket`, ... | lost datagrams by place, where both ends were watched |
//! | `rtt_us`, `rtt_inflation`, `mss_bytes`, `pmtu_bytes`, `snd_wnd_bytes`, `sndbuf_bytes` | path as TCP sees it |
//! | `rwnd_limited_share`, `sndbuf_limited_share`, `busy_share`, `idle_share`, `app_limited_share` | of the time |
//! | `reordered_segments`, `reordering` | reordering events; distance in segments up to which a late one is not taken for lost |
//! | `dsack_segments` | segments the receiver reported as received twice (DSACK, RFC 2883) |
//! | `client_cpus`, `server_cpus` | lists of CPUs |
//! | `phase` | phase of an examination of a path: `down`, `up`, `both`; a phase of both ways is two runs |
//! | `rtt_idle_us`, `rtt_loaded_us`, `queue_up_us`, `queue_down_us` | medians of UDP probes; queues are above the smallest delay |
//! | `foreign_idle_us`, `foreign_us`, `in_band_us` | medians of new connections, and of echoes in the streams of the load |
//! | `probe_loss_idle_share`, `probe_loss_share` | probes that did not arrive, of all |
//! | `end_spread` | largest difference of the rate in one of the last seconds from their median, of it |
//! | `notsent_bytes` | bytes in the senders' sockets that were not sent yet |
//! | `sender_process_cpu`, `receiver_process_cpu` | CPU time of the program at that end, of one core |
//! | `limit` | what limited it for most of the time: the name of a verdict |
//! | `thread_cpu`, `sender_thread_cpu`, `receiver_thread_cpu`, `thread_capacity` | of one core |
//! | `sender_thread_wait`, `receiver_thread_wait` | share of the time that a thread waited for a CPU (`/proc/PID/schedstat`) |

use crate::snapshot::{Snapshot, Value};

/// Runs a snapshot contains.
pub fn count(snapshot: &Snapshot) -> usize {
    (0..)
        // Runs are numbered without gaps, so that the first missing number is their count.
        .take_while(|index| snapshot.value(&format!("run.{index}.tool")).is_some())
        .count()
}

/// Adds a run; returns its number.
pub fn add(
    snapshot: &mut Snapshot,
    src: &str,
    facts: impl IntoIterator<Item = (String, Value)>,
) -> usize {
    let index = count(snapshot);
    for (fact, value) in facts {
        snapshot.set(format!("run.{index}.{fact}"), value, src);
    }
    index
}
