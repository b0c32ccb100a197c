//! [`Labels`]: the labels of a dimension, which are numbered as rows come.

use std::borrow::Borrow;
use std::hash::Hash;
use std::ops::Range;

use arrow::array::{
    Array, ArrayData, ArrayRef, UInt32Array, UInt64Array, make_array, new_empty_array,
};
use arrow::buffer::Buffer;
use arrow::compute::{SortOptions, partition, sort_to_indices, take};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::common::{HashMap, exec_err};
use datafusion::error::Result;

/// The labels that rows had so far.
pub(super) struct Labels {
    name: String,
    data_type: DataType,
    order: SortOptions,
    numbering: Numbering,
    /// The last column and its numbers. Scans share the columns of inner dimensions among batches.
    last: Option<(ArrayRef, UInt32Array)>,
}

/// The numbers of labels, by what tells labels apart.
enum Numbering {
    /// The bits of labels of at most eight bytes.
    Bits(Numbers<u64>),
    /// Their bytes in rows of Arrow, which are in the order of labels.
    Rows(Numbers<[u8]>, RowConverter),
}

/// The number of each label.
struct Numbers<L: ToOwned + ?Sized> {
    numbers: HashMap<L::Owned, u32>,
    /// The label of each number.
    found: Vec<L::Owned>,
    /// The bytes of all labels.
    bytes: usize,
    /// The number of the last label.
    last: usize,
}

impl Labels {
    pub(super) fn try_new(name: &str, data_type: &DataType, order: SortOptions) -> Result<Self> {
        let numbering = match data_type.primitive_width() {
            Some(..=8) => Numbering::Bits(Numbers::new()),
            _ => {
                let field = SortField::new_with_options(data_type.clone(), order);
                Numbering::Rows(Numbers::new(), RowConverter::new(vec![field])?)
            }
        };
        let (name, data_type) = (name.to_owned(), data_type.clone());
        Ok(Self { name, data_type, order, numbering, last: None })
    }

    /// Returns the number of each label of a column.
    ///
    /// # Errors
    /// For NULL.
    pub(super) fn number(&mut self, column: &ArrayRef) -> Result<UInt32Array> {
        if column.null_count() > 0 {
            return exec_err!(
                "the dimension \"{}\" has NULL among its labels; leave such rows out: WHERE {} IS NOT NULL",
                self.name,
                self.name
            );
        }
        if let Some((_, numbers)) = self.last.as_ref().filter(|(last, _)| is_same(last, column)) {
            return Ok(numbers.clone());
        }
        let numbers: Option<Vec<u32>> = match &mut self.numbering {
            Numbering::Bits(numbers) => numbers.of_bits(column),
            Numbering::Rows(numbers, converter) => numbers.of_rows(column, converter)?,
        };
        let Some(numbers) = numbers else {
            return exec_err!("the dimension \"{}\" has more than 2³² labels", self.name);
        };
        let numbers = UInt32Array::from(numbers);
        self.last = Some((ArrayRef::clone(column), numbers.clone()));
        Ok(numbers)
    }

    /// Returns the number of labels so far.
    pub(super) fn len(&self) -> usize {
        match &self.numbering {
            Numbering::Bits(numbers) => numbers.found.len(),
            Numbering::Rows(numbers, _) => numbers.found.len(),
        }
    }

    /// Returns the bytes that labels take.
    pub(super) fn memory(&self) -> usize {
        let bytes = match &self.numbering {
            Numbering::Bits(numbers) => numbers.bytes,
            Numbering::Rows(numbers, _) => numbers.bytes,
        };
        // Twice each label, two pointers with lengths, a number, and room in the table.
        2 * bytes + 64 * self.len()
    }

    /// Returns the labels in their order, and the place of each number in it.
    pub(super) fn in_order(self) -> Result<(ArrayRef, Vec<u64>)> {
        let labels = match self.numbering {
            Numbering::Bits(numbers) => numbers.labels(&self.data_type)?,
            Numbering::Rows(numbers, converter) => numbers.labels(&self.data_type, &converter)?,
        };
        let order = sort_to_indices(&labels, Some(self.order), None)?;
        let mut places = vec![0; order.len()];
        for (place, number) in order.values().iter().enumerate() {
            places[*number as usize] = place as u64;
        }
        Ok((take(&labels, &order, None)?, places))
    }
}

