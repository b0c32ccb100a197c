//! Random windows along a dimension of random arrays, compared with the same over sorted rows.

use std::collections::BTreeMap;

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use super::random::text;
use crate::reduce::random::compare;
use crate::support::cases::{Axis, Case, name};
use crate::support::reducing;

/// Labels in order, ascending or descending; with ties if `ties`. Some numbers are NULL, anywhere.
fn in_order(rng: &mut StdRng, len: u64, ties: bool) -> Axis {
    let mut label = rng.random_range(-20..5);
    let mut labels: Vec<i32> = (0..len)
        .map(|_| {
            label += rng.random_range(if ties { 0..3 } else { 1..4 });
            label
        })
        .collect();
    if rng.random_bool(0.3) {
        labels.reverse();
    }
    match rng.random_range(0..4) {
        0 if !ties => Axis::Index(len),
        1 => Axis::Text(labels.iter().map(|it| format!("s{:03}", it + 100)).collect()),
        2 => {
            let mut labels: Vec<f64> = labels.iter().map(|it| f64::from(*it) / 4.0).collect();
            let most = if ties { 4 } else { 2 };
            for _ in 0..rng.random_range(0..most) {
                let at = [0, labels.len() - 1, rng.random_range(0..labels.len())];
                labels[*at.choose(rng).unwrap()] = f64::NAN;
            }
            Axis::Numbers(labels)
        }
        _ => Axis::Hours(labels),
    }
}

/// A random frame, and its kind. If sort keys repeat, `ROWS` would depend on the order of ties.
fn frame(axis: &Axis, ties: bool, rng: &mut StdRng) -> (&'static str, String) {
    let mut number = || rng.random_range(0..5);
    let (a, b) = (number(), number());
    let both = [
        format!("BETWEEN {a} PRECEDING AND {b} FOLLOWING"),
        format!("{a} PRECEDING"),
        format!("BETWEEN {} PRECEDING AND {b} PRECEDING", a + b),
        format!("BETWEEN {a} FOLLOWING AND {} FOLLOWING", a + b),
        format!("BETWEEN CURRENT ROW AND {b} FOLLOWING"),
        "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING".to_owned(),
        "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW".to_owned(),
        format!("BETWEEN UNBOUNDED PRECEDING AND {a} FOLLOWING"),
    ];
    let both = both.choose(rng).unwrap();
    match rng.random_range(0..4) {
        0 => ("default", String::new()),
        1 if !ties => ("rows", format!("ROWS {both}")),
        2 => ("groups", format!("GROUPS {both}")),
        _ => {
            let bound = |it: i32| match axis {
                Axis::Hours(_) => format!("INTERVAL '{it} hours'"),
                Axis::Text(_) => "UNBOUNDED".to_owned(),
                Axis::Numbers(_) => format!("{}", f64::from(it) / 2.0),
                Axis::Index(_) => format!("{it}"),
            };
            let (start, end) = (bound(a), bound(b));
            ("range", format!("RANGE BETWEEN {start} PRECEDING AND {end} FOLLOWING"))
        }
    }
}

/// A random function, and whether it has a frame.
fn function(is_finite: bool, ties: bool, rng: &mut StdRng) -> (String, bool) {
    let n: i32 = rng.random_range(-3..6);
    let mut choices = vec![
        ("count(value)".to_owned(), true),
        ("count(*)".to_owned(), true),
        ("min(value)".to_owned(), true),
        ("max(value)".to_owned(), true),
        ("rank()".to_owned(), false),
        ("dense_rank()".to_owned(), false),
        ("cume_dist()".to_owned(), false),
    ];
    if is_finite {
        // DataFusion subtracts what leaves a frame, so infinite values and NaN never leave it.
        for name in ["sum", "avg", "var_pop"] {
            choices.push((format!("{name}(value)"), true));
        }
        choices.push(("sum(value * 2 + 1)".to_owned(), true));
    }
    if !ties {
        choices.push(("row_number()".to_owned(), false));
        choices.push((format!("lag(value, {n})"), false));
        choices.push((format!("lead(value, {n}, 7)"), false));
        choices.push(("lag(value)".to_owned(), false));
        choices.push((format!("ntile({})", n.abs() + 1), false));
        for name in ["first_value(value)", "last_value(value)"] {
            choices.push((name.to_owned(), true));
            choices.push((format!("{name} IGNORE NULLS"), true));
        }
        choices.push((format!("nth_value(value, {})", n.abs() + 1), true));
    }
    choices.choose(rng).unwrap().clone()
}

