//! Icechunk repositories.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::zarr::repository(input));
