//! Peculiarities of real peers that this crate allows for, all in one table.

pub use linerate_model::compat::Quirk;

/// Every peculiarity that shapes the protocol code.
pub const QUIRKS: &[Quirk] = &[
    Quirk {
        peers: "3.12, 3.13",
        behaviour: "write −1 as 18446744073709551615 in results",
        handling: "saturated numbers count as −1 where −1 is possible",
        module: "json",
    },
    Quirk {
        peers: "up to 3.13",
        behaviour: "do not tell what was lost during the warm-up",
        handling: "unknown, unless nothing was lost or there was no warm-up",
        module: "results",
    },
    Quirk {
        peers: "up to 3.1",
        behaviour: "send no start and end times",
        handling: "the own measured time stands in",
        module: "results",
    },
    Quirk {
        peers: "all",
        behaviour: "number streams 1, 3, 4, 5, …",
        handling: "wire_id and stream_id translate",
        module: "results",
    },
    Quirk {
        peers: "servers, 3.18 and later",
        behaviour: "refuse parameters beyond 8192 bytes",
        handling: "the same limit",
        module: "framing",
    },
    Quirk {
        peers: "servers, 3.18 and later",
        behaviour: "take false for true in the parameters",
        handling: "false is false; no client sends it",
        module: "json",
    },
    Quirk {
        peers: "servers, 3.21",
        behaviour: "accept UDP with a block length of 0 and fail after the streams stand",
        handling: "refused like a missing length",
        module: "params",
    },
    Quirk {
        peers: "servers up to 3.20",
        behaviour: "send one error word for a failed login, and none for most failures",
        handling: "missing words are 0; without any the message names no reason",
        module: "client",
    },
    Quirk {
        peers: "servers, 3.21",
        behaviour: "refuse a login, and older ones any parameters, by closing the connection",
        handling: "the message tells that the parameters were the last thing sent",
        module: "client",
    },
    Quirk {
        peers: "servers, 3.21",
        behaviour: "send server errors twice, or after the results or a termination",
        handling: "the first item that ends the dialogue is the last one read",
        module: "client",
    },
    Quirk {
        peers: "servers",
        behaviour: "send an error or a termination where the length of their results is awaited",
        handling: "recognised by its first byte, which no acceptable length has",
        module: "client",
    },
    Quirk {
        peers: "servers",
        behaviour: "send bytes 1 and 2 while a UDP client still waits for the answer to its last hello",
        handling: "remembered until all streams stand",
        module: "client",
    },
    Quirk {
        peers: "clients",
        behaviour: "say good-bye (16) when they cannot open their streams, or just close",
        handling: "accepted in every state",
        module: "server",
    },
    Quirk {
        peers: "up to 3.16",
        behaviour: "pad login tokens with PKCS#1 v1.5 instead of OAEP",
        handling: "on demand only; the peers cannot negotiate it",
        module: "auth",
    },
    Quirk {
        peers: "up to 3.11, and big-endian hosts up to 3.16",
        behaviour: "open UDP streams with other words or in the other byte order",
        handling: "all four variants are known",
        module: "udp_header",
    },
    Quirk {
        peers: "all with 32-bit counters",
        behaviour: "wrap their counter after 2^32 datagrams",
        handling: "continued in 64 bits; the nearest of the possible numbers is taken",
        module: "sequence",
    },
    Quirk {
        peers: "all",
        behaviour: "count duplicates as reordered, and let them take back a loss",
        handling: "the same arithmetic, because both ends print the figures",
        module: "sequence",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_a_module_of_this_crate() {
        let modules = include_str!("lib.rs");
        for quirk in QUIRKS {
            assert!(modules.contains(&format!("mod {};", quirk.module)), "{}", quirk.module);
        }
    }
}
