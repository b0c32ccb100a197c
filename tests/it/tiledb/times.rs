//! NaT in values and lists, and dates beyond the range of Arrow's types.

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::support::tiledb_writer::{
    FLOAT32, Filters, INT32, TestArray, TestAttribute, TestDimension, TestFragment, TestSchema,
    TestStatistics, integer,
};
use crate::support::{query, rows_from, session};
use crate::tiledb::random::Place;

const DATETIME_YEAR: u8 = 18;
const DATETIME_DAY: u8 = 21;
const DATETIME_MS: u8 = 25;
const NOT_A_TIME: i128 = i64::MIN as i128;

fn attribute(name: &str, code: u8, values: Option<u32>, fill: Vec<u8>) -> TestAttribute {
    TestAttribute {
        name: name.into(),
        code,
        values,
        nullable: false,
        fill,
        fill_valid: false,
        filters: Filters::None,
    }
}

/// An array of one dimension, whose first half is written.
fn array(code: u8, domain: (i128, i128), attributes: Vec<(TestAttribute, Vec<u8>)>) -> TestArray {
    let ranges = vec![(domain.0, domain.0 + (domain.1 - domain.0) / 2)];
    let count = (ranges[0].1 - ranges[0].0 + 1) as usize;
    let cells = attributes.iter().map(|(_, cell)| vec![Some(cell.clone()); count]).collect();
    let schema = TestSchema {
        time: 1,
        dimensions: vec![TestDimension { name: "d".into(), code, domain, extent: 4 }],
        attributes: attributes.into_iter().map(|(attribute, _)| attribute).collect(),
        column_major: [false, false],
        current_domain: None,
        offsets: Filters::None,
        validity: Filters::None,
    };
    let statistics = TestStatistics::Absent;
    let fragment = TestFragment { times: (10, 10), schema: 0, ranges, cells, statistics };
    TestArray {
        schemas: vec![schema],
        fragments: vec![fragment],
        vacuums: vec![],
        commit_list: false,
    }
}

/// The rows of a query, or its error.
async fn ask(
    array: &TestArray,
    options: ArrayOptions,
    sql: &str,
) -> Result<Vec<Vec<String>>, String> {
    let place = Place::in_memory(&array.files(&mut StdRng::seed_from_u64(5))).await;
    let ctx = session(2, 8192);
    let location = place.location(&ctx);
    let opened = ctx.register_array("t", &location, options.with_option("full_domain", true)).await;
    opened.map_err(|error| error.to_string())?;
    query(&ctx, sql).await.map_err(|error| error.to_string())?;
    Ok(rows_from(&ctx, sql).await)
}

#[tokio::test]
async fn what_is_missing_in_a_list_is_null() {
    let day = |days: i128| integer(DATETIME_DAY, days);
    let (none, nan) = (day(NOT_A_TIME), f32::NAN.to_le_bytes());
    let pair = [1.5_f32.to_le_bytes(), nan].concat();
    let attributes = vec![
        (attribute("list", DATETIME_DAY, None, none.clone()), [day(1), none.clone()].concat()),
        (attribute("pair", DATETIME_DAY, Some(2), none.repeat(2)), [none, day(2)].concat()),
        (attribute("ms", DATETIME_MS, None, day(NOT_A_TIME)), vec![]),
        (attribute("floats", FLOAT32, Some(2), nan.repeat(2)), pair),
    ];
    let array = array(INT32, (0, 1), attributes);
    let options = ArrayOptions::default;
    let sql = "SELECT * EXCEPT (d) FROM t ORDER BY d";
    assert_eq!(
        ask(&array, options(), sql).await.unwrap(),
        [
            ["[1970-01-02, NULL]", "[NULL, 1970-01-03]", "[]", "[1.5, NULL]"],
            ["[NULL]", "[NULL, NULL]", "[NULL]", "[NULL, NULL]"]
        ]
    );
    let counted = "SELECT list[2] IS NULL, cardinality(ms), floats[1] FROM t ORDER BY d";
    assert_eq!(
        ask(&array, options(), counted).await.unwrap(),
        [["true", "0", "1.5"], ["true", "1", "NULL"]]
    );
    let unwritten = "SELECT list, pair, ms, floats FROM t WHERE d = 1";
    let fill = options().with_fill_as_null(true);
    assert_eq!(ask(&array, fill, unwritten).await.unwrap(), [["NULL"; 4]]);
    let kept = options().with_nan_as_null(false);
    assert_eq!(
        ask(&array, kept.clone(), "SELECT floats FROM t WHERE d = 0").await.unwrap(),
        [["[1.5, NaN]"]]
    );
    let error = ask(&array, kept.clone(), "SELECT list FROM t").await.unwrap_err();
    assert!(error.contains("nan_as_null") && error.contains("time_as_integer"), "{error}");
    let counts =
        ask(&array, kept.with_option("time_as_integer", true), "SELECT list FROM t WHERE d = 0");
    assert_eq!(counts.await.unwrap(), [["[1, -9223372036854775808]"]]);
}

#[tokio::test]
async fn dates_beyond_arrow_are_integers_by_option() {
    let year = |years: i128| integer(DATETIME_YEAR, years);
    let cells = vec![(attribute("v", DATETIME_YEAR, Some(1), year(NOT_A_TIME)), year(-400_000))];
    let far = array(DATETIME_YEAR, (-400_000, -399_997), cells);
    let options = ArrayOptions::default;
    let error = ask(&far, options(), "SELECT * FROM t").await.unwrap_err();
    let expected = "dimension \"d\": -400000 Years does not fit Date32; \
                    time_as_integer = 'true'";
    assert!(error.contains(expected), "{error}");
    let integers = options().with_option("time_as_integer", true);
    let rows = ask(&far, integers.clone(), "SELECT d, v FROM t WHERE d > -400000 ORDER BY d").await;
    assert_eq!(rows.unwrap(), [["-399999", "-400000"], ["-399998", "NULL"], ["-399997", "NULL"]]);
    let sql = "SELECT min(v), count(v), count(*), arrow_typeof(min(d)) FROM t";
    assert_eq!(ask(&far, integers, sql).await.unwrap(), [["-400000", "2", "4", "Int64"]]);
}
