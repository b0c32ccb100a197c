//! Random joins that return rows of random arrays, compared with the same over rows.

use std::collections::BTreeMap;

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::random::{register, table, text};
use crate::reduce::random::{compare, conditions, key};
use crate::support::cases::{Case, name};
use crate::support::reducing;

/// A random query, the number of its columns that are compared exactly, and the kind of its join.
fn random_query(
    case: &Case,
    axis: usize,
    other: usize,
    rng: &mut StdRng,
) -> (String, usize, String) {
    let rank = case.axes.len();
    let kinds = [
        "JOIN",
        "JOIN",
        "LEFT JOIN",
        "RIGHT JOIN",
        "FULL JOIN",
        "EXISTS",
        "NOT EXISTS",
        "anomaly",
        "self",
        "two keys",
    ];
    let kind = *kinds.choose(rng).unwrap();
    let (label, second) = (name(axis), name(other));
    let mut conditions = conditions(case, rng);
    let mut columns: Vec<String> = (0..rank).map(|axis| format!("t.{}", name(axis))).collect();
    columns.push("t.value".to_owned());
    let residual = match rng.random_range(0..8) {
        0 => {
            format!(" AND (s.u > 1 OR {})", case.axes[other].predicate(&format!("t.{second}"), rng))
        }
        1 => format!(" AND s.u > {}", rng.random_range(-2..3)),
        2 => " AND (t.value > 0 OR s.u > 0)".into(),
        _ => String::new(),
    };
    let of_table = ["s.k", "s.g", "s.w"].map(ToOwned::to_owned);
    let from = match kind {
        "EXISTS" | "NOT EXISTS" => {
            let residual = residual.replace(" AND (t.value > 0 OR s.u > 0)", "");
            conditions.push(format!("{kind} (SELECT 1 FROM s WHERE s.k = t.{label}{residual})"));
            "t".into()
        }
        "anomaly" => {
            let mut of = |axis: usize| {
                let of_t = key(&case.axes[axis], &format!("t.{}", name(axis)), rng);
                // The filter of a join over rows tells zeros of different signs apart.
                let of_t = of_t.replace("-t.", "t.");
                (of_t.replace("t.", ""), of_t)
            };
            let (a, b) = (of(axis), of(other));
            columns.extend(["c.n".to_owned(), "t.value - c.mean".to_owned()]);
            format!(
                "t JOIN (SELECT {} AS a, {} AS b, avg(value) AS mean, count(value) AS n FROM t GROUP BY 1, 2) c ON {} = c.a AND {} = c.b",
                a.0, b.0, a.1, b.1
            )
        }
        "self" => {
            // The same cells, or those of other labels.
            columns.push("p.value".to_owned());
            let on = |axis: usize| {
                let right = key(&case.axes[axis], &format!("p.{}", name(axis)), rng);
                format!("{} = {right}", right.replace("p.", "t."))
            };
            let on: Vec<String> = (0..rank).map(on).collect();
            format!("t JOIN t p ON {}", on.join(" AND "))
        }
        "two keys" => {
            columns.extend(of_table);
            columns.push("r.g".to_owned());
            format!("t JOIN (s CROSS JOIN r) ON t.{label} = s.k AND t.{second} = r.k{residual}")
        }
        join => {
            columns.extend(of_table);
            match rng.random_range(0..3) {
                0 => format!("s {join} t ON t.{label} = s.k{residual}"),
                1 => format!(
                    "t {join} s ON t.{label} = s.k{residual} LEFT JOIN r ON t.{second} = r.k"
                ),
                _ => format!("t {join} s ON t.{label} = s.k{residual}"),
            }
        }
    };
    let conditions: Vec<String> = conditions
        .into_iter()
        .filter(|condition| !condition.contains("AS TIME"))
        .map(|condition| of_t(condition, rank))
        .collect();
    let filter = match conditions.as_slice() {
        [] => String::new(),
        _ => format!(" WHERE {}", conditions.join(" AND ")),
    };
    // Differences of values are compared with a tolerance, so all columns before them identify a row.
    let exact = columns.len() - usize::from(kind == "anomaly");
    (format!("SELECT {} FROM {from}{filter}", columns.join(", ")), exact, kind.to_owned())
}

/// Names the table of the columns of a condition.
fn of_t(condition: String, rank: usize) -> String {
    if condition.contains("SELECT") {
        return condition;
    }
    let condition = (0..rank)
        .fold(condition, |text, axis| text.replace(&name(axis), &format!("t.{}", name(axis))));
    condition.replace("value", "t.value")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lookups_agree_with_rows() {
    let mut rng = StdRng::seed_from_u64(91);
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..250 {
        let rank = rng.random_range(1..=4);
        let longest = [150, 20, 8, 4][rank - 1];
        let mut lens = || (0..rank).map(|_| rng.random_range(1..=longest)).collect::<Vec<u64>>();
        let (shape, chunk) = (lens(), lens());
        let case = Case::of_shape(&mut rng, &shape, &chunk, false);
        let (axis, other) = (rng.random_range(0..rank), rng.random_range(0..rank));
        let (s, r) = (table(&case, axis, &mut rng), table(&case, other, &mut rng));
        let ours = reducing(rng.random_range(1..=4), *[3, 64, 8192].choose(&mut rng).unwrap());
        let options = ArrayOptions::default().with_dataset("v");
        ours.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        for ctx in [&ours, &theirs] {
            register(ctx, "s", &s);
            register(ctx, "r", &r);
        }
        for _ in 0..14 {
            let (sql, exact, kind) = random_query(&case, axis, other, &mut rng);
            let difference = compare(&ours, &theirs, &sql, exact, case.magnitude).await;
            let plan = text(&ours, &sql).await.unwrap_or_default();
            if let Err(difference) = difference {
                panic!("case {number}, {}: {sql}\n{plan}\n{difference}", case.description);
            }
            *taken.entry(kind).or_default() += usize::from(plan.contains("GridLookupExec"));
        }
    }
    println!("{taken:?}");
    let all: usize = taken.values().sum();
    assert!(all > 1_000, "{taken:?}");
    for kind in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "EXISTS", "NOT EXISTS", "anomaly", "self"] {
        assert!(taken.get(kind).is_some_and(|count| *count > 40), "{kind}: {taken:?}");
    }
}
