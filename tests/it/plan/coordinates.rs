//! Coordinates that repeat along some axes: filters and keys over them, compared with the same over rows in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::datasource::MemTable;
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use gridfusion::array::GridArray;
use gridfusion::source::AlignedArray;
use gridfusion::{ArrayOpener, ArrayOptions, GridTable};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::json;

use crate::support::{
    F64, I32, Layout, TempTet, TestDataset, query, reducing, rows_of, shipped, tet_bytes,
};

/// The variables with the axes that they are over: doubles that may be NaN, and integers that may be NULL.
const VARIABLES: [(&str, u32, &[usize]); 5] = [
    ("v", I32, &[0, 1, 2]),
    ("lat", F64, &[1, 2]),
    ("code", I32, &[1, 2]),
    ("height", F64, &[1]),
    ("zone", I32, &[2]),
];

/// A table of three axes, and the same rows in memory.
async fn random_tables(rng: &mut StdRng) -> (SessionContext, SessionContext, String) {
    let shape: Vec<u64> = (0..3).map(|_| rng.random_range(1..9)).collect();
    let common: Vec<u64> = shape.iter().map(|len| rng.random_range(1..=*len)).collect();
    let has_common_chunks = rng.random_bool(0.7);
    let mut text = format!("shape {shape:?}");
    let mut datasets = vec![];
    for (name, tag, axes) in VARIABLES {
        let lens: Vec<u64> = axes.iter().map(|axis| shape[*axis]).collect();
        let chunk: Vec<u64> = match has_common_chunks {
            true => axes.iter().map(|axis| common[*axis]).collect(),
            false => lens.iter().map(|len| rng.random_range(1..=*len)).collect(),
        };
        text += &format!(", {name} in chunks of {chunk:?}");
        let cells: u64 = lens.iter().product();
        let number = |rng: &mut StdRng| rng.random_range(-3..4);
        let data: Vec<u8> = match tag {
            F64 => (0..cells)
                .flat_map(|_| {
                    match rng.random_range(0..8) {
                        0 => f64::NAN,
                        1 => -0.0,
                        _ => f64::from(number(rng)) / 2.0,
                    }
                    .to_le_bytes()
                })
                .collect(),
            _ => (0..cells)
                .flat_map(|_| {
                    if rng.random_bool(0.1) { -99_i32 } else { number(rng) }.to_le_bytes()
                })
                .collect(),
        };
        let dims: Vec<String> = axes.iter().map(|axis| format!("d{axis}")).collect();
        let fill = if tag == I32 { json!({"_FillValue": "-99"}) } else { json!({}) };
        let metadata = json!({"dim_names": dims, "attrs": fill});
        datasets.push(TestDataset::new(name, tag, &lens, &chunk, data).with_metadata(metadata));
    }
    let file = TempTet::new(&tet_bytes(
        &datasets,
        &Layout { history_version: Some(2), ..Layout::default() },
    ));
    let (partitions, batch_size) = (rng.random_range(1..5), *[3, 64, 8192].choose(rng).unwrap());
    text += &format!(", {partitions} partitions, batches of {batch_size}");
    let ours = reducing(partitions, batch_size);
    let mut arrays: Vec<Arc<GridArray>> = vec![];
    for (name, ..) in VARIABLES {
        let options = ArrayOptions::default().with_dataset(name);
        let opener = ArrayOpener::from_session(&ours.state());
        let table = opener.table(file.location(), None, &options).await.unwrap();
        arrays.push(table.as_grid().unwrap().array());
    }
    let ranges: Vec<Vec<_>> =
        arrays.iter().map(|it| it.grid().shape().iter().map(|len| 0..*len).collect()).collect();
    let sides: Vec<AlignedArray<'_>> = arrays
        .iter()
        .zip(&ranges)
        .zip(VARIABLES)
        .map(|((array, ranges), (_, _, axes))| AlignedArray { array, axes, ranges })
        .collect();
    let array = GridArray::side_by_side(&sides).unwrap();
    ours.register_table("t", Arc::new(GridTable::new(Arc::new(array)))).unwrap();
    let rows = query(&ours, "SELECT d0, d1, d2, v, lat, code, height, zone FROM t").await.unwrap();
    let theirs = reducing(1, 8192);
    let table = MemTable::try_new(rows[0].schema(), vec![rows]).unwrap();
    theirs.register_table("t", Arc::new(table)).unwrap();
    (ours, theirs, text)
}

fn condition(rng: &mut StdRng) -> String {
    let n = rng.random_range(-3..4);
    let choices = [
        format!("lat > {n}.5 / 2"),
        format!("lat <= {n}"),
        "lat IS NULL".into(),
        format!("floor(lat) = {n}"),
        format!("lat + d2 > {n}"),
        format!("code = {n}"),
        "code IS NOT NULL".into(),
        format!("code % 3 = {n}"),
        format!("(code > {n} OR lat < 0)"),
        format!("height > {n}"),
        format!("zone = {n}"),
        format!("zone IN ({n}, 1, 2)"),
        "zone IS NULL".into(),
        format!("height + zone < {n}"),
        format!("v > {n}"),
        format!("(lat > {n} OR v > 1)"),
        format!("(lat > {n} OR d0 = 1)"),
        format!("d0 <> {n}"),
        format!("d1 < {n}"),
    ];
    choices.choose(rng).unwrap().clone()
}

