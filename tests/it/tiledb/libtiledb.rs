//! Arrays written by libtiledb, compared cell by cell with what libtiledb reads from them.
//!
//! The arrays are in `tests/data/tiledb`, where `README.md` describes the expected files. More arrays are
//! in `tiledb/arrays` below the directory that `GRIDFUSION_CORPUS` names.

use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use chrono::{Datelike, NaiveDate, TimeDelta};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use serde_json::Value;

use crate::support::{query, rows_of, session, shipped, variable};

/// An array, and the expected results of reading it.
pub(crate) struct Case {
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) expected: Value,
}

impl Case {
    pub(crate) fn is_sparse(&self) -> bool {
        self.expected["schema"]["sparse"] == true
    }

    pub(crate) fn options(&self) -> ArrayOptions {
        let options = ArrayOptions::default();
        match self.expected["encryption_key"].as_str() {
            Some(key) => options.with_option("encryption_key", key),
            None => options,
        }
    }
}

/// The arrays of a directory.
fn cases_in(directory: &Path) -> Vec<Case> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut cases: Vec<Case> = entries
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name()?.to_str()?.strip_suffix(".expected.json")?.to_owned();
            let expected = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let path = path.with_file_name(&name).to_str()?.to_owned();
            Some(Case { path, name, expected })
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// The arrays of the repository.
pub(crate) fn shipped_cases() -> Vec<Case> {
    cases_in(Path::new(&shipped("tests/data/tiledb")))
}

/// The arrays of the corpus.
pub(crate) fn corpus_cases() -> Vec<Case> {
    let arrays = Path::new(&variable("GRIDFUSION_CORPUS")).join("tiledb").join("arrays");
    assert!(arrays.is_dir(), "GRIDFUSION_CORPUS is set, but {} is no directory", arrays.display());
    cases_in(&arrays)
}

/// Checks all reads of all arrays; returns the number of compared cells.
async fn check_all(cases: &[Case]) -> usize {
    let mut problems = Vec::new();
    let mut cells = 0;
    for case in cases {
        match reads_agree(case).await {
            Ok(checked) => cells += checked,
            Err(problem) => problems.push(format!("{}: {problem}", case.name)),
        }
    }
    assert!(problems.is_empty(), "{} arrays:\n{}", problems.len(), problems.join("\n"));
    cells
}

async fn reads_agree(case: &Case) -> Result<usize, String> {
    let mut cells = 0;
    for read in case.expected["reads"].as_array().unwrap() {
        let checked = read_agrees(case, read).await;
        cells += checked.map_err(|problem| format!("as of {}: {problem}", read["timestamp"]))?;
    }
    Ok(cells)
}

fn pairs(value: &Value) -> Vec<(i128, i128)> {
    let number = |value: &Value| {
        value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)).unwrap()
    };
    let pair = |pair: &Value| (number(&pair[0]), number(&pair[1]));
    value.as_array().map(|pairs| pairs.iter().map(pair).collect()).unwrap_or_default()
}

/// The options that open an array as of the time of a read.
fn read_options(case: &Case, read: &Value) -> ArrayOptions {
    let options = case.options();
    match &read["timestamp"] {
        Value::Null => options,
        Value::Array(window) => options
            .with_option("timestamp_start", window[0].as_u64().unwrap())
            .with_option("timestamp", window[1].as_u64().unwrap()),
        end => options.with_option("timestamp", end.as_u64().unwrap()),
    }
}

/// Registers the array as of the time of a read. Returns the session, and the coordinate of index 0
/// per axis; `None` if the read reaches beyond the table.
async fn open_read(
    case: &Case,
    read: &Value,
) -> Result<Option<(SessionContext, Vec<i128>)>, String> {
    let options = read_options(case, read).with_index_columns(true);
    let ctx = session(2, 1000);
    let dims = case.expected["schema"]["dims"].as_array().unwrap();
    let domain: Vec<_> =
        dims.iter().map(|dim| pairs(&Value::Array(vec![dim["domain"].clone()]))[0]).collect();
    let whole = options.clone().with_option("full_domain", true);
    if ctx.register_array("t", &case.path, whole).await.is_ok() {
        return Ok(Some((ctx, domain.iter().map(|(low, _)| *low).collect())));
    }
    // The whole domain is too large for a table, so the table shows the non-empty domain.
    let opened = ctx.register_array("t", &case.path, options).await;
    opened.map_err(|error| error.to_string())?;
    let used = pairs(&read["nonempty_domain"]);
    let wanted = pairs(&read["subarray"]);
    let inside = used.iter().zip(&wanted).all(|(used, it)| used.0 <= it.0 && it.1 <= used.1);
    Ok(inside.then(|| (ctx, used.iter().map(|(low, _)| *low).collect())))
}

