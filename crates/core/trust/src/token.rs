//! Tokens: secrets that both ends hold, and proofs of them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use linerate_sys::random;

use crate::files::{self, FileError};
use crate::proof::{is_signed, sign};

/// 128 bits in Base64: a proof permits offline guessing, so that a shorter token is none.
const SECRET_LENGTH_MIN: usize = 22;
/// Upper bound.
const SECRET_LENGTH_MAX: usize = 256;
/// Upper bound of a name.
const NAME_LENGTH_MAX: usize = 64;
/// Name of a token without one.
const NAME_DEFAULT: &str = "token";
/// Upper bound of a file with tokens.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// A secret that both ends hold, with a name. The secret never leaves this crate: see
/// [`crate::proof`].
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    name: String,
    secret: String,
}

/// Tokens of a server, by name.
#[derive(Debug, Clone)]
pub struct Tokens {
    by_name: BTreeMap<String, Token>,
    /// Compared with proofs of names that do not exist.
    decoy: Token,
}

/// Why text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// The secret.
    #[error(
        "a token is {SECRET_LENGTH_MIN} to {SECRET_LENGTH_MAX} visible ASCII characters; \
         make one with `openssl rand -base64 24`"
    )]
    Secret,
    /// The name.
    #[error("the name of a token is 1 to {NAME_LENGTH_MAX} letters, digits, `.`, `_` or `-`")]
    Name,
    /// More than a name and a secret.
    #[error("a line is `SECRET` or `NAME SECRET`")]
    Fields,
    /// A second token of this name.
    #[error("the name occurs twice")]
    Twice,
}

/// Why a file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("token file {0}")]
    File(#[from] FileError),
    /// One of its lines is invalid.
    #[error("token file {} line {line}: {reason}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The defect.
        reason: BadToken,
    },
    /// It contains no token.
    #[error("token file {}: no token", .0.display())]
    Empty(PathBuf),
    /// It contains several, and one is needed.
    #[error("token file {}: {count} tokens, and a client uses one; keep one line", .path.display())]
    Several {
        /// The file.
        path: PathBuf,
        /// Number of tokens.
        count: usize,
    },
}

impl Token {
    /// From a secret without a name, which is then `token`; surrounding white space is removed.
    ///
    /// # Errors
    /// [`BadToken::Secret`] for one that is too short, too long, or not of visible ASCII
    /// characters.
    pub fn new(secret: &str) -> Result<Self, BadToken> {
        Self::named(NAME_DEFAULT, secret.trim())
    }

    /// From name and secret.
    ///
    /// # Errors
    /// [`BadToken`].
    pub fn named(name: &str, secret: &str) -> Result<Self, BadToken> {
        // White space separates the fields of a line, so that a secret contains none.
        let is_good = (SECRET_LENGTH_MIN..=SECRET_LENGTH_MAX).contains(&secret.len())
            && secret.bytes().all(|byte| byte.is_ascii_graphic());
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !(1..=NAME_LENGTH_MAX).contains(&name.len()) || !name.bytes().all(is_name) {
            return Err(BadToken::Name);
        }

        is_good
            .then(|| Self {
                name: name.to_owned(),
                secret: secret.to_owned(),
            })
            .ok_or(BadToken::Secret)
    }

    /// Reads the one token in a file. Blank lines and lines that begin with `# ` are skipped.
    ///
    /// # Errors
    /// A file that cannot be read, to which others have access, or that does not contain one token.
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let mut tokens = Tokens::from_file(path)?.by_name.into_values();
        let token = tokens
            .next()
            .ok_or_else(|| TokenError::Empty(path.to_owned()))?;

        match tokens.len() {
            0 => Ok(token),
            others => Err(TokenError::Several {
                path: path.to_owned(),
                count: others + 1,
            }),
        }
    }

    /// The name; `token` for one without.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn secret(&self) -> &[u8] {
        self.secret.as_bytes()
    }

    /// `SECRET`, or `NAME SECRET`.
    fn from_line(line: &str) -> Result<Self, BadToken> {
        let mut fields = line.split_ascii_whitespace();
        match (fields.next(), fields.next(), fields.next()) {
            (Some(secret), None, None) => Self::new(secret),
            (Some(name), Some(secret), None) => Self::named(name, secret),
            _ => Err(BadToken::Fields),
        }
    }
}

impl Tokens {
    /// Reads a file of lines `SECRET` or `NAME SECRET`. Blank lines and lines that begin with `# `
    /// are skipped.
    ///
    /// # Errors
    /// A file that cannot be read, to which others have access, or that contains no token, an
    /// invalid line or a name twice.
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let bytes = files::read_private(path, FILE_BYTES_MAX)?;
        let mut by_name = BTreeMap::new();

