//! Damaged files: errors or other values, but no panic, no hang and no huge allocation.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::driver::open;
use super::folder;

/// Opens a file, and reads the first chunks of each variable.
fn survive(bytes: Vec<u8>) -> bool {
    let Ok(file) = open(bytes) else { return false };
    (0..file.file.hierarchy().variables.len()).for_each(|number| file.read_some(number));
    true
}

fn files() -> Vec<Vec<u8>> {
    let names = ["compact.h5", "h5netcdf.nc", "indexes.h5", "types.h5", "filters.h5", "netcdf.nc"];
    names.iter().map(|name| std::fs::read(folder().join(name)).unwrap()).collect()
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
