//! Ports that another program uses: which one it is, and what to do.

use std::net::SocketAddr;

use linerate_sys::OsError;
use linerate_sys::errno::EADDRINUSE;
use linerate_sys::error::strerror;

/// The text of an error and, where the port is taken, a line below it with what to do. `remedy` is
/// the user's way to choose another port.
pub(crate) fn explained(text: &str, port: u16, remedy: &str) -> String {
    // Failures of dialects carry the text of the system without its number.
    if !text.contains(&strerror(EADDRINUSE)) {
        return text.to_owned();
    }

    format!(
        "{text}\nhint: another program uses port {port} (`ss -tulnp 'sport = :{port}'` shows which \
         one); {remedy}"
    )
}

/// Explains the error of an operation on an address.
#[cfg_attr(not(feature = "full"), allow(dead_code))]
pub(crate) fn explained_os(error: &OsError, remedy: &str) -> String {
    match error.object.parse::<SocketAddr>() {
        Ok(address) => explained(&error.to_string(), address.port(), remedy),
        Err(_) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_port_that_is_taken_is_explained() {
        let taken = std::io::Error::from_raw_os_error(EADDRINUSE);
        let error = OsError::new("listen", "127.0.0.1:5201", taken);
        assert_eq!(
            explained_os(&error, "choose another with --port"),
            "listen 127.0.0.1:5201: Address already in use\n\
             hint: another program uses port 5201 (`ss -tulnp 'sport = :5201'` shows which one); \
             choose another with --port"
        );
        assert_eq!(
            explained("Permission denied", 80, "choose another"),
            "Permission denied"
        );
    }
}
