//! LZF, as HDF5 filter 32000 stores it: a list of literal bytes and of matches.
//!
//! ```text
//!   000LLLLL                       L + 1 literal bytes follow
//!   LLLooooo oooooooo              L + 2 bytes, from o + 1 bytes before
//!   111ooooo LLLLLLLL oooooooo     L + 9 bytes, from o + 1 bytes before
//! ```
//!
//! Source: the description of the format in LibLZF's `lzf_d.c`, and `lzf_filter.c` of h5py.

use super::output::{Fault, Output, OutputLength, may_reserve};
use crate::format::matches::{copy_literals, copy_match};

/// A part of an LZF stream.
enum Token {
    Literals(usize),
    Match { distance: usize, len: usize },
}

/// Decodes a stream.
pub(super) fn decompress(stored: &[u8], output: Output<'_>) -> Result<(), Fault> {
    // The stream does not have its decoded length; adding up its parts takes little time.
    let len = match output.bound {
        OutputLength::Exactly(len) if may_reserve(len, stored.len()) => len,
        OutputLength::Exactly(_) | OutputLength::AtMost(_) => {
            decoded_len(stored).ok_or("it is cut off")?
        }
    };
    let output = output.claim(len)?;
    let (mut rest, mut at) = (stored, 0);
    while !rest.is_empty() {
        let broken = || Fault::from("a part that is cut off, too long or too far back");
        let (token, after) = next(rest).ok_or_else(broken)?;
        match token {
            Token::Literals(len) => {
                rest = copy_literals(output, at, after, len).ok_or_else(broken)?;
                at += len;
            }
            Token::Match { distance, len } => {
                copy_match(output, at, distance, len).ok_or_else(broken)?;
                rest = after;
                at += len;
            }
        }
        if at > output.len() {
            return Err(broken());
        }
    }
    OutputLength::Exactly(output.len()).check(at)
}

/// Adds up the lengths of all parts.
fn decoded_len(stored: &[u8]) -> Option<usize> {
    let (mut rest, mut sum) = (stored, 0_usize);
    while !rest.is_empty() {
        let (token, after) = next(rest)?;
        let len = match token {
            Token::Literals(len) => {
                rest = after.get(len..)?;
                len
            }
            Token::Match { len, .. } => {
                rest = after;
                len
            }
        };
        sum = sum.checked_add(len)?;
    }
    Some(sum)
}

/// Reads the next part. Literal bytes follow it.
#[inline]
fn next(stored: &[u8]) -> Option<(Token, &[u8])> {
    let (control, rest) = stored.split_first()?;
    let (upper, low) = (usize::from(control >> 5), usize::from(control & 31));
    let (len, rest) = match upper {
        0 => return Some((Token::Literals(low + 1), rest)),
        7 => {
            let (more, rest) = rest.split_first()?;
            (9 + usize::from(*more), rest)
        }
        _ => (upper + 2, rest),
    };
    let (byte, rest) = rest.split_first()?;
    Some((Token::Match { distance: (low << 8 | usize::from(*byte)) + 1, len }, rest))
}
