//! Input in segments, as TCP may deliver it.

/// The input in segments, whose lengths are the bytes of `cuts`; what they leave over is the last
/// one.
pub(crate) fn pieces<'a>(cuts: &'a [u8], input: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = input;
    let cut = cuts.iter().map(move |len| {
        let (piece, behind) = rest.split_at(usize::from(*len).min(rest.len()));
        rest = behind;
        piece
    });

    let total: usize = cuts.iter().map(|len| usize::from(*len)).sum();
    cut.chain(std::iter::once(input.get(total..).unwrap_or_default()))
}
