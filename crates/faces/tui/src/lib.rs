//! Screens of what runs now, for a terminal.
//!
//! [`screen`] is a pure function of a [`LiveState`] and a [`View`]. A [`Painter`] writes what
//! differs from the screen before as control sequences. The crate reads no terminal and never asks
//! it anything: size, keys and modes belong to its caller.

#![forbid(unsafe_code)]

mod help;
mod http;
mod page;
mod painter;
mod server;
mod sweep;
mod table;
mod test;
mod view;

use linerate_model::live::LiveState;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use page::Page;
pub use painter::Painter;
pub use view::View;

/// Smallest terminal that a screen fits.
pub const COLUMNS_MIN: u16 = 40;
/// Smallest terminal that a screen fits.
pub const ROWS_MIN: u16 = 10;

/// The screen of a state.
pub fn screen(state: &LiveState, view: View) -> Buffer {
    let mut page = Page::new(view);
    match (
        view.is_help,
        &state.server,
        &state.sweep,
        &state.http,
        &state.test,
    ) {
        (true, ..) => help::draw(&mut page),
        (_, Some(server), ..) => server::draw(&mut page, server, state.host.as_ref()),
        // A test of a sweep is shown within the sweep.
        (_, _, Some(sweep), _, test) => sweep::draw(&mut page, sweep, test.as_ref()),
        (.., Some(http), _) => http::draw(&mut page, http),
        (.., Some(test)) => test::draw(&mut page, test, state.host.as_ref()),
        _ => page.flow(vec![page.word("linerate: nothing runs yet")]),
    }

    let mut buffer = Buffer::empty(Rect::new(0, 0, view.columns, view.rows));
    page.render(&mut buffer);
    buffer
}

#[cfg(test)]
mod tests;
