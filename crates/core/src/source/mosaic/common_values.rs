//! [`CommonValues`]: the columns of files that store the same variables in different forms.
//!
//! ```text
//!   2023.nc   t2m   i16 × 0.001 + 270   form 0 ─┐
//!   2024.nc   t2m   i16 × 0.002 + 265   form 1  ├─▶ the column t2m, of doubles
//!   2025.nc   t2m   f32                 form 2 ─┘
//! ```
//!
//! Packing, missing values and the stored type tell how a value is stored, and not what it is. So each chunk is read in the form
//! of its file, and its values are widened to the type of the column.

use std::collections::HashMap;

use arrow::datatypes::DataType;

use super::common_type::{common_type, element_of_type};
use super::file_arrays::FileArrays;
use super::own_fill::differs_in_fill_only;
use crate::array::{NumberColumn, ReadOptions, StoredForm, Value, ValueColumn};
use crate::error::{Error, Result};
use crate::tile::CellFormat;

/// The columns of a table, and the form of each value in each file.
pub(super) struct CommonValues {
    /// The columns, each with the forms of all files.
    pub(super) values: Vec<Value>,
    /// For each column, per file, and for each form that the value has there: the number of the form in the table.
    numbers: Vec<Vec<Vec<u32>>>,
}

impl CommonValues {
    /// Finds the columns of files that agree in their variables.
    ///
    /// # Errors
    /// `Usage` if no type holds the values of all files.
    pub(super) fn try_new(files: &[FileArrays]) -> Result<Self> {
        let Some(first) = files.first() else { return Err(Error::internal("a table of no file")) };
        let (mut values, mut numbers) = (vec![], vec![]);
        for (variable, array) in first.arrays.iter().enumerate() {
            for number in 0..array.values().len() {
                let of_files = files.iter().map(|file| value_of(file, variable, number));
                let of_files: Option<Vec<&Value>> = of_files.collect();
                let of_files =
                    of_files.ok_or_else(|| Error::internal("a file with other variables"))?;
                let common = CommonValue::try_new(&of_files)?;
                values.push(common.value);
                numbers.push(common.numbers);
            }
        }
        Ok(Self { values, numbers })
    }

    /// Returns the number of the form in the table, for each form that a column has in a file.
    pub(super) fn numbers(&self, column: usize, file: usize) -> &[u32] {
        self.numbers.get(column).and_then(|files| files.get(file)).map_or(&[], Vec::as_slice)
    }
}

fn value_of(file: &FileArrays, variable: usize, number: usize) -> Option<&Value> {
    file.arrays.get(variable)?.values().get(number)
}

/// A column, and the numbers of its forms.
struct CommonValue {
    value: Value,
    numbers: Vec<Vec<u32>>,
}

impl CommonValue {
    fn try_new(of_files: &[&Value]) -> Result<Self> {
        let data_type = of_all(of_files)?;
        let mut base = base(of_files, &data_type)?;
        pad_fill(&mut base.cells);
        let mut forms: Vec<StoredForm> = vec![];
        // Each of thousands of files may have a form of its own.
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut number = |column: &ValueColumn, cells: &CellFormat| {
            if *column == base.column
                && (*cells == base.cells || differs_in_fill_only(cells, &base.cells))
            {
                return 0;
            }
            *known.entry(format!("{column:?} {cells:?}")).or_insert_with(|| {
                forms.push(StoredForm { column: column.clone(), cells: cells.clone() });
                forms.len() as u32
            })
        };
        let numbers = of_files.iter().map(|value| {
            let own = (0..=value.forms.len() as u32).map(|form| value.form(form));
            own.map(|(column, cells)| number(column, cells)).collect()
        });
        let numbers: Vec<Vec<u32>> = numbers.collect();
        forms.iter_mut().for_each(|form| pad_fill(&mut form.cells));
        base.forms = forms.into();
        Ok(Self { value: base, numbers })
    }
}

/// Returns the type that holds the values of all files.
fn of_all(of_files: &[&Value]) -> Result<DataType> {
    let mut types = of_files.iter().map(|value| value.column.data_type());
    let first = types.next().ok_or_else(|| Error::internal("a table of no file"))?;
    types.try_fold(first, |common, other| {
        common_type(&common, &other).ok_or_else(|| {
            let name = of_files.first().map_or("", |value| &value.name);
            Error::usage(format!(
                "the files cannot be one table: \"{name}\" is of type {other} in some and of {common} in others, and no type \
                 holds both"
            ))
        })
    })
}

/// Returns the column of the first file that has this type; otherwise one of numbers that no file stores. Its name and
/// attributes are those of the first file.
fn base(of_files: &[&Value], data_type: &DataType) -> Result<Value> {
    let Some(first) = of_files.first() else { return Err(Error::internal("a table of no file")) };
    let of_type = || of_files.iter().filter(|value| value.column.data_type() == *data_type);
    // A file that lacks the variable is the exception. Chunk statistics are compared in the form of the column.
    let of_type = of_type().find(|value| !value.cells.nullable).or_else(|| of_type().next());
    let (column, cells) = match (of_type, element_of_type(data_type)) {
        (Some(value), _) => (value.column.clone(), value.cells.clone()),
        (None, Some(element)) => {
            let column = NumberColumn::plain(element, None, false, &ReadOptions::default());
            (ValueColumn::Number(column), CellFormat::fixed(element.size() as usize))
        }
        (None, None) => return Err(Error::internal("a common type without elements")),
    };
    Ok(Value { column, cells, forms: Default::default(), ..Value::clone(first) })
}

/// Gives cells a fill value. Stored chunks without a selected cell are not read: fill values take their place in the tile.
/// Formats that store every chunk, such as `.tet`, have none: zeros will do, because no query selects these cells.
fn pad_fill(cells: &mut CellFormat) {
    if let (Some(width), true) = (cells.width, cells.fill.is_empty()) {
        cells.fill.resize(width, 0);
    }
}