/// Whether labels are NULL, and whether they are not where an order in this direction has them.
fn nulls(labels: &[f64], direction: &str) -> Vec<&'static str> {
    let known: Vec<f64> = labels.iter().copied().filter(|label| !label.is_nan()).collect();
    let count = labels.len() - known.len();
    let ascends = direction != " DESC";
    // Without a word, an order that ascends has NULL last, and one that descends has it first.
    let nulls_first = !direction.is_empty();
    let leads = nulls_first == (ascends == known.is_sorted());
    let end = if leads { &labels[..count] } else { &labels[known.len()..] };
    let moves = known.len() > 1 && end.iter().any(|label| !label.is_nan());
    let kinds = [("null", count > 0), ("null moves", moves)];
    kinds.into_iter().filter(|(_, is)| *is).map(|(kind, _)| kind).collect()
}

/// A random query, the number of its first columns that identify a row, and kinds to count.
fn random_query(
    case: &Case,
    along: usize,
    ties: bool,
    is_finite: bool,
    rng: &mut StdRng,
) -> (String, usize, Vec<String>) {
    let rank = case.axes.len();
    let mut keys: Vec<String> = (0..rank).filter(|axis| *axis != along).map(name).collect();
    keys.shuffle(rng);
    let of_axis = match &case.axes[along] {
        Axis::Hours(_) => Some(format!("date_trunc('day', {})", name(along))),
        Axis::Numbers(_) => Some(format!("floor({} / 3)", name(along))),
        Axis::Index(_) => Some(format!("{} / 4", name(along))),
        Axis::Text(_) => None,
    };
    keys.extend(of_axis.filter(|_| rng.random_bool(0.3)));
    let partition = match keys.as_slice() {
        [] => String::new(),
        _ => format!("PARTITION BY {} ", keys.join(", ")),
    };
    let direction = *["", " DESC", " NULLS FIRST"].choose(rng).unwrap();
    let order = format!("ORDER BY {}{direction}", name(along));
    let mut kinds = vec![];
    if let Axis::Numbers(labels) = &case.axes[along] {
        kinds.extend(nulls(labels, direction).into_iter().map(str::to_owned));
    }
    let mut columns = vec![];
    for _ in 0..2 {
        let (function, has_frame) = function(is_finite, ties, rng);
        let (kind, frame) = match has_frame {
            true => frame(&case.axes[along], ties, rng),
            false => ("none", String::new()),
        };
        kinds.push(kind.to_owned());
        kinds.extend(function.contains("IGNORE NULLS").then(|| "ignored".to_owned()));
        kinds.push(function.split('(').next().unwrap_or_default().to_owned());
        columns.push(format!("{function} OVER ({partition}{order} {frame})"));
    }
    let axis = rng.random_range(0..rank);
    let filter = match rng.random_range(0..4) {
        0 => format!(" WHERE {}", case.axes[axis].predicate(&name(axis), rng)),
        _ => String::new(),
    };
    let dims = (0..rank).map(name).collect::<Vec<_>>().join(", ");
    (format!("SELECT {dims}, value, {} FROM t{filter}", columns.join(", ")), rank + 1, kinds)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_along_a_dimension_agree_with_sorted_rows() {
    let mut rng = StdRng::seed_from_u64(77);
    let mut taken = 0;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for number in 0..200 {
        let rank = rng.random_range(1..=5);
        let longest = [150, 20, 9, 5, 3][rank - 1];
        let mut lens = || (0..rank).map(|_| rng.random_range(1..=longest)).collect::<Vec<u64>>();
        let (shape, chunk) = (lens(), lens());
        let along = rng.random_range(0..rank);
        let ties = rng.random_bool(0.2);
        let is_along = |axis: usize| axis == along && ties;
        let axes: Vec<Axis> =
            (0..rank).map(|axis| in_order(&mut rng, shape[axis], is_along(axis))).collect();
        let wild = rng.random_bool(0.2);
        let case = Case::of_axes(&mut rng, axes, &shape, &chunk, wild);
        let batch_size = *[3, 64, 8192].choose(&mut rng).unwrap();
        let ours = reducing(rng.random_range(1..=4), batch_size);
        let options = ArrayOptions::default().with_dataset("v");
        ours.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        for _ in 0..16 {
            let (sql, keys, of_query) = random_query(&case, along, ties, !wild, &mut rng);
            let difference = compare(&ours, &theirs, &sql, keys, case.magnitude).await;
            let plan = text(&ours, &sql).await.unwrap_or_default();
            if let Err(difference) = difference {
                panic!("case {number}, {}: {sql}\n{plan}\n{difference}", case.description);
            }
            if plan.contains("GridWindowExec") {
                taken += 1;
                of_query.into_iter().for_each(|kind| *kinds.entry(kind).or_default() += 1);
            }
        }
    }
    println!("{taken}: {kinds:?}");
    assert!(taken > 2_000, "{taken} windows ran along a dimension");
    for kind in ["default", "rows", "range", "groups", "none"] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 40), "{kind}: {kinds:?}");
    }
    for kind in [
        "sum",
        "avg",
        "var_pop",
        "min",
        "max",
        "count",
        "lag",
        "lead",
        "row_number",
        "ignored",
        "null",
        "null moves",
    ] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 40), "{kind}: {kinds:?}");
    }
}
