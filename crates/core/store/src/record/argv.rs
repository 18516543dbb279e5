//! Command lines without secrets.

const HIDDEN: &str = "***";
/// Options whose value is a secret.
const OPTIONS: [&str; 4] = ["--password", "--token", "--permit-key", "--lr-permit-key"];
/// Headers whose value is a secret.
const HEADERS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
];
/// Words in names of query parameters whose value is a secret.
const PARAMETERS: [&str; 7] = [
    "token", "key", "secret", "password", "passwd", "sig", "auth",
];

/// A command line as typed, without passwords, tokens, user information of URLs and credentials in
/// headers.
pub fn scrubbed(argv: &[String]) -> Vec<String> {
    let mut follows_secret = false;
    let scrub = |argument: &String| {
        if std::mem::replace(&mut follows_secret, OPTIONS.contains(&argument.as_str())) {
            return HIDDEN.to_owned();
        }
        if let Some((option, _)) = argument
            .split_once('=')
            .filter(|(option, _)| OPTIONS.contains(option))
        {
            return format!("{option}={HIDDEN}");
        }

        without_header(argument).unwrap_or_else(|| without_url_secrets(argument))
    };
    argv.iter().map(scrub).collect()
}

/// `Authorization: Bearer x`, also behind `-H` or `--header=`.
fn without_header(argument: &str) -> Option<String> {
    let (name, _) = argument.split_once(':')?;
    let bare = name.rsplit_once('=').map_or(name, |(_, bare)| bare);
    let bare = bare.strip_prefix("-H").unwrap_or(bare).trim();
    HEADERS
        .contains(&bare.to_ascii_lowercase().as_str())
        .then(|| format!("{name}: {HIDDEN}"))
}

fn without_url_secrets(argument: &str) -> String {
    let Some((scheme, rest)) = argument.split_once("://") else {
        return argument.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    // A password can contain the sign itself: the last one ends it.
    let authority = match authority.rsplit_once('@') {
        // The user of a database is a name; of other URLs it may be a token.
        Some((user, host))
            if ["postgres", "postgresql"]
                .iter()
                .any(|name| scheme.ends_with(name)) =>
        {
            match user.split_once(':') {
                Some((name, _)) => format!("{name}:{HIDDEN}@{host}"),
                None => authority.to_owned(),
            }
        }
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => authority.to_owned(),
    };
    let Some((path, query)) = rest.split_once('?') else {
        return format!("{scheme}://{authority}{rest}");
    };
    let (query, fragment) = query
        .split_once('#')
        .map_or((query, None), |(query, fragment)| (query, Some(fragment)));
    let parameters: Vec<String> = query.split('&').map(without_secret_value).collect();
    let fragment = fragment.map_or_else(String::new, |fragment| format!("#{fragment}"));

    format!(
        "{scheme}://{authority}{path}?{}{fragment}",
        parameters.join("&")
    )
}

fn without_secret_value(parameter: &str) -> String {
    let name = parameter.split_once('=').map_or("", |(name, _)| name);
    let is_secret = PARAMETERS
        .iter()
        .any(|word| name.to_ascii_lowercase().contains(word));
    if is_secret {
        format!("{name}={HIDDEN}")
    } else {
        parameter.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_everything_else_stays() {
        for (typed, kept) in [
            ("iperf3 -c host -P 4 -t 10", "iperf3 -c host -P 4 -t 10"),
            (
                "linerate http load http://me:pw@host:80/a?b=1&api_key=77#x",
                "linerate http load http://***@host:80/a?b=1&api_key=***#x",
            ),
            (
                "load http://host/?access_token=1",
                "load http://host/?access_token=***",
            ),
            (
                "load --token abc --token=abc http://host/",
                "load --token *** --token=*** http://host/",
            ),
            (
                "linerate watch --store=postgresql://me@db/runs",
                "linerate watch --store=postgresql://me@db/runs",
            ),
            (
                "iperf -c host --permit-key=secret",
                "iperf -c host --permit-key=***",
            ),
            (
                "--store postgresql://u:p@db/history",
                "--store postgresql://u:***@db/history",
            ),
        ] {
            let argv: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            assert_eq!(scrubbed(&argv).join(" "), kept);
        }

        let headers = [
            "Authorization: Bearer 1",
            "-Hcookie: a=b",
            "--header=X-Api-Key: 1",
            "Accept: a/b",
        ]
        .map(String::from);
        assert_eq!(
            scrubbed(&headers),
            [
                "Authorization: ***",
                "-Hcookie: ***",
                "--header=X-Api-Key: ***",
                "Accept: a/b"
            ]
        );
    }
}
