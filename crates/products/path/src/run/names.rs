//! Names of the hops in the DNS.

use std::net::IpAddr;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use linerate_model::path::PathHops;
use linerate_sys::socket;

/// Longest wait for all names together: a resolver that does not answer takes longer for one.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// Addresses that are looked up, each in a thread of its own: those of two paths of 32 hops.
const ADDRESSES_MAX: usize = 64;

/// Adds the names that the resolver returns in time.
pub(super) fn look_up(path: &mut PathHops) {
    let hops = || path.from_client.iter().chain(&path.from_server);
    let mut addresses: Vec<IpAddr> = hops().filter_map(|hop| hop.address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    // A server states as many addresses as it likes.
    addresses.truncate(ADDRESSES_MAX);

    let (found, names) = channel();
    for address in addresses {
        let found = found.clone();
        // A thread that is late ends by itself; its result has no receiver any more.
        let _ = thread::Builder::new()
            .name("hop-name".into())
            .spawn(move || found.send((address, socket::name_of(address))));
    }
    drop(found);

    let end = Instant::now() + WAIT_MAX;
    while let Ok((address, name)) =
        names.recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        let hops = path.from_client.iter_mut().chain(&mut path.from_server);
        for hop in hops.filter(|hop| hop.address == Some(address)) {
            hop.name.clone_from(&name);
        }
    }
}
