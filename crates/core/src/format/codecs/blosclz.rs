//! BloscLZ, the compressor that Blosc brings: a list of literal bytes and of matches.
//!
//! ```text
//!   000LLLLL                               L + 1 literal bytes follow
//!   LLLooooo oooooooo                      L + 2 bytes, from o + 1 bytes before
//!   111ooooo N… oooooooo                   as above, plus the sum of bytes N, of which all but the last are 255
//!   LLL11111 (N…) 11111111 u16 d           from d + 8192 bytes before, big-endian
//! ```
//!
//! The first byte stands for literal bytes, whatever its upper bits are.
//!
//! Source: `blosclz.c` of c-blosc 1.21.

use super::output::Fault;
use crate::format::matches::{copy_literals, copy_match};

/// A match with this offset in its first bytes has another one.
const FAR: usize = 0x1FFF;

/// The greatest number of bytes to which one stored byte decodes.
pub(super) const MOST_RATIO: usize = 255;

/// Decodes a stream to all of `output`.
pub(super) fn decompress(stored: &[u8], output: &mut [u8]) -> Result<(), Fault> {
    let len = parts(stored, output).ok_or("a part that is cut off, too long or too far back")?;
    match len == output.len() {
        true => Ok(()),
        false => Err(Fault::Corrupt(format!("a block of {len} bytes, expected {}", output.len()))),
    }
}

/// Decodes all parts, and returns the length of the output; `None` if a part is wrong.
fn parts(stored: &[u8], output: &mut [u8]) -> Option<usize> {
    let mut at = 0;
    let Some((first, mut rest)) = stored.split_first() else { return Some(0) };
    let mut control = first & 31;
    loop {
        let low = usize::from(control & 31);
        if control < 32 {
            rest = copy_literals(output, at, rest, low + 1)?;
            at += low + 1;
        } else {
            let mut len = usize::from(control >> 5) + 2;
            if len == 9 {
                loop {
                    let more = take(&mut rest)?;
                    len += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let mut offset = low << 8 | take(&mut rest)?;
            if offset == FAR {
                offset += take(&mut rest)? << 8;
                offset += take(&mut rest)?;
            }
            copy_match(output, at, offset + 1, len)?;
            at += len;
        }
        match rest.split_first() {
            Some((next, after)) => (control, rest) = (*next, after),
            None => return (at <= output.len()).then_some(at),
        }
    }
}

/// Takes a byte off `rest`.
#[inline(always)]
fn take(rest: &mut &[u8]) -> Option<usize> {
    rest.split_off_first().map(|byte| usize::from(*byte))
}
