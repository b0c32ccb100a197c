//! Random windows over whole partitions of random arrays, compared with the same over rows.

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::random::text;
use crate::reduce::random::{compare, key};
use crate::support::cases::{Case, name};
use crate::support::reducing;

/// A random query, and the number of its first columns that identify a row.
fn random_query(case: &Case, rng: &mut StdRng) -> (String, usize) {
    let rank = case.axes.len();
    let mut keys: Vec<String> = (0..rng.random_range(0..=rank.min(3)))
        .map(|_| {
            let axis = rng.random_range(0..rank);
            key(&case.axes[axis], &name(axis), rng)
        })
        .filter(|key| !key.contains("AS TIME"))
        .collect();
    keys.sort();
    keys.dedup();
    let by = match keys.as_slice() {
        [] => "()".to_owned(),
        _ => format!("(PARTITION BY {})", keys.join(", ")),
    };
    let number = rng.random_range(-2..3);
    let choices = [
        format!("value - avg(value) OVER {by}"),
        format!("count(*) OVER {by}"),
        format!("sum(value) OVER {by}"),
        format!("(value - min(value) OVER {by}) / (max(value) OVER {by} + 100)"),
        format!("stddev(value) OVER {by}"),
        format!("bool_or(value > {number}) OVER {by}"),
        // These depend on the order of rows, or on parts of a partition.
        format!("sum(value) OVER (PARTITION BY d0 ORDER BY {})", dims(rank)),
    ];
    let columns: Vec<String> = choices.choose_multiple(rng, 2).cloned().collect();
    let axis = rng.random_range(0..rank);
    let filter = match rng.random_range(0..4) {
        0 => format!(" WHERE {}", case.axes[axis].predicate(&name(axis), rng)),
        1 => format!(" WHERE value > {number}"),
        _ => String::new(),
    };
    let sql = format!("SELECT {}, value, {} FROM t{filter}", dims(rank), columns.join(", "));
    (sql, rank + 1)
}

fn dims(rank: usize) -> String {
    (0..rank).map(name).collect::<Vec<_>>().join(", ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_agree_with_rows() {
    let mut rng = StdRng::seed_from_u64(41);
    let mut taken = 0;
    for number in 0..150 {
        let rank = rng.random_range(1..=4);
        let longest = [150, 20, 9, 5][rank - 1];
        let mut lens = || (0..rank).map(|_| rng.random_range(1..=longest)).collect::<Vec<u64>>();
        let (shape, chunk) = (lens(), lens());
        let case = Case::of_shape(&mut rng, &shape, &chunk, false);
        let ours = reducing(rng.random_range(1..=4), *[3, 64, 8192].choose(&mut rng).unwrap());
        let options = ArrayOptions::default().with_dataset("v");
        ours.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        for _ in 0..14 {
            let (sql, keys) = random_query(&case, &mut rng);
            let difference = compare(&ours, &theirs, &sql, keys, case.magnitude).await;
            let plan = text(&ours, &sql).await.unwrap_or_default();
            if let Err(difference) = difference {
                panic!("case {number}, {}: {sql}\n{plan}\n{difference}", case.description);
            }
            taken += usize::from(plan.contains("GridReduceExec"));
        }
    }
    assert!(taken > 500, "{taken} queries were reductions");
}
