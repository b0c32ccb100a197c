//! Names of sources that have the number of a block: `%b` is the number, and `%%` is `%`.

/// Returns a name with the number of a block, and whether it has one; `None` if it has other letters after `%`.
pub(super) fn named(name: &str, block: u64) -> Option<(String, bool)> {
    let (mut parts, mut has_number) = (name.split('%'), false);
    let mut named = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        if let Some(rest) = part.strip_prefix('b') {
            has_number = true;
            named.push_str(&block.to_string());
            named.push_str(rest);
        } else if part.is_empty() {
            named.push('%');
            named.push_str(parts.next()?);
        } else {
            return None;
        }
    }
    Some((named, has_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers_and_percent_signs() {
        for (name, expected) in [
            ("frame", Some(("frame", false))),
            ("", Some(("", false))),
            ("%b", Some(("17", true))),
            ("a%b/b%b.h5", Some(("a17/b17.h5", true))),
            ("100%%", Some(("100%", false))),
            ("%%b", Some(("%b", false))),
            ("%%%b%%%%", Some(("%17%%", true))),
            ("%", None),
            ("a%%%", None),
            ("%d", None),
        ] {
            let expected = expected.map(|(name, has_number)| (name.to_owned(), has_number));
            assert_eq!(named(name, 17), expected, "{name}");
        }
    }
}
