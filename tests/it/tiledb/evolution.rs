//! Attributes that are dropped, added again, and change their type. The expected values are the
//! answers of TileDB 2.30. `random` compares arrays of all kinds with a model.

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::support::tiledb_writer::{
    Cell, FLOAT64, Filters, INT32, TestArray, TestAttribute, TestDimension, TestFragment,
    TestSchema, TestStatistics, TestVacuum, integer,
};
use crate::support::{query, rows_from, session};
use crate::tiledb::random::Place;

const NULL: i32 = i32::MIN;

fn attribute(name: &str, code: u8) -> TestAttribute {
    let fill = if code == INT32 { integer(INT32, NULL.into()) } else { vec![0; 8] };
    TestAttribute {
        name: name.into(),
        code,
        values: Some(1),
        nullable: false,
        fill,
        fill_valid: false,
        filters: Filters::Zstd,
    }
}

/// A schema with the coordinates 0 to 9, in tiles of four.
fn schema(time: u64, attributes: &[TestAttribute]) -> TestSchema {
    let dimension = TestDimension { name: "x".into(), code: INT32, domain: (0, 9), extent: 4 };
    TestSchema {
        time,
        dimensions: vec![dimension],
        attributes: attributes.to_vec(),
        column_major: [false, false],
        current_domain: None,
        offsets: Filters::None,
        validity: Filters::None,
    }
}

/// An array whose attribute `b` is dropped at time 20, and added again at 40 with type `code`.
fn array(code: u8, fragments: Vec<TestFragment>) -> TestArray {
    let [a, b, again] = [attribute("a", INT32), attribute("b", INT32), attribute("b", code)];
    let schemas = vec![
        schema(1, &[a.clone(), b]),
        schema(20, std::slice::from_ref(&a)),
        schema(40, &[a, again]),
    ];
    TestArray { schemas, fragments, vacuums: vec![], commit_list: false }
}

/// A fragment written at `time` with the schema at index `number`. Its `a` is 1000 + x; its `b` is
/// 100 + x, or x / 2 if `code` is `FLOAT64`.
fn write(time: u64, number: usize, (low, high): (i128, i128), code: u8) -> TestFragment {
    let numbers = |first: i32| -> Vec<Cell> {
        (low..=high).map(|x| Some(integer(INT32, i128::from(first) + x))).collect()
    };
    let doubles = || (low..=high).map(|x| Some((x as f64 / 2.0).to_le_bytes().to_vec())).collect();
    let cells = match (number, code) {
        (1, _) => vec![numbers(1000)],
        (2, FLOAT64) => vec![numbers(1000), doubles()],
        _ => vec![numbers(1000), numbers(100)],
    };
    let ranges = vec![(low, high)];
    TestFragment {
        times: (time, time),
        schema: number,
        ranges,
        cells,
        statistics: TestStatistics::Right,
    }
}

async fn table(array: &TestArray, options: ArrayOptions) -> SessionContext {
    let files = array.files(&mut StdRng::seed_from_u64(5));
    let place = Place::in_memory(&files).await;
    let ctx = session(2, 8192);
    let location = place.location(&ctx);
    ctx.register_array("t", &location, options.with_option("full_domain", true)).await.unwrap();
    ctx
}

/// The values of `b`, as text.
async fn seen(array: &TestArray, options: ArrayOptions) -> Vec<String> {
    let ctx = table(array, options).await;
    let rows = rows_from(&ctx, "SELECT b FROM t ORDER BY x").await;
    rows.into_iter().map(|mut row| row.remove(0)).collect()
}

fn expected(values: &[i32]) -> Vec<String> {
    values.iter().map(i32::to_string).collect()
}

