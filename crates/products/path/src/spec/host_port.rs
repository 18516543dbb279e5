//! Names of servers on a command line.

/// Host and port of `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`, or an IPv6 address; `default_port` where
/// none is named.
///
/// # Errors
/// A text with another form.
pub fn host_and_port(text: &str, default_port: u16) -> Result<(String, u16), String> {
    let with_port = |host: &str, port: &str| match port.parse() {
        Ok(port) if port > 0 => Ok((host.to_owned(), port)),
        _ => Err(format!("{text}: {port} is no port")),
    };
    if text.is_empty() || text.contains('/') {
        return Err(format!("{text}: expected HOST or HOST:PORT"));
    }
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        return match rest.strip_prefix(':') {
            Some(port) => with_port(host, port),
            None => Ok((host.to_owned(), default_port)),
        };
    }

    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => with_port(host, port),
        _ => Ok((text.to_owned(), default_port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_with_and_without_a_port() {
        for (text, host, port) in [
            ("lab.example", "lab.example", 9),
            ("lab.example:5300", "lab.example", 5300),
            ("192.0.2.7:1", "192.0.2.7", 1),
            ("2001:db8::7", "2001:db8::7", 9),
            ("[2001:db8::7]", "2001:db8::7", 9),
            ("[2001:db8::7]:5300", "2001:db8::7", 5300),
        ] {
            assert_eq!(
                host_and_port(text, 9),
                Ok((host.to_owned(), port)),
                "{text}"
            );
        }

        for text in ["", "h:0", "h:65536", "h:x", "[::1]:", "http://h:1", "h/1"] {
            assert!(host_and_port(text, 9).is_err(), "{text}");
        }
    }
}
