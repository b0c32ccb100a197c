//! The blocks of tile statistics of a fragment.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::parsers::statistics(input));
