//! Tiles through MD5 checksums.
#![no_main]

use gridfusion_fuzz::tiles;

libfuzzer_sys::fuzz_target!(|input: &[u8]| tiles::filter(tiles::MD5, input));
