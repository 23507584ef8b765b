//! Inputs near to those that are given: what a fuzzer does, without its instruments.

/// Texts at which readers stumble.
const STUMBLING_BLOCKS: [&str; 24] = [
    "",
    "null",
    "{}",
    "[]",
    "\"",
    "-1",
    "0",
    "65536",
    "99999999999999999999",
    "1e400",
    "\u{0}",
    "\u{feff}",
    "ÿ",
    "\\",
    "\n",
    "~",
    "[",
    "{{",
    "(?:a{1000}){1000}",
    "!&",
    "/0",
    "::/128",
    "\r\n[Global]\n",
    "true",
];

/// Changes an input in one to five places. `random` answers numbers below its argument.
pub(crate) fn changed(input: &[u8], other: &[u8], random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random(5) {
        let place = random(bytes.len() + 1);
        let end = (place + 1 + random(16)).min(bytes.len());
        match random(7) {
            0 => drop(bytes.drain(place.min(end)..end)),
            1 => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = u8::try_from(random(256)).unwrap_or_default();
                }
            }
            2 => {
                let block = STUMBLING_BLOCKS[random(STUMBLING_BLOCKS.len())];
                bytes.splice(place.min(end)..end, block.bytes());
            }
            3 => {
                let copy = bytes[place.min(end)..end].to_vec();
                bytes.splice(place..place, copy.repeat(1 + random(50)));
            }
            4 => {
                let from = random(other.len() + 1);
                let piece = &other[from..(from + random(64)).min(other.len())];
                bytes.splice(place..place, piece.iter().copied());
            }
            5 => lines(&mut bytes, random),
            _ => bytes.truncate(place.max(1)),
        }
    }
    bytes
}

/// Takes a line away, or puts it in another place.
fn lines(bytes: &mut Vec<u8>, random: &mut impl FnMut(usize) -> usize) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let line = lines.remove(random(lines.len()));
    if random(2) == 0 {
        lines.insert(random(lines.len() + 1), line);
    }
    *bytes = lines.join(&b'\n');
}
