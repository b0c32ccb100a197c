//! Tiles through LZ4.
#![no_main]

use gridfusion_fuzz::tiles;

libfuzzer_sys::fuzz_target!(|input: &[u8]| tiles::filter(tiles::LZ4, input));
