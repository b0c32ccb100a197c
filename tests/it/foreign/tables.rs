//! Tables of variables, compared with their expected cells.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion::prelude::SessionContext;
use gridfusion::io::RemoteLimits;
use gridfusion::{ArrayOpener, ArrayOptions, GridfusionSessionContextExt};

use super::cell::is_equal;
use super::manifest::{Entry, csv, entries};
use crate::io::remote::{Link, files};
use crate::sql::ways_in::copy_folder;
use crate::support::object_server::ObjectServer;
use crate::support::{query, reducing, rows_from, shipped, variable};

/// Compares all variables of a folder, which a session reads at `base`, and returns a line for each that differs.
async fn failures(folder: &Path, ctx: &SessionContext, base: &str) -> Vec<String> {
    let mut failures = Vec::new();
    for entry in entries(folder) {
        if is_of_hdf5(folder, &entry.file) && !cfg!(feature = "hdf5") {
            continue;
        }
        if let Err(why) = compared(folder, &entry, ctx, base).await {
            failures.push(format!("{} {}: {why}", entry.file, entry.table));
        }
    }
    failures
}

/// Whether a file, or the file that a reference file names, is HDF5.
fn is_of_hdf5(folder: &Path, file: &str) -> bool {
    let head = std::fs::read(folder.join(file)).unwrap_or_default();
    head.windows(8).take(4096).any(|it| it == b"\x89HDF\r\n\x1a\n")
}

/// Variables that gridfusion refuses, with a word of the reason.
const REFUSED: &[(&str, &str, &str)] = &[
    ("sharded_v3.zarr", "nested", "shards in shards"),
    ("codecs_v2.zarr", "astype", "\"astype\""),
    ("codecs_v2.zarr", "lzma", "\"lzma\""),
    ("codecs_v2.zarr", "packbits", "\"packbits\""),
    ("compliance-checker/trajectory.zarr", "time", "beyond Timestamp"),
    ("tables/b2nd-no-chunkshape.h5", "data", "blosc2"),
    ("tables/float.h5", "longdouble", "floats of 16 bytes"),
];

/// The folder of files whose texts are random bytes.
const BINARY_TEXT: &str = "hdf5plugin/";

async fn compared(
    folder: &Path,
    entry: &Entry,
    ctx: &SessionContext,
    base: &str,
) -> Result<(), String> {
    let location = format!("{base}/{}", entry.file);
    let mut options = ArrayOptions::default().with_dataset(&*entry.table);
    let mut found = rows(ctx, &location, &options).await;
    let is_binary = entry.file.starts_with(BINARY_TEXT);
    if is_binary && found.as_ref().is_err_and(|why| why.contains("text_as_binary = 'true'")) {
        options = options.with_option("text_as_binary", "true");
        found = rows(ctx, &location, &options).await;
    }
    if let Some((.., what)) =
        REFUSED.iter().find(|(file, table, _)| (*file, *table) == (&*entry.file, &*entry.table))
    {
        return match found {
            Err(error) if error.contains(what) => Ok(()),
            other => Err(format!("it is not refused because of {what}: {other:?}")),
        };
    }
    // xarray does not read these. gridfusion may, or gives a reason: it follows soft links, for example.
    let Some(expected) = &entry.csv else { return Ok(()) };
    let found = match found {
        Err(reason) if reason.contains("makes chunks of whole texts") => return Ok(()),
        found => found?,
    };
    let (header, expected) = csv(&folder.join(expected));
    // xarray reads a group alone, so it does not know that a dimension of characters has labels in the parent group.
    let has_more_columns = found.num_columns() == header.len() + 1;
    if has_more_columns && entry.table.contains('/') && entry.dtype.as_deref() == Some("bytes") {
        return Ok(());
    }
    let sampled = found.num_rows().div_ceil(entry.every);
    if (found.num_columns(), sampled) != (header.len(), expected.len()) {
        let (rows, columns) = (found.num_rows(), found.num_columns());
        let (wanted, names) = (expected.len(), header.len());
        return Err(format!("{columns} columns and {rows} rows, expected {names} and {wanted}"));
    }
    for (at, row) in (0..).step_by(entry.every).zip(&expected) {
        for (column, field) in found.columns().iter().zip(row) {
            if !is_equal(column, at, field, entry) {
                let cell = arrow::util::display::array_value_to_string(column, at).unwrap();
                let kind = column.data_type();
                return Err(format!("row {at} has \"{cell}\" ({kind}), expected {field:?}"));
            }
        }
    }
    Ok(())
}

