//! Tiles through float scaling.
#![no_main]

use gridfusion_fuzz::tiles;

libfuzzer_sys::fuzz_target!(|input: &[u8]| tiles::filter(tiles::SCALE_FLOAT, input));
