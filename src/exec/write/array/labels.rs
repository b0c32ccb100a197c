//! [`Labels`]: the labels of a dimension, which are numbered as rows come.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, UInt32Array, UInt64Array};
use arrow::compute::{SortOptions, partition, take};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::exec_err;
use datafusion::error::Result;

/// The labels that rows had so far.
pub(super) struct Labels {
    name: String,
    converter: RowConverter,
    /// The number of each label, by its bytes, which are in the order of labels.
    numbers: HashMap<Box<[u8]>, u32>,
    /// The bytes of each label, by number.
    found: Vec<Box<[u8]>>,
    /// The bytes of all labels.
    bytes: usize,
    /// The number of the last label.
    last: usize,
}

impl Labels {
    pub(super) fn try_new(name: &str, data_type: &DataType, order: SortOptions) -> Result<Self> {
        let field = SortField::new_with_options(data_type.clone(), order);
        let converter = RowConverter::new(vec![field])?;
        Ok(Self {
            name: name.to_owned(),
            converter,
            numbers: HashMap::new(),
            found: vec![],
            bytes: 0,
            last: 0,
        })
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
        // The outer dimensions of rows in order have runs of one label, which is looked up once.
        let runs = partition(std::slice::from_ref(column))?.ranges();
        let rows = if 2 * runs.len() <= column.len() {
            let firsts = UInt64Array::from_iter_values(runs.iter().map(|run| run.start as u64));
            take(column, &firsts, None)?
        } else {
            ArrayRef::clone(column)
        };
        let rows = self.converter.convert_columns(&[rows])?;
        if rows.num_rows() == column.len() {
            return (0..column.len()).map(|at| Ok(Some(self.number_of(&rows, at)?))).collect();
        }
        let mut numbers = Vec::with_capacity(column.len());
        for (at, run) in runs.iter().enumerate() {
            numbers.resize(run.end, self.number_of(&rows, at)?);
        }
        Ok(numbers.into())
    }

    fn number_of(&mut self, rows: &Rows, at: usize) -> Result<u32> {
        let row = rows.row(at);
        let label = row.as_ref();
        // Rows come in order, so most have the label of the row before, the next one, or the first one again.
        for near in [self.last, self.last + 1, 0] {
            if self.found.get(near).is_some_and(|known| &**known == label) {
                self.last = near;
                return Ok(near as u32);
            }
        }
        let next = self.found.len();
        let number = match self.numbers.get(label) {
            Some(number) => *number,
            None => {
                let Ok(number) = u32::try_from(next) else {
                    return exec_err!("the dimension \"{}\" has more than 2³² labels", self.name);
                };
                self.numbers.insert(label.into(), number);
                self.found.push(label.into());
                self.bytes += label.len();
                number
            }
        };
        self.last = number as usize;
        Ok(number)
    }

    /// Returns the bytes that labels take.
    pub(super) fn memory(&self) -> usize {
        // Twice each label, two pointers with lengths, a number, and room in the table.
        2 * self.bytes + 64 * self.found.len()
    }

    /// Returns the labels in their order, and the place of each number in it.
    pub(super) fn in_order(self) -> Result<(ArrayRef, Vec<u64>)> {
        let mut order: Vec<usize> = (0..self.found.len()).collect();
        order.sort_unstable_by(|a, b| self.found[*a].cmp(&self.found[*b]));
        let mut places = vec![0; order.len()];
        for (place, number) in order.iter().enumerate() {
            places[*number] = place as u64;
        }
        let parser = self.converter.parser();
        let rows = order.iter().map(|number| parser.parse(&self.found[*number]));
        let columns = self.converter.convert_rows(rows)?;
        match columns.into_iter().next() {
            Some(labels) => Ok((labels, places)),
            None => exec_err!("labels without a column"),
        }
    }
}
