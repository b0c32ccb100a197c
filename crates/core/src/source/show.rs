//! Formats sizes, shapes and times for people.

use chrono::{DateTime, SecondsFormat, Utc};

/// Formats a number of bytes: `512 B`, or with one decimal `1.5 GiB`.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        // A size that would be rounded to 1024.0 is shown in the next unit.
        if size < 1023.95 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    format!("{size:.1} {unit}")
}

/// Formats a shape: `1440 × 6`.
pub fn shape_text(lengths: &[u64]) -> String {
    let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
    lengths.join(" × ")
}

/// Formats a number of chunks and their shape: `6 of 240 × 6`; the only chunk of a scalar has no shape.
pub(crate) fn chunks_text(chunks: u64, chunk_shape: &[u64]) -> String {
    match chunk_shape {
        [] => chunks.to_string(),
        _ => format!("{chunks} of {}", shape_text(chunk_shape)),
    }
}

/// Formats a time in seconds since 1970 as a date; `None` for times beyond the range of dates.
pub fn utc_seconds(seconds: i64) -> Option<String> {
    DateTime::from_timestamp(seconds, 0).map(utc)
}

/// Formats a time in milliseconds since 1970 as a date, or as a number for times beyond the range of dates.
pub fn utc_milliseconds(milliseconds: u64) -> String {
    let time = i64::try_from(milliseconds).ok().and_then(DateTime::from_timestamp_millis);
    time.map_or_else(|| milliseconds.to_string(), utc)
}

fn utc(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536 << 20, "1.5 GiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }

    #[test]
    fn shapes() {
        assert_eq!((shape_text(&[1440, 6]), shape_text(&[])), ("1440 × 6".into(), String::new()));
        assert_eq!(chunks_text(6, &[240, 6]), "6 of 240 × 6");
    }

    #[test]
    fn times() {
        assert_eq!(utc_seconds(1_700_000_000).unwrap(), "2023-11-14T22:13:20Z");
        assert_eq!(utc_milliseconds(10), "1970-01-01T00:00:00.010Z");
        assert_eq!(utc_seconds(i64::MAX), None);
        assert_eq!(utc_milliseconds(u64::MAX), u64::MAX.to_string());
    }
}
