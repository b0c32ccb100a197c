//! Files that options make one table: other variables and ranks, a new dimension, labels of several files, and files that cannot
//! be opened. Random ones are compared with a `MemTable` of the rows that the options promise.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, Overlap};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use serde_json::json;

use crate::codec::sent::{bytes, plan, query_sent, received};
use crate::sql::ways_in::copy_folder;
use crate::support::{
    F64, I16, I32, Layout, TestDataset, positions, query, reducing, rows_from, rows_of, session,
    shipped, tet_bytes,
};

/// The dimensions of the table, and the length of the last two.
const DIMS: [&str; 3] = ["time", "y", "x"];
const YX: [u64; 2] = [2, 3];

/// A variable of the table.
#[derive(Debug, Clone)]
struct Variable {
    name: &'static str,
    /// The axes of the table that it has.
    axes: Vec<usize>,
    /// Whether it is in a file of its own.
    is_alone: bool,
    /// The files that have it.
    files: Vec<bool>,
    /// Whether each file packs its values, and marks missing ones.
    packs: Vec<bool>,
    nulls: Vec<bool>,
}

/// How the files of a table count days from 2000-02-16, which is day 0.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Clock {
    Numbers,
    Standard,
    Days360,
}

/// How a file counts time: units, a calendar, the number of day 0 in days, and the number of units in a day.
type Count = (&'static str, Option<&'static str>, i32, i32);

impl Clock {
    fn counts(self) -> &'static [Count] {
        match self {
            Self::Numbers => &[("1", None, 0, 1)],
            Self::Standard => &[
                ("days since 2000-01-01", None, 46, 1),
                ("Hours Since 2000-03-01 00:00:00", Some("standard"), -14, 24),
                ("days since 19991231", Some("gregorian"), 47, 1),
            ],
            Self::Days360 => &[
                ("days since 2000-01-01", Some("360_day"), 45, 1),
                ("hours since 2000-02-30", Some("360_day"), -14, 24),
                ("days since 1999-12-30 00:00", Some("360_DAY"), 46, 1),
            ],
        }
    }

    /// The day of a label, in SQL.
    fn day(self) -> &'static str {
        match self {
            Self::Numbers => "CAST(time AS INT)",
            Self::Standard => "CAST(CAST(time AS DATE) AS INT) - 11003",
            Self::Days360 => {
                "CAST((date_part('year', time) - 2000) * 360 + date_part('month', time) * 30 + date_part('day', time) - 76 AS INT)"
            }
        }
    }
}

/// Spellings of one unit.
const UNITS: [&str; 4] = ["m s-1", "m/s", "m s**-1", "meters per second"];

/// The name of a file that is damaged.
const DAMAGED: &str = "part-9.tet";

/// Files, and the rows of their table.
struct Case {
    clock: Clock,
    /// How each file counts time, and whether in doubles.
    counts: Vec<(Count, bool)>,
    /// Whether one file more cannot be opened.
    has_damaged: bool,
    variables: Vec<Variable>,
    /// The times of each file, in ascending order.
    times: Vec<Vec<i32>>,
    /// The names of the files, in the order of the list.
    order: Vec<usize>,
    overlap: Overlap,
    /// Whether files have no dimension `time`, and one label each.
    stacks: bool,
}

