//! Functions: those of a session itself, and ours in the places of DataFusion's.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, ColumnarValue, Volatility, create_udaf, create_udf};
use datafusion::prelude::{SessionContext, col};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::codec::sent::query_sent;
use crate::codec::shapes::tables;
use crate::support::{cell, query, reducing, rows_from, rows_of, sorted_rows_from};

/// An aggregate that is always the same number.
#[derive(Debug)]
struct Always;

impl Accumulator for Always {
    fn update_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Ok(())
    }

    fn retract_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::from(4711.0))
    }

    fn size(&self) -> usize {
        0
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::from(4711.0)])
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Ok(())
    }
}

/// A session registers functions under names of DataFusion. Each of them is called, wherever it stands.
#[tokio::test]
async fn functions_of_a_session_are_its_own() {
    let ctx = tables().await;
    for name in ["sum", "avg", "min", "max", "stddev"] {
        let double = DataType::Float64;
        let always = Arc::new(|_: AccumulatorArgs<'_>| -> Result<Box<dyn Accumulator>> {
            Ok(Box::new(Always))
        });
        ctx.register_udaf(create_udaf(
            name,
            vec![double.clone()],
            Arc::new(double.clone()),
            Volatility::Immutable,
            always,
            Arc::new(vec![double]),
        ));
    }
    for call in ["sum", "avg", "min", "max", "stddev"] {
        for sql in [
            format!("SELECT {call}(value) FROM temperature"),
            format!("SELECT {call}(value) FROM temperature GROUP BY station"),
            format!("SELECT {call}(value * 2) FROM temperature GROUP BY date_trunc('day', time)"),
            format!(
                "SELECT {call}(value) OVER (PARTITION BY station ORDER BY time ROWS 3 PRECEDING) FROM temperature"
            ),
            format!(
                "SELECT {call}(value) OVER (PARTITION BY station ORDER BY time) FROM temperature"
            ),
            format!("SELECT {call}(value) OVER (PARTITION BY station) FROM temperature"),
            format!(
                "SELECT {call}(t.value - e.value) FROM temperature t JOIN elevation e ON t.station = e.station GROUP BY t.station"
            ),
            format!(
                "SELECT {call}(e.value) FROM temperature t JOIN elevation e ON t.station = e.station"
            ),
            format!("SELECT {call}(speed) FROM ships"),
            format!("SELECT {call}(lat) FROM ships"),
        ] {
            let rows = rows_from(&ctx, &sql).await;
            assert!(
                !rows.is_empty() && rows.iter().all(|row| row == &["4711.0"]),
                "{sql} {rows:?}"
            );
        }
    }
    let microseconds = DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None);
    let epoch = ScalarValue::TimestampMicrosecond(Some(0), None);
    ctx.register_udf(create_udf(
        "date_trunc",
        vec![DataType::Utf8, microseconds.clone()],
        microseconds,
        Volatility::Immutable,
        Arc::new(move |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(epoch.clone()))),
    ));
    let sql = "SELECT date_trunc('day', time), count(*) FROM temperature GROUP BY 1";
    assert_eq!(rows_from(&ctx, sql).await, [["1970-01-01T00:00:00", "8640"]]);
}

fn floats(numbers: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(numbers.to_vec()))
}

async fn registered(ctx: &SessionContext, columns: Vec<(&str, ArrayRef)>) {
    ctx.register_batch("r", RecordBatch::try_from_iter(columns).unwrap()).unwrap();
}

