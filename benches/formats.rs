//! Compares queries of Zarr stores and NetCDF files, read in place, with only decoding their chunks, and with the
//! libraries that users have.
//!
//! The field has 1000 days × 165 latitudes × 144 longitudes of f32 (95 MB), in chunks of 25 days. The variants
//! differ in format and compression; two have the ragged chunks that zarr-python chooses. Two are also in a zip file and in an
//! Icechunk repository. "Decoding alone"
//! decodes the same chunks from mapped files on two threads, without aggregating. `formats_peer.py` writes the
//! variants that need Python and measures zarr-python, netCDF4, xarray and xarray-sql. Without `python3` and these
//! modules, the bench leaves them out. `GRIDFUSION_BENCH_LARGE=1` makes the field 1 GB, and
//! `GRIDFUSION_BENCH_SMALL=1` shrinks it for a smoke run.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::common::field::{DAYS_SINCE, Field};
use crate::common::figures::{Figures, Query};
use crate::common::repacked::{icechunk, store_objects, stored_arrays, zipped};
use crate::common::stored_chunks::{Encoding, StoredChunks};
use crate::common::support::{query, reducing};
use crate::common::zarr_files::{
    Place, netcdf3, node3, put, put_axes, put_many_chunks, put_nodes, raw, zarr2, zarr3,
};
use crate::common::{is_small, run, runtime};

/// The chunks that zarr-python 2 chooses for such an array: small, and cut on all axes.
const RAGGED: [usize; 3] = [50, 46, 90];

/// Chunks along the time in a shard.
const CHUNKS_PER_SHARD: usize = 4;

/// The stores that are also in a zip file and in an Icechunk repository.
const REPACKED: [&str; 2] = ["Zarr 3, uncompressed", "Zarr 3, zstd"];

/// A query, its name in `FIGURES.md` and its name in `formats_peer.py`.
const QUERIES: [(&str, &str, &str); 2] = [
    ("mean by latitude", "by_lat", "SELECT lat, avg(value) FROM t GROUP BY lat"),
    ("map of means", "map", "SELECT lat, lon, avg(value) FROM t GROUP BY lat, lon"),
];

/// A box of cells in one ragged chunk, also of the small field.
const BOX: &str = "SELECT avg(value) FROM t WHERE time BETWEEN '2000-02-22' AND '2000-02-28' \
                   AND lat BETWEEN 33 AND 35 AND lon BETWEEN 25 AND 50";

/// The field in one format.
struct Variant {
    name: &'static str,
    location: PathBuf,
    chunks: StoredChunks,
}

impl Variant {
    fn new(
        name: &'static str,
        location: PathBuf,
        encoding: Encoding,
        chunk: [usize; 3],
        places: &[Place],
    ) -> Self {
        let raw_len = chunk.iter().product::<usize>() * 4;
        Self { name, location, chunks: StoredChunks::new(encoding, raw_len, places) }
    }

    /// Checks gridfusion's means, and the sum of the cells that the loops decode.
    fn check(&self, runtime: &Runtime, ctx: &SessionContext, field: &Field) {
        let sql = "SELECT avg(value) FROM t GROUP BY lat ORDER BY lat DESC";
        let batches = runtime.block_on(query(ctx, sql)).unwrap();
        let means = batches.iter().flat_map(|batch| {
            batch.column(0).as_primitive::<Float64Type>().values().iter().copied()
        });
        let (means, expected): (Vec<f64>, _) = (means.collect(), field.means_by_lat());
        assert_eq!(means.len(), expected.len(), "{}", self.name);
        let are_close = |a: f64, b: f64| (a - b).abs() < 1e-6 * b.abs();
        let is_right =
            means.iter().zip(&expected).all(|(mean, expected)| are_close(*mean, *expected));
        assert!(is_right, "{}: {means:?}, expected {expected:?}", self.name);
        let mean = self.chunks.sum() / field.values.len() as f64;
        let expected = expected.iter().sum::<f64>() / expected.len() as f64;
        assert!(are_close(mean, expected), "{}: {mean}, expected {expected}", self.name);
    }
}

/// Writes the field in the formats for which the bench has writers.
fn variants(folder: &Path, field: &Field, chunk: [usize; 3]) -> Vec<Variant> {
    let zarr3 = |name, file: &str, encoding, chunk, shard| {
        let store = folder.join(file);
        let is_zstd = matches!(encoding, Encoding::Zstd);
        let places = zarr3(&store, field, chunk, is_zstd, shard);
        Variant::new(name, store, encoding, chunk, &places)
    };
    let packed = folder.join("zlib.zarr");
    let packed_places = zarr2(&packed, field, chunk);
    let classic = folder.join("classic.nc");
    let part = chunk.iter().product::<usize>() * 4;
    let classic_places = netcdf3(&classic, field, part);
    vec![
        zarr3("Zarr 3, uncompressed", "raw.zarr", Encoding::Raw, chunk, None),
        zarr3("Zarr 3, zstd", "zstd.zarr", Encoding::Zstd, chunk, None),
        zarr3(
            "Zarr 3, zstd, in shards",
            "shards.zarr",
            Encoding::Zstd,
            chunk,
            Some(CHUNKS_PER_SHARD),
        ),
        Variant::new(
            "Zarr 2, shuffle and zlib",
            packed,
            Encoding::ShuffledZlib,
            chunk,
            &packed_places,
        ),
        Variant::new("NetCDF classic", classic, Encoding::BigEndian, chunk, &classic_places),
        zarr3("Zarr 3, uncompressed, ragged", "ragged.zarr", Encoding::Raw, RAGGED, None),
        zarr3("Zarr 3, zstd, ragged", "ragged_zstd.zarr", Encoding::Zstd, RAGGED, None),
    ]
}

