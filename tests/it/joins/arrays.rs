//! Random joins of random arrays on their dimensions, compared with the same joins over rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::datasource::MemTable;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use super::random::text;
use crate::reduce::random::{compare, key};
use crate::support::cases::{Axis, Case, name};
use crate::support::{query, reducing, rows_of};

/// An array, and for each of its axes that of the array `t`.
struct Other {
    case: Case,
    axes: Vec<usize>,
    /// Whether some of its labels are not those of `t`.
    is_shifted: bool,
}

/// Random labels, of which one may be NULL.
fn axis(rng: &mut StdRng, len: u64) -> Axis {
    let mut axis = Axis::random(rng, len);
    if let Axis::Numbers(labels) = &mut axis
        && rng.random_bool(0.6)
    {
        let at = *[0, rng.random_range(0..labels.len())].choose(rng).unwrap();
        labels[at] = f64::NAN;
    }
    axis
}

/// Whether a label of an array is NULL.
fn has_null(case: &Case) -> bool {
    let is_nan = |axis: &Axis| match axis {
        Axis::Numbers(labels) => labels.iter().any(|label| label.is_nan()),
        _ => false,
    };
    case.axes.iter().any(is_nan)
}

/// An array over some axes of another one, in any order, with chunks of its own.
fn other(t: &Case, shape: &[u64], rng: &mut StdRng) -> Other {
    let mut axes: Vec<usize> = (0..shape.len()).filter(|_| rng.random_bool(0.8)).collect();
    if axes.is_empty() {
        axes.push(0);
    }
    axes.shuffle(rng);
    let lens: Vec<u64> = axes.iter().map(|&axis| shape[axis]).collect();
    let chunk: Vec<u64> = lens.iter().map(|&len| rng.random_range(1..=len + 1)).collect();
    let mut labels: Vec<Axis> = axes.iter().map(|&axis| t.axes[axis].clone()).collect();
    // Labels of which `t` has some, or none.
    let is_shifted = rng.random_bool(0.25);
    if is_shifted {
        let at = rng.random_range(0..labels.len());
        match &mut labels[at] {
            Axis::Numbers(labels) => labels.iter_mut().for_each(|it| *it += 0.75),
            Axis::Hours(labels) => labels.iter_mut().for_each(|it| *it += 3),
            Axis::Text(labels) => labels.iter_mut().for_each(|it| it.push('x')),
            Axis::Index(_) => {}
        }
    }
    if rng.random_bool(0.2) {
        // A label where `t` has NULL.
        for axis in &mut labels {
            if let Axis::Numbers(labels) = axis {
                labels.iter_mut().filter(|it| it.is_nan()).for_each(|it| *it = -9.25);
            }
        }
    }
    let case = Case::of_axes(rng, labels, &lens, &chunk, false);
    Other { case, axes, is_shifted }
}

fn on(left: &str, other: &Other, right: &str, rng: &mut StdRng) -> String {
    let mut pairs: Vec<String> = (0..other.axes.len())
        .map(|own| {
            let (a, b) =
                (format!("{left}.{}", name(other.axes[own])), format!("{right}.{}", name(own)));
            if rng.random() { format!("{a} = {b}") } else { format!("{b} = {a}") }
        })
        .collect();
    pairs.shuffle(rng);
    pairs.join(" AND ")
}