/// `min` and `max` take NaN of either sign for the greatest number, and infinity for itself, in groups, in all rows and in windows.
#[tokio::test]
async fn extremes_have_one_meaning_everywhere() {
    let all = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.5];
    let mut rng = StdRng::seed_from_u64(3);
    for partitions in [1, 3] {
        let ctx = reducing(partitions, 4);
        let mut values: Vec<f64> = (0..400).map(|_| *all.choose(&mut rng).unwrap()).collect();
        values.extend([f64::INFINITY, f64::NEG_INFINITY, -f64::NAN]);
        let mut keys: Vec<i64> = (0..400).map(|row| row / 3).collect();
        keys.extend([1000, 1001, 1002]);
        let key = |rows: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(rows.to_vec())) };
        registered(&ctx, vec![("k", key(&keys)), ("v", floats(&values))]).await;
        let expected = |of: &[f64]| -> [String; 2] {
            let numbers = || of.iter().copied().filter(|it| !it.is_nan());
            let greatest = match of.iter().any(|it| it.is_nan()) {
                true => f64::NAN,
                false => numbers().fold(f64::NEG_INFINITY, f64::max),
            };
            let least = match numbers().next() {
                None => f64::NAN,
                Some(_) => numbers().fold(f64::INFINITY, f64::min),
            };
            [text(least), text(greatest)]
        };
        let groups = rows_from(&ctx, "SELECT k, min(v), max(v) FROM r GROUP BY k ORDER BY k").await;
        for row in &groups {
            let key: i64 = row[0].parse().unwrap();
            let of_key = values.iter().zip(&keys).filter(|(_, it)| **it == key);
            let of_key: Vec<f64> = of_key.map(|(value, _)| *value).collect();
            assert_eq!(row[1..], expected(&of_key), "{of_key:?}");
            let sql = format!("SELECT min(v), max(v) FROM r WHERE k = {key}");
            assert_eq!(rows_from(&ctx, &sql).await[0], expected(&of_key), "{of_key:?}");
        }
        let whole = "SELECT DISTINCT k, min(v) OVER (PARTITION BY k), max(v) OVER (PARTITION BY k) FROM r ORDER BY k";
        assert_eq!(rows_from(&ctx, whole).await, groups);
        let frames = "SELECT k, v, min(v) OVER w, max(v) OVER w FROM (SELECT k, v, row_number() OVER () AS n FROM r) \
                      WINDOW w AS (ORDER BY n ROWS 2 PRECEDING) ORDER BY n";
        if partitions == 1 {
            for (row, found) in rows_from(&ctx, frames).await.iter().enumerate() {
                assert_eq!(found[2..], expected(&values[row.saturating_sub(2)..=row]), "{row}");
            }
        }
    }
}

fn text(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".into(),
        f64::INFINITY => "inf".into(),
        f64::NEG_INFINITY => "-inf".into(),
        number => format!("{number:?}"),
    }
}

/// The rows of each frame of a column of keys in order.
fn frames(keys: &[i64], unit: &str, before: i64, after: i64) -> Vec<Vec<usize>> {
    let rank = |row: usize| -> i64 {
        keys[..row].windows(2).filter(|pair| pair[0] != pair[1]).count() as i64
            + i64::from(row > 0 && keys[row - 1] != keys[row])
    };
    let place: Vec<i64> = (0..keys.len())
        .map(|row| match unit {
            "ROWS" => row as i64,
            "RANGE" => keys[row],
            _ => rank(row),
        })
        .collect();
    let of = |row: usize| {
        let range = place[row] - before..=place[row] + after;
        (0..keys.len()).filter(|other| range.contains(&place[*other])).collect()
    };
    (0..keys.len()).map(of).collect()
}

