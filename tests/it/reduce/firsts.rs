//! Random `first_value`, `last_value`, `max_by` and `min_by` in the order of values, as reductions. The oracle ranks the rows in memory:
//! a label is right if a row of the first rank has it, because equal values may come in any order.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::random::{conditions, key, on_workers_if_possible, sent_if_possible, small, tier};
use crate::support::cases::{Case, name};
use crate::support::{query, reducing, rows_from, rows_of};

/// A call, and how its oracle orders the rows that count.
struct Call {
    sql: String,
    label: String,
    order: &'static str,
    filter: String,
}

/// A function of labels: of one axis, of two, or of none.
fn label(case: &Case, rng: &mut StdRng) -> String {
    let mut axis = || rng.random_range(0..case.axes.len());
    let (a, b) = (name(axis()), name(axis()));
    match rng.random_range(0..8) {
        0..4 => a,
        4 => format!("concat(CAST({a} AS VARCHAR), '|', CAST({b} AS VARCHAR))"),
        5 => "7".into(),
        _ => {
            let axis = rng.random_range(0..case.axes.len());
            key(&case.axes[axis], &name(axis), rng)
        }
    }
}

impl Call {
    fn random(case: &Case, rng: &mut StdRng) -> Self {
        let label = label(case, rng);
        // The order of the query, and the same for `last_value`, whose rows come from the other end.
        let (sql, order, known) = *[
            ("first_value(E ORDER BY value DESC)", "DESC NULLS FIRST", false),
            ("first_value(E ORDER BY value)", "ASC NULLS LAST", false),
            ("first_value(E ORDER BY value DESC NULLS LAST)", "DESC NULLS LAST", false),
            ("first_value(E ORDER BY value NULLS FIRST)", "ASC NULLS FIRST", false),
            ("last_value(E ORDER BY value)", "DESC NULLS FIRST", false),
            ("last_value(E ORDER BY value DESC)", "ASC NULLS LAST", false),
            ("last_value(E ORDER BY value NULLS FIRST)", "DESC NULLS LAST", false),
            ("last_value(E ORDER BY value DESC NULLS LAST)", "ASC NULLS FIRST", false),
            ("max_by(E, value)", "DESC NULLS LAST", true),
            ("arg_min(E, value)", "ASC NULLS LAST", true),
        ]
        .choose(rng)
        .unwrap();
        let axis = rng.random_range(0..case.axes.len());
        let number = rng.random_range(-4..6);
        let filter = match rng.random_range(0..8) {
            0 => format!("value > {number}"),
            1 => format!("value <= {number}"),
            2 => "value IS NOT NULL".into(),
            3 => case.axes[axis].predicate(&name(axis), rng),
            _ => String::new(),
        };
        // `E` is also in the names of keywords.
        let sql = sql.replace("(E", &format!("({label}"));
        let sql = match filter.is_empty() {
            true => format!("CAST({sql} AS VARCHAR)"),
            false => format!("CAST({sql} FILTER (WHERE {filter}) AS VARCHAR)"),
        };
        let filter = match (known, filter.is_empty()) {
            (true, true) => "value IS NOT NULL".into(),
            (true, false) => format!("({filter}) AND value IS NOT NULL"),
            (false, true) => "true".into(),
            (false, false) => filter,
        };
        Self { sql, label, order, filter }
    }

    /// Returns the labels that are right for each group that has a row.
    async fn allowed(
        &self,
        theirs: &SessionContext,
        keys: &[String],
        conditions: &str,
    ) -> BTreeMap<Vec<String>, BTreeSet<String>> {
        let columns = keys.iter().enumerate();
        let columns: String = columns.map(|(at, key)| format!("{key} AS k{at}, ")).collect();
        let partition = match keys {
            [] => String::new(),
            keys => format!("PARTITION BY {} ", keys.join(", ")),
        };
        // Zeros of both signs are equal.
        let sql = format!(
            "SELECT {columns} CAST({label} AS VARCHAR) AS label, rank() OVER ({partition} ORDER BY
             CASE WHEN value = 0 THEN abs(value) ELSE value END {order}) AS place
             FROM t WHERE {conditions} AND {filter}",
            label = self.label,
            order = self.order,
            filter = self.filter,
        );
        let mut allowed: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for mut row in rows_from(theirs, &sql).await {
            if row.pop().unwrap() == "1" {
                let label = row.pop().unwrap();
                allowed.entry(keys_of(&row)).or_default().insert(label);
            }
        }
        allowed
    }
}

/// Returns keys with one zero, as groups have.
fn keys_of(keys: &[String]) -> Vec<String> {
    keys.iter().map(|key| if key == "-0.0" { "0.0".to_owned() } else { key.clone() }).collect()
}

/// Checks each label of a result. Returns how many groups it has.
fn check(
    rows: &[Vec<String>],
    keys: usize,
    allowed: &[BTreeMap<Vec<String>, BTreeSet<String>>],
) -> Result<usize, String> {
    let groups: BTreeSet<&[String]> = rows.iter().map(|row| &row[..keys]).collect();
    if groups.len() != rows.len() {
        return Err("a group comes twice".into());
    }
    for row in rows {
        for (allowed, found) in allowed.iter().zip(&row[keys..]) {
            let allowed = allowed.get(&keys_of(&row[..keys]));
            let is_right = match allowed {
                Some(labels) => labels.contains(found),
                None => found == "NULL",
            };
            if !is_right {
                return Err(format!("{found} in {row:?}, where {allowed:?} would be right"));
            }
        }
    }
    Ok(rows.len())
}