        // Other bytes than UTF-8 become U+FFFD, which no token contains.
        for (index, line) in String::from_utf8_lossy(&bytes)
            .lines()
            .enumerate()
            .filter(|(_, line)| has_token(line))
        {
            let bad = |reason| TokenError::Line {
                path: path.to_owned(),
                line: index + 1,
                reason,
            };
            let token = Token::from_line(line).map_err(bad)?;
            if by_name.insert(token.name.clone(), token).is_some() {
                return Err(bad(BadToken::Twice));
            }
        }

        if by_name.is_empty() {
            return Err(TokenError::Empty(path.to_owned()));
        }

        Ok(Self::new(by_name))
    }

    /// Like [`Tokens::from_file`]; a file that does not exist is created, mode 0600, with one token
    /// of 32 random bytes in hexadecimal digits.
    ///
    /// # Errors
    /// Those of [`Tokens::from_file`], and a file that cannot be created.
    pub fn load_or_create(path: &Path) -> Result<Self, TokenError> {
        match Self::from_file(path) {
            Err(TokenError::File(error)) if error.is_not_found() => {
                // Of two processes that create the file, both read the token of the first.
                files::create(
                    path,
                    format!("{}\n", random::hexadecimal::<32>()).as_bytes(),
                )?;
                Self::from_file(path)
            }
            read => read,
        }
    }

    fn new(by_name: BTreeMap<String, Token>) -> Self {
        Self {
            by_name,
            decoy: Token {
                name: NAME_DEFAULT.to_owned(),
                secret: random::hexadecimal::<32>(),
            },
        }
    }

    /// The token with this name, where `proof` is that of a client that has it. An unknown name
    /// takes the same time as a wrong proof of a known one.
    #[must_use]
    pub fn proved(&self, name: &str, exporter: &[u8; 32], proof: &[u8]) -> Option<&Token> {
        let token = self.get(name);
        let is_right = verify(token.unwrap_or(&self.decoy), exporter, Role::Client, proof);
        token.filter(|_| is_right)
    }

    /// The token with this name.
    pub fn get(&self, name: &str) -> Option<&Token> {
        self.by_name.get(name)
    }
}

impl From<Token> for Tokens {
    fn from(token: Token) -> Self {
        Self::new(BTreeMap::from([(token.name.clone(), token)]))
    }
}

fn has_token(line: &str) -> bool {
    let line = line.trim_ascii();
    // A secret may begin with `#`: a comment has a space behind it.
    !line.is_empty() && line != "#" && !line.starts_with("# ")
}

/// End of a session that proves that it holds a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The end that connected.
    Client,
    /// The end that accepted.
    Server,
}

impl Role {
    /// Differs between the ends, so that no end can send back the other's proof. Both have the same
    /// length.
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Client => b"linerate/1 client proof\0",
            Self::Server => b"linerate/1 server proof\0",
        }
    }
}

/// Proof of a token by one end. `exporter` is that of the session for [`crate::CHANNEL_BINDING`].
pub fn proof(token: &Token, exporter: &[u8; 32], role: Role) -> [u8; 32] {
    sign(token.secret(), &[role.label(), exporter])
}