fn key(rng: &mut StdRng) -> &'static str {
    const KEYS: [&str; 11] = [
        "floor(lat)",
        "lat",
        "code",
        "height",
        "zone",
        "d0",
        "d1",
        "d0 % 2",
        "code + zone",
        "lat + d1",
        "CASE WHEN lat > 0 THEN zone END",
    ];
    KEYS.choose(rng).copied().unwrap()
}

fn aggregate(rng: &mut StdRng) -> &'static str {
    const AGGREGATES: [&str; 13] = [
        "count(*)",
        "count(v)",
        "sum(v)",
        "avg(v)",
        "min(v)",
        "max(v)",
        "var_pop(v)",
        "avg(lat)",
        "count(*) FILTER (WHERE lat > 0)",
        "sum(v) FILTER (WHERE zone > 0)",
        "median(v)",
        "sum(v * d1)",
        "max(height)",
    ];
    AGGREGATES.choose(rng).copied().unwrap()
}

/// A random query, and how many of its first columns are keys.
fn sql(rng: &mut StdRng) -> String {
    let conditions: Vec<String> = (0..rng.random_range(0..3)).map(|_| condition(rng)).collect();
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    };
    if rng.random_bool(0.2) {
        return format!("SELECT d0, d1, d2, v, lat, zone FROM t{filter}");
    }
    let keys: BTreeSet<&str> = (0..rng.random_range(0..3)).map(|_| key(rng)).collect();
    let calls: BTreeSet<&str> = (0..rng.random_range(1..4)).map(|_| aggregate(rng)).collect();
    let columns: Vec<&str> = keys.iter().chain(&calls).copied().collect();
    let keys: Vec<&str> = keys.into_iter().collect();
    let grouped =
        if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
    format!("SELECT {} FROM t{filter}{grouped}", columns.join(", "))
}

/// Rows in an order of their own, with numbers of fewer digits, because sums of doubles are rounded, and zeros of one sign.
fn comparable(rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let short = |cell: String| match cell.parse::<f64>() {
        Ok(number) => format!("{:.6}", (number * 1e6).round() / 1e6 + 0.0),
        Err(_) => cell,
    };
    let mut rows: Vec<Vec<String>> =
        rows.into_iter().map(|row| row.into_iter().map(short).collect()).collect();
    rows.sort();
    rows
}

async fn plan(ctx: &SessionContext, sql: &str) -> String {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

/// Whether a scan reads fewer chunks than there are, as `chunks=3/12` tells.
fn skips_chunks(plan: &str) -> bool {
    let Some((_, counts)) = plan.split_once("chunks=") else { return false };
    let end = counts.find([',', '\n']).unwrap_or(counts.len());
    counts[..end].split_once('/').is_some_and(|(read, all)| read != all)
}

/// Random queries over random coordinates have the same answers as over rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coordinates_agree_with_rows() {
    let mut rng = StdRng::seed_from_u64(42);
    let (mut dense, mut planes, mut masked) = (0, 0, 0);
    for case in 0..40 {
        let (ours, theirs, text) = random_tables(&mut rng).await;
        for _ in 0..40 {
            let sql = sql(&mut rng);
            let expected = query(&theirs, &sql).await;
            let found = query(&ours, &sql).await;
            let (found, expected) = match (found, expected) {
                (Ok(found), Ok(expected)) => (rows_of(&found), rows_of(&expected)),
                (found, expected) => panic!("case {case}, {text}: {sql}\n{found:?}\n{expected:?}"),
            };
            let (found, expected) = (comparable(found), comparable(expected));
            assert_eq!(found, expected, "case {case}, {text}: {sql}\n{}", plan(&ours, &sql).await);
            let plan = plan(&ours, &sql).await;
            let is_masked = sql.contains("WHERE") && !sql.contains('d') && skips_chunks(&plan);
            masked += usize::from(is_masked);
            dense += usize::from(plan.contains("tier=dense"));
            let is_plane = sql.contains("GROUP BY") && sql.contains("floor(lat)");
            planes += usize::from(is_plane && plan.contains("tier=dense"));
        }
    }
    assert!(dense > 300 && planes > 20 && masked > 20, "{dense}, {planes}, {masked}");
}

/// Chunks without a cell of a coordinate that meets the filter are not read, and reductions need no rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_on_coordinates_skip_chunks() {
    if !cfg!(feature = "hdf5") {
        return;
    }
    let ctx = reducing(1, 8192);
    let location = shipped("tests/data/foreign/curvilinear_nc4.nc");
    let table = format!("read_array('{location}', 't', coordinates => true)");
    let over = |columns: &str, end: &str| format!("SELECT {columns} FROM {table} {end}");
    let some = plan(&ctx, &over("avg(value)", "WHERE lat > 76")).await;
    assert!(some.contains("tier=dense") && !some.contains("FilterExec"), "{some}");
    // Two cells have such latitudes: (0, 1) and (1, 4).
    assert!(some.contains("selection=[y=0..1, x=1..4]"), "{some}");
    let rows = plan(&ctx, &over("value", "WHERE lat > 77")).await;
    assert!(rows.contains("FilterExec") && rows.contains("selection=[y=1, x=4]"), "{rows}");
    let exact = plan(&ctx, &over("value", "WHERE run = 1")).await;
    assert!(!exact.contains("FilterExec"), "{exact}");
    let grouped = plan(&ctx, &over("floor(lat), avg(value)", "GROUP BY floor(lat)")).await;
    assert!(grouped.contains("tier=dense"), "{grouped}");
    // Another conjunct may exclude the cells for which one fails.
    let partial = plan(&ctx, &over("value", "WHERE 100 / (run - 1) > 3")).await;
    assert!(partial.contains("FilterExec"), "{partial}");
}
