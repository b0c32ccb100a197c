//! The chunks that a variable is read in: the file has none of its own.
//!
//! A chunk of a fixed variable is one run of about 1 MiB. The first axes have one element per chunk, one axis is
//! split, and the axes after it are whole:
//!
//! ```text
//!   (level 30, lat 721, lon 1440) of f32, 4 MB per level   ──▶   (1, 181, 1440)
//! ```
//!
//! A chunk of a record variable holds several records, or a part of one that is larger than 1 MiB.

/// The bytes of a chunk, more or less.
pub(super) const CHUNK_LEN: u64 = 1 << 20;

/// The most records of a chunk whose records are read one by one.
const MOST_READS: u64 = 512;

/// Records of at most this many bytes are read together with the gaps between them. One of them alone costs as much:
/// the read of a page of memory, or of a block of a disk.
const SMALL_RECORD: u64 = 4096;

/// How the records of a variable are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// There is nothing between them.
    Contiguous,
    /// Together with the gaps between them, which are small.
    Interleaved,
    /// One by one.
    Apart,
}

impl Access {
    /// Returns the access to records of `len` bytes, of which one begins every `stride` bytes.
    pub(super) fn new(len: u64, stride: u64) -> Self {
        if len == stride {
            Self::Contiguous
        } else if stride <= SMALL_RECORD || stride <= len.saturating_mul(2) {
            Self::Interleaved
        } else {
            Self::Apart
        }
    }

    /// Returns the number of records per chunk. Variables that are read interleaved agree on it, and read the
    /// same ranges.
    fn records_per_chunk(self, len: u64, stride: u64) -> u64 {
        let records = match self {
            Self::Contiguous => CHUNK_LEN.checked_div(len),
            Self::Interleaved => (2 * CHUNK_LEN).checked_div(stride),
            Self::Apart => CHUNK_LEN.checked_div(len).map(|records| records.min(MOST_READS)),
        };
        records.unwrap_or(1).max(1)
    }
}

/// Returns the chunk shape of an array of cells of this many bytes: of a fixed variable, or of one record.
pub(super) fn of_run(shape: &[u64], cell: u64) -> Vec<u64> {
    let mut inner =
        cell.saturating_mul(shape.iter().fold(1, |len, axis| len.saturating_mul(*axis)));
    let mut is_split = false;
    let split = |len: &u64| {
        inner = inner.checked_div(*len).unwrap_or_default();
        if is_split {
            return (*len).max(1);
        }
        let most = CHUNK_LEN.checked_div(inner).unwrap_or(*len);
        is_split = most >= 1;
        balanced(*len, most)
    };
    shape.iter().map(split).collect()
}

/// Returns the chunk shape of a variable of the record dimension, whose records are `stride` bytes apart.
pub(super) fn of_records(records: u64, shape: &[u64], cell: u64, stride: u64) -> Vec<u64> {
    let inner = of_run(shape, cell);
    let len = shape.iter().fold(cell, |len, axis| len.saturating_mul(*axis));
    let per_chunk = match inner == shape {
        true => Access::new(len, stride).records_per_chunk(len, stride),
        false => 1,
    };
    let per_chunk = per_chunk.min(records.max(1));
    std::iter::once(per_chunk).chain(inner).collect()
}

/// Returns the length of the chunks of an axis, at most `most` each and of about the same length.
fn balanced(len: u64, most: u64) -> u64 {
    let chunks = len.div_ceil(most.max(1)).max(1);
    len.div_ceil(chunks).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_runs_of_about_a_mebibyte() {
        for (shape, cell, chunk) in [
            (&[][..], 8, &[][..]),
            (&[100], 8, &[100]),
            (&[131_072], 8, &[131_072]),
            (&[131_073], 8, &[65_537]),
            (&[30, 721, 1440], 4, &[1, 181, 1440]),
            (&[3, 5, 100_000], 8, &[1, 1, 100_000]),
            (&[3, 5, 300_000], 8, &[1, 1, 100_000]),
            (&[4, 2, 131_072], 8, &[1, 1, 131_072]),
            (&[4, 2], 5_000_000, &[1, 1]),
            (&[u64::MAX], 1, &[1_048_576]),
        ] {
            let found = of_run(shape, cell);
            assert_eq!(found, chunk, "{shape:?}");
            let bytes = found.iter().fold(cell, |len, axis| len * axis);
            assert!(bytes <= CHUNK_LEN.max(cell));
        }
    }

    #[test]
    fn chunks_of_records() {
        let mib = CHUNK_LEN;
        for (records, shape, stride, chunk) in [
            // Without gaps.
            (1_000_000, &[][..], 4, &[262_144][..]),
            (10, &[], 4, &[10]),
            (0, &[7], 28, &[1, 7]),
            (100, &[721, 1440], 721 * 1440 * 4, &[1, 181, 1440]),
            // Small gaps, or small records.
            (100_000, &[100], 404, &[5190, 100]),
            (100_000, &[], 404, &[5190]),
            (100, &[65_536], mib / 4 + 8, &[7, 65_536]),
            (100, &[131_072], mib, &[2, 131_072]),
            // Far apart.
            (100_000, &[], 5_000, &[512]),
            (100, &[65_536], mib, &[4, 65_536]),
            (100, &[300_000], 10 * mib, &[1, 150_000]),
        ] {
            assert_eq!(of_records(records, shape, 4, stride), chunk, "{shape:?} every {stride}");
        }
    }
}
