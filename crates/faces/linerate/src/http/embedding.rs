//! View and identities of the program, for loads and experiments.

use std::path::Path;

use linerate_engine::dialect::native::client::{IdentityDemand, Target};
use linerate_http::run::{Embedding, LiveView};
use linerate_model::live::LiveState;

use crate::Error;
use crate::live::Live;
use crate::path::{IdentityOptions, host_and_port, identity};
use crate::view::View;

/// This program around a load or an experiment.
pub(super) const EMBEDDING: Embedding = Embedding {
    open_view,
    host_and_port,
    identity_demand,
    remember_identity: identity::remember,
};

/// The view on the terminal of standard error.
struct TerminalView {
    live: Live,
    _shown: View,
}

impl LiveView for TerminalView {
    fn update(&self, change: &mut dyn FnMut(&mut LiveState)) {
        self.live.update(|state| change(state));
    }
}

fn open_view() -> Option<Box<dyn LiveView>> {
    let live = Live::default();
    let shown = View::open(&live)?;
    Some(Box::new(TerminalView {
        live,
        _shown: shown,
    }))
}

fn identity_demand(token_file: Option<&Path>, server: &Target) -> Result<IdentityDemand, Error> {
    let options = IdentityOptions {
        token_file: token_file.map(Path::to_path_buf),
        ..IdentityOptions::default()
    };
    identity::demand(&options, server)
}
