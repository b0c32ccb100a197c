//! The blocks with the positions of tiles.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::parsers::tile_index(input));