async fn read_agrees(case: &Case, read: &Value) -> Result<usize, String> {
    if case.is_sparse() {
        return bag_agrees(case, read).await;
    }
    let Some((ctx, low)) = open_read(case, read).await? else { return Ok(0) };
    if read.get("columns").is_none() {
        return formula_agrees(&ctx).await;
    }
    let dims = case.expected["schema"]["dims"].as_array().unwrap();
    let indices: Vec<String> =
        dims.iter().map(|dim| format!("\"{}_idx\"", dim["name"].as_str().unwrap())).collect();
    let boxed: Vec<String> = pairs(&read["subarray"])
        .iter()
        .zip(&low)
        .zip(&indices)
        .map(|((range, low), index)| {
            format!("{index} BETWEEN {} AND {}", range.0 - low, range.1 - low)
        })
        .collect();
    let sql =
        format!("SELECT * FROM t WHERE {} ORDER BY {}", boxed.join(" AND "), indices.join(", "));
    let Some(batch) = all_rows(&ctx, &sql, read).await? else { return Ok(0) };
    cells_agree(&columns_of(case, read, &batch)?)
}

/// The rows of a query as one batch, if they are as many as expected; `None` if no row is.
async fn all_rows(
    ctx: &SessionContext,
    sql: &str,
    read: &Value,
) -> Result<Option<RecordBatch>, String> {
    let batches = query(ctx, sql).await.map_err(|error| error.to_string())?;
    let rows = read["rows"].as_u64().unwrap() as usize;
    let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if found != rows {
        return Err(format!("{found} rows, expected {rows}"));
    }
    Ok(batches.first().map(|first| concat_batches(&first.schema(), &batches).unwrap()))
}

/// Compares the rows of a sparse array, in any order, with the expected ones.
async fn bag_agrees(case: &Case, read: &Value) -> Result<usize, String> {
    let ctx = session(2, 1000);
    let opened = ctx.register_array("t", &case.path, read_options(case, read)).await;
    opened.map_err(|error| error.to_string())?;
    let Some(batch) = all_rows(&ctx, "SELECT * FROM t", read).await? else { return Ok(0) };
    let columns = columns_of(case, read, &batch)?;
    rows_agree(&columns, batch.num_rows())?;
    Ok(batch.num_rows() * columns.len())
}

/// Finds each expected row once, in any order. Both sides have `rows` rows.
pub(crate) fn rows_agree(columns: &[ExpectedColumn<'_>], rows: usize) -> Result<(), String> {
    let mut left: Vec<usize> = (0..rows).collect();
    for row in 0..rows {
        let is_expected = |found: &usize| {
            columns.iter().all(|it| same(&it.expected[row], it.array, *found, it.kind))
        };
        let Some(place) = left.iter().position(is_expected) else {
            let cells: Vec<String> =
                columns.iter().map(|it| format!("{}={}", it.name, it.expected[row])).collect();
            return Err(format!("no row {}", cells.join(", ")));
        };
        left.swap_remove(place);
    }
    Ok(())
}

/// A column, and the cells that are expected in it.
pub(crate) struct ExpectedColumn<'a> {
    pub(crate) name: &'a str,
    pub(crate) array: &'a ArrayRef,
    /// TileDB's name of its type.
    pub(crate) kind: &'a str,
    pub(crate) expected: Vec<Value>,
}

/// Finds the expected columns of a read in a batch.
fn columns_of<'a>(
    case: &'a Case,
    read: &'a Value,
    batch: &'a RecordBatch,
) -> Result<Vec<ExpectedColumn<'a>>, String> {
    let mut columns = vec![];
    for (name, expected) in read["columns"].as_object().unwrap() {
        let column = if name.is_empty() { "value" } else { name };
        let Some(array) = batch.column_by_name(column) else {
            return Err(format!("no column \"{column}\""));
        };
        let attributes = case.expected["schema"]["attrs"].as_array().unwrap();
        let dimensions = case.expected["schema"]["dims"].as_array().unwrap();
        let is_named = |it: &&Value| it["name"] == name.as_str();
        let attribute = attributes.iter().chain(dimensions).find(is_named);
        let kind = attribute.map_or("", |attribute| attribute["type"].as_str().unwrap());
        let labels = attribute
            .and_then(|attribute| attribute["enum"].as_str())
            .map(|name| &case.expected["enumerations"][name]["values"]);
        let named = |cell: &Value| labels.map_or_else(|| cell.clone(), |it| label(it, cell));
        let expected = expected.as_array().unwrap().iter().map(named).collect();
        columns.push(ExpectedColumn { name, array, kind, expected });
    }
    Ok(columns)
}

