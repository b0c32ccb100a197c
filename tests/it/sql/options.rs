//! Options: their documentation, the interfaces that set them, and which setting wins.

use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, Formats, GridfusionSessionContextExt, OptionInfo};

use crate::docs::facts::settle_table;
use crate::support::{cell, query, reducing, rows_from, shipped};

fn stations() -> String {
    shipped("examples/data/stations.tet")
}

async fn error(ctx: &SessionContext, sql: &str) -> String {
    query(ctx, sql).await.expect_err(sql).to_string()
}

async fn columns(ctx: &SessionContext, table: &str) -> Vec<String> {
    let described = rows_from(ctx, &format!("DESCRIBE {table}")).await;
    described.into_iter().map(|row| row[0].clone()).collect()
}

const PLAIN: [&str; 3] = ["time", "station", "value"];
const INDEXED: [&str; 5] = ["time", "station", "value", "time_idx", "station_idx"];

/// `UPDATE_DOCS=1` updates the documents.
#[test]
fn the_documents_agree_with_the_table() {
    let formats = gridfusion::built_in_formats();
    let row = |it: &OptionInfo| {
        format!("| `{}` | {} | {} | {} |\n", it.name, it.kind, it.default, it.meaning)
    };
    let of_tiledb: Vec<String> = formats.get("tiledb").unwrap().options().iter().map(row).collect();
    let of_netcdf: Vec<String> = formats.get("netcdf").unwrap().options().iter().map(row).collect();
    let head = "| option | values | default | meaning |";
    settle_table("docs/tiledb.md", head, &of_tiledb);
    settle_table("docs/netcdf.md", head, &of_netcdf);
    let icechunk = formats.get("icechunk").unwrap();
    let has_zarr =
        |it: &&OptionInfo| formats.get("zarr").unwrap().option_table().find(it.name).is_some();
    let of_icechunk = icechunk.options().iter().filter(|it| !has_zarr(it)).map(row);
    settle_table("docs/zarr.md", head, &of_icechunk.collect::<Vec<_>>());
    let marks = " `.tet` | TileDB | Zarr, NetCDF | `SET` |";
    settle_table("docs/options.md", &format!("{head}{marks}"), &everywhere(&formats));
}

/// A row per option of any format or session, with its defaults, and with marks for where it may be set.
fn everywhere(formats: &Formats) -> Vec<String> {
    let mut options: Vec<&OptionInfo> = Vec::new();
    let of_formats = formats.iter().flat_map(|format| format.option_table().options());
    for option in of_formats.chain(formats.settings()) {
        if !options.iter().any(|it| it.name == option.name) {
            options.push(option);
        }
    }
    let row = |it: &&OptionInfo| {
        let has = |format: &str| formats.get(format).unwrap().option_table().find(it.name);
        let (tet, tiledb, zarr) = (has("tet"), has("tiledb"), has("zarr"));
        assert_eq!(zarr.is_some(), has("netcdf").is_some(), "{}", it.name);
        let differs = tiledb.filter(|other| tet.is_some() && other.default != it.default);
        let default = match differs {
            Some(other) => format!("{}; of TileDB {}", it.default, other.default),
            None => it.default.to_owned(),
        };
        let mark = |yes: bool| if yes { "✓" } else { "" };
        let of_zarr = match has("icechunk").is_some() && zarr.is_none() && tet.is_none() {
            true => "Icechunk",
            false => mark(zarr.is_some()),
        };
        let marks = [mark(tet.is_some()), mark(tiledb.is_some()), of_zarr, mark(it.session)];
        let marks = marks.join(" | ");
        format!("| `{}` | {} | {default} | {} | {marks} |\n", it.name, it.kind, it.meaning)
    };
    options.iter().map(row).collect()
}