impl Case {
    fn random(rng: &mut StdRng) -> Self {
        let files = rng.random_range(1..=4);
        let stacks = rng.random_bool(0.3);
        let overlap = *[Overlap::Refused, Overlap::First, Overlap::Last].choose(rng).unwrap();
        let times = (0..files).map(|file| match (stacks, overlap) {
            (true, _) => vec![file],
            (false, Overlap::Refused) => {
                (0..rng.random_range(1..5)).map(|at| file * 10 + at).collect()
            }
            // Ranges that overlap, lie in one another, or interleave.
            (false, _) => {
                let (first, step) = (rng.random_range(0..6), rng.random_range(1..3));
                (0..rng.random_range(1..6)).map(|at| first + at * step).collect()
            }
        });
        let times: Vec<Vec<i32>> = times.collect();
        let mut order: Vec<usize> = (0..times.len()).collect();
        order.shuffle(rng);
        let count = times.len();
        let mut flags = |yes: f64| (0..count).map(|_| rng.random_bool(yes)).collect::<Vec<_>>();
        let mut variable = |name, axes: &[usize], is_alone, mut files: Vec<bool>| {
            files[0] |= !files.contains(&true);
            let (packs, nulls) = (flags(0.3), flags(0.5));
            Variable { name, axes: axes.to_vec(), is_alone, files, packs, nulls }
        };
        let all = vec![true; count];
        let some: Vec<bool> = (0..count).map(|at| at % 2 == count % 2).collect();
        let mut variables = vec![
            // Every file has a variable of all dimensions.
            variable("alpha", &[0, 1, 2], false, all.clone()),
            variable("beta", &[0, 1, 2], false, some),
            variable("low", &[2], false, all.clone()),
            variable("rows", &[0, 1], false, all.clone()),
        ];
        if !stacks {
            variables.push(variable("map", &[2, 1], true, all));
        }
        let clock = *[Clock::Numbers, Clock::Standard, Clock::Days360].choose(rng).unwrap();
        let clock = if stacks { Clock::Numbers } else { clock };
        let counts =
            times.iter().map(|_| (*clock.counts().choose(rng).unwrap(), rng.random())).collect();
        let has_damaged = rng.random_bool(0.3);
        Self { clock, counts, has_damaged, variables, times, order, overlap, stacks }
    }

    /// The value of a variable in a file; `None` is NULL.
    fn value(&self, variable: &Variable, file: usize, cell: [i32; 3]) -> Option<i32> {
        let of_file = if variable.is_alone { 0 } else { file };
        let nulls = variable.nulls[of_file];
        let place: i32 = variable.axes.iter().map(|axis| cell[*axis] * [7, 3, 5][*axis]).sum();
        let number = of_file as i32 * 100 + place + variable.name.len() as i32;
        (!nulls || number % 4 != 0).then_some(number)
    }

    /// The bytes of a dataset, over the positions of a file.
    fn dataset(&self, rng: &mut StdRng, variable: &Variable, file: usize) -> TestDataset {
        let times = &self.times[file];
        let lens = [times.len() as u64, YX[0], YX[1]];
        let axes: Vec<usize> =
            variable.axes.iter().copied().filter(|axis| !(self.stacks && *axis == 0)).collect();
        let shape: Vec<u64> = axes.iter().map(|axis| lens[*axis]).collect();
        let (packs, nulls) = (variable.packs[file], variable.nulls[file]);
        let values = positions(&shape).into_iter().map(|at| {
            let mut cell = [times[0], 0, 0];
            for (axis, at) in axes.iter().zip(at) {
                cell[*axis] = if *axis == 0 { times[at as usize] } else { at as i32 };
            }
            self.value(variable, file, cell)
        });
        let (tag, mut attributes) = match (packs, nulls) {
            (true, true) => (I16, json!({"scale_factor": "0.5", "_FillValue": "-9"})),
            (true, false) => (I16, json!({"scale_factor": "0.5"})),
            (false, true) => (I32, json!({"_FillValue": "-9"})),
            (false, false) => (I32, json!({})),
        };
        attributes["units"] = (*UNITS.choose(rng).unwrap()).into();
        let bytes = values.flat_map(|value| match (packs, value) {
            (true, value) => value.map_or(-9, |it| it * 2).to_le_bytes()[..2].to_vec(),
            (false, value) => value.unwrap_or(-9).to_le_bytes().to_vec(),
        });
        let chunk: Vec<u64> = shape.iter().map(|_| rng.random_range(1..5)).collect();
        let names: Vec<&str> = axes.iter().map(|axis| DIMS[*axis]).collect();
        TestDataset::new(variable.name, tag, &shape, &chunk, bytes.collect())
            .with_zstd(rng.random())
            .with_metadata(json!({"dim_names": names, "attrs": attributes}))
    }

