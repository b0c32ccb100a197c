//! Tiles through run-length encoding, of cells or of strings.
#![no_main]

use gridfusion_fuzz::tiles;

libfuzzer_sys::fuzz_target!(|input: &[u8]| tiles::filter(tiles::RUN_LENGTH, input));
