//! Compares queries of coordinates of two dimensions, as models on curved grids have, with the same queries of labels.
//!
//! Both arrays have the same cells. The lines of latitude of the curved one cross its rows.
//!
//! ```text
//!   straight   t (time, lat, lon)      labels lat, lon
//!   curved     t (time, y, x)          lat (y, x) = 30 + y / 10 + (x - 200) / 100
//! ```

use std::path::Path;

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Map, json};

use crate::common::figures::Figures;
use crate::common::support::reducing;
use crate::common::zarr_files::{node3, put_axis, put_nodes, raw};
use crate::common::{is_small, run, runtime};

/// The times of a chunk, which has all rows and columns.
const TIMES_PER_CHUNK: usize = 24;

/// The numbers of times, rows and columns: 230 MB, or a small array for a smoke run.
fn shape() -> [usize; 3] {
    if is_small() { [48, 30, 40] } else { [480, 300, 400] }
}

fn put(path: &Path, values: impl Iterator<Item = f32>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, values.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
}

/// Writes the array with labels, or with coordinates.
fn write(store: &Path, is_curved: bool) {
    let [times, rows, columns] = shape();
    let (mut nodes, codecs) = (Map::new(), json!([raw()]));
    let dims = if is_curved { ["time", "y", "x"] } else { ["time", "lat", "lon"] };
    let (latitude, longitude) = (|y: usize| 30.0 + y as f64 / 10.0, |x: usize| x as f64 / 10.0);
    put_axis(store, &mut nodes, "time", &(0..times).map(|at| at as f64).collect::<Vec<_>>());
    if is_curved {
        // As many cells are north of a latitude as on the straight grid.
        let from_middle = |at: usize, len: usize| (at as f64 - len as f64 / 2.0) / 100.0;
        let curved = |row: usize, column: usize| latitude(row) + from_middle(column, columns);
        let lon = |row: usize, column: usize| longitude(column) - from_middle(row, rows);
        let cells = || (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        put(&store.join("lat/c/0/0"), cells().map(|(row, column)| curved(row, column) as f32));
        put(&store.join("lon/c/0/0"), cells().map(|(row, column)| lon(row, column) as f32));
        for name in ["lat", "lon"] {
            let plane = [rows, columns];
            let node = node3(&dims[1..], &plane, &plane, "float32", &codecs, &json!({}));
            nodes.insert(name.to_owned(), node);
        }
    } else {
        put_axis(store, &mut nodes, "lat", &(0..rows).map(latitude).collect::<Vec<_>>());
        put_axis(store, &mut nodes, "lon", &(0..columns).map(longitude).collect::<Vec<_>>());
    }
    let attributes = if is_curved { json!({"coordinates": "lat lon"}) } else { json!({}) };
    let chunk = [TIMES_PER_CHUNK, rows, columns];
    let node = node3(&dims, &shape(), &chunk, "float32", &codecs, &attributes);
    nodes.insert("t".to_owned(), node);
    put_nodes(store, &nodes);
    let mut rng = SmallRng::seed_from_u64(7);
    for number in 0..times / TIMES_PER_CHUNK {
        let cells = (0..chunk.iter().product()).map(|_| rng.random_range(270.0..300.0));
        put(&store.join(format!("t/c/{number}/0/0")), cells);
    }
}

async fn opened(store: &Path) -> SessionContext {
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_option("coordinates", "true");
    ctx.register_array("t", store.to_str().unwrap(), options).await.unwrap();
    ctx
}

pub(crate) fn main() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let [straight, curved] = [false, true].map(|is_curved| {
        let store = folder.path().join(format!("{is_curved}.zarr"));
        write(&store, is_curved);
        runtime.block_on(opened(&store))
    });
    let mut figures = Figures::new("coordinates");
    for (name, sql) in [
        ("mean by degree of latitude", "SELECT floor(lat) AS a, avg(t) FROM t GROUP BY a"),
        (
            "mean by degree of latitude and longitude",
            "SELECT floor(lat) AS a, floor(lon) AS b, avg(t) FROM t GROUP BY a, b",
        ),
        ("map of a third", "SELECT lat, lon, avg(t) FROM t WHERE lat > 50 GROUP BY lat, lon"),
        ("series of a third", "SELECT time, avg(t) FROM t WHERE lat > 50 GROUP BY time"),
    ] {
        figures.compare(
            name,
            || run(&runtime, &curved, sql),
            vec![("the same query of labels", Box::new(|| run(&runtime, &straight, sql)))],
        );
    }
    figures.finish();
}