    /// The labels of a file.
    fn time(&self, file: usize) -> TestDataset {
        let ((units, calendar, first, per_day), are_doubles) = self.counts[file];
        let numbers = self.times[file].iter().map(|day| (day + first) * per_day);
        let bytes: Vec<u8> = match are_doubles {
            true => numbers.flat_map(|it| f64::from(it).to_le_bytes()).collect(),
            false => numbers.flat_map(i32::to_le_bytes).collect(),
        };
        let mut attributes = json!({"units": units});
        if let Some(calendar) = calendar {
            attributes["calendar"] = calendar.into();
        }
        let len = self.times[file].len() as u64;
        TestDataset::new("time", if are_doubles { F64 } else { I32 }, &[len], &[len], bytes)
            .with_metadata(json!({"dim_names": ["time"], "attrs": attributes}))
    }

    /// Writes the files. Returns their places in the order of the list.
    fn write(&self, rng: &mut StdRng, folder: &Path) -> Vec<String> {
        let mut places = vec![];
        for file in &self.order {
            let mut datasets: Vec<TestDataset> = vec![];
            for variable in &self.variables {
                if variable.files[*file] && !variable.is_alone {
                    datasets.push(self.dataset(rng, variable, *file));
                }
            }
            datasets.shuffle(rng);
            if !self.stacks {
                datasets.push(self.time(*file));
            }
            places.push(write(folder, &format!("part-{file}.tet"), &datasets));
        }
        for variable in self.variables.iter().filter(|it| it.is_alone) {
            let name = format!("{}.tet", variable.name);
            let at = rng.random_range(0..=places.len());
            places.insert(at, write(folder, &name, &[self.dataset(rng, variable, 0)]));
        }
        if self.has_damaged {
            let whole = std::fs::read(&places[0]).unwrap();
            let path = folder.join(DAMAGED);
            std::fs::write(&path, &whole[..rng.random_range(0..whole.len() / 2)]).unwrap();
            let at = rng.random_range(0..=places.len());
            places.insert(at, path.to_str().unwrap().to_owned());
        }
        places
    }

    /// The file whose label a time is; `None` for no file.
    fn winner(&self, time: i32) -> Option<usize> {
        let mut having = self.order.iter().filter(|file| self.times[**file].contains(&time));
        match self.overlap {
            Overlap::Last => having.next_back().copied(),
            _ => having.next().copied(),
        }
    }

