//! Columns of a small Parquet file that is in memory, read by the crate `parquet` within bounds.
//!
//! ```text
//!   footer ──▶ walk: no count without its entries ──▶ crate ──▶ columns ──▶ checked pages ──▶ crate ──▶ values, in batches
//! ```
//!
//! The crate trusts counts in the footer. Each is checked here before the crate allocates for it.
//!
//! Facts: the specification of Parquet, and files written by fastparquet and pyarrow.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use parquet::basic::{LogicalType, Type};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::schema::types::ColumnDescPtr;

use super::parquet_pages::Pages;
use super::thrift::{Found, walk};
use gridfusion_core::{Error, Result};

const REGION: &str = "Parquet file";
const MAGIC: &[u8] = b"PAR1";
/// The bytes after the footer: its length, and the magic ones.
const TAIL: usize = 8;
/// The most bytes of a footer.
const MOST_OF_FOOTER: usize = 1 << 20;
/// The most entries of a list in the footer, such as row groups.
const MOST_ENTRIES: u64 = 1 << 15;
/// The rows that are decoded at once.
const BATCH: usize = 4096;

/// A file in memory.
pub(super) struct ParquetFile {
    bytes: Bytes,
    metadata: ParquetMetaData,
    /// The bytes that pages may still have when they are decompressed.
    left: Arc<AtomicU64>,
}

impl ParquetFile {
    /// Parses the footer of a file, whose pages may have at most `most` bytes when they are decompressed.
    ///
    /// # Errors
    /// `Corrupt` if it is no Parquet file; `Unsupported` for a footer that is too long.
    pub(super) fn try_new(bytes: Bytes, most: u64) -> Result<Self> {
        check_footer(&bytes)?;
        let parse = || ParquetMetaDataReader::new().parse_and_finish(&bytes);
        let metadata = guarded(parse)?;
        let left = Arc::new(AtomicU64::new(most));
        Ok(Self { bytes, metadata, left })
    }

    /// The number of rows.
    ///
    /// # Errors
    /// `Corrupt` if a row group has a negative number of rows.
    pub(super) fn rows(&self) -> Result<u64> {
        self.metadata.row_groups().iter().try_fold(0_u64, |rows, group| {
            let rows = u64::try_from(group.num_rows()).ok().and_then(|it| it.checked_add(rows));
            rows.ok_or_else(|| corrupt(format!("a row group of {} rows", group.num_rows())))
        })
    }

    /// Passes each value of a column of bytes or texts, with the number of its row. Returns whether there is such a column.
    ///
    /// # Errors
    /// `Corrupt` for a column of another type, and if its values cannot be decoded. The errors of `each`.
    pub(super) fn bytes(
        &self,
        name: &str,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        let Some(column) = self.column(name)? else { return Ok(false) };
        match column.physical_type() {
            Type::BYTE_ARRAY => {
                self.read::<ByteArrayType>(&column, |row, value: ByteArray| each(row, value.data()))
            }
            kind => Err(corrupt(format!("the column \"{name}\" has the type {kind}"))),
        }
    }

    /// Passes each value of a column of integers, with the number of its row. Returns whether there is such a column.
    ///
    /// # Errors
    /// As [`ParquetFile::bytes`].
    pub(super) fn numbers(
        &self,
        name: &str,
        mut each: impl FnMut(u64, i64) -> Result<()>,
    ) -> Result<bool> {
        let Some(column) = self.column(name)? else { return Ok(false) };
        match column.physical_type() {
            Type::INT64 => self.read::<Int64Type>(&column, each),
            Type::INT32 => self.read::<Int32Type>(&column, |row, value| each(row, value.into())),
            kind => Err(corrupt(format!("the column \"{name}\" has the type {kind}"))),
        }
    }

    /// Returns a column; `None` if there is none, or one of nulls only, as pyarrow writes it.
    fn column(&self, name: &str) -> Result<Option<ColumnDescPtr>> {
        let columns = self.metadata.file_metadata().schema_descr().columns();
        let is_it =
            |column: &&ColumnDescPtr| column.path().parts().first().is_some_and(|it| it == name);
        let mut found = columns.iter().filter(is_it);
        let Some(column) = found.next() else { return Ok(None) };
        let is_flat = column.path().parts().len() == 1
            && column.max_rep_level() == 0
            && column.max_def_level() <= 1;
        if !is_flat || found.next().is_some() {
            return Err(corrupt(format!(
                "the column \"{name}\" has lists or fields, or is there twice"
            )));
        }
        let has_values = column.logical_type_ref() != Some(&LogicalType::Unknown);
        Ok(has_values.then(|| Arc::clone(column)))
    }

