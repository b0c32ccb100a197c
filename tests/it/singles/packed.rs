//! Packing, missing values and limits of single precision.

use std::collections::BTreeMap;
use std::fs;

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::Value;

use super::at;
use crate::support::{reducing, rows_from};

/// The values are those of netCDF4 and xarray; see `tests/data/singles/make.py`.
#[tokio::test]
async fn packed_numbers_are_those_of_xarray() {
    let expected: BTreeMap<String, Value> =
        serde_json::from_str(&fs::read_to_string(at("packed.json")).unwrap()).unwrap();
    assert_eq!(expected.len(), 40);
    for file in ["packed_cdf2.nc", "packed_nc4.nc"] {
        for (name, expected) in &expected {
            let ctx = reducing(1, 8);
            let options = ArrayOptions::default().with_option("dataset", name.as_str());
            ctx.register_array("p", at(file), options).await.unwrap();
            let rows = rows_from(&ctx, "SELECT arrow_typeof(value), value FROM p ORDER BY x").await;
            assert!(
                rows.iter().all(|row| row[0] == expected["type"].as_str().unwrap()),
                "{file} {name}: {rows:?}"
            );
            let found: Vec<f64> = rows.iter().map(|row| row[1].parse().unwrap()).collect();
            let wanted: Vec<f64> = expected["values"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it.as_str().unwrap().parse().unwrap())
                .collect();
            assert_eq!(found, wanted, "{file} {name}");
            // Reductions and filters see the same values as rows.
            let most = wanted.iter().copied().fold(f64::MIN, f64::max);
            let rows = rows_from(&ctx, "SELECT max(value), count(*) FILTER (WHERE value = (SELECT max(value) FROM p)) FROM p").await;
            assert_eq!(
                (rows[0][0].parse::<f64>().unwrap(), rows[0][1].as_str()),
                (most, "1"),
                "{file} {name}"
            );
        }
    }
}

#[tokio::test]
async fn limits_and_missing_values_of_single_precision_are_exact() {
    for file in ["packed_cdf2.nc", "packed_nc4.nc"] {
        let ctx = reducing(1, 8);
        let options = ArrayOptions::default()
            .with_option("dataset", "limit")
            .with_option("valid_range", true);
        ctx.register_array("l", at(file), options).await.unwrap();
        let rows = rows_from(&ctx, "SELECT value FROM l ORDER BY x").await;
        assert_eq!(rows, [["0.1"], ["0.05"], ["NULL"], ["-1.0"]], "{file}");
        let options = ArrayOptions::default().with_option("dataset", "missing");
        ctx.register_array("m", at(file), options).await.unwrap();
        let rows = rows_from(&ctx, "SELECT value FROM m ORDER BY x").await;
        assert_eq!(rows, [["NULL"], ["1e20"], ["1.0"], ["2.0"]], "{file}");
    }
}