    /// The rows, of which the table has some as doubles.
    fn rows(&self, is_double: impl Fn(&str) -> bool) -> RecordBatch {
        let cells: Vec<(usize, [i32; 3])> = (0..50)
            .filter_map(|time| Some((self.winner(time)?, time)))
            .flat_map(|(file, time)| {
                positions(&YX).into_iter().map(move |at| (file, [time, at[0] as i32, at[1] as i32]))
            })
            .collect();
        let mut columns: BTreeMap<String, ArrayRef> = BTreeMap::new();
        for (axis, name) in DIMS.iter().enumerate() {
            let labels = cells.iter().map(|(_, cell)| cell[axis]);
            columns.insert((*name).into(), Arc::new(Int32Array::from_iter_values(labels)));
        }
        for variable in &self.variables {
            let values = cells.iter().map(|(file, cell)| {
                let has = variable.is_alone || variable.files[*file];
                self.value(variable, *file, *cell).filter(|_| has)
            });
            // Packed numbers are doubles.
            let packs = match variable.is_alone {
                true => variable.packs[0],
                // The type of a file that loses all its labels may be that of the column, and need not be.
                false => {
                    let wins = |file: &usize| cells.iter().any(|(winner, _)| winner == file);
                    (0..variable.files.len())
                        .filter(wins)
                        .any(|file| variable.files[file] && variable.packs[file])
                }
            };
            let may_pack =
                variable.files.iter().zip(&variable.packs).any(|(has, packs)| *has && *packs);
            let column: ArrayRef = match packs || may_pack && is_double(variable.name) {
                true => Arc::new(values.map(|it| it.map(f64::from)).collect::<Float64Array>()),
                false => Arc::new(values.collect::<Int32Array>()),
            };
            columns.insert(variable.name.into(), column);
        }
        let file = cells.iter().map(|(file, _)| format!("part-{file}"));
        columns.insert("file".into(), Arc::new(StringViewArray::from_iter_values(file)));
        let field =
            |(name, it): (&String, &ArrayRef)| Field::new(name, it.data_type().clone(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        RecordBatch::try_new(schema, columns.into_values().collect()).unwrap()
    }

    fn options(&self, places: &[String]) -> ArrayOptions {
        let options = ArrayOptions::default()
            .with_union_by_name(true)
            .with_skip_unreadable(self.has_damaged)
            .with_file_column(true)
            .with_overlap(self.overlap);
        if !self.stacks {
            return options;
        }
        let mut files = self.order.iter();
        let label = |place: &String| match place.ends_with(DAMAGED) {
            true => "99".to_owned(),
            false => self.times[*files.next().unwrap()][0].to_string(),
        };
        let labels: Vec<String> = places.iter().map(label).collect();
        options.with_stack(format!("time={}", labels.join(",")))
    }
}

fn write(folder: &Path, name: &str, datasets: &[TestDataset]) -> String {
    let path = folder.join(name);
    let layout = Layout { history_version: Some(1), ..Layout::default() };
    std::fs::write(&path, tet_bytes(datasets, &layout)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn queries(case: &Case, rng: &mut StdRng) -> Vec<String> {
    let names: Vec<&str> = case.variables.iter().map(|it| it.name).collect();
    let all = names.join(", ");
    let mut queries = vec![format!("SELECT time, y, x, {all}, file FROM t")];
    for _ in 0..5 {
        let (a, b) = (names.choose(rng).unwrap(), names.choose(rng).unwrap());
        let key = ["time", "y", "x", "file"].choose(rng).unwrap();
        let (low, high) = (rng.random_range(0..40), rng.random_range(0..150));
        queries.push(match rng.random_range(0..6) {
            0 => format!("SELECT {key}, count({a}), sum({a}), min({b}), max({a}), avg({b}) FROM t GROUP BY {key}"),
            1 => format!("SELECT time, {a} AS a, {b} AS b FROM t WHERE {a} > {high} AND time >= {low}"),
            2 => format!("SELECT count(*), sum({a}) FROM t WHERE {b} IS NULL OR x = 1"),
            3 => format!("SELECT {a} FROM t ORDER BY {a} DESC NULLS LAST LIMIT 5"),
            4 => format!("SELECT {key}, sum({a} * {b}) FROM t WHERE time < {low} GROUP BY {key}"),
            _ => format!("SELECT sum({a}) FILTER (WHERE {b} > {high}), count(DISTINCT {a}) FROM t"),
        });
    }
    queries
}

async fn sorted(ctx: &SessionContext, sql: &str, context: &str) -> Vec<Vec<String>> {
    let found = query(ctx, sql).await.unwrap_or_else(|error| panic!("{context}: {sql}: {error}"));
    let mut rows = rows_of(&found);
    rows.sort();
    rows
}

#[tokio::test]
async fn random_files_are_the_rows_that_options_promise() {
    let mut rng = StdRng::seed_from_u64(42);
    for number in 0..120 {
        let case = Case::random(&mut rng);
        let folder = tempfile::tempdir().unwrap();
        let places = case.write(&mut rng, folder.path());
        let context = format!(
            "case {number}, {places:?}, {:?}, stacks {}, {:?} {:?} {:?}",
            case.overlap, case.stacks, case.times, case.counts, case.variables
        );
        let ours = reducing(rng.random_range(1..4), *[2, 8192].choose(&mut rng).unwrap());
        let options = case.options(&places);
        ours.register_array("f", places, options)
            .await
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        let names: Vec<&str> = case.variables.iter().map(|it| it.name).collect();
        let view = format!(
            "CREATE VIEW t AS SELECT {} AS time, y, x, {}, regexp_replace(_file, '.*/(part-[0-9]+)[.]tet', '\\1') AS file FROM f",
            case.clock.day(),
            names.join(", ")
        );
        query(&ours, &view).await.unwrap();
        let theirs = session(1, 8192);
        let schema = ours.table("f").await.unwrap().schema().as_arrow().clone();
        let is_double =
            |name: &str| *schema.field_with_name(name).unwrap().data_type() == DataType::Float64;
        let rows = case.rows(is_double);
        let table = MemTable::try_new(rows.schema(), vec![vec![rows]]).unwrap();
        theirs.register_table("t", Arc::new(table)).unwrap();
        for (at, sql) in queries(&case, &mut rng).into_iter().enumerate() {
            let expected = sorted(&theirs, &sql, &context).await;
            assert_eq!(sorted(&ours, &sql, &context).await, expected, "{context}: {sql}");
            // Another process opens the files by itself.
            if at < 2 {
                let sent = query_sent(&ours, &SessionContext::new(), &sql).await;
                let mut found =
                    rows_of(&sent.unwrap_or_else(|it| panic!("{context}: {sql}: {it}")));
                found.sort();
                assert_eq!(found, expected, "sent, {context}: {sql}");
            }
        }
    }
}

/// A file with `v` over `x`, of the numbers from `first` on.
fn numbers(first: i32) -> TestDataset {
    let data = (first..first + 3).flat_map(|it| f64::from(it).to_le_bytes()).collect();
    TestDataset::new("v", F64, &[3], &[2], data).with_metadata(json!({"dim_names": ["x"]}))
}

#[tokio::test]
async fn labels_of_a_new_dimension_are_in_paths_and_lists() {
    let folder = tempfile::tempdir().unwrap();
    for (name, first) in [("v_20240102.tet", 10), ("v_20240101.tet", 0), ("v_20240110.tet", 20)] {
        write(folder.path(), name, &[numbers(first)]);
    }
    let pattern = format!("{}/v_*.tet", folder.path().display());
    let ctx = reducing(2, 8192);
    for (stack, expected) in [
        (
            "v_{day:%Y%m%d}.tet",
            [
                ["2024-01-01T00:00:00", "3.0"],
                ["2024-01-02T00:00:00", "33.0"],
                ["2024-01-10T00:00:00", "63.0"],
            ],
        ),
        ("v_{day}.tet", [["20240101", "3.0"], ["20240102", "33.0"], ["20240110", "63.0"]]),
        ("day=b,a,c", [["a", "33.0"], ["b", "3.0"], ["c", "63.0"]]),
        ("day = 0.5, 1.5, 2.5", [["0.5", "3.0"], ["1.5", "33.0"], ["2.5", "63.0"]]),
    ] {
        let options = ArrayOptions::default().with_stack(stack);
        ctx.deregister_table("t").unwrap();
        ctx.register_array("t", pattern.as_str(), options).await.unwrap();
        let sql = "SELECT day, sum(v) FROM t GROUP BY day ORDER BY day";
        assert_eq!(rows_from(&ctx, sql).await, expected, "{stack}");
        let plan = rows_from(&ctx, &format!("EXPLAIN {sql}")).await;
        assert!(plan[1][1].contains("GridReduceExec"), "{plan:?}");
        let some = format!("EXPLAIN SELECT v FROM t WHERE day = '{}'", expected[1][0]);
        let plan = rows_from(&ctx, &some).await;
        assert!(plan[1][1].contains("chunks=2/6"), "{plan:?}");
    }
    for (stack, expected) in [
        ("day=a,b", "2 labels of \"day\", and the table has 3 files"),
        ("day=a,b,a", "\"day\" is a both in"),
        ("x=a,b,c", "\"v\" has the dimension \"x\", so option 'stack' cannot add it"),
        ("w_{day}.tet", "the path does not match option 'stack', 'w_{day}.tet'"),
        ("=a", "expected a dimension"),
        ("{day", "without a '}'"),
        ("day=@when", "no attribute 'when' of the file"),
        ("x", "no dataset \"x\""),
        ("day", "no dataset \"day\""),
    ] {
        let options = ArrayOptions::default().with_stack(stack);
        let error = ctx.register_array("e", pattern.as_str(), options).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{stack}: {error}");
    }
}

#[tokio::test]
async fn variables_that_do_not_fit_have_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = |name: &str, dims: &[&str], unit: &str| {
        let shape = vec![2; dims.len()];
        let data = vec![0; 8 << dims.len()];
        TestDataset::new(name, F64, &shape, &shape, data)
            .with_metadata(json!({"dim_names": dims, "attrs": {"units": unit}}))
    };
    let first = write(folder.path(), "a.tet", &[dataset("t", &["time", "x"], "K")]);
    let ctx = session(1, 8192);
    for (others, expected) in [
        (vec![dataset("u", &["time", "z"], "1")], "the dimensions of \"u\" are time, z"),
        (vec![dataset("u", &["z"], "1")], "\"z\" of \"u\" is not a dimension of \"t\""),
        (vec![dataset("t", &["x"], "K")], "\"t\" is both in"),
        (vec![dataset("t", &["time", "x"], "degC")], "t + 273.15"),
    ] {
        let second = write(folder.path(), "b.tet", &others);
        let options = ArrayOptions::default().with_union_by_name(true);
        let places = vec![first.clone(), second];
        let error = ctx.register_array("e", places, options).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("b.tet"), "{error}\nnot: {expected}");
    }
}

/// The option `dataset` may name variables that only some files have.
#[tokio::test]
async fn named_variables_may_be_in_some_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = |name: &str, first: i32| {
        let data = (first..first + 2).flat_map(i32::to_le_bytes).collect();
        TestDataset::new(name, I32, &[2], &[1], data).with_metadata(json!({"dim_names": ["x"]}))
    };
    let a = write(folder.path(), "a.tet", &[dataset("u", 1), dataset("x", 0)]);
    let b = write(folder.path(), "b.tet", &[dataset("u", 3), dataset("v", 5), dataset("x", 2)]);
    let ctx = reducing(1, 8192);
    let options =
        |names: &str| ArrayOptions::default().with_union_by_name(true).with_dataset(names);
    ctx.register_array("t", vec![a.clone(), b.clone()], options("v, u")).await.unwrap();
    let rows = rows_from(&ctx, "SELECT x, u, v FROM t ORDER BY x").await;
    assert_eq!(rows, [["0", "1", "NULL"], ["1", "2", "NULL"], ["2", "3", "5"], ["3", "4", "6"]]);
    for names in ["u, w", "w"] {
        let error = ctx.register_array("e", vec![a.clone(), b.clone()], options(names)).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("dataset \"w\""), "{error}");
    }
}

