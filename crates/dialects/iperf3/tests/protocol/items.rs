//! Splits the bytes of a control connection into its items.

use serde_json::Value;

/// One item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// 36 characters; the NUL is implied.
    Cookie(Vec<u8>),
    /// One state byte.
    State(i8),
    /// A text with its length in front.
    Json(Vec<u8>),
    /// Numbers after a server error, complete or not.
    Words(Vec<u8>),
    /// The end.
    Eof,
}

impl Item {
    /// The item on the wire.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Cookie(text) => [text.as_slice(), &[0]].concat(),
            Self::State(state) => vec![state.cast_unsigned()],
            Self::Json(text) => linerate_iperf3::wire::framing::frame(text),
            Self::Words(bytes) => bytes.clone(),
            Self::Eof => Vec::new(),
        }
    }
}

/// The items in a stream of bytes.
pub(crate) struct Items<'a> {
    rest: &'a [u8],
    cookie_first: bool,
    last: Option<Item>,
}

impl<'a> Items<'a> {
    /// Items of a client.
    pub(crate) fn of_client(rest: &'a [u8]) -> Self {
        Self {
            rest,
            cookie_first: true,
            last: None,
        }
    }

    /// Items of a server.
    pub(crate) fn of_server(rest: &'a [u8]) -> Self {
        Self {
            rest,
            cookie_first: false,
            last: None,
        }
    }

    fn take(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        taken.to_vec()
    }
}

impl Iterator for Items<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let first = *self.rest.first()?;
        let item = if std::mem::take(&mut self.cookie_first) {
            let mut cookie = self.take(37);
            assert_eq!(cookie.pop(), Some(0));
            Item::Cookie(cookie)
        } else if self.last == Some(Item::State(-2)) {
            Item::Words(self.take(8))
        } else if first == 0 {
            // No state is 0, and every length here begins with one.
            let length = self.take(4);
            let length = u32::from_be_bytes(length.try_into().expect("four bytes of length"));
            Item::Json(self.take(length as usize))
        } else {
            Item::State(self.take(1)[0].cast_signed())
        };
        self.last = Some(item.clone());

        Some(item)
    }
}

/// The keys of an object and of the first stream in it, in order. The server's report is not
/// compared.
pub(crate) fn keys(text: &[u8]) -> Vec<String> {
    let json: Value = serde_json::from_slice(text).expect("valid JSON");
    let object = json.as_object().expect("an object");
    let mut keys: Vec<String> = object.keys().cloned().collect();

    if let Some(stream) = json["streams"].get(0).and_then(Value::as_object) {
        keys.extend(stream.keys().map(|key| format!("streams.{key}")));
    }
    keys
}
