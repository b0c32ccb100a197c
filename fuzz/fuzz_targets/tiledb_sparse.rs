//! Sparse arrays whose blocks and tiles are the input.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::sparse::array(input));
