//! Conditions of deletes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::sparse::delete_condition(input));
