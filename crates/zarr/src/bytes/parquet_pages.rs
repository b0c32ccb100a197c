//! Pages of a column of a Parquet file, with all that their reader relies on checked.
//!
//! ```text
//!   header ──▶ walk: bytes and counts within bounds ──▶ crate: decompresses ──▶ its order, levels and lengths ──▶ reader
//! ```
//!
//! The crate `parquet` allocates the bytes that a header declares. Its readers expect a dictionary before values that need one,
//! and as many values as levels tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, Bytes};
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use super::parquet_file::corrupt;
use super::thrift::{Found, walk};
use gridfusion_core::{Error, Result};

/// The most bytes of the header of a page: without statistics, it has about 30.
const MOST_OF_HEADER: usize = 1 << 16;

/// A file whose pages have a bound on their bytes.
struct BoundedBytes {
    bytes: Bytes,
    left: Arc<AtomicU64>,
}

impl Length for BoundedBytes {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl ChunkReader for BoundedBytes {
    type T = bytes::buf::Reader<Bytes>;

    /// Checks the header of the page that is here.
    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let start = usize::try_from(start).ok().filter(|start| *start <= self.bytes.len());
        let start = start.ok_or_else(|| ParquetError::EOF("a page beyond the end".to_owned()))?;
        let rest = self.bytes.slice(start..);
        let checked = self.check_header(&rest[..rest.len().min(MOST_OF_HEADER)]);
        checked.map_err(|error| ParquetError::External(Box::new(error)))?;
        Ok(rest.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.bytes.get_bytes(start, length)
    }
}

impl BoundedBytes {
    fn check_header(&self, header: &[u8]) -> Result<()> {
        let (mut size, mut stored, mut in_dictionary) = (0, 0, 0);
        walk(header, &mut |fields, found| {
            match (fields, found) {
                ([2], Found::Number(number)) => size = number,
                ([3], Found::Number(number)) => stored = number,
                ([7, 1], Found::Number(number)) => in_dictionary = number,
                _ => {}
            }
            Ok(())
        })?;
        let wrong = || {
            corrupt(format!(
                "a page of {size} bytes, stored as {stored}, with {in_dictionary} values"
            ))
        };
        let bytes = u64::try_from(size).map_err(|_| wrong())?;
        // Each value of a dictionary has at least four bytes.
        if u64::try_from(in_dictionary).map_err(|_| wrong())? > bytes / 4 {
            return Err(wrong());
        }
        let take = |left: u64| left.checked_sub(bytes);
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(drop).map_err(|left| {
            Error::unsupported(format!(
                "a page of {bytes} bytes, where {left} bytes are left for all"
            ))
        })
    }
}

/// The pages of a column, in an order that its reader can rely on.
pub(super) struct Pages {
    pages: SerializedPageReader<BoundedBytes>,
    /// Whether values are texts or bytes.
    is_bytes: bool,
    /// Whether pages tell which values are null.
    has_levels: bool,
    has_dictionary: bool,
    /// The values of pages so far, nulls included.
    values: u64,
    rows: u64,
}

impl Pages {
    /// Opens the pages of a column in a row group of `rows` rows. Takes their decompressed bytes from those `left`.
    pub(super) fn try_new(
        bytes: Bytes,
        left: Arc<AtomicU64>,
        column: &ColumnDescriptor,
        chunk: &ColumnChunkMetaData,
        rows: u64,
    ) -> parquet::errors::Result<Self> {
        let bytes = Arc::new(BoundedBytes { bytes, left });
        let pages = SerializedPageReader::new(bytes, chunk, rows as usize, None)?;
        let is_bytes = column.physical_type() == Type::BYTE_ARRAY;
        let has_levels = column.max_def_level() > 0;
        Ok(Self { pages, is_bytes, has_levels, has_dictionary: false, values: 0, rows })
    }