/// All rows of a variable, in row-major order.
async fn rows(
    ctx: &SessionContext,
    location: &str,
    options: &ArrayOptions,
) -> Result<RecordBatch, String> {
    let options = options.clone().with_option("index_columns", "true").with_coordinates(false);
    ctx.deregister_table("t").map_err(|error| error.to_string())?;
    let opened = ctx.register_array("t", location, options).await;
    opened.map_err(|error| error.to_string())?;
    let schema = ctx.table("t").await.map_err(|error| error.to_string())?;
    let names: Vec<String> = schema.schema().fields().iter().map(|it| it.name().clone()).collect();
    let (columns, indices): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| !name.ends_with("_idx"));
    let quoted = |names: &[&String]| {
        names
            .iter()
            .map(|name| format!("\"{}\"", name.replace('"', "\"\"")))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let order =
        if indices.is_empty() { String::new() } else { format!(" ORDER BY {}", quoted(&indices)) };
    let sql = format!("SELECT {} FROM t{order}", quoted(&columns));
    let batches = query(ctx, &sql).await.map_err(|error| error.to_string())?;
    match batches.first() {
        Some(first) => concat_batches(&first.schema(), &batches).map_err(|error| error.to_string()),
        None => {
            let fields = schema.schema().as_arrow().clone();
            let kept: Vec<usize> = (0..columns.len()).collect();
            let fields = fields.project(&kept).map_err(|error| error.to_string())?;
            Ok(RecordBatch::new_empty(fields.into()))
        }
    }
}

/// Fails for variables of a folder that differ.
async fn agree(folder: &Path, ctx: &SessionContext, base: &str) {
    let failures = failures(folder, ctx, base).await;
    assert!(failures.is_empty(), "{} variables differ:\n{}", failures.len(), failures.join("\n"));
}

pub(super) fn fixed_set() -> PathBuf {
    PathBuf::from(shipped("tests/data/foreign"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fixed_set_reads_as_xarray_reads_it() {
    let folder = fixed_set();
    agree(&folder, &reducing(2, 1000), folder.to_str().unwrap()).await;
}

/// Reads, instead of mapping, local files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fixed_set_is_the_same_without_mappings() {
    let (folder, ctx) = (fixed_set(), reducing(1, 100));
    query(&ctx, "SET gridfusion.io = 'pread'").await.unwrap();
    agree(&folder, &ctx, folder.to_str().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fixed_set_is_the_same_in_an_object_store() {
    let folder = fixed_set();
    let link = Link::new(ObjectServer::start(files(&folder, "bucket/foreign")));
    agree(&folder, &link.session(RemoteLimits::default()), "s3://bucket/foreign").await;
}

/// Files of several formats are one table if no format is named. A cluster opens that table again from its origin.
#[cfg(feature = "hdf5")]
#[tokio::test]
async fn files_of_several_formats_are_one_table() {
    let ctx = reducing(1, 8192);
    let files = ["march_cdf1.nc", "january_nc4.nc", "february.zarr"]
        .map(|name| shipped(&format!("tests/data/foreign/{name}")));
    let list = format!("['{}']", files.join("', '"));
    let sql = format!(
        "SELECT date_part('month', time), count(*), min(level), max(level) FROM read_array({list}) GROUP BY 1 ORDER BY 1"
    );
    let expected = [
        ["1", "12", "100.0", "111.0"],
        ["2", "12", "200.0", "211.0"],
        ["3", "12", "300.0", "311.0"],
    ];
    assert_eq!(rows_from(&ctx, &sql).await, expected);

    let folder = tempfile::tempdir().unwrap();
    for file in files.each_ref().map(Path::new) {
        let copy = folder.path().join(file.file_name().unwrap());
        match file.is_dir() {
            true => copy_folder(file, &copy),
            false => _ = std::fs::copy(file, copy).unwrap(),
        }
    }
    ctx.enable_gridfusion_urls();
    let quoted =
        sql.replace(&format!("read_array({list})"), &format!("'{}/*'", folder.path().display()));
    assert_eq!(rows_from(&ctx, &quoted).await, expected);

    let opener = ArrayOpener::from_session(&ctx.state());
    let table = opener.table(&files[..], None, &ArrayOptions::default()).await.unwrap();
    assert_eq!(table.origin().unwrap().format, None);

    let named = format!("SELECT * FROM read_netcdf({list})");
    let error = query(&ctx, &named).await.unwrap_err().to_string();
    assert!(error.contains("february.zarr: this is a Zarr store"), "{error}");
    let options = format!("SELECT * FROM read_array({list}, mode => 'r')");
    let error = query(&ctx, &options).await.unwrap_err().to_string();
    assert!(error.contains("mode"), "{error}");
}

/// A web server has no listings, so a store there must have consolidated metadata.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consolidated_stores_are_read_from_web_servers() {
    let folder = fixed_set();
    let link = Link::new(ObjectServer::start(files(&folder, "bucket/foreign")));
    let (ctx, base) =
        (link.session(RemoteLimits::default()), link.server.url() + "/bucket/foreign");
    for entry in entries(&folder) {
        if ["climate_v2.zarr", "climate_v3.zarr", "groups_v3.zarr"].contains(&&*entry.file) {
            compared(&folder, &entry, &ctx, &base).await.unwrap();
        }
    }
    let requests = link.server.take_requests();
    let other = requests.iter().find(|it| !["GET", "HEAD"].contains(&&*it.method));
    assert!(!requests.is_empty() && other.is_none(), "{other:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs GRIDFUSION_DATASETS: datasets that xarray and other programs wrote"]
async fn random_datasets_and_real_files_read_as_xarray_reads_them() {
    let folder = PathBuf::from(variable("GRIDFUSION_DATASETS"));
    assert!(entries(&folder).len() > 100, "few datasets in {folder:?}");
    agree(&folder, &reducing(2, 1000), folder.to_str().unwrap()).await;
}