/// Compares each cell with the expected one of the same row. Returns the number of cells.
pub(crate) fn cells_agree(columns: &[ExpectedColumn<'_>]) -> Result<usize, String> {
    let mut cells = 0;
    for ExpectedColumn { name, array, kind, expected } in columns {
        for (row, expected) in expected.iter().enumerate() {
            if !same(expected, array, row, kind) {
                let found = arrow::util::display::array_value_to_string(array, row);
                return Err(format!("{name}[{row}] is {found:?}, expected {expected}"));
            }
            cells += 1;
        }
    }
    Ok(cells)
}

/// Checks the only array whose expected cells are formulas of `x`; it has 20,000 rows.
async fn formula_agrees(ctx: &SessionContext) -> Result<usize, String> {
    let sql = "SELECT count(*) FROM t WHERE big = 1000 * x + x % 7 AND gz = x / 3 AND bs = 5 * x
               AND bt = x % 1000 AND s = concat('k', x / 50)";
    let found = rows_of(&query(ctx, sql).await.map_err(|error| error.to_string())?);
    let all = rows_of(&query(ctx, "SELECT count(*) FROM t").await.unwrap());
    if found == all { Ok(5 * 20_000) } else { Err(format!("{found:?} cells of {all:?} are right")) }
}

/// The label of a key of an enumeration; `Null` if the enumeration does not have the key.
fn label(labels: &Value, key: &Value) -> Value {
    let at = key.as_u64().map(|at| at as usize);
    at.and_then(|at| labels.get(at)).cloned().unwrap_or(Value::Null)
}

/// Whether the cell in `row` is the expected one; `kind` is TileDB's name of its type.
fn same(expected: &Value, array: &ArrayRef, row: usize, kind: &str) -> bool {
    if let DataType::List(_) | DataType::FixedSizeList(..) = array.data_type() {
        if expected.is_null() || array.is_null(row) {
            return expected.is_null() && array.is_null(row);
        }
        let items = match array.as_list_opt::<i32>() {
            Some(lists) => lists.value(row),
            None => array.as_fixed_size_list().value(row),
        };
        let expected = expected.as_array().unwrap();
        let all = |(at, item)| same(item, &items, at, kind);
        return expected.len() == items.len() && expected.iter().enumerate().all(all);
    }
    let not_a_time = expected.as_i64() == Some(i64::MIN) && kind.contains("TIME");
    if expected.is_null() || expected.as_str() == Some("NaN") || not_a_time {
        return array.is_null(row);
    }
    if array.is_null(row) {
        return false;
    }
    match array.data_type() {
        DataType::Boolean => expected.as_bool() == Some(array.as_boolean().value(row)),
        DataType::Utf8View => expected.as_str() == Some(array.as_string_view().value(row)),
        DataType::BinaryView => is_hex(expected, array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => is_hex(expected, array.as_fixed_size_binary().value(row)),
        DataType::Float32 | DataType::Float64 => {
            let expected: f64 = match expected.as_str().unwrap() {
                "inf" => f64::INFINITY,
                "-inf" => f64::NEG_INFINITY,
                text => text.parse().unwrap(),
            };
            float(array, row).to_bits() == expected.to_bits()
        }
        DataType::UInt64 => {
            expected.as_u64() == Some(array.as_primitive::<UInt64Type>().value(row))
        }
        _ => {
            let counts = cast(array, &DataType::Int64).unwrap();
            let found = counts.as_primitive::<Int64Type>().value(row);
            expected.as_i64().and_then(|stored| in_arrow(stored, kind)) == Some(found)
        }
    }
}

fn float(array: &ArrayRef, row: usize) -> f64 {
    let doubles = cast(array, &DataType::Float64).unwrap();
    doubles.as_primitive::<Float64Type>().value(row)
}

fn is_hex(expected: &Value, bytes: &[u8]) -> bool {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    expected["hex"].as_str() == Some(&hex)
}

/// Converts a stored count to the unit of its Arrow type; `None` if it overflows.
fn in_arrow(stored: i64, kind: &str) -> Option<i64> {
    let epoch = NaiveDate::from_ymd_opt(1970, 1, 1)?;
    let days = |year: i64, month: i64| {
        let day = NaiveDate::from_ymd_opt(year.try_into().ok()?, month as u32, 1)?;
        Some((day - epoch).num_days())
    };
    let unit = kind.rsplit('_').next()?;
    match unit {
        "YEAR" => days(1970 + stored, 1),
        "MONTH" => {
            let before = epoch.checked_add_signed(TimeDelta::zero())?.year();
            days(i64::from(before) + stored.div_euclid(12), 1 + stored.rem_euclid(12))
        }
        "WEEK" => stored.checked_mul(7),
        "HR" => stored.checked_mul(3600),
        "MIN" => stored.checked_mul(60),
        _ => Some(stored),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shipped_arrays_are_read_cell_by_cell() {
    let cases = shipped_cases();
    assert!(cases.len() > 20, "{}", cases.len());
    let cells = check_all(&cases).await;
    assert!(cells > 4_000, "{cells}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn corpus_arrays_are_read_cell_by_cell() {
    let cases = corpus_cases();
    assert!(cases.len() > 80, "{}", cases.len());
    let cells = check_all(&cases).await;
    assert!(cells > 30_000, "{cells}");
}
