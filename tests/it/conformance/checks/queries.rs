//! Checks of groups, orders and limits.

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::conformance::subject::{Subject, explain};
use crate::reduce::random::compare;
use crate::support::columns::Table;
use crate::support::rows_from;

/// Aggregations with keys over dimensions become reductions, with the same answers as over rows.
pub(crate) async fn groups_become_reductions(subject: &Subject<'_>) {
    let mut rng = StdRng::seed_from_u64(14);
    let (ours, theirs) = (subject.table(3, 64).await, subject.in_memory());
    let rank = subject.array.axes.len();
    let table = Table { rows: &subject.rows, rank };
    let names: Vec<String> = (0..rank).map(|axis| table.column(axis).name).collect();
    let mut keys: Vec<Vec<String>> = names.iter().map(|name| vec![name.clone()]).collect();
    keys.extend([vec![], names]);
    for axis in 0..rank {
        let column = table.column(axis);
        let literal = column.literal(&mut rng);
        keys.push(vec![format!("CASE WHEN {} < {literal} THEN 1 ELSE 2 END", column.name)]);
    }
    for value in &subject.array.values {
        let name = value.name;
        let statistics =
            format!("count({name}), sum({name}), avg({name}), min({name}), max({name})");
        for keys in &keys {
            let filter = format!(" WHERE {}", table.dimension(&mut rng).predicate(&mut rng));
            for filter in ["", &filter] {
                let list: Vec<&str> =
                    keys.iter().map(String::as_str).chain([&*statistics]).collect();
                let mut sql = format!("SELECT {} FROM t{filter}", list.join(", "));
                if !keys.is_empty() {
                    sql += &format!(" GROUP BY {}", keys.join(", "));
                }
                if let Err(difference) = compare(&ours, &theirs, &sql, keys.len(), 1e3).await {
                    panic!("{}: {sql}\n{difference}", subject.what());
                }
                let plan = explain(&ours, &sql).await;
                // If a predicate matches no label, there is nothing to reduce.
                let reduces = plan.contains("GridReduceExec") || plan.contains("EmptyExec");
                assert!(reduces, "{}: {sql}\n{plan}", subject.what());
            }
        }
    }
}

pub(crate) async fn orders_limits_and_projections(subject: &Subject<'_>) {
    let theirs = subject.in_memory();
    let (columns, value) = (subject.columns(), subject.array.values[0].name);
    let (up, down) = (subject.dimensions(""), subject.dimensions(" DESC"));
    let first = subject.array.dimensions()[0];
    for (partitions, batch_size) in [(1, 8192), (3, 4)] {
        let ours = subject.table(partitions, batch_size).await;
        for sql in [
            format!("SELECT {columns} FROM t ORDER BY {up}"),
            format!("SELECT {columns} FROM t ORDER BY {down} LIMIT 7"),
            format!("SELECT {value} FROM t ORDER BY {up} LIMIT 5 OFFSET 3"),
            format!("SELECT {value}, \"{first}\" FROM t ORDER BY {up} LIMIT 0"),
            format!("SELECT {columns} FROM t ORDER BY {value} DESC NULLS LAST, {up} LIMIT 6"),
            format!("SELECT {columns} FROM t ORDER BY {value}, {down} LIMIT 6"),
            format!("SELECT \"{first}\" FROM t WHERE {value} > 0 ORDER BY {up} LIMIT 4"),
        ] {
            let (found, expected) = (rows_from(&ours, &sql).await, rows_from(&theirs, &sql).await);
            assert_eq!(found, expected, "{}: {sql}", subject.what());
        }
        // A limit without an order may return any rows of the table, but their number is fixed.
        let all = rows_from(&theirs, &format!("SELECT {columns} FROM t")).await;
        for limit in [1, 5, 1_000_000] {
            let sql = format!("SELECT {columns} FROM t LIMIT {limit}");
            let found = rows_from(&ours, &sql).await;
            assert_eq!(found.len(), limit.min(all.len()), "{}: {sql}", subject.what());
            assert!(found.iter().all(|row| all.contains(row)), "{}: {found:?}", subject.what());
        }
    }
}