    /// Fails for a page that its reader does not expect.
    fn check(&mut self, page: &Page) -> parquet::errors::Result<()> {
        let wrong = |message: String| Err(ParquetError::General(message));
        match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                if self.has_dictionary || u64::from(*num_values) > buf.len() as u64 / 4 {
                    return wrong(format!(
                        "a dictionary of {num_values} values in {} bytes",
                        buf.len()
                    ));
                }
                self.has_dictionary = true;
                return self.check_values(buf, u64::from(*num_values));
            }
            Page::DataPage { def_level_encoding, .. }
                if self.has_levels && *def_level_encoding != Encoding::RLE =>
            {
                return Err(ParquetError::NYI(format!("levels as {def_level_encoding}")));
            }
            Page::DataPageV2 {
                buf,
                num_nulls,
                num_values,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                if levels > buf.len() as u64 || num_nulls > num_values {
                    return wrong(format!("{levels} bytes of levels in a page of {}", buf.len()));
                }
            }
            Page::DataPage { .. } => {}
        }
        self.values += u64::from(page.num_values());
        if self.values > self.rows {
            return wrong(format!("{} values in {} rows", self.values, self.rows));
        }
        match page.encoding() {
            Encoding::PLAIN => self.check_plain(page),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY if self.has_dictionary => Ok(()),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                wrong("values of a dictionary that is not there".to_owned())
            }
            encoding => Err(ParquetError::NYI(format!("values as {encoding}"))),
        }
    }

    /// Fails for a page that has fewer values than its levels count.
    fn check_plain(&self, page: &Page) -> parquet::errors::Result<()> {
        let ends = || ParquetError::EOF("a page that ends within its levels".to_owned());
        let all = u64::from(page.num_values());
        match page {
            Page::DataPage { buf, .. } if self.has_levels => {
                let len = buf.first_chunk().map(|len| u32::from_le_bytes(*len) as usize);
                let end = len.and_then(|len| len.checked_add(4)).filter(|end| *end <= buf.len());
                let end = end.ok_or_else(ends)?;
                self.check_values(&buf[end..], ones(&buf[4..end], all))
            }
            Page::DataPageV2 {
                buf, num_nulls, def_levels_byte_len, rep_levels_byte_len, ..
            } => {
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                let values = buf.get(levels as usize..).ok_or_else(ends)?;
                self.check_values(values, all - u64::from(*num_nulls))
            }
            _ => self.check_values(page.buffer(), all),
        }
    }

    /// Fails unless so many texts are here, each with its length before it.
    fn check_values(&self, mut bytes: &[u8], count: u64) -> parquet::errors::Result<()> {
        for number in 0..if self.is_bytes { count } else { 0 } {
            let value = bytes
                .split_first_chunk()
                .and_then(|(len, rest)| rest.split_at_checked(u32::from_le_bytes(*len) as usize));
            let Some((_, rest)) = value else {
                return Err(ParquetError::EOF(format!("{number} of {count} values in a page")));
            };
            bytes = rest;
        }
        Ok(())
    }
}

/// Counts the ones among the first `all` levels, which are runs of one value, or eight levels a byte.
fn ones(mut levels: &[u8], all: u64) -> u64 {
    let (mut ones, mut left) = (0_u64, all);
    while left > 0 {
        let Some(end) = levels.iter().take(9).position(|byte| *byte < 128) else { return ones };
        let (head, rest) = levels.split_at(end + 1);
        let head = head.iter().rev().fold(0_u64, |head, byte| head << 7 | u64::from(byte & 127));
        levels = rest;
        if head & 1 == 0 {
            let run = (head >> 1).min(left);
            // Readers end at an empty run.
            let Some((level, rest)) = levels.split_first().filter(|_| run > 0) else { return ones };
            ones += if *level == 1 { run } else { 0 };
            (left, levels) = (left - run, rest);
        } else {
            let bytes = levels.len().min(usize::try_from(head >> 1).unwrap_or(usize::MAX));
            if bytes == 0 {
                return ones;
            }
            for byte in &levels[..bytes] {
                let some = left.min(8);
                ones += u64::from((u16::from(*byte) & ((1 << some) - 1)).count_ones());
                left -= some;
            }
            levels = &levels[bytes..];
        }
    }
    ones
}

impl Iterator for Pages {
    type Item = parquet::errors::Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> parquet::errors::Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    /// Peeking would take the bytes of a page for its header.
    fn peek_next_page(&mut self) -> parquet::errors::Result<Option<PageMetadata>> {
        Err(ParquetError::NYI("peeking".to_owned()))
    }

    fn skip_next_page(&mut self) -> parquet::errors::Result<()> {
        Err(ParquetError::NYI("skipping".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_counted() {
        for (levels, all, expected) in [
            (&[][..], 5, 0),
            // Runs of three ones and two zeros.
            (&[6, 1, 4, 0], 5, 3),
            (&[6, 1, 4, 0], 2, 2),
            // Sixteen levels in two bytes, of which eleven count.
            (&[5, 0b1010_1010, 0xff], 11, 7),
            (&[0x80, 0x02, 1], 1000, 128),
            (&[0xff; 20], 1000, 0),
            (&[0, 1, 0, 1], 1000, 0),
        ] {
            assert_eq!(ones(levels, all), expected, "{levels:?}");
        }
    }
}