/// A variable that a file has is not NULL because it cannot be read.
#[tokio::test]
async fn variables_that_cannot_be_read_are_not_absent() {
    let ctx = reducing(1, 8192);
    let both = ["numbers", "references"]
        .map(|name| shipped(&format!("crates/cf/tests/data/hdf5/union/{name}.h5")));
    let options = ArrayOptions::default().with_union_by_name(true);
    let error = ctx.register_array("e", both.clone(), options.clone()).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("references.h5") && message.contains("\"b\""), "{message}");
    // A file alone, and variables that all files have, need no `b`.
    ctx.register_array("one", both[1].as_str(), options.clone()).await.unwrap();
    assert_eq!(rows_from(&ctx, "SELECT * FROM one").await[0], ["3", "3"]);
    ctx.register_array("t", both, options.with_dataset("a")).await.unwrap();
    assert_eq!(rows_from(&ctx, "SELECT count(*) FROM t").await, [["6"]]);
}

/// Places that are one array each hold the same variable, whatever the names of their folders.
#[tokio::test]
async fn arrays_of_folders_are_one_variable() {
    let folder = tempfile::tempdir().unwrap();
    let mut places = vec![];
    for name in ["first", "second"] {
        let to = folder.path().join(name);
        copy_folder(Path::new(&shipped("tests/data/tiledb/chunks")), &to);
        places.push(to.to_str().unwrap().to_owned());
    }
    let ctx = reducing(1, 8192);
    let options = ArrayOptions::default().with_overlap(Overlap::Last);
    ctx.register_array("alike", places.clone(), options.clone()).await.unwrap();
    ctx.register_array("united", places, options.with_union_by_name(true)).await.unwrap();
    let rows = |table: &str| format!("SELECT * FROM {table} ORDER BY y, x");
    assert_eq!(rows_from(&ctx, &rows("united")).await, rows_from(&ctx, &rows("alike")).await);
}