/// True if `proof` is the one of `role`, compared in constant time.
#[must_use]
pub fn verify(token: &Token, exporter: &[u8; 32], role: Role, proof: &[u8]) -> bool {
    is_signed(token.secret(), &[role.label(), exporter], proof)
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, secret)", self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SECRET: &str = "0123456789abcdef012345";

    /// A private file with this content.
    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), content).expect("our file");
        file
    }

    #[test]
    fn guessable_and_invisible_secrets_are_refused() {
        assert_eq!(
            Token::new(&format!(" {SECRET}\n")).map(|token| token.secret),
            Ok(SECRET.to_owned())
        );
        for bad in [
            "",
            "short",
            &SECRET[1..],
            "with a blank inside of it",
            "0123456789abcdef01234\u{e9}",
            &"x".repeat(257),
        ] {
            assert_eq!(Token::new(bad), Err(BadToken::Secret), "{bad}");
        }

        for bad in ["", "a b", "a/b", "\u{e9}", &"n".repeat(65)] {
            assert_eq!(Token::named(bad, SECRET), Err(BadToken::Name), "{bad}");
        }
    }

    #[test]
    fn secret_is_not_printed() {
        let token = Token::named("lab", SECRET).expect("a token");
        let texts = [format!("{token:?}"), format!("{:?}", Tokens::from(token))];
        assert!(
            texts
                .iter()
                .all(|text| text.contains("lab") && !text.contains(SECRET)),
            "{texts:?}"
        );
    }

    #[test]
    fn lines_have_a_name_or_the_default_one() {
        let text =
            format!("# who may test\n\n{SECRET}\nlab\t{SECRET}1  \r\n#{SECRET}2 {SECRET}3\n");
        let error = Tokens::from_file(file(text.as_bytes()).path()).expect_err("`#` is no name");
        assert!(
            matches!(
                error,
                TokenError::Line {
                    line: 5,
                    reason: BadToken::Name,
                    ..
                }
            ),
            "{error}"
        );

        let tokens = Tokens::from_file(file(&text.as_bytes()[..text.len() - 48]).path())
            .expect("two tokens");
        assert_eq!(
            tokens.get("token").map(Token::secret),
            Some(SECRET.as_bytes())
        );
        assert_eq!(
            tokens.get("lab").map(Token::secret),
            Some(&b"0123456789abcdef0123451"[..])
        );
        assert_eq!(tokens.get("lab").map(Token::name), Some("lab"));
        assert_eq!(tokens.get("other"), None);
    }

    #[test]
    fn invalid_files_are_refused_with_the_line() {
        let rows: [(&[u8], &str); 7] = [
            (b"", "no token"),
            (b"# nothing\n\n", "no token"),
            (b"0123456789abcdef01234\n", "line 1: a token is 22 to 256"),
            (b"\nlab short\n", "line 2: a token is 22 to 256"),
            (b"a b 0123456789abcdef012345\n", "line 1: a line is"),
            (
                b"a 0123456789abcdef012345\na 0123456789abcdef012346\n",
                "line 2: the name occurs twice",
            ),
            (b"0123456789abcdef012345\xff\n", "line 1: a token is"),
        ];
        for (content, part) in rows {
            let error = Tokens::from_file(file(content).path())
                .expect_err(part)
                .to_string();
            assert!(
                error.starts_with("token file ") && error.contains(part),
                "{error}"
            );
        }
    }

    #[test]
    fn proof_is_compared_for_known_and_unknown_names() {
        let (lab, other) = (token("lab", 'a'), token("other", 'b'));
        let tokens = Tokens::from(lab.clone());
        let proof_of = |token: &Token, role| proof(token, &[1; 32], role);
        let found = |name, proof: &[u8]| tokens.proved(name, &[1; 32], proof).map(Token::name);
        assert_eq!(found("lab", &proof_of(&lab, Role::Client)), Some("lab"));
        assert_eq!(
            found("lab", &proof_of(&lab, Role::Server)),
            None,
            "proof of the other end"
        );
        assert_eq!(
            found("lab", &proof_of(&other, Role::Client)),
            None,
            "proof of another token"
        );
        assert_eq!(
            found("other", &proof_of(&lab, Role::Client)),
            None,
            "another name"
        );
        assert_eq!(
            found("other", &proof_of(&tokens.decoy, Role::Client)),
            None,
            "the decoy is no token"
        );
        assert_eq!(
            tokens.proved("lab", &[2; 32], &proof_of(&lab, Role::Client)),
            None,
            "another session"
        );
    }

    fn token(name: &str, letter: char) -> Token {
        Token::named(name, &letter.to_string().repeat(32)).expect("a token")
    }

    #[test]
    fn client_needs_exactly_one() {
        let one = file(format!("lab {SECRET}\n").as_bytes());
        assert_eq!(Token::from_file(one.path()).expect("one").name(), "lab");
        let two = file(format!("lab {SECRET}\nfield {SECRET}\n").as_bytes());
        let error = Token::from_file(two.path()).expect_err("two");
        assert!(
            matches!(error, TokenError::Several { count: 2, .. }),
            "{error}"
        );
    }

    #[test]
    fn files_of_others_are_refused_and_new_ones_are_private() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t");
        let missing = Tokens::from_file(&path).expect_err("a client creates none");
        assert!(
            matches!(missing, TokenError::File(_)) && !path.exists(),
            "{missing}"
        );

        let first = Tokens::load_or_create(&path).expect("created");
        let second = Tokens::load_or_create(&path).expect("read");
        assert_eq!(first.get("token"), second.get("token"));
        assert_eq!(
            first.get("token").map(|token| token.secret().len()),
            Some(64)
        );
        assert_eq!(
            fs::metadata(&path).expect("a file").permissions().mode() & 0o7777,
            0o600
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our file");

        let error = Token::from_file(&path).expect_err("exposed").to_string();
        assert!(
            error.contains("mode 0644") && error.contains("chmod 600"),
            "{error}"
        );
    }
}
