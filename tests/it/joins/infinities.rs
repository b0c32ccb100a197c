//! Aggregates above joins of arrays with infinities, NaN, and numbers near the ends of the range of floats.
//!
//! Arithmetic on states must give what arithmetic on the rows gives. The rows are those of the same query without eager
//! aggregation.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::codec::sent::plan;
use crate::support::{F64, Layout, TempTet, TestDataset, query, reducing, tet_bytes};

const TIMES: usize = 240;
const CELLS: usize = 16;

/// An array in whose rows the extraordinary numbers are few, so that each of them decides some results.
fn array(rng: &mut StdRng) -> TempTet {
    let special =
        [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, -0.0, 1e300, -1e300, 1e-300, 3e7];
    let mut cells = vec![];
    for _ in 0..TIMES {
        let of_row: Vec<f64> =
            (0..rng.random_range(0..3)).map(|_| *special.choose(rng).unwrap()).collect();
        cells.extend((0..CELLS).map(|_| match of_row.choose(rng) {
            Some(special) if rng.random_range(0..4) == 0 => *special,
            _ => f64::from(rng.random_range(-40..40)) / 4.0,
        }));
    }
    let data = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
    let dataset = TestDataset::new("value", F64, &[TIMES as u64, CELLS as u64], &[32, 16], data)
        .with_metadata(serde_json::json!({"dim_names": ["t", "x"]}));
    let layout = Layout { history_version: Some(1), ..Layout::default() };
    TempTet::new(&tet_bytes(&[dataset], &layout))
}

