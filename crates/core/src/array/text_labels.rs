//! Typed labels from text, in the narrowest type that holds every label without loss.
//!
//! | all labels look like | type |
//! |---|---|
//! | `0`, `12`, `-7` (no leading zeros, fit in 64 bits) | Int64 |
//! | `1.5`, `-0.25`, `1e-3` (integers may be among them) | Float64 |
//! | `2024-01-31` | Date32 |
//! | `2024-01-31T06:00`, `2024-01-31 06:00:00.5` (dates may be among them) | Timestamp(µs) |
//! | anything else, so `007` stays a code | Utf8View |
//!
//! There are no dictionaries, because DataFusion groups plain columns faster.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Float64Array, Int64Array, StringViewArray, TimestampMicrosecondArray,
};
use chrono::{NaiveDate, NaiveDateTime};

/// Converts `labels` to the narrowest type, one array element per label. Types are tried in the order of the
/// table above, each on all labels.
pub(super) fn infer(labels: &[String]) -> ArrayRef {
    if let Some(values) = all(labels, integer) {
        return Arc::new(Int64Array::from(values));
    }
    if let Some(values) = all(labels, number).filter(|values| is_one_to_one(labels, values)) {
        return Arc::new(Float64Array::from(values));
    }
    if let Some(values) = all(labels, date) {
        return Arc::new(Date32Array::from_iter_values(values.into_iter().map(days_since_1970)));
    }
    if let Some(values) = all(labels, date_time) {
        return Arc::new(TimestampMicrosecondArray::from_iter_values(
            values.iter().map(|time| time.and_utc().timestamp_micros()),
        ));
    }
    Arc::new(StringViewArray::from_iter_values(labels))
}

/// Returns the parsed labels; `None` if there are no labels or one does not parse. Stops at the first
/// failure, so most types are ruled out by one label.
fn all<T>(labels: &[String], parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    if labels.is_empty() {
        return None;
    }
    labels.iter().map(|label| parse(label)).collect()
}

/// Whether labels that differ as text also differ as numbers. `1.1` and `1.10` do not, and neither do
/// two numbers with more digits than a float holds.
fn is_one_to_one(labels: &[String], values: &[f64]) -> bool {
    let texts: HashSet<&str> = labels.iter().map(String::as_str).collect();
    let numbers: HashSet<u64> = values.iter().map(|value| value.to_bits()).collect();
    texts.len() == numbers.len()
}

/// Parses an integer in the form in which it is printed; `-0`, `+1` and `007` give `None`.
fn integer(label: &str) -> Option<i64> {
    let value: i64 = label.parse().ok()?;
    (value.to_string() == label).then_some(value)
}

/// Parses a finite decimal number without leading zeros. Integers beyond 64 bits give `None`, because a
/// float would lose digits.
fn number(label: &str) -> Option<f64> {
    let digits = label.strip_prefix('-').unwrap_or(label);
    let mut first = digits.bytes();
    let leading_zero =
        first.next() == Some(b'0') && first.next().is_some_and(|b| b.is_ascii_digit());
    let decimal = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    let integer_like = digits.bytes().all(|byte| byte.is_ascii_digit());
    if leading_zero
        || !digits.starts_with(|c: char| c.is_ascii_digit())
        || !digits.bytes().all(decimal)
    {
        return None;
    }
    if integer_like && integer(label).is_none() {
        return None;
    }
    label.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Parses `YYYY-MM-DD`, with leading zeros.
fn date(label: &str) -> Option<NaiveDate> {
    let shape = label.len() == 10 && label.as_bytes()[4] == b'-' && label.as_bytes()[7] == b'-';
    if shape { NaiveDate::parse_from_str(label, "%Y-%m-%d").ok() } else { None }
}

/// Parses a date, alone or with a time after `T` or a blank. A `Z` at the end is ignored, as times are UTC.
fn date_time(label: &str) -> Option<NaiveDateTime> {
    let day = date(label.get(..10)?)?;
    let Some(rest) = label[10..].strip_prefix(['T', ' ']) else {
        return if label.len() == 10 { day.and_hms_opt(0, 0, 0) } else { None };
    };
    let clock = rest.strip_suffix('Z').unwrap_or(rest);
    let padded = if clock.len() == 5 { format!("{clock}:00") } else { clock.to_owned() };
    let time = chrono::NaiveTime::parse_from_str(&padded, "%H:%M:%S%.f").ok()?;
    // Reject times finer than the type's microseconds: rounding would lose digits.
    (chrono::Timelike::nanosecond(&time) % 1_000 == 0).then(|| day.and_time(time))
}

fn days_since_1970(date: NaiveDate) -> i32 {
    date.signed_duration_since(NaiveDate::default()).num_days() as i32
}

#[cfg(test)]
mod tests {
    use arrow::util::display::array_value_to_string;

    use super::*;

    fn typed(labels: &[&str]) -> (String, Vec<String>) {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let array = infer(&labels);
        let shown = (0..array.len()).map(|i| array_value_to_string(&array, i).unwrap()).collect();
        (array.data_type().to_string(), shown)
    }

    #[test]
    fn the_narrowest_type_that_loses_nothing() {
        let cases: &[(&[&str], &str)] = &[
            (&["0", "-12", "9223372036854775807"], "Int64"),
            (&["0", "9223372036854775808"], "Utf8View"),
            (&["007", "008"], "Utf8View"),
            (&["-0", "1"], "Utf8View"),
            (&["+1", "2"], "Utf8View"),
            (&["90", "2.5", "-0.25"], "Float64"),
            (&["1e3", "2"], "Float64"),
            (&["00.5", "1"], "Utf8View"),
            (&["nan", "1"], "Utf8View"),
            (&["1.1", "1.10"], "Utf8View"),
            (&["9007199254740993", "9007199254740992", "0.5"], "Utf8View"),
            (&["inf"], "Utf8View"),
            (&["1e999"], "Utf8View"),
            (&["-", "."], "Utf8View"),
            (&["2024-02-29", "1850-01-01"], "Date32"),
            (&["2023-02-29"], "Utf8View"),
            (&["2024-01-01", "2024-01-01T06:30"], "Timestamp(µs)"),
            (&["2024-01-01 06:30:00.25", "2024-01-01T00:00:00Z"], "Timestamp(µs)"),
            (&["2024-01-01T00:00:00.0000001"], "Utf8View"),
            (&["2024-01-01T25:00"], "Utf8View"),
            (&["nyc", "1"], "Utf8View"),
            (&[""], "Utf8View"),
            (&[], "Utf8View"),
        ];
        for (labels, expected) in cases {
            assert_eq!(typed(labels).0, *expected, "{labels:?}");
        }
    }

    #[test]
    fn values_come_through() {
        assert_eq!(typed(&["14.5161295", "-84.19355"]).1, ["14.5161295", "-84.19355"]);
        assert_eq!(typed(&["1969-12-31", "1970-01-02"]).1, ["1969-12-31", "1970-01-02"]);
        assert_eq!(typed(&["2024-01-01 06:30:00.25"]).1, ["2024-01-01T06:30:00.250"]);
    }
}
