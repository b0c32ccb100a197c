//! Random sparse TileDB arrays: all rows at all times, compared with a naive model.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use futures::TryStreamExt;
use gridfusion::core::read::Opener;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, built_in_formats};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::support::sparse_cases::SMALL_SPARSE;
use crate::support::sparse_history::History;
use crate::support::sparse_model::{Window, table, visible, visible_by_events};
use crate::support::tiledb_writer::is_temporal;
use crate::support::{query, rows_of, session};
use crate::tiledb::random::Place;

/// Counts of what was tested.
#[derive(Debug, Default)]
struct Tested {
    tables: usize,
    empty: usize,
    rows: usize,
    replaced: usize,
    deleted: usize,
}

/// A start and an end of a window; `None` leaves it open.
type Ends = (Option<u64>, Option<u64>);

/// The windows in which something changes, and some more.
fn windows(rng: &mut StdRng, history: &History) -> Vec<Ends> {
    let times = history.times();
    let ends: BTreeSet<u64> = times.iter().flat_map(|time| [time - 1, *time]).collect();
    let ends: Vec<u64> = ends.into_iter().collect();
    let mut windows: Vec<Ends> = ends.iter().map(|end| (None, Some(*end))).collect();
    windows.push((None, None));
    for _ in 0..6 {
        let (a, b) = (*ends.choose(rng).unwrap(), *ends.choose(rng).unwrap());
        windows.push((Some(a.min(b)), Some(a.max(b))));
    }
    windows.push((ends.choose(rng).copied(), None));
    windows
}

/// Options of a table over the array. A date that is no date cannot be shown, so it must be NULL.
pub(crate) fn random_options(rng: &mut StdRng, history: &History) -> ArrayOptions {
    let mut attributes = history.array.schemas.iter().flat_map(|schema| &schema.attributes);
    let has_dates = attributes.any(|attribute| is_temporal(attribute.code));
    let trusts = !history.has_wrong_statistics && rng.random_bool(0.7);
    ArrayOptions::default()
        .with_fill_as_null(rng.random_bool(0.3))
        .with_nan_as_null(has_dates || rng.random_bool(0.7))
        .with_trust_zone_maps(trusts)
}

/// Adds a window of time to the options of a table.
pub(crate) fn in_window(mut options: ArrayOptions, (start, end): Ends) -> ArrayOptions {
    if let Some(start) = start {
        options = options.with_option("timestamp_start", start);
    }
    if let Some(end) = end {
        options = options.with_option("timestamp", end);
    }
    options
}

/// The names and types of columns.
fn columns(rows: &RecordBatch) -> Vec<(String, DataType)> {
    let schema = rows.schema();
    let fields = schema.fields().iter();
    fields.map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

/// Compares rows in any order.
fn same_bags(found: &[RecordBatch], expected: &RecordBatch) -> Result<(), String> {
    if let Some(first) = found.first()
        && columns(first) != columns(expected)
    {
        let (found, expected) = (columns(first), columns(expected));
        return Err(format!("found the columns {found:?}\nexpected {expected:?}"));
    }
    let mut found = rows_of(found);
    let mut expected = rows_of(std::slice::from_ref(expected));
    found.sort();
    expected.sort();
    if found == expected {
        return Ok(());
    }
    let missing = |these: &[Vec<String>], others: &[Vec<String>]| -> Vec<Vec<String>> {
        these.iter().filter(|row| others.binary_search(row).is_err()).cloned().collect()
    };
    let (lacks, adds) = (missing(&expected, &found), missing(&found, &expected));
    let (found, expected) = (found.len(), expected.len());
    Err(format!("found {found} rows, expected {expected}; missing {lacks:?}, unexpected {adds:?}"))
}

/// Compares the rows of a table with those of the model.
async fn check_table(
    rng: &mut StdRng,
    history: &History,
    place: &Place,
    options: &ArrayOptions,
    tested: &mut Tested,
) -> Result<(), String> {
    let (expected, seen) = table(&history.array, options);
    let ctx = session(*[1, 4].choose(rng).unwrap(), *[1, 7, 8192].choose(rng).unwrap());
    let location = place.location(&ctx);
    let opened = ctx.register_array("t", &location, options.clone()).await;
    opened.map_err(|error| error.to_string())?;
    let found = query(&ctx, "SELECT * FROM t").await.map_err(|error| error.to_string())?;
    tested.tables += 1;
    tested.empty += usize::from(seen.rows.is_empty());
    tested.rows += seen.rows.len();
    tested.replaced += seen.replaced;
    tested.deleted += seen.deleted;
    same_bags(&found, &expected)?;
    if !location.contains("://") {
        let found = without_sql(&location, options).await.map_err(|error| error.to_string())?;
        same_bags(&found, &expected).map_err(|error| format!("without SQL: {error}"))?;
    }
    Ok(())
}

/// Reads all rows of an array without SQL.
async fn without_sql(
    location: &str,
    options: &ArrayOptions,
) -> gridfusion::Result<Vec<RecordBatch>> {
    let formats = built_in_formats().iter().cloned().collect();
    let opener = Opener::new(formats).with_options(options.clone());
    let dataset = opener.open(location).await?;
    dataset.sparse_array(&dataset.names()[0]).await?.batches().try_collect().await
}

async fn check_arrays(seed: u64, arrays: usize) -> Tested {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut tested = Tested::default();
    for number in 0..arrays {
        let history = History::random(&mut rng, SMALL_SPARSE);
        let files = history.array.files(&mut rng);
        let place = Place::random(&mut rng, &files).await;
        for ends in windows(&mut rng, &history) {
            let options = in_window(random_options(&mut rng, &history), ends);
            let checked = check_table(&mut rng, &history, &place, &options, &mut tested).await;
            if let Err(problem) = checked {
                panic!("seed {seed}, array {number}, {options:?}: {problem}\n{history:#?}");
            }
        }
    }
    tested
}

/// Every array is read before, at and between its events, and in random windows of time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sparse_arrays_are_what_was_written() {
    let halves = [11, 12].map(|seed| tokio::spawn(check_arrays(seed, 75)));
    for half in halves {
        let tested = half.await.unwrap();
        assert!(tested.tables > 700 && tested.rows > 5_000, "{tested:?}");
        assert!(tested.empty < tested.tables / 2, "{tested:?}");
        assert!(tested.replaced > 300 && tested.deleted > 300, "{tested:?}");
    }
}

/// The model itself: consolidation and vacuuming change no rows at any time.
#[test]
fn fragments_show_what_their_events_made() {
    let mut rng = StdRng::seed_from_u64(13);
    let mut consolidated = 0;
    for number in 0..1_500 {
        let history = History::random(&mut rng, SMALL_SPARSE);
        if !history.is_exact {
            continue;
        }
        consolidated += history.array.fragments.iter().filter(|it| it.keeps_times).count();
        for (start, end) in windows(&mut rng, &history) {
            let window = Window { start: start.unwrap_or(0), end: end.unwrap_or(u64::MAX) };
            let mut found = visible(&history.array, window).rows;
            let mut expected =
                visible_by_events(&history.array.schemas[0], &history.events, window);
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "array {number}, {window:?}: {history:#?}");
        }
    }
    assert!(consolidated > 100, "only {consolidated} consolidated fragments");
}
