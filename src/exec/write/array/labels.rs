//! [`Labels`]: the labels of a dimension, which are numbered as rows come.
//!
//! Rows mostly have the label of the row before them, or the one behind it. So a column becomes runs of numbers, not a number per row.

use std::borrow::Borrow;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, UInt64Array, make_array, new_empty_array};
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
    /// The last column and its runs. Scans share the columns of inner dimensions among batches.
    last: Option<(ArrayRef, Arc<[LabelRun]>)>,
}

/// Rows of a column whose labels have one number, or numbers that follow one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LabelRun {
    pub(super) rows: Range<usize>,
    /// The number of the first label.
    pub(super) number: u32,
    /// Whether each row has the number behind that of the row before it. Of no meaning for one row.
    pub(super) ascends: bool,
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

    /// Returns the numbers of the labels of a column, as runs.
    ///
    /// # Errors
    /// For NULL.
    pub(super) fn runs(&mut self, column: &ArrayRef) -> Result<Arc<[LabelRun]>> {
        if column.null_count() > 0 {
            return exec_err!(
                "the dimension \"{}\" has NULL among its labels; leave such rows out: WHERE {} IS NOT NULL",
                self.name,
                self.name
            );
        }
        if let Some((_, runs)) = self.last.as_ref().filter(|(last, _)| is_same(last, column)) {
            return Ok(Arc::clone(runs));
        }
        let runs = match &mut self.numbering {
            Numbering::Bits(numbers) => numbers.of_bits(column),
            Numbering::Rows(numbers, converter) => {
                numbers.of_rows(column, converter)?.map(|it| runs_of_numbers(&it))
            }
        };
        let Some(runs) = runs else {
            return exec_err!("the dimension \"{}\" has more than 2³² labels", self.name);
        };
        self.last = Some((ArrayRef::clone(column), Arc::clone(&runs)));
        Ok(runs)
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
    /// Returns the numbers of the labels of a column without NULL; `None` if there are too many.
    fn of_bits(&mut self, column: &ArrayRef) -> Option<Arc<[LabelRun]>> {
        let data = column.to_data();
        match data.data_type().primitive_width() {
            Some(1) => self.of_cells::<1>(&data),
            Some(2) => self.of_cells::<2>(&data),
            Some(4) => self.of_cells::<4>(&data),
            _ => self.of_cells::<8>(&data),
        }
    }

    fn of_cells<const WIDTH: usize>(&mut self, data: &ArrayData) -> Option<Arc<[LabelRun]>> {
        let range = WIDTH * data.offset()..WIDTH * (data.offset() + data.len());
        let (cells, _) = data.buffers()[0].as_slice()[range].as_chunks::<WIDTH>();
        let bits = |cell: &[u8; WIDTH]| {
            let mut bits = [0; 8];
            bits[..WIDTH].copy_from_slice(cell);
            u64::from_le_bytes(bits)
        };
        let (mut runs, mut row) = (vec![], 0);
        while let Some(first) = cells.get(row) {
            let number = self.number(&bits(first))?;
            let rest = &cells[row + 1..];
            let same = rest.iter().take_while(|cell| *cell == first).count();
            let behind = &self.found[number as usize + 1..];
            let up = match same {
                0 => {
                    rest.iter().zip(behind).take_while(|(cell, next)| bits(cell) == **next).count()
                }
                _ => 0,
            };
            // A label that is not known yet has the number behind the last one.
            let end = row + 1 + same.max(up);
            self.last = number as usize + up;
            push_run(&mut runs, LabelRun { rows: row..end, number, ascends: up > 0 });
            row = end;
        }
        Some(runs.into())
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

/// Returns numbers as runs.
pub(super) fn runs_of_numbers(numbers: &[u32]) -> Arc<[LabelRun]> {
    let mut runs = vec![];
    for (row, &number) in numbers.iter().enumerate() {
        push_run(&mut runs, LabelRun { rows: row..row + 1, number, ascends: false });
    }
    runs.into()
}

/// Adds a run, or makes the last one longer.
fn push_run(runs: &mut Vec<LabelRun>, run: LabelRun) {
    let Some(last) = runs.last_mut() else { return runs.push(run) };
    let rows = last.rows.len();
    let is_one = |run: &LabelRun| run.rows.len() == 1;
    let follows = u64::from(last.number) + rows as u64 == u64::from(run.number);
    let goes_up = (last.ascends || rows == 1) && (run.ascends || is_one(&run)) && follows;
    let stays = !last.ascends && !run.ascends && last.number == run.number;
    if goes_up || stays {
        last.ascends |= goes_up;
        last.rows.end = run.rows.end;
    } else {
        runs.push(run);
    }
}

/// Whether two columns are the same memory. Then they have the same labels.
fn is_same(a: &ArrayRef, b: &ArrayRef) -> bool {
    a.len() == b.len() && a.to_data().ptr_eq(&b.to_data())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, StringArray};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// Labels are those of the rows, whatever their order, and equal labels have one number.
    #[test]
    fn runs_have_the_labels_of_rows() {
        let mut rng = StdRng::seed_from_u64(3);
        for turn in 0..500 {
            let most = rng.random_range(1..9);
            let mut label = 0_i32;
            let rows: Vec<i32> = (0..rng.random_range(0..60))
                .map(|_| {
                    match rng.random_range(0..10) {
                        0 => label = rng.random_range(0..most),
                        1..6 => label = (label + 1) % most,
                        _ => {}
                    }
                    label
                })
                .collect();
            let column = |rows: &[i32]| -> ArrayRef {
                match turn % 2 {
                    0 => Arc::new(Float64Array::from_iter_values(
                        rows.iter().map(|it| f64::from(*it)),
                    )),
                    _ => Arc::new(StringArray::from_iter_values(
                        rows.iter().map(|it| it.to_string()),
                    )),
                }
            };
            let data_type = column(&[]).data_type().clone();
            let mut labels = Labels::try_new("x", &data_type, SortOptions::default()).unwrap();
            let mut numbers = vec![];
            for batch in rows.chunks(13) {
                let runs = labels.runs(&column(batch)).unwrap();
                assert_eq!(runs.iter().map(|run| run.rows.len()).sum::<usize>(), batch.len());
                for run in runs.iter() {
                    let step = u32::from(run.ascends);
                    numbers.extend((0..run.rows.len() as u32).map(|row| run.number + step * row));
                }
            }
            let (ordered, places) = labels.in_order().unwrap();
            let found: Vec<u64> = numbers.iter().map(|number| places[*number as usize]).collect();
            let mut expected = rows.clone();
            expected.sort_unstable();
            expected.dedup();
            let place = |row: &i32| expected.binary_search(row).unwrap() as u64;
            assert_eq!(found, rows.iter().map(place).collect::<Vec<_>>());
            assert_eq!(&ordered, &column(&expected));
        }
    }

    #[test]
    fn rows_in_order_have_few_runs() {
        let mut labels = Labels::try_new("x", &DataType::Float64, SortOptions::default()).unwrap();
        let rows = (0..1000).map(|row| f64::from(row % 100));
        let column: ArrayRef = Arc::new(Float64Array::from_iter_values(rows));
        let runs = labels.runs(&column).unwrap();
        assert_eq!(runs.len(), 10);
        assert!(runs.iter().all(|run| run.ascends && run.number == 0));
        let column: ArrayRef =
            Arc::new(Float64Array::from_iter_values((0..1000).map(|row| f64::from(row / 100))));
        let runs = labels.runs(&column).unwrap();
        assert_eq!(runs.len(), 10);
        assert!(runs.iter().all(|run| !run.ascends));
    }
}
