//! Sizes in bytes, as users write them.

/// Parses bytes from `1048576`, `512k`, `500m`, `2g` or `2GiB`. Units are powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let factor: Option<u64> = match unit {
        "" | "b" => Some(1),
        "k" | "kb" | "kib" => Some(1 << 10),
        "m" | "mb" | "mib" => Some(1 << 20),
        "g" | "gb" | "gib" => Some(1 << 30),
        "t" | "tb" | "tib" => Some(1 << 40),
        _ => None,
    };
    let bytes = factor.and_then(|factor| number.parse::<u64>().ok()?.checked_mul(factor));
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "expected a number with a unit b, k, m, g or t, for instance 2g".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("7", 7), ("7B", 7), ("3k", 3 << 10), ("5MiB", 5 << 20), ("1Gb", 1 << 30)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "g", "-1g", "1.5g", "0", "1x", "99999999999999999999", "99999999999t"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
