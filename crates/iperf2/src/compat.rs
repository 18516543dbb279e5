//! Peculiarities of real peers that this crate allows for, all in one table.

pub use linerate_model::compat::Quirk;

/// Every peculiarity that shapes the protocol code.
pub const QUIRKS: &[Quirk] = &[
    Quirk {
        peers: "clients",
        behaviour: "send as many header bytes as the parts in use add up to, while the parts keep fixed offsets",
        handling: "a part beyond the sent length is absent; what a server must know is never cut off by us",
        module: "header",
    },
    Quirk {
        peers: "2.2 and later",
        behaviour: "have four bytes more in the extension, and the isochronous words of a datagram four bytes later",
        handling: "decided by the version in the same header",
        module: "frame",
    },
    Quirk {
        peers: "clients, 2.1",
        behaviour: "repeat a stale copy of the header at the start of every block",
        handling: "data are never looked at",
        module: "server",
    },
    Quirk {
        peers: "clients, 2.2.1 with a transfer id",
        behaviour: "set the bit that asks for a connection back",
        handling: "the transfer id takes precedence",
        module: "header",
    },
    Quirk {
        peers: "builds of 2.2.1",
        behaviour: "call themselves 2.2.1-rc",
        handling: "shown as received",
        module: "version",
    },
    Quirk {
        peers: "clients up to 2.0.13 over TCP",
        behaviour: "send 24 bytes without a length, or nothing but data",
        handling: "taken for data, and counted",
        module: "opening",
    },
    Quirk {
        peers: "servers",
        behaviour: "lose the first four bytes of a connection without a header",
        handling: "they are counted",
        module: "server",
    },
    Quirk {
        peers: "clients up to 2.0.9 over UDP",
        behaviour: "have 32-bit numbers and look for their report four bytes earlier",
        handling: "recognised by what stands where later releases have the high word",
        module: "datagram",
    },
    Quirk {
        peers: "clients with -C over UDP",
        behaviour: "have digits where others have flags; real servers take them for options",
        handling: "flags, length and version must agree before anything is believed",
        module: "header",
    },
    Quirk {
        peers: "servers, 2.0.14 and later",
        behaviour: "answer every plain test though only clients with -X wait for it",
        handling: "the answer is read and dropped, or our close would become a reset",
        module: "client",
    },
    Quirk {
        peers: "clients with -X",
        behaviour: "wait for the answer for ever",
        handling: "ours waits four seconds and says why",
        module: "client",
    },
    Quirk {
        peers: "clients over UDP",
        behaviour: "send the last datagram up to 200 times, each with the next negative number",
        handling: "the first ends the flow, the others ask for the report again",
        module: "server",
    },
    Quirk {
        peers: "clients over UDP",
        behaviour: "count the last datagram as one of the flow",
        handling: "the same",
        module: "sequence",
    },
    Quirk {
        peers: "all",
        behaviour: "count a duplicate as reordered and let it take back a loss",
        handling: "distinguished by remembering which of the last numbers arrived",
        module: "sequence",
    },
    Quirk {
        peers: "servers over UDP",
        behaviour: "mix flows that begin at the same time, and keep flows whose client vanished for ever",
        handling: "one machine per source address, with a limit on silence",
        module: "server",
    },
    Quirk {
        peers: "servers over UDP",
        behaviour: "stream to whatever address a single datagram names",
        handling: "a second datagram must come first; real clients repeat theirs",
        module: "server",
    },
    Quirk {
        peers: "servers, 2.2.1",
        behaviour: "read 68 bytes of a bounce-back request before they look at any",
        handling: "ours answers from 64 bytes on",
        module: "bounceback",
    },
    Quirk {
        peers: "clients",
        behaviour: "cut amounts of 2 GiB and more to 31 bits",
        handling: "refused where the server would have to send them",
        module: "amount",
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
