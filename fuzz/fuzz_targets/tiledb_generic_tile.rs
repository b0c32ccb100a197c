//! Generic tiles, the envelope of schemas, metadata and other small structures.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::parsers::generic_tile(input));