/// Packed numbers are reduced in the form of each file, without unpacking cells.
#[tokio::test]
async fn files_of_several_forms_are_reduced() {
    let ctx = reducing(1, 8192);
    let months = shipped("tests/data/monthly/2000-0[1-4].nc");
    ctx.register_array("t", months.as_str(), ArrayOptions::default()).await.unwrap();
    let plan = rows_from(&ctx, "EXPLAIN SELECT lat, avg(t2m), max(t2m) FROM t GROUP BY lat").await;
    assert!(plan[1][1].contains("GridReduceExec") && plan[1][1].contains("tier=dense"), "{plan:?}");
}

#[tokio::test]
async fn files_that_cannot_be_opened_are_left_out_only_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..3 {
        let name = format!("{file}.tet");
        write(folder.path(), &name, &[numbers(file * 10)]);
    }
    let pattern = format!("{}/*.tet", folder.path().display());
    let whole = std::fs::read(folder.path().join("1.tet")).unwrap();
    let ctx = reducing(1, 8192);
    let options = || ArrayOptions::default().with_concat_dimension("x");
    // The first file, the last one, and one between, in several states.
    for (name, bytes) in [
        ("0.tet", vec![]),
        ("1.tet", whole[..whole.len() / 2].to_vec()),
        ("2.tet", b"<html>not found</html>".to_vec()),
    ] {
        let path = folder.path().join(name);
        let before = std::fs::read(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let refused = ctx.register_array("e", pattern.as_str(), options()).await.unwrap_err();
        assert!(refused.to_string().contains(name), "{refused}");
        ctx.deregister_table("t").unwrap();
        let skips = options().with_skip_unreadable(true);
        ctx.register_array("t", pattern.as_str(), skips.clone()).await.unwrap();
        assert_eq!(rows_from(&ctx, "SELECT count(*) FROM t").await, [["6"]], "{name}");
        // Another mistake is no damage.
        let wrong = skips.with_dataset("w");
        let error = ctx.register_array("e", pattern.as_str(), wrong).await.unwrap_err();
        assert!(error.to_string().contains("no dataset \"w\""), "{error}");
        std::fs::write(&path, before).unwrap();
    }
    // Another process opens the files that are left, with their labels.
    std::fs::rename(folder.path().join("1.tet"), folder.path().join("good")).unwrap();
    std::fs::write(folder.path().join("1.tet"), "nothing").unwrap();
    let stacked = ArrayOptions::default().with_stack("run=a,b,c").with_skip_unreadable(true);
    ctx.register_array("s", pattern.as_str(), stacked).await.unwrap();
    let sql = "SELECT run, sum(v) FROM s GROUP BY run ORDER BY run";
    let expected = [["a", "3.0"], ["c", "63.0"]];
    assert_eq!(rows_from(&ctx, sql).await, expected);
    let plan = plan(&ctx, sql).await.unwrap();
    // The file is whole again, and still not in the table.
    std::fs::rename(folder.path().join("good"), folder.path().join("1.tet")).unwrap();
    let worker = SessionContext::new();
    let plan = received(&bytes(&plan).unwrap(), &worker).unwrap();
    let found = collect(plan, worker.task_ctx()).await.unwrap();
    assert_eq!(rows_of(&found), expected);
    for name in ["0.tet", "1.tet", "2.tet"] {
        std::fs::write(folder.path().join(name), "nothing").unwrap();
    }
    let all = options().with_skip_unreadable(true);
    let error = ctx.register_array("e", pattern.as_str(), all).await.unwrap_err();
    assert!(error.to_string().contains("0.tet"), "{error}");
}
