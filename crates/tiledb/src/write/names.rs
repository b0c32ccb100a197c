//! Names of new files: when they were written, and a number that no other file has.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{SystemTime, UNIX_EPOCH};

use super::schema::VERSION;

/// The name of the schema of a new array. It is the object that makes the array visible, so all writers of an array give it one
/// name: the second of two fails.
///
/// TileDB takes the last schema in the order of names as texts. So the time, which is one in 2001, has as many digits as later ones.
pub(super) const FIRST_SCHEMA: &str =
    "__1000000000000_1000000000000_00000000000000000000000000000001";

/// Returns the present time in milliseconds since 1970.
pub(super) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Returns a name of this time with a new random number.
pub(super) fn timed_name(time: u64) -> String {
    // Each state has keys of its own, which the system chooses at random.
    let half = || RandomState::new().hash_one(time);
    format!("__{time}_{time}_{:016x}{:016x}", half(), half())
}

/// Returns the name of a new fragment of this time.
pub(super) fn fragment_name(time: u64) -> String {
    format!("{}_{VERSION}", timed_name(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_the_same() {
        let names: std::collections::BTreeSet<String> = (0..1000).map(|_| timed_name(7)).collect();
        assert_eq!(names.len(), 1000);
        assert!(names.iter().all(|name| name.len() == "__7_7_".len() + 32));
    }
}
