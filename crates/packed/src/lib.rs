//! The encoding of packed states in certificates: sorted, as differences, deflated, in base 64.
//!
//! No proof depends on this crate: the checker of certificates checks all states that are read.
//!
//! A state is a list of words. The first state is written in full. Each later state is written relative to the previous one, in three parts: the
//! number of leading words that both share (omitted if a state has a single word); the difference between their next words; and each remaining word,
//! xored with that of the previous state. All numbers are written with seven bits per byte, least significant first, and the highest bit set in all
//! bytes but the last.
//!
//! States that are read stay compressed until they are checked, so that the checker can enforce its limits while they are decompressed.

#![forbid(unsafe_code)]

use std::borrow::Cow;

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Packed states of a certificate: as words, or still compressed.
#[derive(Clone, Debug, PartialEq)]
pub enum PackedStates {
    /// The number of words per state, and the states in one array.
    Plain(usize, Vec<u64>),
    /// The states in encoded form.
    Compressed {
        /// The number of states.
        count: u64,
        /// The deflated bytes.
        deflated: Vec<u8>,
    },
}

/// The reason why states cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The encoding is wrong; the reason in words.
    Wrong(&'static str),
    /// Reading was stopped.
    Stopped,
}

/// The encoded states as a certificate file contains them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    count: u64,
    deflated: String,
}

impl Serialize for PackedStates {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (count, deflated) = match self {
            PackedStates::Plain(words, states) => {
                let (count, deflated) = deflated(*words, states);
                (count, Cow::Owned(deflated))
            }
            PackedStates::Compressed { count, deflated } => (*count, Cow::Borrowed(deflated.as_slice())),
        };
        Written { count, deflated: to_base64(&deflated) }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for PackedStates {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Written { count, deflated } = Written::deserialize(from)?;
        let deflated = from_base64(&deflated).ok_or_else(|| D::Error::custom("states are not in base 64"))?;
        Ok(PackedStates::Compressed { count, deflated })
    }
}

/// Maximum number of states, since their numbers have to fit 32 bits.
const MOST_STATES: u64 = u32::MAX as u64 - 1;
/// Number of bytes that are inflated, and of words that are read, between two polls of `stop`.
const PART: usize = 1 << 15;

impl PackedStates {
    /// The number of states according to the encoding, which is not checked here.
    pub fn count(&self) -> u64 {
        match self {
            PackedStates::Plain(words, states) => states.len() as u64 / (*words).max(1) as u64,
            PackedStates::Compressed { count, .. } => *count,
        }
    }

    /// The states in one array, with `words` words each; `stop` is polled regularly.
    pub fn unpacked(&self, words: usize, stop: &dyn Fn() -> bool) -> Result<Cow<'_, [u64]>, Unreadable> {
        let wrong = Unreadable::Wrong;
        if self.count() > MOST_STATES {
            return Err(wrong("they are too many"));
        }
        let (count, deflated) = match self {
            PackedStates::Plain(own, states) if *own == words && states.len() % words == 0 => {
                return Ok(Cow::Borrowed(states));
            }
            PackedStates::Plain(..) => return Err(wrong("they have another length")),
            PackedStates::Compressed { count, deflated } => (*count, deflated),
        };
        let mut bytes = Bytes::new(deflated);
        let mut states: Vec<u64> = Vec::new();
        for n in 0..count as usize {
            let full = states.len() + words > states.capacity();
            if (full || n % (PART / words).max(1) == 0) && stop() {
                return Err(Unreadable::Stopped);
            }
            if full {
                // Without this, the vector would double its capacity.
                states.reserve_exact(words.max(PART).max(states.len() / 4));
            }
            let before = states.len().saturating_sub(words);
            let same =
                if n == 0 || words == 1 { 0 } else { bytes.number().ok_or_else(|| wrong("they end"))? };
            if same >= words as u64 {
                return Err(wrong("some are the same"));
            }
            for word in 0..words {
                let known = if n == 0 { 0 } else { states[before + word] };
                if (word as u64) < same {
                    states.push(known);
                    continue;
                }
                let number = bytes.number().ok_or_else(|| wrong("they end"))?;
                let greater = word as u64 == same && n > 0;
                if greater && number == 0 {
                    return Err(wrong("some are the same"));
                }
                let next = if greater { known.checked_add(number) } else { Some(known ^ number) };
                states.push(next.ok_or_else(|| wrong("they are not in order"))?);
            }
        }
        if bytes.next().is_some() {
            return Err(wrong("there are more than it says"));
        }
        if !bytes.complete {
            return Err(wrong("they end"));
        }
        Ok(Cow::Owned(states))
    }
}

/// The number of distinct states, and their encoding.
fn deflated(words: usize, states: &[u64]) -> (u64, Vec<u8>) {
    let mut sorted: Vec<&[u64]> = states.chunks_exact(words).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut bytes = Vec::new();
    let zero = vec![0; words];
    for (n, state) in sorted.iter().enumerate() {
        let before = if n == 0 { &zero } else { sorted[n - 1] };
        let same = if n == 0 { 0 } else { state.iter().zip(before).take_while(|(a, b)| a == b).count() };
        if n > 0 && words > 1 {
            write_number(same as u64, &mut bytes);
        }
        for word in same..words {
            let greater = n > 0 && word == same;
            write_number(
                if greater { state[word] - before[word] } else { state[word] ^ before[word] },
                &mut bytes,
            );
        }
    }
    (sorted.len() as u64, compress_to_vec(&bytes, 6))
}

fn write_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Inflates bytes piece by piece.
struct Bytes<'a> {
    deflated: &'a [u8],
    state: Box<InflateState>,
    part: Vec<u8>,
    read: usize,
    filled: usize,
    ended: bool,
    /// Whether the stream ended properly, with no bytes after it.
    complete: bool,
}

impl<'a> Bytes<'a> {
    fn new(deflated: &'a [u8]) -> Self {
        let state = InflateState::new_boxed(DataFormat::Raw);
        Bytes { deflated, state, part: vec![0; PART], read: 0, filled: 0, ended: false, complete: false }
    }

    /// The next number; `None` at the end, or if the number does not fit a word.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.next()?;
            let bits = u64::from(byte & 127);
            if bits > u64::MAX >> shift {
                return None;
            }
            number |= bits << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }
}

impl Iterator for Bytes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        while self.read == self.filled {
            if self.ended {
                return None;
            }
            let result = inflate(&mut self.state, self.deflated, &mut self.part, MZFlush::None);
            self.deflated = &self.deflated[result.bytes_consumed..];
            (self.read, self.filled) = (0, result.bytes_written);
            self.complete = result.status == Ok(MZStatus::StreamEnd) && self.deflated.is_empty();
            // On any error the stream ends here.
            self.ended = result.status != Ok(MZStatus::Ok) || result.bytes_written == 0;
        }
        self.read += 1;
        Some(self.part[self.read - 1])
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes each three bytes as four digits; an incomplete group as fewer digits.
fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, n| bits << 8 | u32::from(group.get(n).copied().unwrap_or(0)));
        let digit = |n: usize| char::from(DIGITS[(bits >> (18 - 6 * n)) as usize & 63]);
        text.extend((0..=group.len()).map(digit));
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for n in 0..4 {
            bits = bits << 6 | u32::from(group.get(n).map_or(Some(0), |&digit| value(digit))?);
        }
        bytes.extend((1..group.len()).map(|n| (bits >> (24 - 8 * n)) as u8));
    }
    Some(bytes)
}
