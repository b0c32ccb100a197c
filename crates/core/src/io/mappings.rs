//! Finds the mapped file at an address, for handlers of SIGBUS.
//!
//! The system sends this signal for a mapped page that it cannot provide. A signal handler may neither lock
//! nor allocate, so mappings are registered in a table of fixed size that is read with atomic loads:
//!
//! ```text
//!   start   end     name
//!   0x7f…   0x7f…   data/2024.tet        a mapping
//!   0                                    a free place
//! ```

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The number of mappings that the table can hold. A handler does not find mappings beyond that.
const PLACES: usize = 4096;
/// The number of bytes kept of a name; a longer name loses its beginning.
const NAME_BYTES: usize = 256;
/// Values of `start` for places without a mapping: nothing is mapped at these addresses.
const FREE: usize = 0;
const TAKEN: usize = 1;

/// The table, of about 1.1 MiB. Pages of it that no mapping has used take no memory.
static TABLE: [MappingSlot; PLACES] = [const { MappingSlot::new() }; PLACES];
/// The place at which the next search for a free place begins.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A row of the table. `start` is written last and read first: other fields are valid only if it is an
/// address.
struct MappingSlot {
    start: AtomicUsize,
    end: AtomicUsize,
    length: AtomicUsize,
    name: [AtomicU8; NAME_BYTES],
}

impl MappingSlot {
    const fn new() -> Self {
        Self {
            start: AtomicUsize::new(FREE),
            end: AtomicUsize::new(0),
            length: AtomicUsize::new(0),
            name: [const { AtomicU8::new(0) }; NAME_BYTES],
        }
    }

    /// Whether a file is mapped at `address` through this place.
    fn holds(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        start > TAKEN && (start..self.end.load(Ordering::Relaxed)).contains(&address)
    }
}

/// A mapping that is registered in the table until this value is dropped.
#[derive(Debug)]
pub(super) struct Registration(Option<usize>);

impl Registration {
    /// Registers that the file `name` is mapped at these addresses. A full table does not register it.
    pub(super) fn new(name: &str, addresses: Range<usize>) -> Self {
        // Search from the place after the last one taken: in a table of many mappings, it is mostly free.
        let first = NEXT.load(Ordering::Relaxed);
        let take = |at: &usize| {
            let start = &TABLE[*at].start;
            start.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let taken = (0..PLACES).map(|step| (first + step) % PLACES).find(take);
        if let Some(at) = taken {
            NEXT.store(at + 1, Ordering::Relaxed);
            let place = &TABLE[at];
            let name = ending(name).as_bytes();
            for (kept, byte) in place.name.iter().zip(name) {
                kept.store(*byte, Ordering::Relaxed);
            }
            place.length.store(name.len(), Ordering::Relaxed);
            place.end.store(addresses.end, Ordering::Relaxed);
            place.start.store(addresses.start, Ordering::Release);
        }
        Self(taken)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(at) = self.0 {
            TABLE[at].start.store(FREE, Ordering::Release);
        }
    }
}

/// Returns the end of `name`, cut at a character so that it fits in the table.
fn ending(name: &str) -> &str {
    let from = name.len().saturating_sub(NAME_BYTES);
    (from..name.len()).find_map(|from| name.get(from..)).unwrap_or_default()
}

/// The name of a mapped file.
#[derive(Debug, Clone)]
pub struct MappedFile {
    name: [u8; NAME_BYTES],
    length: usize,
}

impl MappedFile {
    /// Returns the file that this library has mapped at `address`, if any. Takes no lock, allocates nothing
    /// and cannot panic, so a signal handler may call it.
    pub fn at(address: usize) -> Option<Self> {
        let place = TABLE.iter().find(|place| place.holds(address))?;
        let mut name = [0; NAME_BYTES];
        for (byte, kept) in name.iter_mut().zip(&place.name) {
            *byte = kept.load(Ordering::Relaxed);
        }
        Some(Self { name, length: place.length.load(Ordering::Relaxed) })
    }

    /// Returns the file's name as in errors, without the beginning of a very long one.
    pub fn name(&self) -> &[u8] {
        self.name.get(..self.length).unwrap_or(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_at(address: usize) -> Option<String> {
        MappedFile::at(address).map(|file| String::from_utf8(file.name().to_vec()).unwrap())
    }

    #[test]
    fn files_are_found_by_address_while_they_are_mapped() {
        let (a, b) = (Registration::new("a.tet", 100..200), Registration::new("b.tet", 200..300));
        assert_eq!(name_at(99), None);
        assert_eq!(name_at(100).as_deref(), Some("a.tet"));
        assert_eq!(name_at(199).as_deref(), Some("a.tet"));
        assert_eq!(name_at(200).as_deref(), Some("b.tet"));
        drop(a);
        assert_eq!(name_at(100), None);
        assert_eq!(name_at(299).as_deref(), Some("b.tet"));
        drop(b);
        assert_eq!(name_at(250), None);
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        let long = format!("{}/é/last.tet", "ü".repeat(NAME_BYTES));
        let registration = Registration::new(&long, 1_000..2_000);
        let name = name_at(1_500).unwrap();
        assert!(name.len() <= NAME_BYTES && name.ends_with("ü/é/last.tet"), "{name}");
        drop(registration);
    }

    #[test]
    fn places_are_used_again() {
        for round in 0..3 * PLACES {
            let registration = Registration::new("c.tet", 5_000..6_000);
            assert!(registration.0.is_some(), "{round}");
        }
        assert_eq!(name_at(5_500), None);
    }
}
