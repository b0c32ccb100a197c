//! Random queries over random arrays, compared with a `MemTable` of the same rows.

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, IoMode};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::support::cases::{Axis, Case, name};
use crate::support::{positions, query, rows_of, session};

impl Case {
    async fn contexts(&self, rng: &mut StdRng) -> (SessionContext, SessionContext) {
        let partitions = rng.random_range(1..5);
        let batch_size = *[1, 3, 16, 8192].choose(rng).unwrap();
        let ours = session(partitions, batch_size);
        let io = if rng.random_bool(0.5) { IoMode::Mmap } else { IoMode::Pread };
        let options = ArrayOptions::default().with_dataset("v").with_io(io);
        ours.register_array("t", self.file.location(), options).await.unwrap();
        (ours, self.in_memory())
    }

    /// A random SELECT whose result does not depend on the order of rows.
    fn query(&self, rng: &mut StdRng) -> String {
        let rank = self.axes.len();
        let mut conditions: Vec<String> = Vec::new();
        for _ in 0..rng.random_range(0..4) {
            let axis = rng.random_range(0..rank);
            let one = self.axes[axis].predicate(&name(axis), rng);
            let other = rng.random_range(0..rank);
            let two = self.axes[other].predicate(&name(other), rng);
            conditions.push(match rng.random_range(0..6) {
                0 => format!("({one} OR {two})"),
                1 => format!("({one} OR value > 2)"),
                2 => format!("NOT ({one} AND {two})"),
                3 => "value BETWEEN -2 AND 3".into(),
                _ => one,
            });
        }
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        let mut columns: Vec<String> = (0..rank).map(name).chain(["value".into()]).collect();
        columns.retain(|_| rng.random_bool(0.7));
        let key = name(rng.random_range(0..rank));
        match rng.random_range(0..7) {
            _ if columns.is_empty() => format!("SELECT count(*) FROM t{filter}"),
            0 => format!(
                "SELECT count(*), count({0}), count(DISTINCT {0}), min({0}), max({0}) FROM t{filter}",
                columns[0]
            ),
            1 => format!(
                "SELECT {key}, count(value), min(value), max(value) FROM t{filter} GROUP BY {key}"
            ),
            2 => format!("SELECT DISTINCT {key} FROM t{filter}"),
            3 => format!(
                "SELECT count(*) FROM (SELECT * FROM t{filter} LIMIT {})",
                rng.random_range(0..50)
            ),
            4 => format!("SELECT min({key}), max({key}), count(DISTINCT {key}) FROM t{filter}"),
            _ => format!("SELECT {} FROM t{filter}", columns.join(", ")),
        }
    }
}

#[tokio::test]
async fn random_queries_agree_with_rows_in_memory() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut not_empty = 0;
    for number in 0..250 {
        let case = Case::random(&mut rng);
        let (ours, theirs) = case.contexts(&mut rng).await;
        for _ in 0..12 {
            let sql = case.query(&mut rng);
            let [found, expected] = [&ours, &theirs].map(|ctx| query(ctx, &sql));
            let (found, expected) = (found.await, expected.await);
            let (found, expected) = match (found, expected) {
                (Ok(found), Ok(expected)) => (found, expected),
                (Err(_), Err(_)) => continue,
                (found, expected) => panic!(
                    "case {number}, {}: {sql}\ngridfusion: {:?}\nin memory: {:?}",
                    case.description,
                    found.map(|_| ()),
                    expected.map(|_| ())
                ),
            };
            let (mut found, mut expected) = (rows_of(&found), rows_of(&expected));
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "case {number}, {}: {sql}", case.description);
            not_empty += usize::from(!found.is_empty());
        }
    }
    assert!(not_empty > 1_500, "only {not_empty} queries had rows; they test little");
}

/// Index columns have the indices of a cell, whatever its labels are.
#[tokio::test]
async fn index_columns_agree_too() {
    let mut rng = StdRng::seed_from_u64(6);
    for _ in 0..60 {
        let case = Case::random(&mut rng);
        let ctx = session(2, 5);
        let options = ArrayOptions::default().with_dataset("v").with_index_columns(true);
        ctx.register_array("t", case.file.location(), options).await.unwrap();
        let rank = case.axes.len();
        let keys: Vec<String> = (0..rank).map(|axis| format!("d{axis}_idx")).collect();
        let at = rng.random_range(0..3);
        let sql =
            format!("SELECT {0}, value FROM t WHERE d0_idx >= {at} ORDER BY {0}", keys.join(", "));
        let found = rows_of(&query(&ctx, &sql).await.unwrap());
        let values = rows_of(&[case.rows.project(&[rank]).unwrap()]);
        let shape: Vec<u64> = case
            .axes
            .iter()
            .map(|axis| match axis {
                Axis::Index(len) => *len,
                Axis::Text(labels) => labels.len() as u64,
                Axis::Numbers(labels) => labels.len() as u64,
                Axis::Hours(labels) => labels.len() as u64,
            })
            .collect();
        let expected: Vec<Vec<String>> = positions(&shape)
            .iter()
            .zip(values)
            .filter(|(cell, _)| cell[0] >= at)
            .map(|(cell, value)| cell.iter().map(u64::to_string).chain(value).collect())
            .collect();
        assert_eq!(found, expected, "{}", case.description);
    }
}
