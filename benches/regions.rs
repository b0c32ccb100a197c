//! Measures regions and points: the cells that polygons cover, means over them, and the cells of a million points.
//!
//! `regions_peer.py` measures exactextract, numpy and xarray on the same grids and polygons. `GRIDFUSION_BENCH_SMALL=1` shrinks all for a
//! smoke run.

use std::f64::consts::TAU;
use std::fs;
use std::path::Path;
use std::process::Command;

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};

use crate::common::figures::Figures;
use crate::common::support::{query, reducing};
use crate::common::zarr_files::{node3, put_axis, put_nodes, raw};
use crate::common::{is_small, run, runtime, sst};

/// Writes stars of so many points around places of the globe as GeoJSON features.
fn put_stars(path: &Path, count: usize, points: usize, radius: f64) {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut star = |name: usize| {
        let (lon, lat) = (rng.random_range(-150.0..150.0), rng.random_range(-60.0..60.0));
        let mut ring: Vec<[f64; 2]> = (0..points)
            .map(|at| {
                let angle = TAU * at as f64 / points as f64;
                let length = radius * rng.random_range(0.7..1.0);
                [lon + length * angle.cos(), lat + length * angle.sin()]
            })
            .collect();
        ring.push(ring[0]);
        json!({"type": "Feature", "properties": {"name": format!("r{name}")},
            "geometry": {"type": "Polygon", "coordinates": [ring]}})
    };
    let features: Vec<Value> = (0..count).map(&mut star).collect();
    let collection = json!({"type": "FeatureCollection", "features": features});
    fs::write(path, collection.to_string()).unwrap();
}

/// Writes a store of hours × latitudes × longitudes in chunks of one hour, none of which is stored.
fn put_hours(store: &Path, [hours, lats, lons]: [usize; 3]) {
    let mut nodes = Map::new();
    let axis = |count: usize, first: f64, step: f64| -> Vec<f64> {
        (0..count).map(|at| first + step * at as f64).collect()
    };
    put_axis(store, &mut nodes, "time", &axis(hours, 0.0, 1.0));
    put_axis(store, &mut nodes, "lat", &axis(lats, 90.0, -180.0 / (lats - 1) as f64));
    put_axis(store, &mut nodes, "lon", &axis(lons, 0.0, 360.0 / lons as f64));
    nodes["time"]["attributes"] = json!({"units": "hours since 2023-01-01"});
    let (shape, chunk) = ([hours, lats, lons], [1, lats, lons]);
    let codecs = json!([raw()]);
    let node = node3(&["time", "lat", "lon"], &shape, &chunk, "float32", &codecs, &json!({}));
    nodes.insert("value".to_owned(), node);
    put_nodes(store, &nodes);
}

/// Times of other programs in milliseconds; `None` if these are not installed.
fn peer(folder: &Path, points: usize) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join("regions_peer.py");
    let mut python = Command::new("python3");
    let output = python.arg(script).arg(folder).args(["--points", &points.to_string()]).output();
    match output.ok()? {
        output if output.status.success() => Some(serde_json::from_slice(&output.stdout).unwrap()),
        output if output.status.code() == Some(3) => None,
        output => panic!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}

async fn session(folder: &Path) -> SessionContext {
    let ctx = reducing(2, 8192);
    ctx.enable_gridfusion();
    for (name, store) in [("hours", "hours.zarr"), ("air", "air.zarr")] {
        let place = folder.join(store);
        let options = ArrayOptions::default().with_dataset("value");
        ctx.register_array(name, place.to_str().unwrap(), options).await.unwrap();
    }
    ctx
}

pub(crate) fn main() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let (polygons, vertices, hours, points) = match is_small() {
        true => (5, 100, [10, 19, 36], 1000),
        false => (200, 10_000, [8760, 721, 1440], 1_000_000),
    };
    put_stars(&folder.join("stars.geojson"), polygons, vertices, 8.0);
    put_stars(&folder.join("countries.geojson"), 50, 40, 14.0);
    put_hours(&folder.join("hours.zarr"), hours);
    let file = sst();
    let ctx = reducing(2, 8192);
    runtime.block_on(async {
        ctx.register_array("sst", file.location(), ArrayOptions::default()).await.unwrap();
        let copy = format!(
            "COPY (SELECT time, lat, lon, value FROM sst WHERE time < 1460) TO '{}' OPTIONS (chunks 'time=73', codec 'none')",
            folder.join("air.zarr").display()
        );
        query(&ctx, &copy).await.unwrap();
    });
    let ctx = runtime.block_on(session(folder));
    let measured = peer(folder, points).unwrap_or_else(|| {
        println!("exactextract, xarray or zarr is not installed; they are left out");
        Value::Null
    });
    let path = |name: &str| folder.join(name).display().to_string();
    let mut figures = Figures::new("regions");
    let (stars, countries) = (path("stars.geojson"), path("countries.geojson"));
    let cells = format!(
        "SELECT name, count(*), sum(coverage) FROM grid_coverage(hours, '{stars}') GROUP BY name"
    );
    let name = format!("cells of {polygons} polygons of {vertices} points on a grid of 0.25°");
    match measured["cells"].as_f64() {
        Some(ms) => {
            figures.beside_peers(&*name, || run(&runtime, &ctx, &cells), [("exactextract", ms)]);
        }
        None => figures.compare(&*name, || run(&runtime, &ctx, &cells), vec![]),
    }
    let mean = |times: &str| {
        format!(
            "SELECT name, time, weighted_avg(value, coverage) FROM air JOIN grid_coverage(air, '{countries}') USING (lat, lon) {times} GROUP BY name, time"
        )
    };
    let all = mean("");
    let name = "means of 50 polygons at 1460 times, cells included";
    let by_time = || run(&runtime, &ctx, "SELECT time, avg(value) FROM air GROUP BY time");
    figures.compare(name, || run(&runtime, &ctx, &all), vec![("mean by time", Box::new(by_time))]);
    if let Some(ms) = measured["dense"].as_f64() {
        let peers = [("numpy, a dense matrix without its making", ms)];
        figures.beside_peers(name, || run(&runtime, &ctx, &all), peers);
    }
    if let Some(ms) = measured["steps"].as_f64() {
        let ten = mean("WHERE time < 10");
        let peers = [("exactextract", ms)];
        let name = "means of 50 polygons at 10 times, cells included";
        figures.beside_peers(name, || run(&runtime, &ctx, &ten), peers);
    }
    let track = format!(
        "CREATE TABLE track AS SELECT value AS id, -90 + 180 * random() AS lat, 360 * random() AS lon,
            TIMESTAMP '2023-01-01' + arrow_cast(60 * (value % {}), 'Duration(Second)') AS time FROM range({points})",
        60 * hours[0]
    );
    run(&runtime, &ctx, &track);
    let nearest =
        "SELECT count(cell_lat), count(cell_time), max(distance_m) FROM grid_points(hours, track)";
    let name = format!("cells of {points} points with times");
    match measured["points"].as_f64() {
        Some(ms) => {
            let peers = [("pandas' get_indexer per axis", ms)];
            figures.beside_peers(&*name, || run(&runtime, &ctx, nearest), peers);
        }
        None => figures.compare(&*name, || run(&runtime, &ctx, nearest), vec![]),
    }
    figures.finish();
}
