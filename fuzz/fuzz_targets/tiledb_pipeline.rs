//! Tiles through chains of filters.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::tiles::pipeline(input));
