//! Packed states: writing and reading are inverse, and hostile encodings do no harm.

use std::cell::Cell;

use fencewright_packed::{PackedStates, Unreadable};

/// Pseudo-random numbers of various sizes, the same on every machine.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> (state % 61)
    })
}

fn written(states: &PackedStates) -> String {
    serde_json::to_string(states).expect("it is text")
}

fn read(text: &str) -> PackedStates {
    serde_json::from_str(text).expect("it was written like this")
}

fn unpacked(states: &PackedStates, words: usize) -> Result<Vec<u64>, Unreadable> {
    states.unpacked(words, &|| false).map(|states| states.into_owned())
}

#[test]
fn states_are_decoded_sorted_and_without_duplicates() {
    for seed in 0..200 {
        let words = 1 + seed as usize % 4;
        let count = seed as usize * 3;
        let mut states: Vec<u64> = numbers(seed).take(count * words).collect();
        if let Some(again) = states.get(..words).map(<[u64]>::to_vec) {
            states.extend(again);
        }
        let mut sorted: Vec<&[u64]> = states.chunks_exact(words).collect();
        sorted.sort();
        sorted.dedup();
        let expected = sorted.concat();
        let text = written(&PackedStates::Plain(words, states.clone()));
        let back = read(&text);
        assert_eq!(back.count() as usize, sorted.len(), "seed {seed}");
        assert_eq!(unpacked(&back, words), Ok(expected), "seed {seed}");
        assert_eq!(written(&back), text, "seed {seed}");
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// States with this encoding, in a deflated stream without compression.
fn stored(count: u64, bytes: &[u8]) -> PackedStates {
    let mut deflated = Vec::new();
    let parts = bytes.chunks(60_000);
    let last = parts.len().max(1) - 1;
    for (n, part) in parts.enumerate() {
        let length = part.len() as u16;
        deflated.push(u8::from(n == last));
        deflated.extend(length.to_le_bytes().into_iter().chain((!length).to_le_bytes()));
        deflated.extend(part);
    }
    let mut text = String::new();
    for group in deflated.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, n| bits << 8 | u32::from(group.get(n).copied().unwrap_or(0)));
        text.extend((0..=group.len()).map(|n| char::from(DIGITS[(bits >> (18 - 6 * n)) as usize & 63])));
    }
    read(&format!("{{\"count\":{count},\"deflated\":\"{text}\"}}"))
}

#[test]
fn corrupt_encodings_are_rejected() {
    let wrong = |what| Err(Unreadable::Wrong(what));
    // The numbers 5, 5 + 3, 5 + 3 + 1.
    assert_eq!(unpacked(&stored(3, &[5, 3, 1]), 1), Ok(vec![5, 8, 9]));
    assert_eq!(unpacked(&stored(4, &[5, 3, 1]), 1), wrong("they end"));
    assert_eq!(unpacked(&stored(2, &[5, 3, 1]), 1), wrong("there are more than it says"));
    assert_eq!(unpacked(&stored(3, &[5, 0, 1]), 1), wrong("some are the same"));
    let greatest = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
    assert_eq!(unpacked(&stored(1, &greatest), 1), Ok(vec![u64::MAX]));
    assert_eq!(unpacked(&stored(2, &[&greatest[..], &[1]].concat()), 1), wrong("they are not in order"));
    assert_eq!(unpacked(&stored(1, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]), 1), wrong("they end"));
    assert_eq!(unpacked(&stored(1, &[128; 20]), 1), wrong("they end"));
    // Two words per state: the second state shares the first word of the first one.
    assert_eq!(unpacked(&stored(2, &[1, 2, 1, 3]), 2), Ok(vec![1, 2, 1, 5]));
    assert_eq!(unpacked(&stored(2, &[1, 2, 2, 3]), 2), wrong("some are the same"));
    assert_eq!(unpacked(&stored(u64::MAX, &[1]), 1), wrong("they are too many"));
    assert_eq!(unpacked(&PackedStates::Plain(2, vec![1, 2, 3]), 2), wrong("they have another length"));
    assert_eq!(unpacked(&PackedStates::Plain(2, vec![1, 2]), 1), wrong("they have another length"));
    for text in ["{\"count\":1,\"deflated\":\"?\"}", "{\"count\":1}", "{\"count\":-1,\"deflated\":\"\"}"] {
        assert!(serde_json::from_str::<PackedStates>(text).is_err(), "{text}");
    }
    // Truncated or damaged input: reading terminates without a panic.
    let text = written(&PackedStates::Plain(2, numbers(1).take(400).collect()));
    for n in 40..text.len() - 2 {
        let PackedStates::Compressed { count, deflated } = read(&text) else { panic!("it was read") };
        let mut damaged = deflated.clone();
        let place = n % damaged.len();
        damaged[place] ^= 1 << (n % 8);
        let _ = unpacked(&PackedStates::Compressed { count, deflated: damaged }, 2);
        let cut = PackedStates::Compressed { count, deflated: deflated[..place].to_vec() };
        assert!(unpacked(&cut, 2).is_err(), "{place}");
    }
}

#[test]
fn decompression_bombs_are_stopped() {
    // A decompression bomb: each further state takes four bytes here, and half a megabyte when it is read.
    let words = 1 << 16;
    let mut bytes = vec![0; words];
    (0..100_000).for_each(|_| bytes.extend([255, 255, 3, 1]));
    let bomb = stored(100_001, &bytes);
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 12
    };
    // `stop` is polled before each state, so at most 20 MB are allocated.
    assert_eq!(bomb.unpacked(words, &stop).map(|states| states.len()), Err(Unreadable::Stopped));
    assert_eq!(asked.get(), 13);
}
