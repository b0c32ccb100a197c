//! Damaged files: errors or other values, but no panic, no hang and no huge allocation.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::driver::open;
use super::{FILES, folder, rare};
use gridfusion_core::{ErrorKind, Result};

/// Opens a file, and reads the first chunks of each variable. Whether it can be opened.
fn survive(bytes: Vec<u8>) -> bool {
    let Some(file) = checked(open(bytes)) else { return false };
    for number in 0..file.file.hierarchy().variables.len() {
        file.read_some(number);
        checked(file.check_index(number));
    }
    true
}

/// Returns the value of a result. Damage is never a bug of ours.
pub(super) fn checked<T>(result: Result<T>) -> Option<T> {
    result
        .inspect_err(|error| {
            assert!(!matches!(error.kind(), ErrorKind::Internal | ErrorKind::Io), "{error}");
        })
        .ok()
}

fn files() -> Vec<Vec<u8>> {
    let elsewhere = [
        "virtual/old.h5",
        "virtual/latest.h5",
        "external/cells.h5",
        "compounds/latest.h5",
        "compounds/compounds.nc",
        "compounds/nested.h5",
    ];
    let names = FILES.iter().chain(&rare::FILES).chain(&elsewhere);
    names.map(|name| std::fs::read(folder().join(name)).unwrap()).collect()
}

fn rounds(usual: usize) -> usize {
    std::env::var("GRIDFUSION_DAMAGE").ok().and_then(|it| it.parse().ok()).unwrap_or(usual)
}

#[test]
fn truncated_files_are_errors_or_readable() {
    for file in files() {
        assert!(survive(file.clone()));
        let step = (file.len() / rounds(60)).max(1);
        for len in (0..file.len()).step_by(step) {
            survive(file[..len].to_vec());
        }
    }
}

#[test]
fn flipped_bytes_are_errors_or_readable() {
    let mut rng = StdRng::seed_from_u64(5);
    for file in files() {
        let mut opened = 0;
        for _ in 0..rounds(300) {
            let mut damaged = file.clone();
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..damaged.len());
                damaged[at] = match rng.random_range(0..4) {
                    0 => 0,
                    1 => 255,
                    2 => damaged[at].wrapping_add(1),
                    _ => rng.random(),
                };
            }
            opened += usize::from(survive(damaged));
        }
        assert!(opened > 0);
    }
}

/// Fields of several bytes are replaced, such as addresses and lengths.
#[test]
fn replaced_fields_are_errors_or_readable() {
    let mut rng = StdRng::seed_from_u64(6);
    for file in files() {
        for _ in 0..rounds(200) {
            let mut damaged = file.clone();
            let width = [2, 4, 8][rng.random_range(0..3)];
            let at = rng.random_range(0..damaged.len() - width);
            let value: u64 = match rng.random_range(0..4) {
                0 => rng.random_range(0..file.len() as u64),
                1 => u64::MAX >> rng.random_range(0..64),
                2 => 1 << rng.random_range(0..64),
                _ => rng.random(),
            };
            damaged[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            survive(damaged);
        }
    }
}

/// Structures with checksums, and their lengths with the checksum at the end, if it is always the same.
const SUMMED: [(&[u8], Option<usize>); 7] = [
    (b"OHDR", None),
    (b"SMTB", Some(38)),
    (b"\x89HDF\r\n\x1a\n\x03", Some(48)),
    (b"BTHD", Some(38)),
    (b"FRHP", Some(146)),
    (b"FAHD", Some(28)),
    (b"EAHD", Some(72)),
];

/// Returns the ranges of structures with checksums.
fn summed(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    let found = (0..file.len() - 160).filter_map(|start| {
        let (_, len) = SUMMED.iter().find(|(magic, _)| file[start..].starts_with(magic))?;
        let len = len.or_else(|| {
            let flags = file[start + 5];
            let at = start
                + 6
                + if flags & 0x20 != 0 { 16 } else { 0 }
                + if flags & 0x10 != 0 { 4 } else { 0 };
            let width = 1 << (flags & 3);
            let bytes = &file[at..at + width];
            let len = bytes.iter().rev().fold(0, |len, &byte| len << 8 | usize::from(byte));
            Some(at + width + len + 4 - start)
        })?;
        Some(start..start + len).filter(|range| range.end <= file.len())
    });
    found.collect()
}

/// A checksum that is right lets damage through to the parser.
#[test]
fn damage_behind_right_checksums_gives_errors_or_is_readable() {
    let mut rng = StdRng::seed_from_u64(7);
    for file in files() {
        let places = summed(&file);
        if places.is_empty() {
            continue;
        }
        let mut opened = 0;
        for _ in 0..rounds(300) {
            let mut damaged = file.clone();
            let place = places[rng.random_range(0..places.len())].clone();
            let end = place.end - 4;
            for _ in 0..rng.random_range(1..3) {
                let at = rng.random_range(place.start + 4..end);
                damaged[at] = match rng.random_range(0..4) {
                    0 => 0,
                    1 => 255,
                    2 => damaged[at] ^ 1 << rng.random_range(0..8),
                    _ => rng.random(),
                };
            }
            let sum = super::super::parse::checksum(&damaged[place.start..end]);
            damaged[end..place.end].copy_from_slice(&sum.to_le_bytes());
            opened += usize::from(survive(damaged));
        }
        assert!(opened > 0);
    }
}

/// Heaps of many links have tables of blocks, and blocks with filters.
#[test]
fn damaged_heaps_are_errors_or_readable() {
    let mut rng = StdRng::seed_from_u64(8);
    for name in ["many.h5.gz", "many_compressed.h5.gz"] {
        let file = rare::unpacked(name);
        let is_heap =
            |at: &usize| file[*at..].starts_with(b"FRHP") || file[*at..].starts_with(b"FHIB");
        let places: Vec<usize> = (0..file.len()).filter(is_heap).collect();
        for round in 0..rounds(40) {
            let mut damaged = file.clone();
            let place = places[rng.random_range(0..places.len())];
            damaged[place + rng.random_range(0..200)] = rng.random();
            if round % 2 == 0 && damaged[place..].starts_with(b"FRHP") {
                let end = place + if name == "many.h5.gz" { 142 } else { 166 };
                let sum = super::super::parse::checksum(&damaged[place..end]);
                damaged[end..end + 4].copy_from_slice(&sum.to_le_bytes());
            }
            survive(damaged);
        }
    }
}