/// Compares random queries over random arrays; returns how often each tier was taken.
async fn compare_cases(seed: u64, cases: usize, queries: usize) -> BTreeMap<&'static str, usize> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut tiers = BTreeMap::new();
    for number in 0..cases {
        let (shape, chunk) = small(&mut rng);
        let wild = rng.random_bool(0.2);
        let case = Case::of_shape(&mut rng, &shape, &chunk, wild);
        let partitions = rng.random_range(1..=7);
        let (ours, single) = (reducing(partitions, 64), reducing(1, 8192));
        for ctx in [&ours, &single] {
            let options = ArrayOptions::default().with_dataset("v");
            ctx.register_array("t", case.file.location(), options).await.unwrap();
        }
        let theirs = case.in_memory();
        for _ in 0..queries {
            let mut keys: Vec<String> = (0..rng.random_range(0..=case.axes.len().min(3)))
                .map(|_| {
                    let axis = rng.random_range(0..case.axes.len());
                    key(&case.axes[axis], &name(axis), &mut rng)
                })
                .collect();
            // DataFusion 55 takes times of day as sorted like the times that they are made of.
            keys.retain(|key| !key.contains("AS TIME"));
            keys.sort();
            keys.dedup();
            let calls: Vec<Call> =
                (0..rng.random_range(1..3)).map(|_| Call::random(&case, &mut rng)).collect();
            let mut conditions = conditions(&case, &mut rng);
            // Rows of one value are sorted, and DataFusion 55's `last_value` of sorted rows panics in debug builds.
            conditions.retain(|condition| !condition.contains("value = "));
            let conditions = match conditions.join(" AND ") {
                none if none.is_empty() || rng.random_bool(0.5) => "true".to_owned(),
                some => some,
            };
            let mut columns = keys.clone();
            columns.extend(calls.iter().enumerate().map(|(at, it)| format!("{} AS c{at}", it.sql)));
            // Other aggregates of the same pass.
            columns.extend(rng.random_bool(0.3).then(|| "avg(value)".to_owned()));
            columns.extend(rng.random_bool(0.3).then(|| "max(value), count(*)".to_owned()));
            let mut sql = format!("SELECT {} FROM t WHERE {conditions}", columns.join(", "));
            if !keys.is_empty() {
                sql += &format!(" GROUP BY {}", keys.join(", "));
            }
            let mut allowed = vec![];
            for call in &calls {
                allowed.push(call.allowed(&theirs, &keys, &conditions).await);
            }
            let taken = tier(&ours, &sql).await;
            let mut found = match query(&ours, &sql).await {
                Ok(found) => vec![found],
                // DataFusion gives `d0` and `CAST(d0 AS VARCHAR)` one name.
                Err(error) if error.to_string().contains("same name") => continue,
                Err(error) => panic!("{sql}: {error}"),
            };
            if taken.starts_with("mode=") {
                let (bytes, workers) = match rng.random_range(0..3) {
                    0 => (sent_if_possible(&ours, &sql).await, None),
                    1 => (None, on_workers_if_possible(&ours, 2, &sql).await),
                    _ => (None, None),
                };
                found.extend([bytes, workers].into_iter().flatten().map(Result::unwrap));
            }
            let mut results: Vec<_> = found.iter().map(|found| rows_of(found)).collect();
            let groups: BTreeSet<_> =
                results[0].iter().map(|row| row[..keys.len()].to_vec()).collect();
            for rows in &results {
                let same = rows.len() == groups.len();
                if let Err(difference) = check(rows, keys.len(), &allowed).and_then(|_| {
                    same.then_some(()).ok_or_else(|| "another number of groups".to_owned())
                }) {
                    panic!(
                        "seed {seed}, case {number}, {} {partitions} partitions: {sql}\n{taken}\n\
                         {difference}",
                        case.description
                    );
                }
            }
            // Without a final stage, the label does not depend on partitions.
            if taken.starts_with("mode=whole, tier=dense") {
                let mut other = rows_from(&single, &sql).await;
                let (first, calls) = (&mut results[0], keys.len() + calls.len());
                for rows in [first, &mut other] {
                    rows.iter_mut().for_each(|row| row.truncate(calls));
                    rows.sort();
                }
                assert_eq!(results[0], other, "{sql}");
            }
            *tiers.entry(taken).or_default() += 1;
        }
    }
    tiers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_of_extremes_are_those_of_the_first_rows() {
    let halves = [21, 22].map(|seed| tokio::spawn(compare_cases(seed, 90, 16)));
    let mut tiers: BTreeMap<&str, usize> = BTreeMap::new();
    for half in halves {
        for (tier, count) in half.await.unwrap() {
            *tiers.entry(tier).or_default() += count;
        }
    }
    for tier in ["mode=whole, tier=dense", "mode=partial, tier=dense"] {
        let of_kind = tiers.iter().filter(|(of, _)| of.starts_with(tier));
        let taken: usize = of_kind.map(|(_, count)| count).sum();
        assert!(taken > 500, "{tier} was taken {taken} times: {tiers:?}");
    }
    assert!(tiers.contains_key("mode=whole, tier=dense, per_label"), "{tiers:?}");
}