/// The table's option wins over the session's, and that over the default, in every interface.
#[tokio::test]
async fn the_nearest_setting_wins() {
    let ctx = reducing(1, 8192);
    let location = stations();
    let temperature = || ArrayOptions::default().with_dataset("temperature");
    let create = |name: &str, options: &str| {
        format!(
            "CREATE EXTERNAL TABLE {name} STORED AS TET LOCATION '{location}' OPTIONS (dataset 'temperature'{options})"
        )
    };
    for (at, (set, expected)) in
        [("default", &PLAIN[..]), ("true", &INDEXED), ("false", &PLAIN), ("default", &PLAIN)]
            .into_iter()
            .enumerate()
    {
        query(&ctx, &format!("SET gridfusion.index_columns = '{set}'")).await.unwrap();
        for (way, given, expected) in [
            ("given", Some(true), &INDEXED[..]),
            ("denied", Some(false), &PLAIN),
            ("", None, expected),
        ] {
            let options = match given {
                Some(yes) => temperature().with_index_columns(yes),
                None => temperature(),
            };
            let name = format!("{way}_{at}");
            ctx.register_array(&*format!("rust_{name}"), &location, options.clone()).await.unwrap();
            assert_eq!(columns(&ctx, &format!("rust_{name}")).await, expected, "{set} {way}");
            let frame = ctx.read_array(&location, options).await.unwrap();
            assert_eq!(frame.schema().fields().len(), expected.len(), "{set} {way}");

            let in_sql = given.map_or(String::new(), |yes| format!(", index_columns '{yes}'"));
            query(&ctx, &create(&format!("sql_{name}"), &in_sql)).await.unwrap();
            assert_eq!(columns(&ctx, &format!("sql_{name}")).await, expected, "{set} {way}");

            let named = given.map_or(String::new(), |yes| format!(", index_columns => {yes}"));
            let call =
                format!("SELECT * FROM read_tet('{location}', 'temperature'{named}) LIMIT 1");
            assert_eq!(rows_from(&ctx, &call).await[0].len(), expected.len(), "{set} {way}");
        }
        let schema = format!("schema_{at}");
        ctx.register_array_schema(&schema, &location, ArrayOptions::default()).await.unwrap();
        assert_eq!(columns(&ctx, &format!("{schema}.temperature")).await, expected, "{set}");
    }
    // Tables that are already open do not change.
    assert_eq!(columns(&ctx, "rust__1").await, INDEXED);
}

#[tokio::test]
async fn tiledb_tables_follow_the_session_too() {
    let ctx = reducing(1, 8192);
    let location = shipped("tests/data/tiledb/overlap");
    let count = format!("SELECT count(*) - count(a) FROM read_tiledb('{location}')");
    assert_eq!(cell(&ctx, &count).await, "0");
    query(&ctx, "SET gridfusion.fill_as_null = true").await.unwrap();
    let nulls = cell(&ctx, &count).await;
    assert_ne!(nulls, "0");
    ctx.register_array("t", &location, ArrayOptions::default()).await.unwrap();
    assert_eq!(cell(&ctx, "SELECT count(*) - count(a) FROM t").await, nulls);
    let given = count.replace("')", "', fill_as_null => false)");
    assert_eq!(cell(&ctx, &given).await, "0");
    ctx.register_array_schema("s", &location, ArrayOptions::default()).await.unwrap();
    assert_eq!(cell(&ctx, "SELECT count(*) - count(a) FROM s.overlap").await, nulls);
}

#[tokio::test]
async fn settings_are_shown_and_mistakes_explained() {
    let ctx = reducing(1, 8192);
    assert_eq!(rows_from(&ctx, "SHOW gridfusion.io").await, [["gridfusion.io", "NULL"]]);
    query(&ctx, "SET gridfusion.io = 'pread'").await.unwrap();
    assert_eq!(rows_from(&ctx, "SHOW gridfusion.io").await, [["gridfusion.io", "pread"]]);
    assert_eq!(
        rows_from(&ctx, "SHOW gridfusion.reduce_memory").await,
        [["gridfusion.reduce_memory", "1073741824"]]
    );
    for (sql, expected) in [
        ("SET gridfusion.io = 'carrier pigeon'", "expected 'mmap' or 'pread'"),
        ("SET gridfusion.index_colums = true", "did you mean 'gridfusion.index_columns'?"),
        ("SET gridfusion.nan_as_null = 'yes'", "option 'nan_as_null' is 'yes'"),
        ("SET gridfusion.reduce_memory = '1 GB'", "is '1 GB', expected a number"),
        (
            "SET gridfusion.dataset = 't'",
            "'gridfusion.dataset', which is for .tet tables, TileDB tables, Zarr tables, Icechunk tables and NetCDF tables only",
        ),
    ] {
        let found = error(&ctx, sql).await;
        assert!(found.contains(expected), "{sql}: {found}");
    }
    // A mistake does not change a setting.
    assert_eq!(rows_from(&ctx, "SHOW gridfusion.io").await, [["gridfusion.io", "pread"]]);
}

/// Settings have names that they had before. `SHOW` and the table of settings have only the present ones.
#[tokio::test]
async fn former_names_of_settings_work() {
    let ctx = reducing(2, 8192);
    let present = "gridfusion.optimizer.enable_reduce";
    let shown = |value: &str| vec![vec![present.to_owned(), value.to_owned()]];
    let show = format!("SHOW {present}");
    for (set, expected) in [("false", "false"), ("true", "true"), ("false", "false")] {
        query(&ctx, &format!("SET gridfusion.reduce = {set}")).await.unwrap();
        assert_eq!(rows_from(&ctx, &show).await, shown(expected));
    }
    query(&ctx, "SET gridfusion.reduce = 'default'").await.unwrap();
    assert_eq!(rows_from(&ctx, &show).await, shown("true"));
    let listed =
        "SELECT count(*) FROM information_schema.df_settings WHERE name = 'gridfusion.reduce'";
    assert_eq!(cell(&ctx, listed).await, "0");
    let found = error(&ctx, "SET gridfusion.lookup_jions = true").await;
    assert!(found.contains("did you mean 'gridfusion.optimizer.enable_lookup_joins'?"), "{found}");
}

