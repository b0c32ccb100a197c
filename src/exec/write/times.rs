//! Dates and times as Arrow writes them, without its patterns.

use chrono::{Datelike, NaiveDate};

/// Days from 0000-12-31, the day before the first of chrono's count, to 1970-01-01.
const DAYS_BEFORE_1970: i32 = 719_163;
const SECONDS_PER_DAY: i64 = 86_400;

/// Appends a date, as `2024-03-01`. Appends nothing and returns false if the year does not have four digits.
pub(super) fn push_date(days: i64, out: &mut Vec<u8>) -> bool {
    let Some(date) = date(days) else { return false };
    let mut text = *b"0000-00-00";
    put_date(&mut text, date);
    out.extend_from_slice(&text);
    true
}

/// Appends a time, as `2024-03-01T06:00:00`, with a fraction of 3, 6 or 9 digits unless that is zero. Appends nothing and returns
/// false if the year does not have four digits.
pub(super) fn push_time<const PER_SECOND: i64>(value: i64, out: &mut Vec<u8>) -> bool {
    let seconds = value.div_euclid(PER_SECOND);
    let Some(date) = date(seconds.div_euclid(SECONDS_PER_DAY)) else { return false };
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    let nanoseconds = value.rem_euclid(PER_SECOND) * (1_000_000_000 / PER_SECOND);
    let mut text = *b"0000-00-00T00:00:00.000000000";
    put_date(&mut text, date);
    put(&mut text[11..13], second / 3600);
    put(&mut text[14..16], second / 60 % 60);
    put(&mut text[17..19], second % 60);
    let length = match nanoseconds {
        0 => 19,
        _ if nanoseconds % 1_000_000 == 0 => 23,
        _ if nanoseconds % 1000 == 0 => 26,
        _ => 29,
    };
    if length > 19 {
        put(&mut text[20..], nanoseconds);
    }
    out.extend_from_slice(&text[..length]);
    true
}

/// Returns the date of a number of days since 1970, if its year has four digits.
fn date(days: i64) -> Option<NaiveDate> {
    let days = i32::try_from(days).ok()?.checked_add(DAYS_BEFORE_1970)?;
    NaiveDate::from_num_days_from_ce_opt(days).filter(|date| (0..=9999).contains(&date.year()))
}

fn put_date(text: &mut [u8], date: NaiveDate) {
    put(&mut text[..4], date.year().into());
    put(&mut text[5..7], date.month().into());
    put(&mut text[8..10], date.day().into());
}

/// Fills `text` with the last digits of a number.
fn put(text: &mut [u8], mut number: i64) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}
