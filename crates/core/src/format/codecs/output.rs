//! The memory for the output of a step, with a limit.

use std::fmt;

use crate::format::wire::to_usize;

/// The greatest ratio of decoded to stored bytes at which memory is reserved before anything is decoded. Most
/// data is compressed less.
pub(super) const MAX_RATIO: usize = 64;

/// Up to this length, memory is reserved whatever the ratio.
const UNCHECKED_LEN: usize = 1 << 20;

/// Whether memory for `len` bytes may be reserved before `stored_len` bytes are decoded.
pub(super) fn may_reserve(len: usize, stored_len: usize) -> bool {
    len <= UNCHECKED_LEN.max(stored_len.saturating_mul(MAX_RATIO))
}

/// The reason why a step failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The stored bytes are wrong.
    Corrupt(String),
    /// The stored bytes need what this version cannot do.
    Unsupported(String),
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Corrupt(message)
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        Self::Corrupt(message.to_owned())
    }
}

/// Returns the fault of a stream that a decompressor refuses.
pub(super) fn broken(error: impl fmt::Display) -> Fault {
    Fault::Corrupt(format!("it does not decompress ({error})"))
}

/// The length that the output of a step must or may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputLength {
    /// This number of bytes.
    Exactly(usize),
    /// This number of bytes, or fewer.
    AtMost(usize),
}

impl OutputLength {
    /// Returns the greatest length.
    pub(super) fn most(self) -> usize {
        match self {
            Self::Exactly(len) | Self::AtMost(len) => len,
        }
    }

    /// Returns the length of the input of a step that turns words of `to` bytes into words of `from` bytes.
    pub(super) fn scaled(self, from: u64, to: u64) -> Self {
        let len = self.most() as u64;
        let words = len.checked_div(from).unwrap_or(0);
        match self {
            Self::Exactly(_) if words * from == len => {
                Self::Exactly(to_usize(words.saturating_mul(to)))
            }
            _ => Self::AtMost(to_usize(words.saturating_add(1).saturating_mul(to))),
        }
    }

    /// Fails unless the output may have `len` bytes.
    pub(super) fn check(self, len: usize) -> Result<(), Fault> {
        let expected = match self {
            Self::Exactly(expected) if len != expected => format!("{expected}"),
            Self::AtMost(most) if len > most => format!("at most {most}"),
            Self::Exactly(_) | Self::AtMost(_) => return Ok(()),
        };
        Err(Fault::Corrupt(format!("it decodes to {len} bytes, expected {expected}")))
    }

    /// Returns the fault of output that does not end.
    pub(super) fn exceeded(self) -> Fault {
        Fault::Corrupt(format!("it decodes to more than {} bytes", self.most()))
    }
}

/// The memory for the output of a step. Its content is arbitrary at first: the output of an earlier tile.
pub(super) struct Output<'a> {
    pub(super) memory: &'a mut Vec<u8>,
    pub(super) bound: OutputLength,
}

impl<'a> Output<'a> {
    /// Makes the memory `len` bytes long, with arbitrary content. The caller answers for `len`.
    pub(super) fn prepare(&mut self, len: usize) -> &mut [u8] {
        resize(self.memory, len);
        self.memory
    }

    /// Returns memory for exactly `len` bytes, which the step must fill. `len` must follow from bytes that are
    /// really there.
    pub(super) fn claim(self, len: usize) -> Result<&'a mut [u8], Fault> {
        self.bound.check(len)?;
        resize(self.memory, len);
        Ok(self.memory)
    }

    /// Keeps the first `len` bytes of the memory as the output.
    pub(super) fn finish(self, len: usize) -> Result<(), Fault> {
        self.bound.check(len)?;
        self.memory.truncate(len);
        Ok(())
    }

    /// Returns memory for `len` bytes, as the stored bytes claim, that are filled block by block.
    pub(super) fn blocks(self, len: usize, stored_len: usize) -> Result<OutputBlocks<'a>, Fault> {
        self.bound.check(len)?;
        if may_reserve(len, stored_len) {
            resize(self.memory, len);
        } else {
            self.memory.clear();
        }
        Ok(OutputBlocks { memory: self.memory })
    }
}

/// Output that is filled block by block. It grows with the blocks if its length is not to be trusted.
pub(super) struct OutputBlocks<'a> {
    memory: &'a mut Vec<u8>,
}

impl OutputBlocks<'_> {
    /// Returns the `len` bytes from byte `start`, where the block before ends. Where they are not reserved yet, fails
    /// unless `is_honest`: whether the stored bytes of the block do decode to `len` bytes.
    pub(super) fn block(
        &mut self,
        start: usize,
        len: usize,
        is_honest: impl FnOnce() -> bool,
    ) -> Result<&mut [u8], Fault> {
        let end = start.saturating_add(len);
        if self.memory.len() < end {
            if !is_honest() {
                return Err(Fault::Corrupt(format!("a block that does not decode to {len} bytes")));
            }
            self.memory.resize(end, 0);
        }
        self.memory.get_mut(start..end).ok_or_else(|| "a block beyond the end".into())
    }
}

/// Makes `memory` `len` bytes long, with arbitrary content. Only new bytes are set to 0: setting all of them
/// would cost a pass over the memory per tile.
pub(super) fn resize(memory: &mut Vec<u8>, len: usize) {
    if memory.capacity() < len {
        // Growing would copy the old content, and has more capacity than is needed.
        *memory = vec![0; len];
    } else {
        memory.resize(len, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_scaled_by_words() {
        assert_eq!(OutputLength::Exactly(8).scaled(2, 4), OutputLength::Exactly(16));
        assert_eq!(OutputLength::Exactly(7).scaled(2, 4), OutputLength::AtMost(16));
        assert_eq!(OutputLength::AtMost(7).scaled(0, 4), OutputLength::AtMost(4));
    }

    #[test]
    fn lengths_are_checked() {
        let mut memory = vec![9; 4];
        let place = memory.as_ptr();
        fn output(memory: &mut Vec<u8>, bound: OutputLength) -> Output<'_> {
            Output { memory, bound }
        }
        assert_eq!(output(&mut memory, OutputLength::Exactly(3)).claim(3).unwrap(), [9; 3]);
        assert_eq!(output(&mut memory, OutputLength::AtMost(9)).claim(4).unwrap(), [9, 9, 9, 0]);
        assert_eq!(memory.as_ptr(), place);
        assert!(output(&mut memory, OutputLength::Exactly(3)).claim(2).is_err());
        assert!(output(&mut memory, OutputLength::AtMost(3)).claim(4).is_err());
        assert!(output(&mut memory, OutputLength::AtMost(3)).finish(4).is_err());
        output(&mut memory, OutputLength::AtMost(3)).finish(2).unwrap();
        assert_eq!(memory, [9, 9]);
    }

    #[test]
    fn blocks_reserve_what_is_there() {
        let mut memory = vec![];
        let len = 100 << 20;
        let output = Output { memory: &mut memory, bound: OutputLength::Exactly(len) };
        let mut blocks = output.blocks(len, 1000).unwrap();
        blocks.block(0, 5, || true).unwrap().fill(1);
        blocks.block(5, 5, || true).unwrap().fill(2);
        assert!(blocks.block(10, len - 10, || false).is_err());
        assert_eq!(memory, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
        let output = Output { memory: &mut memory, bound: OutputLength::Exactly(len) };
        let mut blocks = output.blocks(len, len / 64).unwrap();
        assert!(blocks.block(10, len - 10, || false).is_ok());
    }
}
