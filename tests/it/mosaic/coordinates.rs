//! Coordinates of two dimensions in tables of several files: they repeat from file to file, or some file has others.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::{collect, displayable};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::json;

use crate::codec::sent::{bytes, plan, received};
use crate::support::{query, reducing, rows_of, sorted_rows_from};

/// Writes an array of version 3 of Zarr with the cells that `cell` gives for the index on each axis.
fn write(
    path: &Path,
    dims: &[&str],
    shape: &[usize],
    chunk: &[usize],
    attributes: &serde_json::Value,
    cell: impl Fn(&[usize]) -> f64,
) {
    let metadata = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float64",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": "NaN", "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": attributes, "dimension_names": dims,
    });
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("zarr.json"), metadata.to_string()).unwrap();
    let counts: Vec<usize> = shape.iter().zip(chunk).map(|(len, by)| len.div_ceil(*by)).collect();
    for chunk_at in indices(&counts) {
        let cells = indices(chunk).into_iter().flat_map(|within| {
            let at =
                chunk_at.iter().zip(chunk).zip(within).map(|((at, len), cell)| at * len + cell);
            cell(&at.collect::<Vec<_>>()).to_le_bytes()
        });
        let key: Vec<String> = chunk_at.iter().map(usize::to_string).collect();
        fs::write(path.join(format!("c.{}", key.join("."))), cells.collect::<Vec<_>>()).unwrap();
    }
}

/// Returns all indices of a shape, row-major.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, len| {
        let longer = |at: Vec<usize>| (0..*len).map(move |last| [at.clone(), vec![last]].concat());
        all.into_iter().flat_map(longer).collect()
    })
}

