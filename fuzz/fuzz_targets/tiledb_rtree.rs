//! R-trees of sparse fragments.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::sparse::rtree(input));
