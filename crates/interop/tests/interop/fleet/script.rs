//! Goal: hosts on which nothing can be installed are tested with the iperf3 that they have. Method: a shell over ssh on hosts in
//! namespaces; the stock iperf3 of Debian.

use linerate_interop::{FleetLab, HostLink};

use super::report::{GIGABIT_MBPS, cells, expect_nothing_left, findings, mbps};

#[test]
fn timed_mesh_of_hosts_with_stock_iperf3_is_complete_and_leaves_nothing() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else { return };
    let report = lab.report(&["mesh", "-t", "2", "-O", "0", "--carrier", "script"]);
    assert_eq!(cells(&report).len(), 12, "{report}");
    for cell in cells(&report) {
        assert!(GIGABIT_MBPS.contains(&mbps(cell)), "{cell}");
    }
    assert_eq!(findings(&report), [], "{report}");
    expect_nothing_left(&lab);
}
