//! Many files as one table: patterns and lists in any order, errors about files that disagree, and files
//! that are skipped by their labels.

use std::path::PathBuf;

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, IoMode};
use insta::assert_snapshot;
use serde_json::json;

use crate::support::{
    F32, F64, I32, I64, Layout, TestDataset, cell, query, reducing, rows_from, session, tet_bytes,
};

/// A folder of files, one per year.
struct Years {
    dir: tempfile::TempDir,
}

impl Years {
    /// One file per year from 2001 on, of 10 days and 2 stations each: `year-2001.tet`, …
    fn new(years: i32) -> Self {
        let this = Self { dir: tempfile::tempdir().unwrap() };
        for year in 0..years {
            this.write(&format!("year-{}.tet", 2001 + year), &year_file(year, &["A", "B"], "K"));
        }
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, datasets: &[TestDataset]) {
        let layout = Layout { history_version: Some(1), ..Layout::default() };
        std::fs::write(self.path(name), tet_bytes(datasets, &layout)).unwrap();
    }
}

const DAYS: u64 = 10;

/// `temperature` and `rain` with different chunks. A temperature is the number of its day and a quarter
/// per station, and rain twice the number of the day and one per station.
fn year_file(year: i32, stations: &[&str], units: &str) -> Vec<TestDataset> {
    let width = stations.len() as u64;
    let shape = [DAYS, width];
    let cells = || (0..DAYS).flat_map(|day| (0..width).map(move |station| (day, station)));
    let day = |day: u64| year * DAYS as i32 + day as i32;
    let temperature =
        cells().flat_map(|(at, station)| (day(at) as f32 + station as f32 / 4.0).to_le_bytes());
    let rain = cells().flat_map(|(at, station)| (day(at) * 2 + station as i32).to_le_bytes());
    let metadata = json!({
        "dim_names": ["time", "station"],
        "coords": {"station": {"labels": stations}},
        "attrs": {"units": units},
    });
    let time = (0..DAYS).flat_map(|at| day(at).to_le_bytes()).collect();
    vec![
        TestDataset::new("temperature", F32, &shape, &[4, width], temperature.collect())
            .with_zstd(true)
            .with_metadata(metadata.clone()),
        TestDataset::new("rain", I32, &shape, &[3, 1], rain.collect()).with_metadata(metadata),
        TestDataset::new("time", I32, &[DAYS], &[DAYS], time).with_metadata(json!({
            "dim_names": ["time"],
            "attrs": {"units": "days since 2001-01-01"},
        })),
    ]
}

async fn error(
    ctx: &SessionContext,
    locations: impl Into<gridfusion::Locations> + Send,
    options: ArrayOptions,
) -> String {
    ctx.register_array("x", locations, options).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_pattern_is_one_table_whatever_the_order() {
    let years = Years::new(3);
    let ctx = reducing(2, 8192);
    let named = |name: &str| years.text(&format!("year-{name}.tet"));
    for (table, locations) in [
        ("pattern", vec![named("*")]),
        ("list", vec![named("2003"), named("2001"), named("2002")]),
        ("twice", vec![named("2003"), named("200[1-3]")]),
    ] {
        let options = ArrayOptions::default().with_file_column(true).with_index_columns(true);
        ctx.register_array(table, locations, options).await.unwrap();
        let rows = rows_from(
            &ctx,
            &format!("SELECT * FROM {table} WHERE time_idx IN (9, 10) AND station = 'B'"),
        )
        .await;
        let [a, b] = [named("2001"), named("2002")];
        assert_eq!(
            rows,
            [
                ["2001-01-10T00:00:00", "B", "9.25", "19", "9", "1", &a],
                ["2001-01-11T00:00:00", "B", "10.25", "21", "10", "1", &b],
            ]
        );
        let sql = format!(
            "SELECT station, count(*), sum(temperature), max(rain) FROM {table} GROUP BY station ORDER BY station"
        );
        assert_eq!(
            rows_from(&ctx, &sql).await,
            [["A", "30", "435.0", "58"], ["B", "30", "442.5", "59"]]
        );
    }
}

#[tokio::test]
async fn sql_takes_patterns_and_lists() {
    let years = Years::new(3);
    let ctx = reducing(2, 8192);
    let pattern = years.text("year-*.tet");
    let list = format!("['{}', '{}']", years.text("year-2002.tet"), years.text("year-2001.tet"));
    let sum = |from: &str| format!("SELECT count(*), max(value) FROM {from}");
    let all = rows_from(&ctx, &sum(&format!("read_tet('{pattern}', 'temperature')"))).await;
    assert_eq!(all, [["60", "29.25"]]);
    let two = rows_from(&ctx, &sum(&format!("read_tet({list}, dataset => 'rain')"))).await;
    assert_eq!(two, [["40", "39"]]);
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS TET LOCATION '{pattern}' OPTIONS (dataset 'rain', file_column true)"
    );
    query(&ctx, &create).await.unwrap();
    let per_file = "SELECT right(_file, 8) AS file, sum(value) FROM t GROUP BY file ORDER BY file";
    assert_eq!(
        rows_from(&ctx, per_file).await,
        [["2001.tet", "190"], ["2002.tet", "590"], ["2003.tet", "990"]]
    );
    let chunks = format!("SELECT count(*) FROM tet_chunks({list})");
    assert!(
        query(&ctx, &chunks).await.unwrap_err().to_string().contains("takes one path, not a list")
    );
}

