//! Random longest runs, compared with windows over rows in memory.

use datafusion::physical_plan::displayable;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::plans::plan;
use super::random::{agree, on_workers_if_possible, sent_if_possible, small, tier};
use crate::support::cases::{Axis, Case, name};
use crate::support::{query, reducing, rows_from};

/// Labels that are all different, sorted or not.
fn labels(rng: &mut StdRng, len: u64) -> Axis {
    let order = rng.random_range(0..4);
    let number = |at: u64| match order {
        0 => at as i32 * 3 - 4,
        1 => 9 - at as i32 * 2,
        _ => at as i32,
    };
    let mut numbers: Vec<i32> = (0..len).map(number).collect();
    if order == 3 {
        numbers.rotate_left(len as usize / 3);
    }
    match rng.random_range(0..3) {
        0 => Axis::Index(len),
        1 => Axis::Numbers(numbers.iter().map(|&number| f64::from(number) / 4.0).collect()),
        _ => Axis::Hours(numbers),
    }
}

/// Returns the query of longest runs, and that of its oracle: runs are numbered by how many rows of the other condition came before.
fn queries(case: &Case, rng: &mut StdRng) -> (String, String, usize) {
    let axis = rng.random_range(0..case.axes.len());
    let along = name(axis);
    let mut keys: Vec<String> =
        (0..case.axes.len()).filter(|other| *other != axis).map(name).collect();
    if rng.random_bool(0.4) {
        keys.push(match &case.axes[axis] {
            Axis::Index(_) => format!("{along} / 5"),
            Axis::Numbers(_) => format!("floor({along})"),
            _ => format!("date_trunc('day', {along})"),
        });
    }
    let number = rng.random_range(-3..4);
    let other = case.axes[axis].predicate(&along, rng);
    let condition = match rng.random_range(0..4) {
        0 => format!("value > {number} OR {other}"),
        1 => "value IS NULL".into(),
        2 => other.to_string(),
        _ => format!("value <= {number}"),
    };
    let filter = case.axes[axis].predicate(&along, rng);
    let filters = ["true".to_owned(), filter, format!("value > {}", number - 2)];
    let (kept, counted) = (filters.choose(rng).unwrap(), filters.choose(rng).unwrap());
    let order = *["", " DESC"].choose(rng).unwrap();
    let columns = |keys: &[String]| keys.iter().map(|key| format!("{key}, ")).collect::<String>();
    let group_by = match keys.is_empty() {
        true => String::new(),
        false => format!("GROUP BY {}", keys.join(", ")),
    };
    let runs = format!(
        "SELECT {}longest_run({condition} ORDER BY {along}{order}) FILTER (WHERE {counted}) AS run
         FROM t WHERE {kept} {group_by}",
        columns(&keys)
    );
    let names: Vec<String> = (0..keys.len()).map(|at| format!("k{at}")).collect();
    let named: String =
        keys.iter().zip(&names).map(|(key, name)| format!("{key} AS {name}, ")).collect();
    let partition = match names.is_empty() {
        true => String::new(),
        false => format!("PARTITION BY {}", names.join(", ")),
    };
    let expected = format!(
        "WITH cells AS (SELECT {named}{along} AS along, coalesce({condition}, false) AS c, coalesce({counted}, false) AS f
                        FROM t WHERE {kept}),
              breaks AS (SELECT {columns}c, f, sum(CASE WHEN f AND NOT c THEN 1 ELSE 0 END) OVER ({partition} ORDER BY along) AS before
                         FROM cells),
              lengths AS (SELECT {columns}before, sum(CASE WHEN c AND f THEN 1 ELSE 0 END) AS n FROM breaks GROUP BY {columns}before)
         SELECT {columns}coalesce(max(n), 0) AS run FROM lengths {}",
        match names.is_empty() {
            true => String::new(),
            false => format!("GROUP BY {}", names.join(", ")),
        },
        columns = columns(&names),
    );
    (runs, expected, keys.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn longest_runs_agree_with_windows_over_rows() {
    let mut rng = StdRng::seed_from_u64(52);
    let mut reduced = 0;
    for number in 0..100 {
        let (shape, chunk) = small(&mut rng);
        let axes = shape.iter().map(|&len| labels(&mut rng, len)).collect();
        let case = Case::of_axes(&mut rng, axes, &shape, &chunk, false);
        let ours = reducing(rng.random_range(1..=6), *[3, 64, 8192].choose(&mut rng).unwrap());
        let options = ArrayOptions::default().with_dataset("v");
        ours.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        for _ in 0..10 {
            let (runs, expected, keys) = queries(&case, &mut rng);
            let expected = query(&theirs, &expected)
                .await
                .unwrap_or_else(|error| panic!("{expected}: {error}"));
            let mut found = vec![query(&ours, &runs).await];
            found.push(query(&theirs, &runs).await);
            match rng.random_range(0..4) {
                0 => found.extend(sent_if_possible(&ours, &runs).await),
                1 => found.extend(on_workers_if_possible(&ours, 2, &runs).await),
                _ => {}
            }
            for found in found {
                let same = agree(found, Ok(expected.clone()), keys, 0.0);
                same.unwrap_or_else(|difference| {
                    panic!("case {number}, {}: {runs}\n{difference}", case.description)
                });
            }
            reduced += usize::from(tier(&ours, &runs).await.contains("tier=accumulators"));
        }
    }
    assert!(reduced > 500, "{reduced} queries were reductions");
}

/// Groups whose rows come in no order, or several times, are aggregated over rows.
#[tokio::test]
async fn runs_of_rows_in_no_order_are_no_reductions() {
    let mut rng = StdRng::seed_from_u64(1);
    let axes = vec![Axis::Index(12), Axis::Index(5)];
    let case = Case::of_axes(&mut rng, axes, &[12, 5], &[4, 2], false);
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("t", case.file.location(), options).await.unwrap();
    for (call, keys, is_reduced) in [
        ("longest_run(value > 1 ORDER BY d0)", "d1", true),
        ("longest_run(value > 1 ORDER BY -d0)", "d1", true),
        ("longest_run(value > 1 ORDER BY d1)", "d0, d1 / 3", true),
        ("longest_run(value > 1 ORDER BY d0 % 5)", "d1", false),
        ("longest_run(value > 1 ORDER BY d0)", "d1 % 2", false),
        ("longest_run(value > 1 ORDER BY d0)", "d0 % 2, d1", false),
        ("longest_run(value > 1 ORDER BY value)", "d1", false),
    ] {
        let sql = format!("SELECT {keys}, {call} FROM t GROUP BY {keys}");
        let shown = tier(&ctx, &sql).await;
        assert_eq!(shown.contains("mode=whole, tier=accumulators"), is_reduced, "{sql}: {shown}");
    }
    for (sql, message) in [
        ("SELECT longest_run(value > 1) FROM t", "needs the order of rows"),
        ("SELECT longest_run(DISTINCT value > 1 ORDER BY value > 1) FROM t", "takes no DISTINCT"),
    ] {
        let error = query(&ctx, sql).await.unwrap_err().to_string();
        assert!(error.contains(message), "{sql}: {error}");
    }
}

/// Spells by a running sum of breaks, and their number by the day before, need no sorted rows.
#[tokio::test]
async fn windows_of_spells_sort_no_rows() {
    let mut rng = StdRng::seed_from_u64(3);
    let axes = vec![Axis::Index(30), Axis::Index(4), Axis::Index(3)];
    let case = Case::of_axes(&mut rng, axes, &[30, 4, 3], &[7, 4, 3], false);
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("t", case.file.location(), options).await.unwrap();
    let by_breaks = "SELECT d1, d2, max(n) FROM (
            SELECT d1, d2, breaks, count(*) FILTER (WHERE c) AS n FROM (
                SELECT d1, d2, value > 1 AS c, sum(CASE WHEN value > 1 THEN 0 ELSE 1 END)
                    OVER (PARTITION BY d1, d2 ORDER BY d0) AS breaks FROM t)
            GROUP BY d1, d2, breaks) GROUP BY d1, d2";
    let spells = "SELECT d1, d2, count(*) FILTER (WHERE c AND NOT coalesce(before, false)) FROM (
            SELECT d1, d2, value > 1 AS c, lag(value > 1) OVER (PARTITION BY d1, d2 ORDER BY d0) AS before FROM t)
        GROUP BY d1, d2";
    for sql in [by_breaks, spells] {
        let shown = displayable(plan(&ctx, sql).await.as_ref()).indent(false).to_string();
        assert!(shown.contains("GridWindowExec") && !shown.contains("SortExec"), "{shown}");
    }
    let longest = "SELECT d1, d2, longest_run(value > 1 ORDER BY d0) FROM t GROUP BY d1, d2";
    let (mut found, mut expected) =
        (rows_from(&ctx, longest).await, rows_from(&ctx, by_breaks).await);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