/// The value of a function for the pairs of a frame, computed in two passes.
fn naive(function: &str, pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (mx, my) = (mean(&|it| it.0), mean(&|it| it.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|(x, y)| of(x - mx, y - my)).sum::<f64>();
    let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
    let constant = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().all(|it| of(it) == of(&pairs[0]));
    let (flat_x, flat_y) = (constant(&|it| it.0), constant(&|it| it.1));
    if pairs.is_empty() {
        return None;
    }
    let zero = |flat: bool, value: f64| if flat { 0.0 } else { value };
    let (xx, yy, xy) = (zero(flat_x, xx), zero(flat_y, yy), zero(flat_x || flat_y, xy));
    let many = pairs.len() > 1;
    match function {
        "sum(x)" => Some(pairs.iter().map(|it| it.0).sum()),
        "avg(x)" => Some(mx),
        "var(x)" => many.then(|| xx / (n - 1.0)),
        "var_pop(x)" => Some(xx / n),
        "stddev(x)" => many.then(|| (xx / (n - 1.0)).sqrt()),
        "stddev_pop(x)" => Some((xx / n).sqrt()),
        "corr(x, y)" => (many && !flat_x && !flat_y).then(|| xy / xx.sqrt() / yy.sqrt()),
        "covar_samp(x, y)" => many.then(|| xy / (n - 1.0)),
        "covar_pop(x, y)" => Some(xy / n),
        "regr_slope(y, x)" => (many && !flat_x).then(|| xy / xx),
        "regr_intercept(y, x)" => (many && !flat_x).then(|| my - xy / xx * mx),
        "regr_r2(y, x)" => (many && !flat_x && !flat_y).then(|| xy * xy / xx / yy),
        "regr_avgx(y, x)" => Some(mx),
        "regr_avgy(y, x)" => Some(my),
        "regr_sxx(y, x)" => Some(xx),
        "regr_syy(y, x)" => Some(yy),
        "regr_sxy(y, x)" => Some(xy),
        other => panic!("{other}"),
    }
}

const SLIDING: [&str; 17] = [
    "sum(x)",
    "avg(x)",
    "var(x)",
    "var_pop(x)",
    "stddev(x)",
    "stddev_pop(x)",
    "corr(x, y)",
    "covar_samp(x, y)",
    "covar_pop(x, y)",
    "regr_slope(y, x)",
    "regr_intercept(y, x)",
    "regr_r2(y, x)",
    "regr_avgx(y, x)",
    "regr_avgy(y, x)",
    "regr_sxx(y, x)",
    "regr_syy(y, x)",
    "regr_sxy(y, x)",
];

/// Values that have left a frame over rows leave no trace: neither a large number nor infinity.
#[tokio::test]
async fn frames_over_rows_forget_what_has_left_them() {
    let mut rng = StdRng::seed_from_u64(20);
    let choices =
        [Some(0.0), Some(0.0), Some(2.7), Some(2.7), Some(-1e5), Some(1.3), Some(1e12), None];
    for round in 0..30 {
        let count = rng.random_range(2..60);
        let mut column = || -> Vec<Option<f64>> {
            let mut last = None;
            (0..count)
                .map(|_| {
                    if rng.random_range(0..3) > 0 {
                        last = *choices.choose(&mut rng).unwrap();
                    }
                    last
                })
                .collect()
        };
        let (x, y) = (column(), column());
        let mut keys: Vec<i64> = (0..count).map(|_| rng.random_range(0..20)).collect();
        keys.sort_unstable();
        let unit = ["ROWS", "RANGE", "GROUPS"][round % 3];
        let (before, after) = (rng.random_range(0..6), rng.random_range(0..4));
        let frames = frames(&keys, unit, before, after);
        let ctx = reducing(1, [1, 7, 8192][round % 3]);
        let doubles =
            |of: &[Option<f64>]| -> ArrayRef { Arc::new(Float64Array::from(of.to_vec())) };
        registered(
            &ctx,
            vec![
                ("k", Arc::new(Int64Array::from(keys.clone()))),
                ("x", doubles(&x)),
                ("y", doubles(&y)),
            ],
        )
        .await;
        for function in SLIDING {
            let sql = format!(
                "SELECT {function} OVER (ORDER BY k {unit} BETWEEN {before} PRECEDING AND {after} FOLLOWING) FROM r"
            );
            let batches = query(&ctx, &sql).await.unwrap();
            let found: Vec<Option<f64>> = batches
                .iter()
                .flat_map(|batch| {
                    let column = batch.column(0).as_any().downcast_ref::<Float64Array>().unwrap();
                    column.iter().collect::<Vec<_>>()
                })
                .collect();
            for (row, frame) in frames.iter().enumerate() {
                let is_one = function.contains("(x)");
                let pairs = frame
                    .iter()
                    .filter_map(|it| Some((x[*it]?, if is_one { 0.0 } else { y[*it]? })));
                let pairs: Vec<(f64, f64)> = pairs.collect();
                let expected = naive(function, &pairs);
                let is_near = match (found[row], expected) {
                    (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * b.abs().max(a.abs()) + 1e-9,
                    (None, None) => true,
                    _ => false,
                };
                // Where numbers of 1e12 meet those of 1, few digits are left.
                let is_exact = pairs.iter().all(|(x, y)| x.abs() < 1e6 && y.abs() < 1e6);
                assert!(
                    is_near || !is_exact,
                    "{sql} row {row}: {:?} for {expected:?} of {pairs:?}",
                    found[row]
                );
                if function.starts_with("corr") {
                    assert!(found[row].is_none_or(|it| it.abs() < 1.0 + 1e-9), "{:?}", found[row]);
                }
            }
        }
    }
    let ctx = reducing(1, 8192);
    let x = floats(&[1.0, f64::INFINITY, f64::NAN, 1e300, 2.0, 2.0, 2.0]);
    registered(&ctx, vec![("k", Arc::new(Int64Array::from_iter_values(0..7))), ("x", x)]).await;
    for (function, last) in [
        ("sum(x)", "4.0"),
        ("avg(x)", "2.0"),
        ("stddev(x)", "0.0"),
        ("weighted_avg(x, x)", "2.0"),
        ("max(x)", "2.0"),
    ] {
        let sql = format!("SELECT {function} OVER (ORDER BY k ROWS 1 PRECEDING) FROM r ORDER BY k");
        assert_eq!(rows_from(&ctx, &sql).await[6], [last], "{sql}");
    }
}

/// Registers times between the years 1500 and 2595, in microseconds.
async fn old_times(ctx: &SessionContext) {
    let days: [i64; 6] = [-171_650, -171_649, -171_285, -71_650, 10_957, 228_300];
    let times = days.map(|day| day * 86_400_000_000 + 3_600_000_000);
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(times));
    registered(ctx, vec![("t", times)]).await;
}

/// `date_trunc` and `date_bin` of times that have no 64-bit number of nanoseconds.
#[tokio::test]
async fn times_of_all_years_are_truncated_and_binned() {
    let ctx = reducing(1, 8192);
    old_times(&ctx).await;
    let rows = async |expr: &str| -> Vec<String> {
        let sql = format!("SELECT {expr} FROM r");
        rows_from(&ctx, &sql).await.into_iter().map(|row| row[0].clone()).collect()
    };
    assert_eq!(
        rows("date_trunc('year', t)").await,
        [
            "1500-01-01T00:00:00",
            "1500-01-01T00:00:00",
            "1501-01-01T00:00:00",
            "1773-01-01T00:00:00",
            "2000-01-01T00:00:00",
            "2595-01-01T00:00:00"
        ]
    );
    assert_eq!(rows("date_trunc('hour', t)").await, rows("t").await);
    assert_eq!(rows("date_bin(INTERVAL '1 month', t)").await, rows("date_trunc('month', t)").await);
    assert_eq!(rows("date_bin(INTERVAL '1 day', t)").await, rows("date_trunc('day', t)").await);
    let weeks = "date_bin(INTERVAL '7 days', t, TIMESTAMP '2001-01-01')";
    assert_eq!(rows(weeks).await, rows("date_trunc('week', t)").await);
    let century = "SELECT count(*) FROM r GROUP BY date_bin(INTERVAL '100 years', t)";
    assert_eq!(sorted_rows_from(&ctx, century).await, [["1"], ["1"], ["1"], ["3"]]);
    // Seconds have years that no other unit has.
    let far = "SELECT date_trunc('day', arrow_cast(90000000000001, 'Timestamp(Second, None)'))";
    assert!(query(&ctx, far).await.is_ok());
    let error = "SELECT date_trunc('year', arrow_cast(-9223372036854775807, 'Timestamp(Microsecond, None)'))";
    let error = query(&ctx, error).await.unwrap_err().to_string();
    assert!(error.contains("date_trunc"), "{error}");
    let with_zone = "SELECT date_trunc('day', arrow_cast(-13000000000000000, 'Timestamp(Microsecond, Some(\"+02:00\"))'))";
    assert_eq!(cell(&ctx, with_zone).await, "1558-01-18T00:00:00+02:00");
}

/// The functions travel: other processes find them by name, or by what the codec adds.
#[tokio::test]
async fn functions_travel() {
    let ctx = reducing(1, 8192);
    old_times(&ctx).await;
    for sql in [
        "SELECT date_trunc('year', t), count(*) FROM r GROUP BY 1 ORDER BY 1",
        "SELECT max(t), min(x) FROM (SELECT t, arrow_cast('Infinity', 'Float64') AS x FROM r) GROUP BY date_bin(INTERVAL '100 years', t) ORDER BY 1",
        "SELECT CAST(t AS TIME) AS clock, count(*) FROM r GROUP BY 1 ORDER BY 1",
        "SELECT nth_value(t, 2 ORDER BY t DESC) FROM r",
        "SELECT array_agg(t ORDER BY t DESC) FROM r",
        "SELECT lead(t) IGNORE NULLS OVER (ORDER BY t) AS next FROM r ORDER BY 1",
    ] {
        for worker in [SessionContext::new(), reducing(2, 100)] {
            let sent = query_sent(&ctx, &worker, sql).await.unwrap();
            assert_eq!(rows_of(&sent), rows_from(&ctx, sql).await, "{sql}");
        }
    }
}

/// A query that Rust builds names DataFusion's functions, not those of the session.
#[tokio::test]
async fn queries_without_sql_have_our_functions() {
    let ctx = reducing(1, 8192);
    registered(&ctx, vec![("k", floats(&[1.0, 2.0])), ("v", floats(&[f64::INFINITY, 3.0]))]).await;
    let least = min(col("v")).alias("least");
    let frame = ctx.table("r").await.unwrap().aggregate(vec![col("k")], vec![least]).unwrap();
    let frame = frame.sort(vec![col("k").sort(true, true)]).unwrap();
    assert_eq!(rows_of(&frame.collect().await.unwrap()), [["1.0", "inf"], ["2.0", "3.0"]]);
}

/// DataFusion 55.2 gives these answers. If one of them changes, our version of the function may go: see `src/exec/mended/UPSTREAM.md`.
#[tokio::test]
async fn datafusion_still_needs_our_functions() {
    let ctx = SessionContext::new();
    let values = "(VALUES (1, 'Infinity'), (2, '-Infinity')) AS q(k, v)";
    let sql = format!("SELECT min(CAST(v AS DOUBLE)) FROM {values} GROUP BY k ORDER BY k LIMIT 1");
    assert_eq!(cell(&ctx, &format!("SELECT * FROM ({sql})")).await, "1.7976931348623157e308");
    let of = |numbers: &str| {
        format!(
            "SELECT max(x) FROM (SELECT 1 AS k, CAST(column1 AS DOUBLE) AS x FROM (VALUES {numbers})) GROUP BY k"
        )
    };
    assert_eq!(cell(&ctx, &of("('5'), ('NaN'), ('1')")).await, "1.0");
    assert_eq!(cell(&ctx, &of("('5'), ('1'), ('NaN')")).await, "NaN");
    let window = "SELECT stddev(x) OVER (ORDER BY t ROWS 2 PRECEDING) FROM (VALUES (1, 0.0), (2, -100000.0), (3, 1.3), \
                  (4, 0.0), (5, 0.0), (6, 0.0)) AS q(t, x) ORDER BY t";
    assert_ne!(rows_from(&ctx, window).await[5], ["0.0"]);
    let corr = "SELECT corr(x, y) OVER (ORDER BY t ROWS 2 PRECEDING) FROM (VALUES (1, 1e9, 1e9), (2, 1.0, 1.0), (3, 2.0, 1.0), \
                (4, 3.0, 2.0)) AS q(t, x, y) ORDER BY t";
    let found: f64 = rows_from(&ctx, corr).await[3][0].parse().unwrap_or(f64::NAN);
    let is_right = (found - 0.866_025_403_784_438_6).abs() < 1e-6;
    assert!(!is_right, "{found}");
    let of_groups = "SELECT corr(x, y) FROM (VALUES (1, 1e9, 1), (1, 1e9 + 1, 2), (1, 1e9 + 2, 3)) AS q(k, x, y) GROUP BY k";
    assert_ne!(cell(&ctx, of_groups).await, "1.0");
    let with_ours = reducing(2, 8192);
    assert_eq!(cell(&with_ours, of_groups).await, "1.0");
    old_times(&ctx).await;
    let bins = "SELECT count(*) FROM r WHERE date_bin(INTERVAL '1 day', t) IS NULL";
    assert_eq!(cell(&ctx, bins).await, "4");
    assert!(query(&ctx, "SELECT date_trunc('year', t) FROM r").await.is_err());
}
