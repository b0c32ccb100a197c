//! Random queries for the first rows of partitions of random arrays, compared with the same over sorted rows.

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::random::text;
use crate::reduce::random::{compare, conditions, key};
use crate::support::cases::{Case, name};
use crate::support::reducing;

/// A random query, and the number of its columns.
fn random_query(case: &Case, rng: &mut StdRng) -> (String, usize) {
    let rank = case.axes.len();
    let mut keys: Vec<String> = (0..rng.random_range(0..=rank.min(2)))
        .map(|_| {
            let axis = rng.random_range(0..rank);
            key(&case.axes[axis], &name(axis), rng)
        })
        .filter(|key| !key.contains("AS TIME"))
        .collect();
    keys.sort();
    keys.dedup();
    let partition = match keys.as_slice() {
        [] => String::new(),
        _ => format!("PARTITION BY {}", keys.join(", ")),
    };
    let sort_key = *["value", "value * 2 - 1", "d0"].choose(rng).unwrap();
    let direction = *["", "DESC", "NULLS FIRST", "DESC NULLS LAST"].choose(rng).unwrap();
    let second = if rng.random_bool(0.2) { ", value" } else { "" };
    let function = *["row_number()", "row_number()", "rank()", "dense_rank()"].choose(rng).unwrap();
    let count = rng.random_range(0..6);
    let first = [
        format!("r <= {count}"),
        format!("r < {count}"),
        format!("r = {count}"),
        format!("{count} >= r"),
        format!("r <= {count} AND value > 0"),
        format!("(r <= {count} OR value > 1)"),
        format!("r >= {count}"),
    ];
    let mut columns = keys.clone();
    columns.extend([sort_key.to_owned(), "value".to_owned()]);
    // Rows with equal sort keys have no order among them, so only the sort key is compared.
    if second.is_empty() {
        columns.pop();
    }
    let named = |(at, column): (usize, &String)| format!("{column} AS c{at}");
    let inner: Vec<String> = columns.iter().enumerate().map(named).collect();
    let conditions: Vec<String> =
        conditions(case, rng).into_iter().filter(|it| !it.contains("AS TIME")).collect();
    let filter = match conditions.as_slice() {
        [] => String::new(),
        _ => format!(" WHERE {}", conditions.join(" AND ")),
    };
    let outer: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
    let first = first.choose(rng).unwrap().replace("value", &format!("c{}", columns.len() - 1));
    let sql = format!(
        "SELECT {}, r FROM (SELECT {}, {function} OVER ({partition} ORDER BY {sort_key} {direction}{second}) AS r FROM t{filter}) WHERE {first}",
        outer.join(", "),
        inner.join(", "),
    );
    (sql, columns.len() + 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_rows_agree_with_sorted_rows() {
    let mut rng = StdRng::seed_from_u64(55);
    let mut taken = 0;
    for number in 0..150 {
        let rank = rng.random_range(1..=4);
        let longest = [200, 30, 10, 5][rank - 1];
        let mut lens = || (0..rank).map(|_| rng.random_range(1..=longest)).collect::<Vec<u64>>();
        let (shape, chunk) = (lens(), lens());
        let wild = rng.random_bool(0.3);
        let case = Case::of_shape(&mut rng, &shape, &chunk, wild);
        let ours = reducing(rng.random_range(1..=4), *[3, 64, 8192].choose(&mut rng).unwrap());
        let options = ArrayOptions::default().with_dataset("v");
        ours.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        for _ in 0..12 {
            let (sql, columns) = random_query(&case, &mut rng);
            let difference = compare(&ours, &theirs, &sql, columns, case.magnitude).await;
            let plan = text(&ours, &sql).await.unwrap_or_default();
            if let Err(difference) = difference {
                panic!("case {number}, {}: {sql}\n{plan}\n{difference}", case.description);
            }
            taken += usize::from(plan.contains("GridTopExec"));
        }
    }
    assert!(taken > 500, "{taken} queries left out rows");
}
