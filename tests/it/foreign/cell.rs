//! Cells as text, and their comparison.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Float16Type, Float32Type, Float64Type, Int64Type, TimeUnit,
    TimestampNanosecondType,
};
use arrow::util::display::array_value_to_string;
use chrono::{NaiveDate, NaiveDateTime};

use super::manifest::{Entry, Field};

/// Whether the cell at `row` of a column is the expected one.
pub(super) fn is_equal(column: &ArrayRef, row: usize, expected: &Field, entry: &Entry) -> bool {
    let Some(expected) = expected else {
        return column.is_null(row) || is_beyond_doubles(column, row);
    };
    if column.is_null(row) {
        // Numbers that no name of an enumeration stands for.
        if !entry.names.is_empty() && !entry.names.contains_key(expected) {
            return true;
        }
        // xarray does not compare `_FillValue` and `missing_value` with integers that `_Unsigned` turns unsigned.
        let is_signed = entry.stored.as_ref().is_some_and(|stored| stored.starts_with("int"));
        return is_signed && column.data_type().is_unsigned_integer();
    }
    let float = |found: f64| {
        let expected: f64 = expected.parse().unwrap_or(f64::NAN);
        let size = expected.abs().max(entry.offset).max(1.0);
        let tolerance = if entry.packed { 1e-6 * size } else { 0.0 };
        found == expected
            || (found - expected).abs() <= tolerance
            || is_same_single(found, expected)
    };
    match column.data_type() {
        DataType::Float16 => {
            let found = f32::from(column.as_primitive::<Float16Type>().value(row));
            expected.parse::<f32>().is_ok_and(|expected| expected == found)
        }
        DataType::Float32 => {
            let found = column.as_primitive::<Float32Type>().value(row);
            expected.parse::<f32>().is_ok_and(|expected| expected == found) || float(found.into())
        }
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row)),
        DataType::Duration(unit) => {
            let each: i128 = match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1_000,
                TimeUnit::Nanosecond => 1,
            };
            let count = cast(column, &DataType::Int64).unwrap();
            let count = count.as_primitive::<Int64Type>().value(row);
            expected.parse::<i128>().is_ok_and(|expected| expected == i128::from(count) * each)
        }
        DataType::Date32 => {
            let days = column.as_primitive::<Date32Type>().value(row);
            days_of(expected).is_some_and(|expected| expected == i64::from(days))
        }
        DataType::Timestamp(..) => is_time(column, row, expected),
        DataType::Utf8View | DataType::Utf8 => {
            let found = array_value_to_string(column, row).unwrap();
            let named = entry.names.get(expected).is_some_and(|name| *name == found);
            found == *expected || named || is_of_bytes(&found, expected)
        }
        DataType::FixedSizeBinary(_) | DataType::BinaryView => {
            let found = array_value_to_string(column, row).unwrap();
            trimmed(&found) == *expected || found == *expected
        }
        _ => {
            // xarray makes floats of integers with missing cells.
            let found = array_value_to_string(column, row).unwrap();
            let as_float = || Some(found.parse::<f64>().ok()? == expected.parse::<f64>().ok()?);
            found == *expected || as_float().unwrap_or(false)
        }
    }
}

/// Whether two decimals are equally short, and equally near to one `f32`: programs choose between 1352.4062 and
/// 1352.4063 for 1352.40625.
fn is_same_single(one: f64, other: f64) -> bool {
    let (single, digits) = (one as f32, one.to_string());
    let (near, far) = ((f64::from(single) - one).abs(), (f64::from(single) - other).abs());
    single.to_string() == digits
        && other.to_string().len() == digits.len()
        && (near - far).abs() <= 1e-6 * near
}

/// Whether an integer is not exact as a double. xarray compares such integers with fill values as doubles, and so hides
/// some that only round to the fill value.
fn is_beyond_doubles(column: &ArrayRef, row: usize) -> bool {
    let is_long = matches!(column.data_type(), DataType::Int64 | DataType::UInt64);
    let number = array_value_to_string(column, row).unwrap().parse::<i128>();
    is_long && number.is_ok_and(|number| number.unsigned_abs() > 1 << 53)
}

/// Text that xarray shows as bytes: the expected cell is hexadecimal.
fn is_of_bytes(found: &str, expected: &str) -> bool {
    let hexadecimal: String = found.bytes().map(|byte| format!("{byte:02x}")).collect();
    trimmed(&hexadecimal) == trimmed(expected)
}

/// Hexadecimal digits without the NUL bytes at their end.
fn trimmed(digits: &str) -> &str {
    let mut digits = digits;
    while digits.len().is_multiple_of(2) && digits.ends_with("00") {
        digits = &digits[..digits.len() - 2];
    }
    digits
}

/// Times may differ by a microsecond, because tables round floats to microseconds.
fn is_time(column: &ArrayRef, row: usize, expected: &str) -> bool {
    let found = array_value_to_string(column, row).unwrap();
    if found == expected || format!("{found}T00:00:00") == expected {
        return true;
    }
    let one = column.slice(row, 1);
    let nanoseconds = cast(&one, &DataType::Timestamp(TimeUnit::Nanosecond, None));
    let found = nanoseconds.ok().map(|it| it.as_primitive::<TimestampNanosecondType>().value(0));
    let expected = NaiveDateTime::parse_from_str(expected, "%Y-%m-%dT%H:%M:%S%.f").ok();
    let expected = expected.and_then(|it| it.and_utc().timestamp_nanos_opt());
    found.zip(expected).is_some_and(|(found, expected)| found.abs_diff(expected) <= 1000)
}

/// The days from 1970-01-01 to midnight of a date of any year.
fn days_of(text: &str) -> Option<i64> {
    /// Days of 400 years, after which the calendar repeats.
    const CYCLE: i64 = 146_097;
    let date = text.strip_suffix("T00:00:00")?;
    let (year, rest) = date.split_at(date.get(1..)?.find('-')? + 1);
    let year: i64 = year.parse().ok()?;
    let (cycles, year) = (year.div_euclid(400) - 5, year.rem_euclid(400) + 2000);
    let date = NaiveDate::parse_from_str(&format!("{year}{rest}"), "%Y-%m-%d").ok()?;
    Some(cycles * CYCLE + (date - NaiveDate::from_ymd_opt(1970, 1, 1)?).num_days())
}
