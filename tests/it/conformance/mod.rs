//! The suite that every format must pass. It writes the same logical arrays in each format, and compares
//! the tables over them with the same rows in memory.
//!
//! ```text
//!   arrays() ──▶ Logical ──┬── FormatUnderTest::write ──▶ files ──▶ doors ──▶ table t
//!                          └── rows, cell by cell ─────────────────────────▶ table t in memory
//! ```
//!
//! To add a format, implement `FormatUnderTest` and add a line below. Its `Capabilities` describe what the
//! format cannot hold; the checks are the same for all formats.

/// The arrays that the suite writes in each format.
mod arrays;
/// A third format, for tests only.
mod blocks;
/// The third format in the suite, and further tests of it.
mod blocks_under_test;
/// The checks.
mod checks;
/// The library's methods that open tables.
pub(crate) mod doors;
/// The interface of a format to the suite.
pub(crate) mod format;
/// A writer of HDF5 files.
pub(crate) mod hdf5_file;
/// Icechunk in the suite, in both specifications.
mod icechunk;
/// Arrays independent of any format.
pub(crate) mod logical;
/// NetCDF's classic format in the suite.
pub(crate) mod netcdf3;
/// A writer of files of NetCDF's classic format.
mod netcdf3_file;
/// NetCDF-4 in the suite.
pub(crate) mod netcdf4;
/// One array in one format, and in memory.
pub(crate) mod subject;
/// The `.tet` format in the suite.
pub(crate) mod tet;
/// The TileDB format in the suite.
pub(crate) mod tiledb;
/// Formats with one fault each, which a check must find.
mod wrong;
/// Zarr in the suite, in both versions.
pub(crate) mod zarr;
/// Zarr in zip files in the suite.
mod zarr_in_zip;

/// One test per check, over all arrays.
macro_rules! each_check {
    ($format:expr, $($group:ident :: $check:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                for array in crate::conformance::arrays::arrays() {
                    let subject = crate::conformance::subject::Subject::new(&$format, &array);
                    crate::conformance::checks::$group::$check(&subject).await;
                }
            }
        )*
    };
}

/// The tests of a format, in the module `$name`.
macro_rules! conforms {
    ($name:ident, $format:expr) => {
        mod $name {
            each_check! {
                $format,
                rows::columns_and_types,
                rows::all_rows,
                rows::random_queries,
                predicates::labels_prune_chunks,
                predicates::stored_bounds_prune_chunks,
                predicates::labels_answer_without_payloads,
                queries::groups_become_reductions,
                queries::orders_limits_and_projections,
                travel::plans_travel,
                travel::plans_run_on_workers,
                ways_in::external_table,
                ways_in::table_function,
                ways_in::quoted_path,
                ways_in::object_store,
                ways_in::schema,
                ways_in::catalog,
                ways_in::several_files,
                facts::info_has_shapes_and_types,
                facts::chunks_have_places,
                facts::chunks_have_bounds,
                facts::attributes_are_listed,
                facts::facts_from_a_store,
                facts::mistakes_are_named,
                health::verification_passes,
                health::mistakes_are_plan_errors,
                health::damaged_metadata_is_an_error,
            }
        }
    };
}

conforms!(of_tet, crate::conformance::tet::Tet);
conforms!(of_blocks, crate::conformance::blocks_under_test::BlocksUnderTest);
conforms!(of_tiledb, crate::conformance::tiledb::TileDb);
conforms!(of_zarr_2, crate::conformance::zarr::Zarr2);
conforms!(of_zarr_3, crate::conformance::zarr::Zarr3);
conforms!(of_zarr_in_zip, crate::conformance::zarr_in_zip::ZarrInZip);
conforms!(of_icechunk_1, crate::conformance::icechunk::Icechunk(1));
conforms!(of_icechunk_2, crate::conformance::icechunk::Icechunk(2));
conforms!(of_netcdf_3, crate::conformance::netcdf3::NetCdf3);
conforms!(of_netcdf_4, crate::conformance::netcdf4::NetCdf4);
