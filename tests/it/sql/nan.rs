//! NaN of one sign: aggregates and windows return it as the greatest number, whatever computes them.

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::json;

use crate::support::{F64, Layout, TempTet, TestDataset, cell, query, reducing, tet_bytes};

const SETTINGS: [&str; 6] =
    ["reduce", "reduce_windows", "grid_windows", "eager_aggregation", "lookup_joins", "top_rows"];

/// Two rows of four values, in chunks of two.
fn file(values: [f64; 4]) -> TempTet {
    let bytes = [values, values].as_flattened().iter().flat_map(|it| it.to_le_bytes()).collect();
    let dataset = TestDataset::new("value", F64, &[2, 4], &[1, 2], bytes)
        .with_metadata(json!({"dim_names": ["t", "x"]}));
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    TempTet::new(&tet_bytes(&[dataset], &layout))
}

#[tokio::test]
async fn nan_is_the_greatest_number_with_all_settings() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    // Queries, and the results for each order of values.
    let queries = [
        (
            "SELECT count(*) FROM (SELECT value - avg(value) OVER (PARTITION BY t) AS c FROM a) WHERE c > 0",
            ["8"; 3],
        ),
        (
            "SELECT count(*) FROM (SELECT t, sum(value) AS s FROM a GROUP BY t) WHERE s > 0",
            ["2"; 3],
        ),
        (
            "SELECT count(*) FROM (SELECT x, sum(value) AS s FROM a GROUP BY x HAVING sum(value) > 0)",
            ["3"; 3],
        ),
        ("SELECT count(*) FROM (SELECT t FROM a GROUP BY t HAVING avg(value) > 1e300)", ["2"; 3]),
        ("SELECT count(*) FROM (SELECT t FROM a GROUP BY t HAVING stddev(value) > 0)", ["2"; 3]),
        ("SELECT count(*) FROM (SELECT t FROM a GROUP BY t HAVING var_pop(value) > 0)", ["2"; 3]),
        (
            "SELECT count(*) FROM (SELECT t FROM a GROUP BY t HAVING weighted_avg(value, 1.0) > 0)",
            ["2"; 3],
        ),
        ("SELECT sum(value) > 0 FROM a", ["true"; 3]),
        ("SELECT avg(value) > 0 AND var(value) > 0 FROM a", ["true"; 3]),
        (
            "SELECT count(*) FROM (SELECT sum(value) OVER (PARTITION BY t ORDER BY x) AS c FROM a) WHERE c > 0",
            ["8"; 3],
        ),
        (
            "SELECT count(*) FROM (SELECT sum(value) OVER (PARTITION BY t ORDER BY x DESC ROWS 1 PRECEDING) AS c FROM a) WHERE c > 0",
            ["6", "8", "6"],
        ),
        (
            "SELECT count(*) FROM (SELECT avg(value) OVER (PARTITION BY t ORDER BY x ROWS 1 PRECEDING) AS c FROM a) WHERE c > 0",
            ["6", "8", "6"],
        ),
        (
            "SELECT count(*) FROM (SELECT stddev(value) OVER (PARTITION BY t ORDER BY x ROWS 1 PRECEDING) AS c FROM a) WHERE c > 0",
            ["6"; 3],
        ),
        (
            "SELECT count(*) FROM (SELECT covar_pop(value, value) OVER (PARTITION BY t) AS c FROM a) WHERE c > 0",
            ["8"; 3],
        ),
        ("SELECT x FROM a GROUP BY x ORDER BY sum(value) DESC, x LIMIT 1", ["0", "2", "3"]),
    ];
    for (order, values) in [[nan, inf, -inf, 1.0], [inf, -inf, nan, 1.0], [inf, -inf, 1.0, nan]]
        .into_iter()
        .enumerate()
    {
        let tet = file(values);
        for partitions in [1, 2] {
            let ctx = reducing(partitions, 4);
            let options = ArrayOptions::default().with_nan_as_null(false);
            ctx.register_array("a", tet.location(), options).await.unwrap();
            for off in SETTINGS.iter().map(Some).chain([None]) {
                for setting in SETTINGS {
                    let is_on = Some(&setting) != off;
                    let sql = format!("SET gridfusion.optimizer.enable_{setting} = {is_on}");
                    query(&ctx, &sql).await.unwrap();
                }
                for (sql, expected) in queries {
                    assert_eq!(cell(&ctx, sql).await, expected[order], "{off:?} {values:?}: {sql}");
                }
            }
        }
    }
}
