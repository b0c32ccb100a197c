//! Checks of pruning: a scan reads no chunk without a selected row.

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::conformance::subject::{Subject, metrics};
use crate::reduce::random::compare;
use crate::support::cell;
use crate::support::columns::Table;

/// With predicates on single dimensions, a scan reads exactly the chunks with a selected row.
pub(crate) async fn labels_prune_chunks(subject: &Subject<'_>) {
    let mut rng = StdRng::seed_from_u64(12);
    let (ours, theirs) = (subject.table(2, 8192).await, subject.in_memory());
    let rank = subject.array.axes.len();
    let table = Table { rows: &subject.rows, rank };
    let chunks = subject.array.chunks();
    let absent = chunks.iter().any(|chunk| subject.array.is_all_fill(chunk));
    let mut pruned = 0;
    for number in 0..25 {
        let one = table.column(number % rank).predicate(&mut rng);
        let filter = match number % 3 {
            0 => format!("({one}) AND ({})", table.dimension(&mut rng).predicate(&mut rng)),
            _ => one,
        };
        let sql = format!("SELECT {} FROM t WHERE {filter}", subject.columns());
        if let Err(difference) = compare(&ours, &theirs, &sql, rank, 0.0).await {
            panic!("{}: {sql}\n{difference}", subject.what());
        }
        let sql_of_chunks = format!("SELECT count(DISTINCT chunk) FROM chunks WHERE {filter}");
        let needed: usize = cell(&theirs, &sql_of_chunks).await.parse().unwrap();
        let names = ["chunks_read", "chunks_pruned_selection"];
        let [read, by_selection] = metrics(&ours, &sql, names).await;
        let what = format!("{}: {sql}", subject.what());
        assert!(read == needed || absent && read < needed, "{what}: {read} of {needed} chunks");
        if needed > 0 {
            assert_eq!(by_selection, chunks.len() - needed, "{what}");
        }
        pruned += chunks.len() - needed;
    }
    // A single chunk is pruned only if no row is selected.
    let least = if chunks.len() > 1 { 11 } else { 0 };
    assert!(pruned >= least, "{}: {pruned} chunks pruned", subject.what());
}

/// Zone maps prune whole chunks, and change no answer.
pub(crate) async fn stored_bounds_prune_chunks(subject: &Subject<'_>) {
    let (ours, theirs) = (subject.table(2, 8192).await, subject.in_memory());
    let all = subject.array.chunks().len();
    let mut most = 0;
    for values in &subject.array.values {
        let name = values.name;
        for of in ["min", "max"] {
            // Only chunks whose bounds reach the least or greatest value can hold it.
            let end = cell(&theirs, &format!("SELECT {of}({name}) FROM t")).await;
            let sql = format!("SELECT {} FROM t WHERE {name} = {end}", subject.columns());
            let rank = subject.array.axes.len();
            if let Err(difference) = compare(&ours, &theirs, &sql, rank, 0.0).await {
                panic!("{}: {sql}\n{difference}", subject.what());
            }
            let names = ["chunks_read", "chunks_pruned_zone_map"];
            let [read, pruned] = metrics(&ours, &sql, names).await;
            assert!(read + pruned <= all, "{}: {sql}: {read} + {pruned}", subject.what());
            most = most.max(pruned);
        }
    }
    if subject.capabilities.notes_bounds && !subject.array.has_nulls() && all > 3 {
        assert!(most > 0, "{}: no chunk pruned", subject.what());
    }
}

/// Queries of row counts and labels read no payload.
pub(crate) async fn labels_answer_without_payloads(subject: &Subject<'_>) {
    let (ours, theirs) = (subject.table(2, 8192).await, subject.in_memory());
    let mut rng = StdRng::seed_from_u64(13);
    let table = Table { rows: &subject.rows, rank: subject.array.axes.len() };
    let mut queries = vec![("SELECT count(*) FROM t".to_owned(), 0)];
    for axis in 0..subject.array.axes.len() {
        let column = table.column(axis);
        let (name, filter) = (&column.name, column.predicate(&mut rng));
        queries.extend([
            (format!("SELECT count(*) FROM t WHERE {filter}"), 0),
            (format!("SELECT DISTINCT {name} FROM t"), 1),
            (format!("SELECT min({name}), max({name}), count(DISTINCT {name}) FROM t"), 0),
            (format!("SELECT {name}, count(*) FROM t GROUP BY {name}"), 1),
        ]);
    }
    for (sql, keys) in queries {
        if let Err(difference) = compare(&ours, &theirs, &sql, keys, 0.0).await {
            panic!("{}: {sql}\n{difference}", subject.what());
        }
        let [bytes] = metrics(&ours, &sql, ["bytes_read"]).await;
        assert_eq!(bytes, 0, "{}: {sql}", subject.what());
    }
}
