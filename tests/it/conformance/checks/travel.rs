//! Checks of plans that are sent to another session as bytes.

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::codec::sent::query_sent;
use crate::conformance::doors;
use crate::conformance::subject::Subject;
use crate::reduce::random::agree;
use crate::support::columns::Table;
use crate::support::query;
use crate::tiledb::random::magnitude;

/// Random queries give the same answers in a session that has only the bytes of their plans, and other settings.
pub(crate) async fn plans_travel(subject: &Subject<'_>) {
    let mut rng = StdRng::seed_from_u64(16);
    let theirs = subject.in_memory();
    let table = Table { rows: &subject.rows, rank: subject.array.axes.len() };
    let worker = subject.session(1, 50);
    // A session that decided again would decide otherwise.
    for setting in ["reduce = false", "reduce_memory = 1", "nan_as_null = false"] {
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
