//! Compounds: a column per field.
//!
//! ```text
//!   decoded   ├─ station ─┤├ temp ┤├─ pos ─┤├─ station ─┤├ temp ┤├─ pos ─┤      value 1: temp temp
//! ```
//!
//! | field | column |
//! |---|---|
//! | numbers, times, text, bytes, enumerations | as a variable of that type without attributes |
//! | compounds, complex numbers | structs |
//! | arrays | lists of fixed length, in row-major order |
//! | lists of any length | lists |
//!
//! The cells of a struct in which texts or lists are have any length, and begin with the struct.

use std::sync::Arc;

use super::options::HierarchyView;
use super::parts::Part;
use super::values::{kind, plain_column, value};
use crate::hierarchy::{Attributes, CellType, Record, RecordField, Variable};
use gridfusion_core::array::{
    CellColumn, CellKind, Remarks, Scalar, StructField, Temporal, Value, ValueColumn,
};
use gridfusion_core::{Error, Result};

/// Returns a value per field. Attributes describe the variable as a whole, so they do not change the values.
pub(super) fn columns(
    variable: &Variable,
    record: &Record,
    view: &HierarchyView,
    remarks: &mut Remarks,
) -> Result<Vec<Value>> {
    for (name, why) in &record.left_out {
        remarks.odd.push(format!("the field \"{name}\" is left out: its values are {why}"));
    }
    let of_text = variable.attributes.get("_Encoding").cloned();
    let of_text: Arc<Attributes> =
        Arc::new(of_text.map(|it| ("_Encoding".to_owned(), it)).into_iter().collect());
    let mut column = |field: &RecordField| {
        let mut own = Variable::new(
            variable.path.clone(),
            variable.axes.clone(),
            field.cell.clone(),
            field.of(&variable.fill).unwrap_or_default(),
        );
        own.attributes = Arc::clone(&of_text);
        let mut column = plain_column(&own, view, remarks)?;
        let width = field.width().map(|width| width as usize);
        if let (None, Some(whole), ValueColumn::Cells(cells)) =
            (width, field.cell.bytes_in_cell(), &column)
        {
            let kind = CellKind::Packed(Box::new(cells.clone()), whole);
            column = ValueColumn::Cells(CellColumn::new(kind, false, vec![]));
        }
        Ok(value(field.name.clone(), column, width, own.fill.clone(), variable, view))
    };
    record.fields.iter().map(&mut column).collect()
}

/// Returns the cells of fields of several values: structs and lists.
///
/// # Errors
/// `Unsupported` for lists of any length of other values than single ones, and `Internal` for a single value.
pub(super) fn composite(
    cell: &CellType,
    variable: &Variable,
    view: &HierarchyView,
    remarks: &mut Remarks,
) -> Result<CellKind> {
    let mut inner = |cell: &CellType| -> Result<CellColumn> {
        let kind = kind(cell, variable, view, remarks)?;
        Ok(CellColumn::new(kind, false, vec![]).with_missing_items(view.read.nan_as_null))
    };
    let mut field = |name: &str, offset, cell: &CellType| {
        Ok(StructField { name: name.to_owned(), offset, column: inner(cell)? })
    };
    Ok(match cell {
        CellType::Record(record) => {
            let fields = record.fields.iter().map(|it| field(&it.name, it.offset, &it.cell));
            CellKind::Struct(fields.collect::<Result<_>>()?, record.width)
        }
        CellType::Complex(element) => {
            let (half, size) = (CellType::Number(*element), element.size() as u32);
            let halves = [field("re", 0, &half)?, field("im", size, &half)?];
            CellKind::Struct(halves.into(), 2 * size)
        }
        CellType::Array(item, len) => match scalar(item) {
            Some(scalar) => CellKind::FixedList(scalar, *len),
            None => CellKind::FixedItems(Box::new(inner(item)?), *len),
        },
        CellType::List(item) => {
            let other = || Error::unsupported(format!("lists of {item}"));
            CellKind::List(scalar(item).ok_or_else(other)?)
        }
        single => return Err(Error::internal(format!("{single} is a single value"))),
    })
}

fn scalar(cell: &CellType) -> Option<Scalar> {
    Some(match cell {
        CellType::Number(element) => Scalar::Number(*element),
        CellType::Boolean => Scalar::Boolean,
        CellType::TimePoint(unit) => Scalar::Temporal(Temporal::Point(*unit)),
        CellType::TimeSpan(unit) => Scalar::Temporal(Temporal::Length(*unit)),
        _ => return None,
    })
}

/// Returns a field as a part of its compound. A field in a heap has no bytes there.
pub(super) fn part(field: &RecordField) -> Part {
    let width = field.width().unwrap_or_default() as usize;
    Part { offset: field.offset as usize, width, missing: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::ErrorKind;
    use gridfusion_core::array::ReadOptions;
    use gridfusion_core::format::ElementType;
    use gridfusion_core::options::ResolvedOptions;

    #[test]
    fn lists_of_other_values_than_single_ones_are_no_bytes() {
        let view = HierarchyView::new(&ResolvedOptions::default(), &ReadOptions::default());
        let number = CellType::Number(ElementType::I16);
        let variable = Variable::new("v".to_owned(), vec![], number.clone(), vec![0; 2]);
        let of = |cell: CellType| kind(&cell, &variable, &view, &mut Remarks::default());
        assert!(matches!(of(CellType::List(number.clone().into())), Ok(CellKind::List(_))));
        let error = of(CellType::List(CellType::List(number.into()).into())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("lists of list of i16"), "{error}");
    }
}
