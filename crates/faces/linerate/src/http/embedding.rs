//! View of the program for loads and experiments.

use linerate_http::run::LiveView;

use crate::live::Live;
use crate::view::View;

/// Opens a view on the terminal of standard error, which ends with what is returned.
pub(super) fn open_view() -> Option<LiveView> {
    let live = Live::default();
    let shown = View::open(&live)?;
    Some(Box::new(move |change| {
        let _shown = &shown;
        live.update(|state| change(state));
    }))
}
