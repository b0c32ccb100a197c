//! Names and contents of the files that commit fragments.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::parsers::commits(input));