    fn read<T: DataType>(
        &self,
        column: &ColumnDescPtr,
        mut each: impl FnMut(u64, T::T) -> Result<()>,
    ) -> Result<bool> {
        let mut first = 0;
        for group in self.metadata.row_groups() {
            let rows = u64::try_from(group.num_rows()).unwrap_or_default();
            let pages = self.pages(column, group, rows)?;
            let mut reader = ColumnReaderImpl::<T>::new(Arc::clone(column), Box::new(pages));
            let mut read = 0;
            while read < rows {
                let (mut levels, mut values) = (vec![], vec![]);
                let most = (rows - read).min(BATCH as u64) as usize;
                let decoded =
                    guarded(|| reader.read_records(most, Some(&mut levels), None, &mut values))?;
                if decoded.0 == 0 {
                    let name = column.name();
                    let message = format!("the column \"{name}\" has {read} of {rows} rows");
                    return Err(corrupt(message));
                }
                let mut values = values.into_iter();
                for row in 0..decoded.0 {
                    let is_there =
                        levels.get(row).is_none_or(|level| *level == column.max_def_level());
                    let Some(value) = is_there.then(|| values.next()).flatten() else { continue };
                    each(first + read + row as u64, value)?;
                }
                read += decoded.0 as u64;
            }
            first += rows;
        }
        Ok(true)
    }

    /// Returns the pages of a column in a row group.
    fn pages(&self, column: &ColumnDescPtr, group: &RowGroupMetaData, rows: u64) -> Result<Pages> {
        let chunk = group.columns().iter().find(|it| it.column_path() == column.path());
        let chunk = chunk
            .ok_or_else(|| corrupt(format!("no column \"{}\" in a row group", column.name())))?;
        self.check_chunk(chunk)?;
        let (bytes, left) = (self.bytes.clone(), Arc::clone(&self.left));
        guarded(|| Pages::try_new(bytes, left, column, chunk, rows))
    }

    /// Fails unless the bytes of a column in a row group lie in the file.
    fn check_chunk(&self, chunk: &ColumnChunkMetaData) -> Result<()> {
        if let Some(file) = chunk.file_path() {
            return Err(Error::unsupported(format!("columns in another Parquet file, {file:?}")));
        }
        let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        let range = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
        let end = range.and_then(|(start, len)| start.checked_add(len));
        match end.is_some_and(|end| end <= self.bytes.len() as u64) {
            true => Ok(()),
            false => {
                let (name, len) = (chunk.column_path().string(), chunk.compressed_size());
                let size = self.bytes.len();
                Err(corrupt(format!(
                    "the column \"{name}\" has {len} bytes from {start} on, and the file {size}"
                )))
            }
        }
    }
}

/// Fails for a footer that makes the parser allocate more than it has.
fn check_footer(bytes: &[u8]) -> Result<()> {
    let tail = bytes.len().checked_sub(TAIL).map(|at| bytes.split_at(at));
    let Some((before, [a, b, c, d, magic @ ..])) = tail else {
        return Err(corrupt(format!("{} bytes", bytes.len())));
    };
    if magic != MAGIC || !before.starts_with(MAGIC) {
        return Err(corrupt("a file that does not begin and end with PAR1".to_owned()));
    }
    let len = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
    if len > MOST_OF_FOOTER {
        return Err(Error::unsupported(format!(
            "a Parquet footer of {len} bytes; at most {MOST_OF_FOOTER}"
        )));
    }
    let start = before.len().checked_sub(len);
    let start =
        start.ok_or_else(|| corrupt(format!("a footer of {len} bytes in {}", before.len())))?;
    let (mut elements, mut children) = (0, 0_i64);
    walk(&before[start..], &mut |fields, found| {
        match (fields, found) {
            (_, Found::Entries(entries)) if entries > MOST_ENTRIES => {
                return Err(corrupt(format!("a list of {entries} entries in the footer")));
            }
            ([2], Found::Entries(entries)) => elements = entries,
            ([2, 5], Found::Number(number)) => children = children.max(number),
            _ => {}
        }
        Ok(())
    })?;
    match u64::try_from(children).is_ok_and(|children| children <= elements) {
        true => Ok(()),
        false => Err(corrupt(format!("{children} fields in a schema of {elements}"))),
    }
}

/// Calls the crate. A fault of it in a corrupt file is an error rather than the end of the program.
fn guarded<T>(call: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(error),
        Err(_) => Err(corrupt("its reader has failed".to_owned())),
    }
}

fn error(error: ParquetError) -> Error {
    match error {
        ParquetError::NYI(message) => Error::unsupported(format!("Parquet files with {message}")),
        ParquetError::External(error) => match error.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => corrupt(other.to_string()),
        },
        other => corrupt(other.to_string()),
    }
}

pub(super) fn corrupt(message: String) -> Error {
    Error::corrupt_region(REGION, message)
}
