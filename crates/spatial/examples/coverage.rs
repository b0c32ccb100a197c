//! Measures the coverage of polygons, and writes it for comparisons with other tools.
//!
//! ```text
//! cargo run --release --package gridfusion-spatial --example coverage -- grid.json > coverage.json
//! ```
//!
//! The file gives `lat` and `lon`, which are labels, and `polygons`, which are GeoJSON geometries. With
//! `plane: true` the grid is one of a plane, `y` and `x`. With `rule`, the rule is `centre` or `touched`. The output is a list per polygon of
//! `[row, column, fraction]`. Times go to the standard error.

use std::io::Write;
use std::time::Instant;

use gridfusion_core::Error;
use gridfusion_spatial::{Axis, AxisKind, CoverageRule, Grid, Region};
use serde::Deserialize;

#[derive(Deserialize)]
struct Request {
    #[serde(alias = "lat")]
    y: Vec<f64>,
    #[serde(alias = "lon")]
    x: Vec<f64>,
    #[serde(default)]
    plane: bool,
    #[serde(default)]
    rule: String,
    polygons: Vec<serde_json::Value>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("give the path of a JSON file")?;
    let request: Request =
        serde_json::from_reader(std::io::BufReader::new(std::fs::File::open(path)?))?;
    let kinds = if request.plane {
        [AxisKind::Plane; 2]
    } else {
        [AxisKind::Latitude, AxisKind::Longitude]
    };
    let grid =
        Grid::new(Axis::new(kinds[0], &request.y, None)?, Axis::new(kinds[1], &request.x, None)?)?;
    let rule = match request.rule.as_str() {
        "" | "coverage" => CoverageRule::Coverage,
        "centre" => CoverageRule::Centre,
        "touched" => CoverageRule::Touched,
        other => return Err(format!("rule {other:?}, expected coverage, centre or touched").into()),
    };

    let texts: Vec<String> = request.polygons.iter().map(ToString::to_string).collect();
    let start = Instant::now();
    let regions =
        texts.iter().map(|it| Region::from_geojson(it)).collect::<Result<Vec<_>, Error>>()?;
    let read = start.elapsed();
    let start = Instant::now();
    let mut cells = Vec::new();
    for region in &regions {
        cells.push(grid.coverage(region, rule)?.collect::<Vec<_>>());
    }
    let covered = start.elapsed();
    let count: usize = cells.iter().map(Vec::len).sum();
    eprintln!(
        "{} polygons read and checked in {read:?}; {count} cells covered in {covered:?}",
        regions.len()
    );

    let cells: Vec<Vec<_>> = cells
        .into_iter()
        .map(|it| it.into_iter().map(|it| (it.row, it.column, it.fraction)).collect())
        .collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer(&mut out, &cells)?;
    out.flush()?;
    Ok(())
}
