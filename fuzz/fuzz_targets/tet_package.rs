//! Packages of `.tet` files.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::tet::package(input));