/// A query of one year works after the files of all other years were removed.
#[tokio::test]
async fn files_that_labels_rule_out_are_not_opened_again() {
    let years = Years::new(1_100);
    let files = 1_100;
    let ctx = reducing(2, 8192);
    for io in [IoMode::Mmap, IoMode::Pread] {
        let options = ArrayOptions::default().with_io(io);
        let name = format!("t_{io}");
        ctx.register_array(name.as_str(), years.text("year-*.tet"), options).await.unwrap();
    }
    for year in 0..files {
        if year != 500 {
            std::fs::remove_file(years.path(&format!("year-{}.tet", 2001 + year))).unwrap();
        }
    }
    for io in [IoMode::Mmap, IoMode::Pread] {
        let count = cell(&ctx, &format!("SELECT count(*) FROM t_{io}")).await;
        assert_eq!(count, (files * 20).to_string());
        // Day 5000 is the first of file 500.
        let sql = format!(
            "SELECT sum(rain) FROM t_{io} WHERE time >= TIMESTAMP '2001-01-01' + INTERVAL '5000 days'
             AND time < TIMESTAMP '2001-01-01' + INTERVAL '5010 days'"
        );
        assert_eq!(cell(&ctx, &sql).await, (2 * 2 * (5000..5010).sum::<i32>() + 10).to_string());
        let gone =
            query(&ctx, &format!("SELECT sum(rain) FROM t_{io}")).await.unwrap_err().to_string();
        assert!(gone.contains("year-") && gone.contains("No such file"), "{gone}");
    }
}

#[tokio::test]
async fn files_that_disagree_are_refused_with_the_reason() {
    let years = Years::new(2);
    let ctx = session(1, 8192);
    let pattern = || years.text("year-*.tet");
    let default = ArrayOptions::default;
    let third = years.text("year-2003.tet");
    let mut only_rain = year_file(2, &["A", "B"], "K");
    only_rain.remove(0);
    let mut renamed = year_file(2, &["A", "B"], "K");
    renamed[1].name = "snow".into();
    let mut swapped = year_file(2, &["A", "B"], "K");
    for dataset in &mut swapped[..2] {
        dataset.metadata["dim_names"] = json!(["time", "place"]);
        dataset.metadata["coords"] = json!({"place": {"labels": ["A", "B"]}});
    }
    let first = years.text("year-2001.tet");
    for (datasets, expected) in [
        (
            year_file(2, &["A", "C"], "K"),
            format!(
                "only one dimension may differ; compared with {first}:\n  {}: \"time\" has other labels: 2001-01-11T00:00:00 .. 2001-01-20T00:00:00, not 2001-01-01T00:00:00 .. 2001-01-10T00:00:00 (2 files differ in it)\n  {third}: \"station\" has other labels: A .. C, not A .. B\nmake a table of each",
                years.text("year-2002.tet")
            ),
        ),
        (year_file(2, &["A"], "K"), format!("{third}: \"station\" has 1 elements, not 2")),
        (
            year_file(1, &["A", "B"], "K"),
            format!(
                "\"time\" is 2001-01-11T00:00:00 both in {} and in {third}",
                years.text("year-2002.tet")
            ),
        ),
        (
            only_rain,
            format!(
                "compared with {first}:\n  {third}: its variables are rain, not temperature, rain"
            ),
        ),
        (renamed, format!("{third}: its variables are temperature, snow, not temperature, rain")),
        (
            year_file(2, &["A", "B"], "degC"),
            format!("{third}: the units of \"temperature\" are degC, not K"),
        ),
        (swapped, format!("{third}: its dimensions are time, place, not time, station")),
    ] {
        years.write("year-2003.tet", &datasets);
        let found = error(&ctx, pattern(), default()).await;
        assert!(found.contains(&expected), "{found}\nshould contain: {expected}");
    }
    std::fs::write(&third, "no array").unwrap();
    let found = error(&ctx, pattern(), default()).await;
    assert!(found.contains(&third), "{found}");
    let found = error(&ctx, years.text("month-*.tet"), default()).await;
    assert!(found.contains("nothing matches '"), "{found}");
    // Attributes and fill values that do not affect the values may differ, and so may the order of variables.
    let mut other_order = year_file(2, &["A", "B"], "kelvin");
    other_order[0].metadata["attrs"]["long_name"] = json!("air");
    other_order[1].metadata["attrs"]["_FillValue"] = json!("-1");
    other_order.swap(0, 1);
    years.write("year-2003.tet", &other_order);
    ctx.register_array("t", pattern(), default()).await.unwrap();
    let last = "SELECT temperature, rain FROM t ORDER BY time DESC, station DESC LIMIT 1";
    assert_eq!(rows_from(&ctx, last).await, [["29.25", "59"]]);
}

