//! Whole NetCDF classic files.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::netcdf3::file(input));
