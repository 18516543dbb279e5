//! Fields of requests and responses (HPACK, RFC 7541).

use std::collections::VecDeque;

use super::error::{COMPRESSION_ERROR, ENHANCE_YOUR_CALM, Http2Error};
use crate::wire::request::HEAD_BYTES_MAX;

/// The fields of a client, which refers to former ones.
#[derive(Default)]
pub(super) struct Decoder {
    /// The dynamic table, the newest entry first.
    table: VecDeque<Field>,
    lowered_max: Option<usize>,
}

/// Name and value.
pub(super) type Field = (String, String);

/// Octets of the dynamic table.
const TABLE_BYTES_MAX: usize = 4096;
/// What an entry counts beside name and value (section 4.1).
const ENTRY_BYTES: usize = 32;
/// Names of the static table (appendix A).
const NAMES: &str = ":authority :method :method :path :path :scheme :scheme :status :status \
                     :status :status :status :status :status accept-charset accept-encoding \
                     accept-language accept-ranges accept access-control-allow-origin age allow \
                     authorization cache-control content-disposition content-encoding \
                     content-language content-length content-location content-range content-type \
                     cookie date etag expect expires from host if-match if-modified-since \
                     if-none-match if-range if-unmodified-since last-modified link location \
                     max-forwards proxy-authenticate proxy-authorization range referer refresh \
                     retry-after server set-cookie strict-transport-security transfer-encoding \
                     user-agent vary via www-authenticate";
const NAMES_LEN: usize = 61;
/// Octets by the length of their code, 5 bits first; codes of one length ascend (appendix B).
const SYMBOLS: [&[u8]; 26] = [
    b"012aceiost",
    b" %-./3456789=A_bdfghlmnpru",
    b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    b"&*,;XZ",
    b"",
    b"!\"()?",
    b"'+|",
    b"#>",
    b"\x00$@[]~",
    b"^}",
    b"<`{",
    b"",
    b"",
    b"",
    b"\\\xc3\xd0",
    b"\x80\x82\x83\xa2\xb8\xc2\xe0\xe2",
    b"\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\xd9\xe3\xe5\xe6",
    b"\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa\xad\xb2\xb5\xb9\xba\xbb\xbd\xbe\xc4\xc6\xe4\xe8\xe9",
    b"\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98\x9b\x9d\x9e\xa5\xa6\xa8\xae\xaf\xb4\xb6\xb7\xbc\xbf\xc5\xe7\xef",
    b"\x09\x8e\x90\x91\x94\x9f\xab\xce\xd7\xe1\xec\xed",
    b"\xc7\xcf\xea\xeb",
    b"\xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2\xf3\xff",
    b"\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\xf4\xf5\xf6\xf7\xf8\xfa\xfb\xfc\xfd\xfe",
    b"\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f\xdc\xf9",
    b"",
    b"\x0a\x0d\x16",
];
/// Length of the shortest code, and of the longest padding.
const CODE_BITS_MIN: usize = 5;
const PADDING_BITS_MAX: usize = 7;

impl Decoder {
    /// Fields of a block, at most [`HEAD_BYTES_MAX`] octets of them: a reference of one octet may be a
    /// field of 4 KiB.
    pub(super) fn decode(&mut self, block: &[u8]) -> Result<Vec<Field>, Http2Error> {
        let (mut rest, mut fields, mut len) = (block, Vec::new(), 0);
        while let Some(first) = rest.first().copied() {
            let field = self.field(first, &mut rest).ok_or(MALFORMED)?;
            let Some(field) = field else { continue };
            len += size(&field);
            if len > HEAD_BYTES_MAX {
                return Err(Http2Error(ENHANCE_YOUR_CALM, "a head beyond its bound"));
            }
            fields.push(field);
        }
        Ok(fields)
    }

    /// The next field; without one where the size of the table changes.
    fn field(&mut self, first: u8, rest: &mut &[u8]) -> Option<Option<Field>> {
        let (is_indexed, is_added) = (first & 0x80 != 0, first & 0x40 != 0);
        if !is_indexed && !is_added && first & 0x20 != 0 {
            let max = integer(rest, 5)?;
            self.lowered_max = Some(max).filter(|max| *max <= TABLE_BYTES_MAX);
            self.lowered_max?;
            self.evict();
            return Some(None);
        }

        let bits = match (is_indexed, is_added) {
            (true, _) => 7,
            (_, true) => 6,
            _ => 4,
        };
        let index = integer(rest, bits)?;
        if is_indexed {
            return self.indexed(index).map(Some);
        }
        let name = match index {
            0 => string(rest)?,
            _ => self.indexed(index)?.0,
        };
        let field = (name, string(rest)?);
        if is_added {
            self.table.push_front(field.clone());
            self.evict();
        }
        Some(Some(field))
    }

    fn indexed(&self, index: usize) -> Option<Field> {
        let place = index.checked_sub(1)?;
        if place >= NAMES_LEN {
            return self.table.get(place - NAMES_LEN).cloned();
        }
        // Values of requests that are read; the others are not.
        let value = match index {
            2 => "GET",
            3 => "POST",
            4 => "/",
            5 => "/index.html",
            _ => "",
        };
        let name = NAMES.split(' ').nth(place)?;
        Some((name.to_owned(), value.to_owned()))
    }

    fn evict(&mut self) {
        let max = self.lowered_max.unwrap_or(TABLE_BYTES_MAX);
        while self.table.iter().map(size).sum::<usize>() > max {
            self.table.pop_back();
        }
    }
}

const MALFORMED: Http2Error = Http2Error(COMPRESSION_ERROR, "malformed fields");

fn size((name, value): &Field) -> usize {
    name.len() + value.len() + ENTRY_BYTES
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, others) = rest.split_first()?;
    *rest = others;
    Some(*first)
}

