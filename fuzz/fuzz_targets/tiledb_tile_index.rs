//! The blocks that tell where tiles are.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::parsers::tile_index(input));