/// A row per time: a mean, a factor, a number, and a group of several times.
fn other_side(rng: &mut StdRng) -> RecordBatch {
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, 1e300, 1e-300, 1e10, 1e12];
    let mut column = |share: u32| -> ArrayRef {
        let number = |_| match rng.random_range(0..share) {
            0 => Some(*special.choose(rng).unwrap()),
            1 => None,
            _ => Some(f64::from(rng.random_range(-8..8)) / 2.0),
        };
        Arc::new((0..TIMES).map(number).collect::<Float64Array>())
    };
    let (m, s) = (column(4), column(4));
    let numbers = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..TIMES as i64).map(of)))
    };
    let columns = [
        ("k", numbers(&|at| at)),
        ("g", numbers(&|at| at / 3)),
        ("m", m),
        ("s", s),
        ("n", numbers(&|at| at % 7 - 3)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

const EXPRESSIONS: [&str; 12] = [
    "a.value - c.m",
    "c.m - a.value",
    "a.value * c.s",
    "a.value * c.s + c.m",
    "(a.value - c.m) * 2.0",
    "(a.value - c.m) / -0.5",
    "(a.value - c.m) * 1e200 * 1e-200",
    "a.value / c.s",
    "-(a.value - c.m)",
    "a.value * CAST(c.n AS DOUBLE)",
    "c.m * 3.0",
    "(a.value - c.m) * (a.value * 0.0 + 1.0)",
];

async fn numbers(ctx: &SessionContext, sql: &str) -> Vec<Vec<Option<f64>>> {
    let batches = query(ctx, sql).await.unwrap();
    let column = |at: usize| -> Vec<Option<f64>> {
        let of = |batch: &RecordBatch| {
            let column =
                arrow::compute::cast(batch.column(at), &arrow::datatypes::DataType::Float64);
            let column = column.unwrap();
            let column = column.as_any().downcast_ref::<Float64Array>().unwrap();
            (0..column.len()).map(|row| column.is_valid(row).then(|| column.value(row))).collect()
        };
        batches.iter().flat_map(|batch| -> Vec<_> { of(batch) }).collect()
    };
    (0..batches[0].num_columns()).map(column).collect()
}

#[tokio::test]
async fn arithmetic_on_states_is_that_on_rows() {
    let mut rng = StdRng::seed_from_u64(6);
    for (round, nan_is_null) in [true, false, true].into_iter().enumerate() {
        let file = array(&mut rng);
        let ctx = reducing(1 + round, 8192);
        let options = ArrayOptions::default().with_option("nan_as_null", nan_is_null);
        ctx.register_array("a", file.location(), options).await.unwrap();
        ctx.register_batch("c", other_side(&mut rng)).unwrap();
        for expr in EXPRESSIONS {
            let calls = [
                format!("sum({expr})"),
                format!("avg({expr})"),
                format!("min({expr})"),
                format!("max({expr})"),
                format!("var_pop({expr})"),
                format!("count({expr})"),
                format!("weighted_avg({expr}, c.n)"),
                format!("weighted_avg({expr}, c.s)"),
            ];
            for key in ["c.k", "c.g"] {
                let sql = |call: &str| {
                    format!(
                        "SELECT {key}, {call} FROM a JOIN c ON a.t = c.k GROUP BY {key} ORDER BY {key}"
                    )
                };
                // The greatest number tells how many digits a sum can have.
                let scale = numbers(&ctx, &sql(&format!("max(abs({expr}))"))).await;
                for call in &calls {
                    let with = numbers(&ctx, &sql(call)).await;
                    query(&ctx, "SET gridfusion.optimizer.enable_eager_aggregation = false")
                        .await
                        .unwrap();
                    let without = numbers(&ctx, &sql(call)).await;
                    query(&ctx, "SET gridfusion.optimizer.enable_eager_aggregation = true")
                        .await
                        .unwrap();
                    assert_eq!(with[0], without[0], "{call}");
                    for (row, (found, expected)) in with[1].iter().zip(&without[1]).enumerate() {
                        let scale = scale[1][row].unwrap_or(0.0);
                        let power = if call.starts_with("var") { 2 } else { 1 };
                        // The spread of numbers around 1e300 is not a number of this type.
                        if power == 2 && scale > 1e150 {
                            continue;
                        }
                        let near =
                            1e-9 * scale.abs().min(1e300).powi(power) * CELLS as f64 + 1e-300;
                        let agrees = match (found, expected) {
                            (Some(a), Some(b)) if a.is_nan() || b.is_nan() => {
                                a.is_nan() && b.is_nan()
                            }
                            (Some(a), Some(b)) => a == b || (a - b).abs() <= near,
                            (a, b) => a == b,
                        };
                        assert!(
                            agrees,
                            "{call} by {key}, nan_as_null={nan_is_null}, key {:?}: {found:?} for {expected:?}",
                            with[0][row]
                        );
                    }
                }
            }
        }
    }
}

/// The test above is of use only if states are computed below joins.
#[tokio::test]
async fn anomalies_are_reduced_below_joins() {
    let mut rng = StdRng::seed_from_u64(7);
    let file = array(&mut rng);
    let ctx = reducing(2, 8192);
    for (name, nan_is_null) in [("a", true), ("kept", false)] {
        let options = ArrayOptions::default().with_option("nan_as_null", nan_is_null);
        ctx.register_array(name, file.location(), options).await.unwrap();
    }
    ctx.register_batch("c", other_side(&mut rng)).unwrap();
    for (call, table, is_below) in [
        ("max(a.value - c.m)", "a", true),
        ("min((c.m - a.value) * 2.0)", "a", true),
        ("avg(a.value - c.m)", "a", true),
        ("avg(a.value * c.s)", "a", true),
        ("avg(a.value - c.m)", "kept", true),
        // The greatest number tells nothing about those beside NaN.
        ("min(a.value - c.m)", "kept", false),
    ] {
        let sql = format!("SELECT c.g, {call} FROM {table} a JOIN c ON a.t = c.k GROUP BY c.g");
        let plan = plan(&ctx, &sql).await.unwrap();
        let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
        assert_eq!(text.contains("GridReduceExec"), is_below, "{sql}\n{text}");
    }
}
