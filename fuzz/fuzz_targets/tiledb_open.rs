//! Whole TileDB arrays.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::tiledb::folder(input));
