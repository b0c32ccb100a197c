//! Similar names, and the hints that suggest them.

use std::collections::BTreeSet;

use datafusion::common::utils::quote_identifier;
use strsim::osa_distance;

/// Number of names that a hint lists if none is similar to the missing one.
const LISTED: usize = 8;

pub(crate) fn did_you_mean(name: &str) -> String {
    format!("did you mean {name}?")
}

/// Suggests the candidate most similar to `name`, or lists the candidates.
pub(crate) fn meant<'a>(
    name: &str,
    kind: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let candidates: BTreeSet<&str> = candidates.collect();
    match closest(name, candidates.iter().copied()) {
        Some(candidate) => Some(did_you_mean(&quote_identifier(candidate))),
        None if candidates.is_empty() => None,
        None => {
            let quoted = candidates.iter().map(|name| quote_identifier(name).into_owned());
            Some(list(kind, quoted))
        }
    }
}

/// Returns `the KIND are A, B and 3 more`.
pub(crate) fn list(kind: &str, names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let listed = names.take(LISTED).collect::<Vec<_>>().join(", ");
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("the {kind} are {listed}{rest}")
}

/// Returns the candidate with the fewest wrong letters, if one is similar to `name`. Ties go to the first in
/// the alphabet.
pub(crate) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let near = candidates.filter(|candidate| is_like(name, candidate));
    near.min_by_key(|candidate| (distance(name, candidate), *candidate))
}

/// Whether one name may be a typing error for the other: at most a third of the letters (rounded up) are
/// wrong, and not all of them. Case does not matter.
pub(crate) fn is_like(name: &str, candidate: &str) -> bool {
    let length = name.chars().count().max(candidate.chars().count());
    let wrong = distance(name, candidate);
    wrong <= length.div_ceil(3) && wrong < length
}

/// Returns how many letters must be added, removed, replaced or swapped with the next one to make one name the other, in any case.
pub(crate) fn distance(name: &str, candidate: &str) -> usize {
    osa_distance(&name.to_lowercase(), &candidate.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_alike_up_to_a_third() {
        assert!(is_like("tempreture", "temperature") && is_like("TEMP", "temp"));
        assert!(is_like("tmie", "time") && is_like("t1", "t2"));
        assert!(!is_like("a", "b") && !is_like("", "a") && !is_like("abc", "axy"));
        assert_eq!(closest("tm2", ["time", "t2m"].into_iter()), Some("t2m"));
        for (name, candidate, expected) in [
            ("", "abc", 3),
            ("abc", "acb", 1),
            ("ca", "abc", 3),
            ("É", "é", 0),
            ("abcd", "abxd", 1),
        ] {
            assert_eq!(distance(name, candidate), expected, "{name} {candidate}");
            assert_eq!(distance(candidate, name), expected, "{candidate} {name}");
        }
        let candidates = ["elevation", "temperatures", "temperature"];
        assert_eq!(closest("temperatur", candidates.into_iter()), Some("temperature"));
        assert_eq!(closest("rain", candidates.into_iter()), None);
    }

    #[test]
    fn lists_are_short() {
        let names = |n: usize| (0..n).map(|at| format!("t{at}"));
        assert_eq!(list("tables", names(2)), "the tables are t0, t1");
        assert!(list("tables", names(20)).ends_with("t6, t7 and 12 more"));
    }
}