/// The same number of days is another date in another calendar.
#[tokio::test]
async fn times_of_different_calendars_are_refused() {
    let years = Years::new(0);
    let ctx = session(1, 8192);
    let write = |name: &str, calendar: &str, first: i32| {
        let bytes = |numbers: [i32; 2]| numbers.into_iter().flat_map(i32::to_le_bytes).collect();
        let attrs = json!({"units": "days since 2001-01-01", "calendar": calendar});
        let time = TestDataset::new("time", I32, &[2], &[2], bytes([first, first + 1]))
            .with_metadata(json!({"dim_names": ["time"], "attrs": attrs}));
        let values = TestDataset::new("v", I32, &[2], &[2], bytes([1, 2]))
            .with_metadata(json!({"dim_names": ["time"]}));
        years.write(name, &[values, time]);
    };
    write("a.tet", "noleap", 0);
    write("b.tet", "360_day", 10);
    let options = || ArrayOptions::default().with_dataset("v");
    let found = error(&ctx, years.text("[ab].tet"), options()).await;
    assert!(found.contains("the calendar of \"time\" is 360_day, not noleap"), "{found}");
    // Another name of the same calendar.
    write("b.tet", "365_day", 10);
    ctx.register_array("t", years.text("[ab].tet"), options()).await.unwrap();
    assert_eq!(cell(&ctx, "SELECT max(time) FROM t").await, "2001-01-12T00:00:00");
    // Dates of both calendars are timestamps, and the differences between them are not the same.
    write("b.tet", "standard", 10);
    let found = error(&ctx, years.text("[ab].tet"), options()).await;
    assert!(found.contains("the calendar of \"time\" is standard, not noleap"), "{found}");
}

#[tokio::test]
async fn a_dimension_can_be_named() {
    let years = Years::new(1);
    let ctx = session(1, 8192);
    let dir = |name: &str| years.text(name);
    // Without labels, files are in the order of their names.
    for (name, from) in [("b.tet", 2), ("a.tet", 0)] {
        let data = (from..from + 2_i32).flat_map(i32::to_le_bytes).collect();
        let values =
            TestDataset::new("v", I32, &[2], &[2], data).with_metadata(json!({"dim_names": ["x"]}));
        years.write(name, &[values]);
    }
    let same = error(&ctx, dir("[ab].tet"), ArrayOptions::default()).await;
    assert!(
        same.contains("the same labels on every dimension (x)")
            && same.contains("'concat_dimension'"),
        "{same}"
    );
    let wrong = ArrayOptions::default().with_concat_dimension("y");
    let wrong = error(&ctx, dir("[ab].tet"), wrong).await;
    assert!(wrong.contains("no dimension \"y\"") && wrong.ends_with("dimensions are x"), "{wrong}");
    let options = ArrayOptions::default().with_concat_dimension("x");
    ctx.register_array("t", dir("[ab].tet"), options).await.unwrap();
    let rows = rows_from(&ctx, "SELECT * FROM t").await;
    assert_eq!(rows, [["0", "0"], ["1", "1"], ["2", "2"], ["3", "3"]]);
    let found = error(&ctx, dir("year-*.tet"), ArrayOptions::default().with_dataset("snow")).await;
    assert!(
        found.contains("no dataset \"snow\"; the file has \"temperature\", \"rain\", \"time\""),
        "{found}"
    );
}