/// Runs `formats_peer.py`; `None` if none of its tools is installed.
fn peer(folder: &Path, arguments: &[&str]) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join("formats_peer.py");
    match Command::new("python3").arg(script).arg(folder).args(arguments).output().ok()? {
        output if output.status.success() => Some(serde_json::from_slice(&output.stdout).unwrap()),
        output if output.status.code() == Some(3) => None,
        output => panic!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Returns the variants that Python writes, of those whose modules are installed.
fn variants_of_peer(folder: &Path, field: &Field, chunk: [usize; 3]) -> Vec<Variant> {
    let (time, lat, lon) = field.labels();
    let about = json!({
        "shape": field.shape, "chunk": chunk, "units": DAYS_SINCE,
        "labels": {"time": time, "lat": lat, "lon": lon},
    });
    std::fs::write(folder.join("field.json"), about.to_string()).unwrap();
    let bytes: Vec<u8> = field.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(folder.join("value.f32"), bytes).unwrap();
    let made = peer(folder, &["--make"]).unwrap_or_default();
    let variant = |(key, name, encoding): (&str, _, _)| {
        let Some(made) = made.get(key) else {
            println!("the Python modules for \"{name}\" are not installed; it is left out");
            return None;
        };
        let place = |place: &Value| -> Place {
            let [start, len] = [1, 2].map(|at| place[at].as_u64().unwrap() as usize);
            (place[0].as_str().unwrap().into(), start..start + len)
        };
        let places: Vec<Place> = made["chunks"].as_array().unwrap().iter().map(place).collect();
        let location = made["path"].as_str().unwrap().into();
        Some(Variant::new(name, location, encoding, chunk, &places))
    };
    let known = [
        ("blosc", "Zarr 2, shuffle and LZ4 in Blosc", Encoding::Blosc),
        ("netcdf4", "NetCDF-4, shuffle and zlib", Encoding::ShuffledZlib),
    ];
    known.into_iter().filter_map(variant).collect()
}

/// A new session with the variable `name` of a store as the table `t`.
async fn open(location: &Path, name: &str) -> SessionContext {
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset(name);
    ctx.register_array("t", location.to_str().unwrap(), options).await.unwrap();
    ctx
}

/// Measures both queries of each variant.
fn compare_variants(
    runtime: &Runtime,
    folder: &Path,
    variants: &[Variant],
    field: &Field,
    measured: &Value,
) {
    let mut figures = Figures::new("formats");
    for variant in variants {
        let ctx = runtime.block_on(open(&variant.location, "value"));
        variant.check(runtime, &ctx, field);
        let of_peer = &measured["stores"][variant.name];
        for (name, key, sql) in QUERIES {
            let name = format!("{name}: {}", variant.name);
            let decode = || variant.chunks.decode();
            figures.compare(
                &*name,
                || run(runtime, &ctx, sql),
                vec![("decoding alone", Box::new(decode))],
            );
            let mut others = Vec::new();
            if let Some(ms) = of_peer["ms"][key].as_f64() {
                others.push((of_peer["tool"].as_str().unwrap(), ms));
            }
            if let (ZSTD, "by_lat", Some(ms)) = (variant.name, key, measured["xarray_sql"].as_f64())
            {
                others.push(("xarray-sql", ms));
            }
            if !others.is_empty() {
                let opened =
                    || run(runtime, &runtime.block_on(open(&variant.location, "value")), sql);
                figures.beside_peers(&*name, opened, others);
            }
        }
    }
    for store in variants.iter().filter(|it| REPACKED.contains(&it.name)) {
        compare_places(runtime, folder, store, &mut figures);
    }
    figures.finish();
}

/// Compares a store with its chunks in a zip file and in an Icechunk repository.
fn compare_places(runtime: &Runtime, folder: &Path, store: &Variant, figures: &mut Figures) {
    let arrays = stored_arrays(&store.location);
    let (archive, repository) = (folder.join("copy.zarr.zip"), folder.join("copy.icechunk"));
    let _ = std::fs::remove_dir_all(&repository);
    for (object, bytes) in icechunk(&arrays, 1000) {
        put(&repository.join(object), &bytes);
    }
    put(&archive, &zipped(&store_objects(arrays)));
    let ctx = runtime.block_on(open(&store.location, "value"));
    for (place, location) in [("in a zip file", &archive), ("in Icechunk", &repository)] {
        let copied = runtime.block_on(open(location, "value"));
        for (name, _, sql) in QUERIES {
            let name = format!("{name}: {}, {place}", store.name);
            figures.compare(
                &*name,
                || run(runtime, &copied, sql),
                vec![("the same store", Box::new(|| run(runtime, &ctx, sql)))],
            );
        }
    }
}

/// The variant that xarray-sql reads, too.
const ZSTD: &str = "Zarr 3, zstd";

/// The numbers of variables of a store, and of chunks along each axis of an array, that have only metadata.
fn many() -> (usize, usize) {
    if is_small() { (30, 30) } else { (300, 1000) }
}

/// Writes the metadata of a store of many variables.
fn put_many_variables(store: &Path, field: &Field) {
    let mut nodes = Map::new();
    put_axes(store, &mut nodes, field);
    let [_, lats, lons] = field.shape;
    for number in 0..many().0 {
        let attributes = json!({"units": "K", "long_name": format!("variable number {number}")});
        let (dims, chunk) = (["time", "lat", "lon"], [10, lats, lons]);
        let node = node3(&dims, &field.shape, &chunk, "float32", &json!([raw()]), &attributes);
        nodes.insert(format!("v{number}"), node);
    }
    put_nodes(store, &nodes);
}

/// The chunks that a query reads.
fn chunks_read(runtime: &Runtime, ctx: &SessionContext, sql: &str) -> usize {
    fn read(plan: &Arc<dyn ExecutionPlan>) -> usize {
        let own = plan.metrics().and_then(|metrics| metrics.sum_by_name("chunks_read"));
        own.map_or(0, |read| read.as_usize()) + plan.children().into_iter().map(read).sum::<usize>()
    }
    runtime.block_on(async {
        let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        black_box(collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap());
        read(&plan)
    })
}

/// Measures how long stores take to open and to plan, and a query of one chunk.
fn open_and_plan(runtime: &Runtime, folder: &Path, ragged: &Variant, measured: &Value) {
    let (variables, side) = many();
    let mut figures = Figures::with_chunks("formats_open");
    let store = folder.join("many_variables.zarr");
    let opening = || {
        let ctx = reducing(2, 8192);
        let store = store.to_str().unwrap();
        runtime.block_on(ctx.register_array_schema("s", store, ArrayOptions::default())).unwrap();
        black_box(ctx);
    };
    let name = format!("opening a Zarr store of {variables} variables");
    match measured["xarray_open"].as_f64() {
        Some(ms) => figures.beside_peers(&*name, opening, [("xarray", ms)]),
        None => figures.compare(&*name, opening, vec![]),
    }
    let last = format!("v{}", variables - 1);
    let name = format!("opening one of {variables} variables as a table");
    figures.compare(&*name, || drop(runtime.block_on(open(&store, &last))), vec![]);

    let store = folder.join("many_chunks.zarr");
    let count = side * side;
    for (what, sql) in [
        ("`avg(value)`", "EXPLAIN SELECT avg(value) FROM t"),
        ("a box", "EXPLAIN SELECT avg(value) FROM t WHERE y BETWEEN 40 AND 90 AND x > 100"),
    ] {
        let name = format!("opening and planning {what} of {count} chunks");
        let planning = || run(runtime, &runtime.block_on(open(&store, "value")), sql);
        figures.compare(&*name, planning, vec![]);
    }

    let ctx = runtime.block_on(open(&ragged.location, "value"));
    let read = chunks_read(runtime, &ctx, BOX);
    assert_eq!(read, 1, "a box in one chunk");
    let chunks = format!("{read} of {}", ragged.chunks.count());
    let query = Query { name: "a box in one chunk", chunks };
    figures.compare(query, || run(runtime, &ctx, BOX), vec![]);
    figures.finish();
}

pub(crate) fn main() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let field = Field::new();
    println!("a field of {} MB", field.len() / 1_000_000);
    let chunk = [25, field.shape[1], field.shape[2]];
    let mut variants = variants(folder, &field, chunk);
    variants.extend(variants_of_peer(folder, &field, chunk));
    let many_variables = folder.join("many_variables.zarr");
    put_many_variables(&many_variables, &field);
    put_many_chunks(&folder.join("many_chunks.zarr"), many().1);

    let store = |it: &Variant| json!({"name": it.name, "path": it.location});
    let zstd = variants.iter().find(|it| it.name == ZSTD).unwrap();
    let stores = json!({
        "stores": variants.iter().map(store).collect::<Vec<_>>(),
        "many": many_variables, "xarray_sql": zstd.location,
    });
    std::fs::write(folder.join("stores.json"), stores.to_string()).unwrap();
    let runs = if is_small() { "1" } else { "5" };
    let measured = peer(folder, &["--runs", runs]).unwrap_or_else(|| {
        println!("neither zarr-python nor netCDF4 is installed; they are left out");
        Value::Null
    });
    compare_variants(&runtime, folder, &variants, &field, &measured);
    let ragged = variants.iter().find(|it| it.name == "Zarr 3, zstd, ragged").unwrap();
    open_and_plan(&runtime, folder, ragged, &measured);
}