impl<L: ToOwned<Owned: Hash + Eq> + Hash + Eq + ?Sized> Numbers<L> {
    fn new() -> Self {
        Self { numbers: HashMap::new(), found: vec![], bytes: 0, last: 0 }
    }

    /// Returns the number of a label; `None` if there is none left.
    #[inline]
    fn number(&mut self, label: &L) -> Option<u32> {
        // Rows come in order, so most have the label of the row before, the next one, or the first one again.
        for near in [self.last, self.last + 1, 0] {
            if self.found.get(near).is_some_and(|known| known.borrow() == label) {
                self.last = near;
                return Some(near as u32);
            }
        }
        let number = match self.numbers.get(label) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.found.len()).ok()?;
                self.numbers.insert(label.to_owned(), number);
                self.found.push(label.to_owned());
                self.bytes += size_of_val(label);
                number
            }
        };
        self.last = number as usize;
        Some(number)
    }
}

impl Numbers<u64> {
    /// Returns the number of each label of a column without NULL; `None` if there are too many.
    fn of_bits(&mut self, column: &ArrayRef) -> Option<Vec<u32>> {
        let data = column.to_data();
        match data.data_type().primitive_width() {
            Some(1) => self.of_cells::<1>(&data),
            Some(2) => self.of_cells::<2>(&data),
            Some(4) => self.of_cells::<4>(&data),
            _ => self.of_cells::<8>(&data),
        }
    }

    fn of_cells<const WIDTH: usize>(&mut self, data: &ArrayData) -> Option<Vec<u32>> {
        let range = WIDTH * data.offset()..WIDTH * (data.offset() + data.len());
        let (cells, _) = data.buffers()[0].as_slice()[range].as_chunks::<WIDTH>();
        let bits = |cell: &[u8; WIDTH]| {
            let mut bits = [0; 8];
            bits[..WIDTH].copy_from_slice(cell);
            u64::from_le_bytes(bits)
        };
        cells.iter().map(|cell| self.number(&bits(cell))).collect()
    }

    /// Returns the label of each number.
    fn labels(&self, data_type: &DataType) -> Result<ArrayRef> {
        let width = data_type.primitive_width().unwrap_or(8);
        let bytes = self.found.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(width));
        let buffer = Buffer::from_iter(bytes);
        let data = ArrayData::builder(data_type.clone()).len(self.found.len()).add_buffer(buffer);
        Ok(make_array(data.align_buffers(true).build()?))
    }
}

impl Numbers<[u8]> {
    /// Returns the number of each label of a column without NULL; `None` if there are too many.
    fn of_rows(&mut self, column: &ArrayRef, to: &RowConverter) -> Result<Option<Vec<u32>>> {
        // The outer dimensions of rows in order have runs of one label, which is looked up once.
        let runs = partition(std::slice::from_ref(column))?.ranges();
        let has_runs = 2 * runs.len() <= column.len();
        let rows = if has_runs {
            let firsts = UInt64Array::from_iter_values(runs.iter().map(|run| run.start as u64));
            take(column, &firsts, None)?
        } else {
            ArrayRef::clone(column)
        };
        let rows = to.convert_columns(&[rows])?;
        let found: Option<Vec<u32>> = rows.iter().map(|row| self.number(row.as_ref())).collect();
        Ok(found.map(|found| match has_runs {
            true => {
                let run =
                    |(number, run): (u32, &Range<usize>)| std::iter::repeat_n(number, run.len());
                found.into_iter().zip(&runs).flat_map(run).collect()
            }
            false => found,
        }))
    }

    /// Returns the label of each number.
    fn labels(&self, data_type: &DataType, converter: &RowConverter) -> Result<ArrayRef> {
        let parser = converter.parser();
        let columns = converter.convert_rows(self.found.iter().map(|row| parser.parse(row)))?;
        Ok(columns.into_iter().next().unwrap_or_else(|| new_empty_array(data_type)))
    }
}

/// Whether two columns are the same memory. Then they have the same labels.
fn is_same(a: &ArrayRef, b: &ArrayRef) -> bool {
    a.len() == b.len() && a.to_data().ptr_eq(&b.to_data())
}