/// The physical plan, with `DIR` for the folder, whose name differs from run to run.
async fn plan(ctx: &SessionContext, years: &Years, sql: &str) -> String {
    let rows = rows_from(ctx, &format!("EXPLAIN {sql}")).await;
    let physical = rows.iter().find(|row| row[0] == "physical_plan").unwrap();
    physical[1].replace(years.dir.path().to_str().unwrap(), "DIR")
}

/// A query over many files is planned like one over an array: pruned, reduced, and read in order.
#[tokio::test]
async fn plans_reach_across_files() {
    let years = Years::new(4);
    let ctx = reducing(1, 8192);
    let options = ArrayOptions::default().with_file_column(true);
    ctx.register_array("t", years.text("year-*.tet"), options).await.unwrap();
    let one_file =
        plan(&ctx, &years, "SELECT rain FROM t WHERE _file LIKE '%2002.tet' AND station = 'A'");
    assert_snapshot!(one_file.await, @"GridScanExec: dataset=DIR/year-*.tet, chunks=1/4, selection=[time=2001-01-11T00:00:00..2001-01-20T00:00:00, station=A], projection=[rain]");
    let reduced =
        plan(&ctx, &years, "SELECT station, corr(temperature, rain) FROM t GROUP BY station");
    assert_snapshot!(reduced.await, @"GridReduceExec: mode=whole, gby=[station], aggr=[corr(t.temperature,t.rain)], tier=accumulators, groups=2, dataset=DIR/year-*.tet, chunks=4/4");
    let ordered =
        plan(&ctx, &years, "SELECT time, rain FROM t ORDER BY time DESC, station LIMIT 2");
    assert_snapshot!(ordered.await, @r"
    ProjectionExec: expr=[time@0 as time, rain@2 as rain]
      GridScanExec: dataset=DIR/year-*.tet, chunks=1/4, projection=[time, station, rain], order=[time DESC, station], limit=2
    ");
    let rows =
        rows_from(&ctx, "SELECT time, rain FROM t WHERE station = 'A' ORDER BY time DESC LIMIT 2")
            .await;
    assert_eq!(rows, [["2001-02-09T00:00:00", "78"], ["2001-02-08T00:00:00", "76"]]);
}

/// Variables are matched by name, in any order; files with other variables are an error.
#[tokio::test]
async fn variables_are_put_together_by_name() {
    let years = Years::new(1);
    let ctx = reducing(2, 8192);
    let pattern = || years.text("year-*.tet");
    let named = |year: i32, names: [&str; 2]| {
        let mut datasets = year_file(year, &["A", "B"], "K");
        for (dataset, name) in datasets.iter_mut().zip(names) {
            // All variables get one type, so that only their names differ.
            let whole = |it: &[u8]| i32::from_le_bytes(it.try_into().unwrap()) as f32;
            if dataset.tag == I32 {
                dataset.data =
                    dataset.data.chunks(4).flat_map(|it| whole(it).to_le_bytes()).collect();
                dataset.tag = F32;
            }
            dataset.name = name.to_owned();
        }
        datasets
    };
    years.write("year-2001.tet", &named(0, ["temperature", "rain"]));
    let mut swapped = named(1, ["temperature", "rain"]);
    swapped.swap(0, 1);
    years.write("year-2002.tet", &swapped);
    ctx.register_array("t", pattern(), ArrayOptions::default()).await.unwrap();
    let wet = "SELECT min(rain), max(rain) FROM t";
    assert_eq!(rows_from(&ctx, wet).await, [["0.0", "39.0"]]);

    years.write("year-2002.tet", &named(1, ["temperature", "snow"]));
    let found = error(&ctx, pattern(), ArrayOptions::default()).await;
    let expected = "its variables are temperature, snow, not temperature, rain";
    assert!(found.contains(expected), "{found}");

    // A single variable is the column `value`, but its own name must still be the same in all files.
    for (year, name) in [(0, "temperature"), (1, "snow")] {
        let mut datasets = named(year, [name, "rain"]);
        datasets.remove(1);
        years.write(&format!("year-{}.tet", 2001 + year), &datasets);
    }
    let found = error(&ctx, pattern(), ArrayOptions::default()).await;
    assert!(found.contains("its variables are snow, not temperature"), "{found}");
}

/// A dimension with labels in one file cannot continue without labels in another.
#[tokio::test]
async fn dimensions_without_labels_do_not_follow_those_with() {
    let years = Years::new(0);
    let ctx = session(1, 8192);
    for (name, labels) in [("a.tet", Some([10_i64, 11])), ("b.tet", None)] {
        let values = TestDataset::new("v", I32, &[2], &[2], vec![0; 8])
            .with_metadata(json!({"dim_names": ["x"]}));
        let labels = labels.map(|labels| {
            let data = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
            TestDataset::new("x", I64, &[2], &[2], data)
        });
        let datasets: Vec<TestDataset> = [values].into_iter().chain(labels).collect();
        years.write(name, &datasets);
    }
    let options = ArrayOptions::default().with_dataset("v").with_concat_dimension("x");
    let found = error(&ctx, years.text("*.tet"), options).await;
    assert!(found.contains("b.tet: its \"x\" has no labels, unlike the other \"x\""), "{found}");
}

/// Both zeros are one label in SQL, so two files may not have one each.
#[tokio::test]
async fn both_zeros_are_the_same_label() {
    let years = Years::new(0);
    let ctx = session(1, 8192);
    for (name, label) in [("a.tet", -0.0_f64), ("b.tet", 0.0)] {
        let values = TestDataset::new("v", I32, &[2], &[2], vec![0; 8])
            .with_metadata(json!({"dim_names": ["x"]}));
        let data = [label, if name == "a.tet" { -1.0 } else { 1.0 }];
        let data = data.iter().flat_map(|label| label.to_le_bytes()).collect();
        years.write(name, &[values, TestDataset::new("x", F64, &[2], &[2], data)]);
    }
    let options = ArrayOptions::default().with_dataset("v");
    let found = error(&ctx, years.text("*.tet"), options).await;
    assert!(found.contains("the files cannot be one table: \"x\" is"), "{found}");
}

/// Times may count from other moments, but not in other calendars.
#[tokio::test]
async fn times_in_other_calendars_may_count_from_other_moments() {
    let years = Years::new(0);
    let ctx = session(1, 8192);
    let write = |year: i32, units: &str, calendar: &str| {
        let mut datasets = year_file(year, &["A"], "K");
        datasets.remove(0);
        datasets[1].metadata["attrs"] = json!({"units": units, "calendar": calendar});
        years.write(&format!("year-{}.tet", 2001 + year), &datasets);
    };
    write(0, "days since 2001-01-01", "360_day");
    write(1, "days since 2002-01-01", "all_leap");
    let found = error(&ctx, years.text("year-*.tet"), ArrayOptions::default()).await;
    assert!(found.contains("calendar"), "{found}");
    write(1, "days since 2002-01-01", "360_day");
    ctx.register_array("t", years.text("year-*.tet"), ArrayOptions::default()).await.unwrap();
    write(0, "days since 2001-01-01", "noleap");
    write(1, "days since 2000-01-01", "noleap");
    ctx.register_array("dates", years.text("year-*.tet"), ArrayOptions::default()).await.unwrap();
}

/// The column `_file` works over axes so long that no memory could hold a name per element.
#[tokio::test]
async fn long_axes_have_names_of_files_too() {
    let years = Years::new(0);
    let ctx = reducing(2, 8192);
    let dataset = TestDataset::new("value", I32, &[1], &[1], vec![0; 4]);
    let mut file = tet_bytes(&[dataset], &Layout::default());
    let long = 1_u64 << 34;
    for at in [64, 72] {
        file[at..at + 8].copy_from_slice(&long.to_le_bytes()); // shape and chunk
    }
    for name in ["a.tet", "b.tet"] {
        std::fs::write(years.path(name), &file).unwrap();
    }
    let options = ArrayOptions::default().with_concat_dimension("dim_0").with_file_column(true);
    ctx.register_array("t", years.text("[ab].tet"), options).await.unwrap();
    assert_eq!(cell(&ctx, "SELECT count(*) FROM t").await, (2 * long).to_string());
    let rows = rows_from(&ctx, "SELECT right(_file, 5) FROM t LIMIT 1").await;
    assert_eq!(rows, [["a.tet"]]);
    let sql = format!("EXPLAIN SELECT value FROM t WHERE _file = '{}'", years.text("b.tet"));
    let plan = rows_from(&ctx, &sql).await;
    assert!(plan.iter().any(|row| row[1].contains("chunks=1/2")), "{plan:?}");
}

#[tokio::test]
async fn objects_of_a_store_have_odd_names() {
    use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
    let ctx = session(1, 8192);
    let store = std::sync::Arc::new(InMemory::new());
    ctx.register_object_store(&"mem://bucket".parse().unwrap(), std::sync::Arc::clone(&store) as _);
    for (year, name) in (0..).zip(["a#1 b.tet", "b[1]?.tet", "c%20d.tet", "\u{e4}.tet", "e*.tet"]) {
        let file = tet_bytes(
            &year_file(year, &["A"], "K"),
            &Layout { history_version: Some(1), ..Layout::default() },
        );
        store.put(&Path::parse(format!("my dir/{name}")).unwrap(), file.into()).await.unwrap();
    }
    for folder in ["my dir", "my%20dir"] {
        let pattern = format!("mem://bucket/{folder}/*.tet");
        let options = ArrayOptions::default().with_file_column(true);
        ctx.register_array(folder, pattern.as_str(), options).await.unwrap();
        let last = format!("SELECT count(*), max(_file) FROM \"{folder}\"");
        assert_eq!(rows_from(&ctx, &last).await, [["50", "mem://bucket/my%20dir/e*.tet"]]);
    }
}

/// Labels of a file may be integers of another width, or floats, if one type holds them all.
#[tokio::test]
async fn labels_may_be_numbers_of_other_types() {
    let years = Years::new(0);
    let ctx = reducing(2, 8192);
    let write = |name: &str, tag: u32, labels: Vec<u8>| {
        let x = TestDataset::new("x", tag, &[2], &[2], labels)
            .with_metadata(json!({"dim_names": ["x"]}));
        let v = TestDataset::new(
            "v",
            I32,
            &[2],
            &[2],
            [1, 2].into_iter().flat_map(i32::to_le_bytes).collect(),
        )
        .with_metadata(json!({"dim_names": ["x"]}));
        years.write(name, &[v, x]);
    };
    let i32s = |labels: [i32; 2]| labels.into_iter().flat_map(i32::to_le_bytes).collect();
    let i64s = |labels: [i64; 2]| labels.into_iter().flat_map(i64::to_le_bytes).collect();
    let f64s = |labels: [f64; 2]| labels.into_iter().flat_map(f64::to_le_bytes).collect();
    let f32s = |labels: [f32; 2]| labels.into_iter().flat_map(f32::to_le_bytes).collect();
    let far = 1 << 60;
    for (tag, labels, data_type, expected) in [
        (I64, i64s([3, far]), "Int64", ["1", "2", "3", "1152921504606846976"]),
        (F64, f64s([2.5, 4.0]), "Float64", ["1.0", "2.0", "2.5", "4.0"]),
        (F32, f32s([2.1, 4.0]), "Float32", ["1.0", "2.0", "2.1", "4.0"]),
    ] {
        write("a.tet", I32, i32s([1, 2]));
        write("b.tet", tag, labels);
        ctx.deregister_table("t").unwrap();
        ctx.register_array("t", years.text("[ab].tet"), ArrayOptions::default()).await.unwrap();
        let labels = rows_from(&ctx, "SELECT arrow_typeof(x), x FROM t ORDER BY x").await;
        assert_eq!(labels, expected.map(|label| [data_type, label]));
        let last = format!("SELECT sum(v) FROM t WHERE x >= {}", expected[2]);
        assert_eq!(cell(&ctx, &last).await, "3");
    }
    // No double is 2^60 + 1.
    write("a.tet", I64, i64s([1, far + 1]));
    write("b.tet", F64, f64s([2.5, 4.0]));
    let found = error(&ctx, years.text("[ab].tet"), ArrayOptions::default()).await;
    assert!(found.contains("\"x\"") && found.contains("Float64"), "{found}");
}
