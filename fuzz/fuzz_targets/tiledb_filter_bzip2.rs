//! Tiles through bzip2.
#![no_main]

use gridfusion_fuzz::tiles;

libfuzzer_sys::fuzz_target!(|input: &[u8]| tiles::filter(tiles::BZIP2, input));