/// Files over (time, y, x) with a coordinate `lat` over (y, x), and the same rows in memory. Returns whether a file has another
/// coordinate.
fn write_files(rng: &mut StdRng, folder: &Path, may_differ: bool) -> (MemTable, bool) {
    let [rows, columns] = [(); 2].map(|()| rng.random_range(1..7_usize));
    let files = rng.random_range(2..6);
    let other = (may_differ && rng.random_bool(0.3)).then(|| rng.random_range(0..files));
    let same: Vec<f64> = (0..rows * columns)
        .map(|_| *[-1.5, -0.0, 0.5, 1.0, f64::NAN].choose(rng).unwrap())
        .collect();
    let table_chunk = [rng.random_range(1..=rows), rng.random_range(1..=columns)];
    let mut table: [Vec<f64>; 5] = Default::default();
    let mut time = 0;
    for file in 0..files {
        let store = folder.join(format!("{file}.zarr"));
        fs::create_dir_all(&store).unwrap();
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
        fs::write(store.join("zarr.json"), group.to_string()).unwrap();
        let times = rng.random_range(1..4);
        let mut lat = same.clone();
        if other == Some(file) {
            let at = rng.random_range(0..lat.len());
            lat[at] = 7.0;
        }
        let values: Vec<f64> =
            (0..times * lat.len()).map(|_| f64::from(rng.random_range(-5..5))).collect();
        let value = |at: &[usize]| (at[0] * rows + at[1]) * columns + at[2];
        let [y, x] = table_chunk;
        let t = json!({"coordinates": "lat"});
        let inside = |at: &[usize], shape: &[usize]| at.iter().zip(shape).all(|(at, len)| at < len);
        let shape = [times, rows, columns];
        write(
            &store.join("t"),
            &["time", "y", "x"],
            &shape,
            &[rng.random_range(1..=times), y, x],
            &t,
            |at| {
                if inside(at, &shape) { values[value(at)] } else { 0.0 }
            },
        );
        write(&store.join("lat"), &["y", "x"], &shape[1..], &table_chunk, &json!({}), |at| {
            if inside(at, &shape[1..]) { lat[at[0] * columns + at[1]] } else { 0.0 }
        });
        write(&store.join("time"), &["time"], &[times], &[times], &json!({}), |at| {
            (time + at[0]) as f64
        });
        for at in indices(&shape) {
            let row = [
                (time + at[0]) as f64,
                at[1] as f64,
                at[2] as f64,
                lat[at[1] * columns + at[2]],
                values[value(&at)],
            ];
            table.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell));
        }
        time += times;
    }
    let null = |cell: &f64| (!cell.is_nan()).then_some(*cell);
    let doubles = |column: &Vec<f64>| column.iter().map(null).collect::<Float64Array>();
    // Dimensions without labels are numbered.
    let array = |(name, column): (&str, &Vec<f64>)| -> ArrayRef {
        match name {
            "y" | "x" => Arc::new(column.iter().map(|at| *at as i64).collect::<Int64Array>()),
            _ => Arc::new(doubles(column)),
        }
    };
    let names = ["time", "y", "x", "lat", "t"];
    let arrays: Vec<ArrayRef> = names.into_iter().zip(&table).map(array).collect();
    let fields = names.into_iter().zip(&arrays);
    let fields = fields.map(|(name, array)| Field::new(name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    (MemTable::try_new(schema, vec![vec![batch]]).unwrap(), other.is_some())
}

/// Random queries have the answers of rows, here and in another process. Where files agree, a coordinate is evaluated once for all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coordinates_of_files_agree_with_rows() {
    let mut rng = StdRng::seed_from_u64(54);
    let (mut reduced, mut differing, mut sent) = (0, 0, 0);
    for round in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let (table, differs) = write_files(&mut rng, folder.path(), true);
        let location = format!("{}/*.zarr", folder.path().display());
        let ours = reducing(rng.random_range(1..4), *[3, 64, 8192].choose(&mut rng).unwrap());
        let options = ArrayOptions::default().with_option("coordinates", "true");
        ours.register_array("files", location.as_str(), options).await.unwrap();
        ours.register_table("t", Arc::new(table)).unwrap();
        for _ in 0..12 {
            let filter = *[
                "",
                "WHERE lat > 0",
                "WHERE lat <= 0.5 AND time > 1",
                "WHERE lat IS NULL",
                "WHERE time >= 2",
                "WHERE lat > 6",
                "WHERE floor(lat) = 0 AND t > 0",
            ]
            .choose(&mut rng)
            .unwrap();
            let select = *[
                "floor(lat), count(*), sum(t), max(t) FROM T F GROUP BY floor(lat)",
                "lat, time, count(t) FROM T F GROUP BY lat, time",
                "time, sum(t) FROM T F GROUP BY time",
                "lat, t FROM T F",
                "count(*), min(t) FROM T F",
                "y, x, lat, avg(t) FROM T F GROUP BY y, x, lat",
            ]
            .choose(&mut rng)
            .unwrap();
            let sql = |table: &str| {
                format!("SELECT {}", select.replace("FROM T F", &format!("FROM {table} {filter}")))
            };
            let expected = sorted_rows_from(&ours, &sql("t")).await;
            let planned = plan(&ours, &sql("files")).await.unwrap();
            let shown = displayable(planned.as_ref()).indent(false).to_string();
            let found = sorted_rows_from(&ours, &sql("files")).await;
            assert_eq!(found, expected, "round {round}: {}\n{shown}", sql("files"));
            let is_reduced = shown.contains("tier=dense") && select.contains("BY floor(lat)");
            reduced += usize::from(is_reduced && !differs);
            differing += usize::from(differs);
            if rng.random_bool(0.3) {
                let other = reducing(2, 100);
                let there = received(&bytes(&planned).unwrap(), &other).unwrap();
                let rows = collect(there, other.task_ctx()).await.unwrap();
                let mut rows = rows_of(&rows);
                rows.sort();
                assert_eq!(rows, expected, "round {round}, elsewhere: {}\n{shown}", sql("files"));
                sent += 1;
            }
        }
    }
    assert!(reduced > 30 && differing > 50 && sent > 50, "{reduced}, {differing}, {sent}");
}

/// A query of some files reads the coordinates of no other file.
#[tokio::test]
async fn coordinates_of_other_files_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    write_files(&mut StdRng::seed_from_u64(3), folder.path(), false);
    let ctx = reducing(1, 8192);
    let options = ArrayOptions::default().with_option("coordinates", "true");
    let location = format!("{}/*.zarr", folder.path().display());
    ctx.register_array("files", location.as_str(), options).await.unwrap();
    fs::write(folder.path().join("1.zarr/lat/c.0.0"), [0; 3]).unwrap();
    let of = |filter: &str| format!("SELECT lat, sum(t) FROM files {filter} GROUP BY lat");
    let shown = plan(&ctx, &of("WHERE time < 1")).await.unwrap();
    let shown = displayable(shown.as_ref()).indent(false).to_string();
    assert!(shown.contains("tier=dense"), "{shown}");
    assert!(!sorted_rows_from(&ctx, &of("WHERE time < 1")).await.is_empty());
    let error = query(&ctx, &of("")).await.unwrap_err().to_string();
    assert!(error.contains("1.zarr"), "{error}");
}