/// A random query, the number of its keys, and the kind of its join.
fn random_query(t: &Case, p: &Other, q: &Other, rng: &mut StdRng) -> (String, usize, String) {
    let rank = t.axes.len();
    let kind =
        *["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "three"].choose(rng).unwrap();
    let mut condition = on("t", p, "p", rng);
    match rng.random_range(0..8) {
        0 => condition += " AND t.value + 0.5 > p.value + 0.5",
        1 => condition += &format!(" AND {}", t.axes[0].predicate("t.d0", rng)),
        _ => {}
    }
    let from = match kind {
        "three" => format!("t JOIN p ON {condition} JOIN q ON {}", on("t", q, "q", rng)),
        join if rng.random() => format!("p {join} t ON {condition}"),
        join => format!("t {join} p ON {condition}"),
    };
    let of_third = if kind == "three" { "q.value" } else { "p.value" };
    let mut conditions: Vec<String> = vec![];
    for _ in 0..rng.random_range(0..3) {
        let axis = rng.random_range(0..rank);
        let own = rng.random_range(0..p.axes.len());
        conditions.push(match rng.random_range(0..6) {
            0 => format!("t.value > {}", rng.random_range(-4..4)),
            1 => format!("{of_third} IS NOT NULL"),
            2 => p.case.axes[own].predicate(&format!("p.{}", name(own)), rng),
            3 => "(t.value + 0.5 <= p.value + 0.5 OR t.value > 2)".into(),
            _ => t.axes[axis].predicate(&format!("t.{}", name(axis)), rng),
        });
    }
    let filter = match conditions.as_slice() {
        [] => String::new(),
        _ => format!(" WHERE {}", conditions.join(" AND ")),
    };
    if rng.random_bool(0.4) {
        let mut columns: Vec<String> = (0..rank).map(|axis| format!("t.{}", name(axis))).collect();
        columns.extend(["t.value".to_owned(), of_third.to_owned(), "p.value".to_owned()]);
        columns.dedup();
        let count = columns.len();
        return (
            format!("SELECT {} FROM {from}{filter}", columns.join(", ")),
            count,
            kind.to_owned(),
        );
    }
    let mut keys: Vec<String> = (0..rng.random_range(0..3))
        .map(|_| {
            let axis = rng.random_range(0..rank);
            key(&t.axes[axis], &format!("t.{}", name(axis)), rng)
        })
        .filter(|key| !key.contains("AS TIME"))
        .collect();
    keys.sort();
    keys.dedup();
    let choices = [
        "count(*)".into(),
        "count(p.value)".into(),
        "sum(t.value * p.value)".into(),
        format!("avg(t.value - {of_third})"),
        "max(t.value + p.value)".into(),
        format!("sum({of_third})"),
        "min(p.value)".into(),
        "count(*) FILTER (WHERE t.value + 0.5 > p.value + 0.5)".into(),
        format!("avg({of_third}) FILTER (WHERE {})", t.axes[0].predicate("t.d0", rng)),
    ];
    let mut aggregates: Vec<String> = choices.choose_multiple(rng, 3).cloned().collect();
    aggregates.sort();
    let columns: Vec<String> = keys.iter().chain(&aggregates).cloned().collect();
    let mut sql = format!("SELECT {} FROM {from}{filter}", columns.join(", "));
    if !keys.is_empty() {
        sql += &format!(" GROUP BY {}", keys.join(", "));
    }
    (sql, keys.len(), kind.to_owned())
}

async fn compare_cases(seed: u64, cases: usize, queries: usize) -> BTreeMap<String, usize> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut taken = BTreeMap::new();
    for number in 0..cases {
        let rank = rng.random_range(1..=4);
        let longest = [60, 14, 7, 4][rank - 1];
        let mut lens = || (0..rank).map(|_| rng.random_range(1..=longest)).collect::<Vec<u64>>();
        let (shape, chunk) = (lens(), lens());
        let axes = shape.iter().map(|&len| axis(&mut rng, len)).collect();
        let t = Case::of_axes(&mut rng, axes, &shape, &chunk, false);
        let (p, q) = (other(&t, &shape, &mut rng), other(&t, &shape, &mut rng));
        let ours = reducing(rng.random_range(1..=4), *[3, 64, 8192].choose(&mut rng).unwrap());
        let plain = reducing(2, 8192);
        for rule in ["align_joins", "lookup_joins"] {
            query(&plain, &format!("SET gridfusion.optimizer.enable_{rule} = false"))
                .await
                .unwrap();
        }
        let theirs = t.in_memory();
        for (name, case) in [("t", &t), ("p", &p.case), ("q", &q.case)] {
            let options = ArrayOptions::default().with_dataset("v");
            ours.register_array(name, case.file.location(), options.clone()).await.unwrap();
            plain.register_array(name, case.file.location(), options).await.unwrap();
            if name != "t" {
                let table = MemTable::try_new(case.rows.schema(), vec![vec![case.rows.clone()]]);
                theirs.register_table(name, Arc::new(table.unwrap())).unwrap();
            }
        }
        let magnitude = (t.magnitude * p.case.magnitude).max(q.case.magnitude).sqrt() + 4.0;
        for _ in 0..queries {
            let (sql, keys, kind) = random_query(&t, &p, &q, &mut rng);
            let context = || {
                let (p, q) = (&p.case.description, &q.case.description);
                format!("seed {seed}, case {number}, t {}; p {p}; q {q}: {sql}", t.description)
            };
            // Over a `MemTable`, DataFusion 55 loses conditions above some outer joins, or takes a column of the other side.
            let is_outer = kind.contains(' ');
            let expected = if is_outer { &plain } else { &theirs };
            let difference = compare(&ours, expected, &sql, keys, magnitude).await;
            let plan = text(&ours, &sql).await.unwrap_or_default();
            if let Err(difference) = difference {
                let plain = query(&plain, &sql).await.map(|batches| rows_of(&batches));
                panic!("{}\n{plan}\n{difference}\nwithout the rule {plain:?}", context());
            }
            let is_joined = plan.contains("HashJoinExec") || plan.contains("GridLookupExec");
            let is_aligned = !is_joined && plan.contains(" + ");
            let is_shifted = p.is_shifted && is_aligned && kind != "three";
            *taken.entry("shifted".to_owned()).or_default() += usize::from(is_shifted);
            let has_null = has_null(&t) || has_null(&p.case);
            *taken.entry("null".to_owned()).or_default() += usize::from(has_null && is_aligned);
            *taken.entry(kind).or_default() += usize::from(is_aligned);
        }
    }
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_arrays_agree_with_rows() {
    let halves = [31, 32].map(|seed| tokio::spawn(compare_cases(seed, 130, 16)));
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for half in halves {
        for (kind, count) in half.await.unwrap() {
            *taken.entry(kind).or_default() += count;
        }
    }
    let all: usize = taken.values().sum();
    assert!(all > 500 && taken.len() == 7 && taken.values().all(|count| *count > 40), "{taken:?}");
}
