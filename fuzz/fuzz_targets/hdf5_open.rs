//! Whole NetCDF-4 and HDF5 files.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| gridfusion_fuzz::hdf5::file(input));
