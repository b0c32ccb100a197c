//! Runs each file of `tests/slt/formats` over the same arrays in each format, and over the same rows in memory.

use std::path::Path;
use std::sync::Arc;

use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;

use super::arrays::{air, arrays};
use super::sparse::SparseTileDb;
use super::{check, files_of};
use crate::conformance::doors;
use crate::conformance::format::FormatUnderTest;
use crate::conformance::logical::{Labels, Logical};

/// Tables: a name, and the locations of the table's files.
type Tables = Vec<(&'static str, Vec<String>)>;

/// Writes all arrays that the format can hold.
fn write(label: &str, format: &dyn FormatUnderTest, folder: &Path) -> Tables {
    let holds = format.capabilities().holds;
    let put = |array: &Logical, name: &str| {
        let path = folder.join(format!("{name}{}", format.suffix()));
        format.write(array, &path);
        path.to_str().unwrap().to_owned()
    };
    let held = arrays().into_iter().filter(|array| {
        array.axes.iter().all(|axis| matches!(axis.labels, Labels::Index(_)) || holds(&axis.labels))
    });
    let mut tables: Tables =
        held.map(|array| (array.name, vec![put(&array, array.name)])).collect();
    // Several sparse arrays cannot be one table.
    if label != "sparse" {
        let [first, second] = air().halves();
        tables.push(("parts", vec![put(&second, "part-2"), put(&first, "part-1")]));
    }
    tables
}

/// Files that need a table which not every format has.
const NEEDS: [(&str, &str); 2] = [("labels.slt", "towns"), ("mosaics.slt", "parts")];

/// Runs all files whose tables the format can hold.
async fn check_format(label: &str, format: &dyn FormatUnderTest) {
    let folder = tempfile::tempdir().unwrap();
    let tables = write(label, format, folder.path());
    for file in files_of("tests/slt/formats") {
        let lacks = |table: &str| tables.iter().all(|(name, _)| *name != table);
        if NEEDS.iter().any(|(name, table)| file.ends_with(name) && lacks(table)) {
            continue;
        }
        let register = async |ctx: &SessionContext| {
            for (name, locations) in &tables {
                doors::register(ctx, name, locations.clone()).await.unwrap();
            }
        };
        check(&file, label, register).await;
    }
}

macro_rules! each_format {
    ($($name:ident: $format:expr,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                check_format(stringify!($name), &$format).await;
            }
        )*
    };
}

each_format! {
    tet: crate::conformance::tet::Tet,
    zarr_2: crate::conformance::zarr::Zarr2,
    zarr_3: crate::conformance::zarr::Zarr3,
    netcdf_3: crate::conformance::netcdf3::NetCdf3,
    netcdf_4: crate::conformance::netcdf4::NetCdf4,
    tiledb: crate::conformance::tiledb::TileDb,
    sparse: SparseTileDb,
}

/// Shows that the answers are those of SQL, and no format's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_in_memory() {
    let hours = crate::conformance::tet::Tet.capabilities().hours;
    let register = async |ctx: &SessionContext| {
        for (name, array) in
            arrays().into_iter().map(|array| (array.name, array)).chain([("parts", air())])
        {
            let rows = array.rows(&hours);
            let table = MemTable::try_new(rows.schema(), vec![vec![rows]]).unwrap();
            ctx.register_table(name, Arc::new(table)).unwrap();
        }
    };
    for file in files_of("tests/slt/formats") {
        check(&file, "memory", register).await;
    }
}
