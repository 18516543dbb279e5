//! Lines in any segmentation, noise before them, and their bounds.

use proptest::prelude::*;

use super::*;

fn lines(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, usize) {
    let (mut reader, mut found, mut too_long) = (LineReader::default(), Vec::new(), 0);
    for mut piece in pieces.iter().copied() {
        while !piece.is_empty() {
            match reader.read(&mut piece) {
                Ok(line) => found.extend(line),
                Err(_) => too_long += 1,
            }
            assert!(reader.buffered_bytes() <= LINE_MAX_BYTES);
        }
    }

    (found, too_long)
}

fn open(text: &[u8]) -> (Result<Option<Opening>, OpeningError>, Vec<u8>, Vec<u8>) {
    let (mut reader, mut rest) = (OpeningReader::default(), text);
    let opening = reader.read(&mut rest);
    (opening, reader.noise().to_vec(), rest.to_vec())
}

#[test]
fn long_line_is_reported_once_and_the_next_one_is_read() {
    let text = [vec![b'x'; LINE_MAX_BYTES + 1], b"\nnext\n".to_vec()].concat();
    assert_eq!(lines(&[&text]), (vec![b"next".to_vec()], 1));
    let pieces: Vec<&[u8]> = text.chunks(1000).collect();
    assert_eq!(lines(&pieces), (vec![b"next".to_vec()], 1));

    let longest = [vec![b'x'; LINE_MAX_BYTES], b"\n".to_vec()].concat();
    assert_eq!(
        lines(&[&longest]).0.first().map(Vec::len),
        Some(LINE_MAX_BYTES)
    );
}

#[test]
fn noise_in_front_of_the_first_line_is_kept_and_what_follows_is_left() {
    let (opening, noise, rest) = open(b"Welcome!\n\nlast login: never\nLRFLEET/1\n{\"v\":1}\n");
    assert_eq!(opening, Ok(Some(Opening::Agent)));
    assert_eq!(
        String::from_utf8_lossy(&noise),
        "Welcome!\nlast login: never\n"
    );
    assert_eq!(rest, b"{\"v\":1}\n");
    assert_eq!(
        open(b"no end of line: LRFLEET/1\r\n").0,
        Ok(Some(Opening::Agent))
    );
    assert_eq!(open(b"the LRFLEET/1 protocol\n").0, Ok(None));
}

#[test]
fn host_without_an_agent_and_other_versions_are_recognised() {
    assert_eq!(
        open(b"LRFLEET need Linux aarch64\n").0,
        Ok(Some(Opening::Need("Linux aarch64".to_owned())))
    );
    assert_eq!(
        open(b"LRFLEET/2\n").0,
        Err(OpeningError::Version("LRFLEET/2".to_owned()))
    );
}

#[test]
fn endless_noise_is_an_error() {
    let lines = "motd\n".repeat(NOISE_MAX_BYTES / 5 + 1);
    assert_eq!(open(lines.as_bytes()).0, Err(OpeningError::Noise));
    assert_eq!(
        open(&vec![b'x'; NOISE_MAX_BYTES + 1]).0,
        Err(OpeningError::Noise)
    );
}

#[test]
fn bounds_are_exact() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    let string = |len: usize| format!("\"{}\"", "x".repeat(len)).into_bytes();
    let array = |len: usize| format!("[{}]", vec!["1"; len].join(",")).into_bytes();

    assert_eq!(limits::check(&nested(16)), Ok(()));
    assert_eq!(limits::check(&nested(17)), Err(Excess::Nesting));
    assert_eq!(limits::check(&string(4096)), Ok(()));
    assert_eq!(limits::check(&string(4097)), Err(Excess::String));
    assert_eq!(limits::check(&array(4096)), Ok(()));
    assert_eq!(limits::check(&array(4097)), Err(Excess::Elements));
    assert_eq!(limits::check(br#""[[[[[[[[[[[[[[[[[[\"[[[""#), Ok(()));
    assert_eq!(limits::check(b"\"open"), Ok(()));
}

proptest! {
    #[test]
    fn any_segmentation_gives_the_same_lines(
        texts in prop::collection::vec("[a-z]{1,20}", 0..9), cut in 1_usize..30,
    ) {
        let wire = texts.iter().map(|text| format!("{text}\n")).collect::<String>();
        let pieces: Vec<&[u8]> = wire.as_bytes().chunks(cut).collect();
        let (found, _) = lines(&pieces);
        let expected: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_bytes_have_bounds_or_not(bytes: Vec<u8>) {
        let _ = limits::check(&bytes);
        let _ = open(&bytes);
    }
}
