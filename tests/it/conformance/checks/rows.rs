//! Checks of columns and rows, and random queries over them.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::conformance::subject::Subject;
use crate::reduce::random::compare;
use crate::support::columns::Table;
use crate::tiledb::random::magnitude;

pub(crate) async fn columns_and_types(subject: &Subject<'_>) {
    let ctx = subject.table(1, 8192).await;
    let frame = ctx.table("t").await.unwrap();
    let found =
        frame.schema().fields().iter().map(|it| (it.name().clone(), it.data_type().clone()));
    let schema = subject.rows.schema();
    let expected = schema.fields().iter().map(|it| (it.name().clone(), it.data_type().clone()));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{}", subject.what());
    for dimension in subject.array.dimensions() {
        let field = frame.schema().field_with_unqualified_name(dimension).unwrap();
        assert!(!field.is_nullable(), "{}: {dimension}", subject.what());
    }
}

pub(crate) async fn all_rows(subject: &Subject<'_>) {
    for (partitions, batch_size) in [(1, 8192), (3, 7), (2, 1)] {
        let ctx = subject.table(partitions, batch_size).await;
        subject.assert_rows(&ctx, "t").await;
    }
}

/// Random predicates, groups and orders give the same answers as over rows in memory.
pub(crate) async fn random_queries(subject: &Subject<'_>) {
    let mut rng = StdRng::seed_from_u64(11);
    let theirs = subject.in_memory();
    let table = Table { rows: &subject.rows, rank: subject.array.axes.len() };
    let mut not_empty = 0;
    for _ in 0..4 {
        let batch_size = *[3, 64, 8192].choose(&mut rng).unwrap();
        let ours = subject.table(rng.random_range(1..=4), batch_size).await;
        for _ in 0..20 {
            let query = table.query(&mut rng);
            let magnitude = magnitude(&subject.rows, &query.sql);
            match compare(&ours, &theirs, &query.sql, query.keys, magnitude).await {
                Ok(rows) => not_empty += usize::from(rows > 0),
                Err(difference) => panic!("{}: {}\n{difference}", subject.what(), query.sql),
            }
        }
    }
    assert!(not_empty > 40, "{}: {not_empty} queries had rows", subject.what());
}
