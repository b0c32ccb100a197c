//! The cells of a column as CSV.

use std::ops::Range;

use datafusion::arrow::array::{
    Array, ArrayAccessor, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray,
};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Date64Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::style::Style;
use crate::exec::write::times::{push_date, push_time};

/// Appends the text of the cell in a row.
pub(super) type Cell<'a> = Box<dyn FnMut(usize, &mut Vec<u8>) -> Result<(), ArrowError> + 'a>;

/// Returns what appends the cells of a column.
pub(super) fn cell<'a>(column: &'a dyn Array, style: &'a Style) -> Result<Cell<'a>, ArrowError> {
    use DataType::{
        Boolean, Date32, Date64, Dictionary, Float32, Float64, Int8, Int16, Int32, Int64,
        LargeUtf8, Timestamp, UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View,
    };
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    Ok(match column.data_type() {
        Boolean => booleans(column, style),
        Int8 => numbers::<Int8Type>(column, style, push_integer),
        Int16 => numbers::<Int16Type>(column, style, push_integer),
        Int32 => numbers::<Int32Type>(column, style, push_integer),
        Int64 => numbers::<Int64Type>(column, style, push_integer),
        UInt8 => numbers::<UInt8Type>(column, style, push_integer),
        UInt16 => numbers::<UInt16Type>(column, style, push_integer),
        UInt32 => numbers::<UInt32Type>(column, style, push_integer),
        UInt64 => numbers::<UInt64Type>(column, style, push_integer),
        Float32 => numbers::<Float32Type>(column, style, push_float),
        Float64 => numbers::<Float64Type>(column, style, push_float),
        Date32 => times::<Date32Type>(column, style, |days, out| push_date(days.into(), out))?,
        Date64 => times::<Date64Type>(column, style, push_time::<1000>)?,
        Timestamp(Second, None) => times::<TimestampSecondType>(column, style, push_time::<1>)?,
        Timestamp(Millisecond, None) => {
            times::<TimestampMillisecondType>(column, style, push_time::<1000>)?
        }
        Timestamp(Microsecond, None) => {
            times::<TimestampMicrosecondType>(column, style, push_time::<1_000_000>)?
        }
        Timestamp(Nanosecond, None) => {
            times::<TimestampNanosecondType>(column, style, push_time::<1_000_000_000>)?
        }
        Utf8 => texts(column.as_string::<i32>(), style),
        LargeUtf8 => texts(column.as_string::<i64>(), style),
        Utf8View => texts(column.as_string_view(), style),
        Dictionary(..) if !column.as_any_dictionary().values().is_empty() => {
            entries(column, style)?
        }
        _ => others(column, style)?,
    })
}

fn push_integer<T: itoa::Integer>(value: T, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a float as Arrow's writer does, which uses the same crate.
fn push_float<T: ryu::Float>(value: T, out: &mut Vec<u8>) {
    out.extend_from_slice(ryu::Buffer::new().format(value).as_bytes());
}

fn numbers<'a, T: ArrowPrimitiveType>(
    column: &'a dyn Array,
    style: &'a Style,
    push: fn(T::Native, &mut Vec<u8>),
) -> Cell<'a> {
    values::<T>(column, style, move |_, value, out| {
        push(value, out);
        Ok(())
    })
}

/// Returns cells of times. Arrow formats those that `push` does not.
fn times<'a, T: ArrowPrimitiveType>(
    column: &'a dyn Array,
    style: &'a Style,
    push: fn(T::Native, &mut Vec<u8>) -> bool,
) -> Result<Cell<'a>, ArrowError> {
    let mut others = others(column, style)?;
    Ok(values::<T>(column, style, move |row, value, out| match push(value, out) {
        true => Ok(()),
        false => others(row, out),
    }))
}

/// Returns cells with the values that `push` appends. Labels often repeat from row to row: their text is copied then.
fn values<'a, T: ArrowPrimitiveType>(
    column: &'a dyn Array,
    style: &'a Style,
    mut push: impl FnMut(usize, T::Native, &mut Vec<u8>) -> Result<(), ArrowError> + 'a,
) -> Cell<'a> {
    let array = column.as_primitive::<T>();
    let mut last: Option<(T::Native, Range<usize>)> = None;
    Box::new(move |row, out| {
        if array.is_null(row) {
            out.extend_from_slice(style.null());
            return Ok(());
        }
        let value = array.value(row);
        match &last {
            Some((before, text)) if before.is_eq(value) => out.extend_from_within(text.clone()),
            _ => {
                let start = out.len();
                push(row, value, out)?;
                last = Some((value, start..out.len()));
            }
        }
        Ok(())
    })
}

fn booleans<'a>(column: &'a dyn Array, style: &'a Style) -> Cell<'a> {
    let array = column.as_boolean();
    Box::new(move |row, out| {
        out.extend_from_slice(match array.is_null(row) {
            true => style.null(),
            false if array.value(row) => b"true",
            false => b"false",
        });
        Ok(())
    })
}

fn texts<'a>(array: impl ArrayAccessor<Item = &'a str> + 'a, style: &'a Style) -> Cell<'a> {
    Box::new(move |row, out| {
        match array.is_null(row) {
            true => out.extend_from_slice(style.null()),
            false => style.push_text(array.value(row), out),
        }
        Ok(())
    })
}

/// Returns the cells of a dictionary.
fn entries<'a>(column: &'a dyn Array, style: &'a Style) -> Result<Cell<'a>, ArrowError> {
    let dictionary = column.as_any_dictionary();
    let keys = dictionary.normalized_keys();
    let mut value = cell(dictionary.values().as_ref(), style)?;
    Ok(Box::new(move |row, out| match column.is_null(row) {
        true => {
            out.extend_from_slice(style.null());
            Ok(())
        }
        false => value(keys[row], out),
    }))
}

/// Returns cells that Arrow formats.
fn others<'a>(column: &'a dyn Array, style: &'a Style) -> Result<Cell<'a>, ArrowError> {
    let options = FormatOptions::default().with_null(style.null_text());
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let mut text = String::new();
    Ok(Box::new(move |row, out| {
        text.clear();
        formatter.value(row).write(&mut text)?;
        style.push_text(&text, out);
        Ok(())
    }))
}