/// An integer with a prefix of `bits` bits (section 5.1).
fn integer(rest: &mut &[u8], bits: u32) -> Option<usize> {
    let mask = (1 << bits) - 1;
    let mut value = usize::from(byte(rest)?) & mask;
    if value < mask {
        return Some(value);
    }
    // Longer ones are beyond every bound.
    for shift in [0, 7, 14] {
        let next = byte(rest)?;
        value += usize::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// A string without characters that end a line.
fn string(rest: &mut &[u8]) -> Option<String> {
    let is_coded = rest.first()? & 0x80 != 0;
    let len = integer(rest, 7)?;
    let (bytes, others) = rest.split_at_checked(len)?;
    *rest = others;
    let bytes = if is_coded {
        decoded(bytes)?
    } else {
        bytes.to_vec()
    };
    let is_plain = !bytes.iter().any(|byte| b"\0\r\n".contains(byte));
    is_plain.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Octets of a Huffman code. The codes of a length follow those of the length before.
fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut octets, mut code, mut first, mut len) = (Vec::new(), 0, 0, 0_usize);
    for bit in bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
    {
        (code, first, len) = (code << 1 | usize::from(bit), first << 1, len + 1);
        let Some(place) = len.checked_sub(CODE_BITS_MIN) else {
            continue;
        };
        let symbols = SYMBOLS.get(place)?;
        match symbols.get(code - first) {
            Some(octet) => {
                octets.push(*octet);
                (code, first, len) = (0, 0, 0);
            }
            None => first += symbols.len(),
        }
    }
    // The begin of the longest code.
    let is_padding = len <= PADDING_BITS_MAX && code + 1 == 1 << len;
    is_padding.then_some(octets)
}

/// A field of a response, which enters no table.
pub(super) fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        // Shorter than the two octets behind a full prefix can say.
        match text.len().checked_sub(0x7f) {
            None => bytes.push(text.len() as u8),
            Some(more) => bytes.extend([0x7f, more as u8 | 0x80, (more >> 7) as u8]),
        }
        bytes.extend(text.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("text"), 16).expect("hex"))
            .collect()
    }

    fn field(name: &str, value: &str) -> Field {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn requests_of_the_rfc_are_read_with_and_without_codes() {
        // Appendices C.3 and C.4: three requests on one connection.
        let plain = [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ];
        let coded = [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ];
        for blocks in [plain, coded] {
            let mut decoder = Decoder::default();
            let read = blocks.map(|block| decoder.decode(&hex(block)).expect("fields"));
            let authority = field(":authority", "www.example.com");
            assert_eq!(read[0][0], field(":method", "GET"));
            assert_eq!(read[0][2..], [field(":path", "/"), authority.clone()]);
            assert_eq!(
                read[1][3..],
                [authority.clone(), field("cache-control", "no-cache")]
            );
            assert_eq!(
                read[2][2..],
                [
                    field(":path", "/index.html"),
                    authority,
                    field("custom-key", "custom-value")
                ]
            );
        }
    }

    #[test]
    fn table_drops_its_oldest_entries() {
        let mut decoder = Decoder::default();
        let value = "v".repeat(2000);
        for name in ["a", "b", "c"] {
            let mut added = literal(name, &value);
            added[0] = 0x40;
            decoder.decode(&added).expect("fields");
        }
        let [newest, oldest, gone] = [0xbe, 0xbf, 0xc0].map(|octet| decoder.decode(&[octet]));
        assert_eq!(newest.expect("kept"), [field("c", &value)]);
        assert_eq!(oldest.expect("kept"), [field("b", &value)]);
        assert_eq!(gone, Err(MALFORMED));

        decoder.decode(&[0x20]).expect("an empty table");
        assert_eq!(decoder.decode(&[0xbe]), Err(MALFORMED));
        assert_eq!(
            decoder.decode(&hex("3fe2 1f")),
            Err(MALFORMED),
            "4097 octets"
        );
    }

    #[test]
    fn fields_beyond_a_bound_and_malformed_ones_are_refused() {
        let mut decoder = Decoder::default();
        let mut long = literal("a", &"x".repeat(4000));
        long[0] = 0x40;
        decoder.decode(&long).expect("fields");
        let bomb = decoder.decode(&[0xbe; 3]).expect_err("a bomb");
        assert_eq!(bomb.0, ENHANCE_YOUR_CALM);

        for malformed in [
            "80",                      // index 0
            "ff ff ff ff ff",          // an endless integer
            "00 01",                   // no name
            "00 01 61 02 62",          // half a value
            "00 01 61 01 0a",          // the end of a line
            "00 01 61 81 00",          // a code that is no padding
            "00 01 61 84 ff ff ff ff", // the end of all strings
        ] {
            let read = Decoder::default().decode(&hex(malformed));
            assert_eq!(read, Err(MALFORMED), "{malformed}");
        }
    }

    #[test]
    fn every_octet_has_its_code() {
        // RFC 7541, appendix B: the last code of 30 bits, and the one before the end of strings.
        assert_eq!(decoded(&hex("fffffff0 ff")).map(|o| o[0]), Some(b'\n'));
        assert_eq!(SYMBOLS.concat().len(), 256);
        let all: std::collections::BTreeSet<_> = SYMBOLS.concat().into_iter().collect();
        assert_eq!(all.len(), 256);
    }

    #[test]
    fn fields_of_responses_are_read_again() {
        for len in [0, 126, 127, 128, 300, 5000] {
            let value = "v".repeat(len);
            let read = Decoder::default().decode(&literal("name", &value));
            assert_eq!(read, Ok(vec![field("name", &value)]), "{len}");
        }
    }
}