/// One switch turns off all rules that rewrite plans over arrays.
#[tokio::test]
async fn all_rules_can_be_turned_off() {
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("temperature");
    ctx.register_array("t", stations(), options).await.unwrap();
    let sparse = ArrayOptions::default();
    ctx.register_array("s", shipped("examples/data/ships"), sparse).await.unwrap();
    query(&ctx, "CREATE TABLE c AS VALUES ('Oslo', 1), ('Bergen', 2)").await.unwrap();
    let rules = [
        ("Grid", "SELECT station, max(value) FROM t GROUP BY station ORDER BY station"),
        (
            "Grid",
            "SELECT column2, max(value) FROM t JOIN c ON station = column1 GROUP BY column2 ORDER BY column2",
        ),
        (
            "Grid",
            "SELECT t.time, t.station, column2 FROM t JOIN c ON station = column1 ORDER BY t.time, t.station",
        ),
        (
            "Grid",
            "SELECT time, station, lag(value) OVER (PARTITION BY station ORDER BY time) FROM t ORDER BY time, station",
        ),
        (
            "Grid",
            "SELECT time, station, max(value) OVER (PARTITION BY station) FROM t ORDER BY time, station",
        ),
        ("SparseAnswerExec", "SELECT max(speed), count(depth) FROM s WHERE lon > 12"),
    ];
    for (kind, sql) in rules {
        let mut answers = vec![];
        for is_on in [true, false] {
            query(&ctx, &format!("SET gridfusion.optimizer.enable_all = {is_on}")).await.unwrap();
            let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
            let plan = displayable(plan.as_ref()).indent(false).to_string();
            let is_ours = plan.replace("GridScanExec", "").contains(kind);
            assert_eq!(is_ours, is_on, "{sql}: {plan}");
            answers.push(rows_from(&ctx, sql).await);
        }
        assert_eq!(answers[0], answers[1], "{sql}");
    }
}

#[tokio::test]
async fn table_functions_take_names() {
    let ctx = reducing(1, 8192);
    let location = stations();
    let count = |call: &str| format!("SELECT count(*) FROM {call}");
    for call in [
        format!("read_tet('{location}', 'elevation')"),
        format!("read_tet('{location}', dataset => 'elevation')"),
        format!("read_tet('{location}', DATASET => 'elevation', io => 'pread')"),
        format!("read_tet('{location}', 'dataset', 'elevation')"),
        format!("read_tet('{location}', 'elevation', 'io', 'pread', nan_as_null => false)"),
        format!("read_tet('{location}', 'elevation', index_columns => TRUE) AS e(a, b, c)"),
        format!("(SELECT 1) one CROSS JOIN LATERAL read_tet('{location}', dataset => 'elevation')"),
    ] {
        assert_eq!(cell(&ctx, &count(&call)).await, "6", "{call}");
    }
    let info = format!("tet_info('{location}', dataset => 'elevation')");
    assert_eq!(cell(&ctx, &count(&info)).await, "1");
    let array = shipped("tests/data/tiledb/overlap");
    assert_eq!(cell(&ctx, &count(&format!("read_tiledb('{array}', timestamp => 20)"))).await, "30");
    for (call, expected) in [
        (format!("read_tet('{location}', datset => 'elevation')"), "did you mean 'dataset'?"),
        (format!("read_tet('{location}', io => 'pread', 'elevation')"), "has no name, but comes"),
        (format!("read_tet('{location}', 'time', dataset => 'time')"), "dataset is given twice"),
        (format!("read_tet('{location}', io => 'mmap', io => 'pread')"), "'io' is given twice"),
        (format!("read_tet('{location}')"), "choose one with the option 'dataset', or several"),
        (format!("read_tet('{location}', 'tempreture')"), "no dataset \"tempreture\""),
        (
            format!("read_tet('{location}', io => 1.5)"),
            "option 'io' is 1.5, expected text, a whole number",
        ),
        (format!("read_tet(path => '{location}')"), "first argument is a path and has no name"),
        ("read_tet()".to_owned(), "a path"),
        ("read_tet('nowhere.tet')".to_owned(), "nowhere.tet: cannot open the file"),
        ("range(start => 1)".to_owned(), ""),
    ] {
        let found = error(&ctx, &count(&call)).await;
        assert!(found.contains(expected), "{call}: {found}");
    }
}