#[tokio::test]
async fn what_a_newer_fragment_covers_in_a_tile_is_gone() {
    let o = NULL;
    for (old, new, values) in [
        ((0, 9), (0, 9), [o, o, o, o, o, o, o, o, o, o]),
        ((0, 9), (0, 4), [o, o, o, o, 104, 105, 106, 107, 108, 109]),
        ((3, 5), (2, 6), [o, o, o, o, o, o, o, o, o, o]),
        ((3, 5), (3, 5), [o, o, o, o, o, o, o, o, o, o]),
        ((3, 6), (3, 5), [o, o, o, o, 104, 105, 106, o, o, o]),
        ((0, 9), (1, 9), [100, 101, 102, 103, o, o, o, o, o, o]),
        ((2, 9), (2, 8), [o, o, o, o, o, o, o, o, 108, 109]),
        ((1, 2), (0, 3), [o, o, o, o, o, o, o, o, o, o]),
    ] {
        let array = array(INT32, vec![write(10, 0, old, INT32), write(30, 1, new, INT32)]);
        let found = seen(&array, ArrayOptions::default()).await;
        assert_eq!(found, expected(&values), "{old:?} under {new:?}");
        // The statistics of hidden cells do not count either.
        let ctx = table(&array, ArrayOptions::default()).await;
        let most = values.iter().max().unwrap().to_string();
        assert_eq!(rows_from(&ctx, "SELECT max(b) FROM t").await, [[most]]);
    }
    // Neither of these fragments covers the older one alone, so neither hides it.
    let halves = [write(30, 1, (0, 1), INT32), write(31, 1, (2, 3), INT32)];
    let mut fragments = vec![write(10, 0, (0, 3), INT32)];
    fragments.extend(halves);
    let found = seen(&array(INT32, fragments), ArrayOptions::default()).await;
    assert_eq!(found, expected(&[100, 101, 102, 103, o, o, o, o, o, o]));
}

/// After the drop, consolidation writes with the later schema, so earlier times lack the attribute, too.
#[tokio::test]
async fn consolidation_takes_dropped_attributes_from_the_past() {
    let consolidated = TestFragment {
        times: (10, 12),
        statistics: TestStatistics::Wrong,
        ..write(10, 1, (0, 9), INT32)
    };
    let mut array = array(
        INT32,
        vec![
            write(10, 0, (0, 9), INT32),
            write(12, 0, (0, 4), INT32),
            write(14, 0, (3, 3), INT32),
            consolidated,
        ],
    );
    array.vacuums.push(TestVacuum { times: (10, 12), fragments: vec![0, 1] });
    let at = |time| ArrayOptions::default().with_option("timestamp", time);
    let o = NULL;
    let all = expected(&[100, 101, 102, 103, 104, 105, 106, 107, 108, 109]);
    assert_eq!(seen(&array, at(11)).await, all);
    assert_eq!(seen(&array, at(13)).await, expected(&[o; 10]));
    assert_eq!(seen(&array, at(16)).await, expected(&[o, o, o, 103, o, o, o, o, o, o]));
    // The consolidated fragment also hides a write that it does not replace.
    array.vacuums.clear();
    array.fragments[0].times = (9, 9);
    assert_eq!(seen(&array, at(11)).await, all);
    array.fragments.remove(1);
    assert_eq!(seen(&array, at(13)).await, expected(&[o; 10]));
}

#[tokio::test]
async fn only_what_is_seen_of_another_type_is_refused() {
    let old = || write(10, 0, (0, 9), INT32);
    for parts in [vec![(0, 9)], vec![(0, 4), (5, 9)], vec![(0, 3), (4, 9)]] {
        let mut fragments = vec![old()];
        let times = 50..;
        fragments.extend(times.zip(parts).map(|(time, part)| write(time, 2, part, FLOAT64)));
        let found = seen(&array(FLOAT64, fragments), ArrayOptions::default()).await;
        let halves = ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0", "3.5", "4.0", "4.5"];
        assert_eq!(found, halves);
    }
    let partly = array(FLOAT64, vec![old(), write(50, 2, (1, 9), FLOAT64)]);
    let ctx = table(&partly, ArrayOptions::default()).await;
    let error = query(&ctx, "SELECT b FROM t").await.unwrap_err().to_string();
    assert!(error.contains("\"b\" is of type INT32 in fragment __10_10_"), "{error}");
    // Tiles without such cells can be read, and so can other attributes.
    let rows = rows_from(&ctx, "SELECT b FROM t WHERE x = 9").await;
    assert_eq!(rows, [["4.5"]]);
    assert_eq!(rows_from(&ctx, "SELECT a FROM t WHERE x = 0").await, [["1000"]]);
}
