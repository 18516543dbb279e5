//! What became of packets on an examined path: their largest size, and the marks in their headers.

use linerate_model::path::{
    EcnTreatment, PathDirection, PathHops, PathReport, SizeResult, SizeSignal,
};
use linerate_model::snapshot::Snapshot;

use super::place::first_changed;

const SRC: &str = "test";

/// Records what became of packets on the way. `sends` is the direction in which this host sends.
pub fn record_path(report: &PathReport, sends: PathDirection, snapshot: &mut Snapshot) {
    let mtu = |size: Option<SizeResult>| size.map(|size| i64::from(size.mtu));
    snapshot.set_known_in("path.forward_mtu", mtu(report.size.up), "bytes", SRC);
    snapshot.set_known_in("path.reverse_mtu", mtu(report.size.down), "bytes", SRC);

    let own = if sends == PathDirection::Up {
        report.size.up
    } else {
        report.size.down
    };
    if let Some(size) = own {
        snapshot.set("path.small_passes", true, SRC);
        let is_limited_by_path = matches!(size.how, SizeSignal::Reported | SizeSignal::BlackHole);
        snapshot.set("path.large_passes", !is_limited_by_path, SRC);
        snapshot.set("path.told_mtu", size.how == SizeSignal::Reported, SRC);
    }

    let Some(marks) = &report.marks else { return };
    let place = |direction, bits, sent| first_changed(&report.path, direction, bits, sent);
    let ecn = marks.ecn.iter().map(|(direction, treatment)| {
        let mut text = treatment_name(*treatment).to_owned();
        if *treatment != EcnTreatment::Kept {
            text += &place(*direction, PathHops::ECN, PathHops::ECT_0);
        }
        (*direction, text)
    });

    let dscp = marks.dscp.iter().map(|(direction, sent, received)| {
        let text = if sent == received {
            KEPT.to_owned()
        } else {
            let place = place(*direction, PathHops::DSCP, sent << 2);
            format!("{sent} changed to {received}{place}")
        };
        (*direction, text)
    });
    snapshot.set_known("path.ecn", by_direction(ecn), SRC);
    snapshot.set_known("path.dscp", by_direction(dscp), SRC);
}

const KEPT: &str = "kept";

fn treatment_name(treatment: EcnTreatment) -> &'static str {
    match treatment {
        EcnTreatment::Kept => KEPT,
        EcnTreatment::Cleared => "cleared",
        EcnTreatment::Changed => "changed",
    }
}

/// `kept`, or `up 46 changed to 0, down kept`; `None` without any.
fn by_direction(marks: impl Iterator<Item = (PathDirection, String)>) -> Option<String> {
    /// Code points that a text lists.
    const LISTED_MAX: usize = 8;

    let marks: Vec<_> = marks.collect();
    if marks.iter().all(|(_, text)| text == KEPT) {
        return (!marks.is_empty()).then(|| KEPT.to_owned());
    }

    let mut words: Vec<String> = marks
        .iter()
        .map(|(direction, text)| format!("{} {text}", direction_name(*direction)))
        .collect();
    words.dedup();
    words.truncate(LISTED_MAX);

    Some(words.join(", "))
}

pub(super) fn direction_name(direction: PathDirection) -> &'static str {
    match direction {
        PathDirection::Up => "up",
        PathDirection::Down => "down",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_named_by_direction_where_they_are_not_kept() {
        let named = |marks: &[(PathDirection, &str)]| {
            by_direction(marks.iter().map(|(way, text)| (*way, (*text).to_owned())))
        };
        let (up, down) = (PathDirection::Up, PathDirection::Down);
        assert_eq!(named(&[]), None);
        assert_eq!(named(&[(up, KEPT), (down, KEPT)]).as_deref(), Some("kept"));
        assert_eq!(
            named(&[(up, "cleared"), (down, KEPT)]).as_deref(),
            Some("up cleared, down kept")
        );
    }
}
