//! Extremes of functions of a variable, which follow from those of the variable itself.

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use super::plans::{explain, file, register};
use crate::support::{F64, Layout, TempTet, TestDataset, query, reducing, rows_from, tet_bytes};

/// Extremes of some functions follow from those of the variable, under the names that the query gives them.
#[tokio::test]
async fn derived_extremes_are_dense() {
    let (ctx, file) = (reducing(2, 8192), file(false));
    register(&ctx, &file).await;
    for sql in [
        "SELECT station, max(abs(value)), max(value) FROM t GROUP BY station",
        "SELECT max(abs(value)) FILTER (WHERE time_idx < 9) FROM t",
        "SELECT station FROM t GROUP BY station HAVING max(abs(value)) > 3 ORDER BY max(abs(value))",
        "SELECT station, (SELECT max(abs(value)) FROM t) FROM t GROUP BY station",
        "SELECT min(value - 273.15), max(1.8 * value + 32), max(abs(280.5 - value)) FROM t",
    ] {
        let plan = explain(&ctx, sql).await;
        assert!(plan.contains("tier=dense") && !plan.contains("accumulators"), "{sql}\n{plan}");
    }
    // The table of normals may be a subquery of the same array. Both are reduced before the join.
    let anomaly = "SELECT max(abs(t.value - n.normal)) FROM t JOIN (SELECT station, avg(value) AS normal FROM t GROUP BY station) n ON t.station = n.station";
    let plan = explain(&ctx, anomaly).await;
    assert!(plan.matches("tier=dense").count() == 2 && !plan.contains("GridScanExec"), "{plan}");
    // DataFusion wants the aggregation of a correlated subquery right below its condition.
    let correlated = "SELECT count(*) FROM (VALUES ('S1', 9.0)) AS s(station, lim) WHERE s.lim < (SELECT max(t.value - 273.15) FROM t WHERE t.station = s.station GROUP BY t.station HAVING count(*) > 3)";
    assert_eq!(rows_from(&ctx, correlated).await, [["1"]]);
    for sql in [
        // The order is not that of values, and NULL and NaN may be among them.
        "SELECT max(273.15 - value) FROM t",
        "SELECT min(abs(value)) FROM t",
        "SELECT max(value * 0.0) FROM t",
        "SELECT max(abs(value * value)) FROM t",
    ] {
        let plan = explain(&ctx, sql).await;
        assert!(plan.contains("accumulators"), "{sql}\n{plan}");
    }
    let sql = "SELECT max(abs(value)), max(DISTINCT abs(value)) AS of_distinct FROM t";
    let schema = query(&ctx, sql).await.unwrap()[0].schema();
    assert_eq!(schema.field(0).name(), "max(abs(t.value))");
    assert_eq!(schema.field(1).name(), "of_distinct");
}

/// NaN is the greatest number, and zeros, infinities and rounding are those of rows.
#[tokio::test]
async fn derived_extremes_are_those_of_rows() {
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e308, -1e-308];
    for (turn, nan_as_null) in (0..14).flat_map(|turn| [(turn, false), (turn, true)]) {
        let value = |cell: usize| match cell % 11 {
            0 => special[turn % 7],
            3 if turn >= 7 => special[(turn + 2) % 7],
            at => (at as f64 - 5.0) / 3.0,
        };
        let data = (0..48).flat_map(|cell| value(cell).to_le_bytes()).collect();
        let dataset = TestDataset::new("value", F64, &[24, 2], &[6, 2], data);
        let file = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
        let ctx = reducing(2, 8192);
        let options = ArrayOptions::default().with_nan_as_null(nan_as_null);
        ctx.register_array("t", file.location(), options).await.unwrap();
        let functions = [
            "max(abs(value))",
            "max(abs(value - 1.1))",
            "max(abs(0.7 - value / -3.0))",
            "max(value * 1e300)",
            "min(value / 3.3 + 0.1)",
            "max(arrow_cast(value, 'Float32') - arrow_cast(0.1, 'Float32'))",
            "min(-(-value) * 1e-300)",
            "max(abs(value)) FILTER (WHERE dim_0 < 5)",
        ];
        let all = functions.join(", ");
        for sql in [
            format!("SELECT {all} FROM t"),
            format!("SELECT dim_0 % 3, {all} FROM t GROUP BY 1 ORDER BY 1"),
        ] {
            query(&ctx, "SET gridfusion.optimizer.enable_reduce = true").await.unwrap();
            let derived = rows_from(&ctx, &sql).await;
            query(&ctx, "SET gridfusion.optimizer.enable_reduce = false").await.unwrap();
            assert_eq!(derived, rows_from(&ctx, &sql).await, "{turn} {nan_as_null} {sql}");
        }
    }
}
