//! Checks of plans that are sent to another session as bytes.

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::cluster::workers::query_on_workers;
use crate::codec::sent::query_sent;
use crate::conformance::doors;
use crate::conformance::subject::Subject;
use crate::reduce::random::agree;
use crate::support::columns::Table;
use crate::support::query;
use crate::tiledb::random::magnitude;

/// Random queries, joins, orders with limits, and windows give the same answers on one, two or three workers.
pub(crate) async fn plans_run_on_workers(subject: &Subject<'_>) {
    let mut rng = StdRng::seed_from_u64(21);
    let theirs = subject.in_memory();
    let table = Table { rows: &subject.rows, rank: subject.array.axes.len() };
    let ours = subject.session(3, 50);
    doors::register(&ours, "t", vec![subject.location()]).await.unwrap();
    let columns = subject.array.axes.iter().map(|axis| format!("\"{}\"", axis.name));
    let columns: Vec<String> = columns.collect();
    let (first, all) = (&columns[0], columns.join(", "));
    let value = subject.array.values[0].name;
    let on_all = columns.iter().map(|column| format!("a.{column} = b.{column}"));
    let on_all = on_all.collect::<Vec<_>>().join(" AND ");
    let shapes = [
        format!("SELECT count(*), count(a.{value}) FROM t a JOIN t b ON {on_all}"),
        format!(
            "SELECT {first}, count(*) FROM t a JOIN (SELECT DISTINCT {first} AS k FROM t WHERE {value} IS NOT NULL) b ON a.{first} = b.k GROUP BY {first}"
        ),
        format!("SELECT {all} FROM t ORDER BY {all} LIMIT 7"),
        format!("SELECT {all}, row_number() OVER (PARTITION BY {first} ORDER BY {all}) FROM t"),
        format!("SELECT {all}, count({value}) OVER (PARTITION BY {first}) FROM t"),
        format!(
            "SELECT {first} FROM t WHERE {first} IN (SELECT max({first}) FROM t) UNION ALL SELECT {first} FROM t"
        ),
    ];
    let keys = columns.len();
    let shapes = shapes.into_iter().zip([2, 2, keys, keys + 1, keys + 1, 1]);
    let mut queries: Vec<(String, usize)> = shapes.collect();
    queries.extend((0..14).map(|_| table.query(&mut rng)).map(|it| (it.sql, it.keys)));
    let mut not_empty = 0;
    for (number, (sql, keys)) in queries.into_iter().enumerate() {
        let found = query_on_workers(&ours, 1 + number % 3, &sql).await;
        let magnitude = magnitude(&subject.rows, &sql);
        match agree(found, query(&theirs, &sql).await, keys, magnitude) {
            Ok(rows) => not_empty += usize::from(rows > 0),
            Err(difference) => panic!("{}: {sql}\n{difference}", subject.what()),
        }
    }
    assert!(not_empty > 10, "{}: {not_empty} queries had rows", subject.what());
}

/// Random queries give the same answers in a session that has only the bytes of their plans, and other settings.
pub(crate) async fn plans_travel(subject: &Subject<'_>) {
    let mut rng = StdRng::seed_from_u64(16);
    let theirs = subject.in_memory();
    let table = Table { rows: &subject.rows, rank: subject.array.axes.len() };
    let worker = subject.session(1, 50);
    // A session that decided again would decide otherwise.
    for setting in ["optimizer.enable_reduce = false", "reduce_memory = 1", "nan_as_null = false"] {
        query(&worker, &format!("SET gridfusion.{setting}")).await.unwrap();
    }
    let mut not_empty = 0;
    for number in 0..30 {
        let ours = subject.session(1 + number % 4, 8192);
        doors::register(&ours, "t", vec![subject.location()]).await.unwrap();
        let sent = table.query(&mut rng);
        let found = query_sent(&ours, &worker, &sent.sql).await;
        let magnitude = magnitude(&subject.rows, &sent.sql);
        match agree(found, query(&theirs, &sent.sql).await, sent.keys, magnitude) {
            Ok(rows) => not_empty += usize::from(rows > 0),
            Err(difference) => panic!("{}: {}\n{difference}", subject.what(), sent.sql),
        }
    }
    assert!(not_empty > 10, "{}: {not_empty} queries had rows", subject.what());
}
