//! Arrays that become other arrays without rows: the same cells as by way of rows.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use super::zarr::Case as Places;
use crate::support::cases::{Case, name};
use crate::support::{limited, query, reducing, rows_from, sorted_rows_from};

/// The plan of a statement.
async fn plan(ctx: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

async fn copies(ctx: &SessionContext, sql: &str) -> bool {
    let plan = plan(ctx, sql).await;
    displayable(plan.as_ref()).indent(false).to_string().contains("GridCellsExec")
}

async fn set_copies(ctx: &SessionContext, on: bool) {
    query(ctx, &format!("SET gridfusion.optimizer.enable_copies = {on}")).await.unwrap();
}

/// A random query of all cells of a box, whose columns are dimensions in any order and variables.
fn random_query(case: &Case, rng: &mut StdRng) -> (String, Vec<String>, String) {
    let rank = case.axes.len();
    let mut dimensions: Vec<String> = (0..rank).map(name).collect();
    dimensions.shuffle(rng);
    let variables = [
        ("value", "value=77"),
        ("value + 1 AS more", "more=77"),
        ("value > 1 IS TRUE AS great", ""),
        ("7 AS seven", ""),
        ("concat('v', value) AS text", ""),
    ];
    let mut columns = dimensions.clone();
    let chosen: Vec<_> = variables.choose_multiple(rng, 2).collect();
    columns.extend(chosen.iter().map(|it| it.0.to_owned()));
    let fills: Vec<&str> = chosen.iter().map(|it| it.1).filter(|it| !it.is_empty()).collect();
    columns.shuffle(rng);
    let mut conditions = vec![];
    for _ in 0..rng.random_range(0..3) {
        let axis = rng.random_range(0..rank);
        conditions.push(case.axes[axis].predicate(&name(axis), rng));
    }
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    };
    let order = match rng.random_range(0..4) {
        0 => format!(" ORDER BY {} DESC", dimensions[0]),
        _ => String::new(),
    };
    let sql = format!("SELECT {} FROM t{filter}{order}", columns.join(", "));
    let fills = match fills.is_empty() {
        true => String::new(),
        false => format!(", 'fill' '{}'", fills.join(",")),
    };
    (sql, dimensions, fills)
}

#[tokio::test]
async fn random_arrays_become_the_same_arrays_without_rows() {
    let mut rng = StdRng::seed_from_u64(4646);
    let mut copied = 0;
    for round in 0..240 {
        let case = Case::random(&mut rng);
        let ctx = reducing(rng.random_range(1..4), 512);
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        let (sql, dimensions, fills) = random_query(&case, &mut rng);
        let chunks: Vec<String> =
            dimensions.iter().map(|it| format!("{it}={}", rng.random_range(1..9))).collect();
        let format = *["zarr", "zarr", "nc", "tet", "tdb"].choose(&mut rng).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut found = vec![];
        let about = format!("round {round}, {}: {sql} to {format}", case.description);
        for on in [true, false] {
            set_copies(&ctx, on).await;
            let to = folder.path().join(format!("{on}.{format}"));
            let to = to.display();
            let copy = format!(
                "COPY ({sql}) TO '{to}' OPTIONS ('dimensions' '{}', 'chunks' '{}'{fills})",
                dimensions.join(","),
                chunks.join(",")
            );
            // Some types are refused when the statement is planned.
            if ctx.sql(&copy).await.unwrap().create_physical_plan().await.is_ok() {
                copied += usize::from(on && copies(&ctx, &copy).await);
            }
            found.push(match query(&ctx, &copy).await {
                Ok(_) => {
                    let columns = theirs.sql(&sql).await.unwrap().schema().field_names();
                    let columns = columns.iter().map(|it| it.rsplit('.').next().unwrap());
                    let columns = columns.collect::<Vec<_>>().join(", ");
                    let read = format!("SELECT {columns} FROM read_array('{to}')");
                    Ok(sorted_rows_from(&reducing(1, 64), &read).await)
                }
                Err(error) => Err(error.to_string()),
            });
        }
        assert_eq!(found[0], found[1], "{about}");
        if let (Ok(rows), "zarr") = (&found[0], format) {
            assert_eq!(*rows, sorted_rows_from(&theirs, &sql).await, "{about}");
        }
    }
    assert!(copied > 80, "only {copied} of the statements copy arrays; they test little");
}

/// Sections that are smaller than the array, whose chunks lie along and across them.
#[tokio::test]
async fn an_array_is_copied_in_sections() {
    let (source, places) =
        (Places::new(reducing(2, 8192)).await, Places::new(limited(2, 8192, 24 << 20)).await);
    let cells = "SELECT value / 5000 AS a, value / 50 % 100 AS b, value % 50 AS c, value * 0.5 AS v FROM range(1000000)";
    let shapes = [("a=200,b=10,c=50", 10), ("a=30,b=100,c=50", 7), ("a=7,b=9,c=11", 29 * 12 * 5)];
    for (number, (chunks, count)) in shapes.into_iter().enumerate() {
        let from = format!("from{number}.zarr");
        let options = format!("'dimensions' 'a,b,c', 'chunks' '{chunks}'");
        source.copy(cells, &from, &options).await.unwrap();
        let table = format!("read_array('{}')", source.at(&from).display());
        for (at, order) in ["a,b,c", "c,a,b", "b,c,a"].into_iter().enumerate() {
            let to = places.at(&format!("to{number}{at}.zarr"));
            let copy = format!(
                "COPY (SELECT * FROM {table}) TO '{}' OPTIONS ('dimensions' '{order}', 'chunks' 'a=13,b=17,c=19')",
                to.display()
            );
            let plan = plan(&places.ctx, &copy).await;
            collect(Arc::clone(&plan), places.ctx.task_ctx()).await.unwrap();
            let cells = plan.children()[0].metrics().unwrap();
            let read = cells.sum_by_name("chunks_read").unwrap().as_usize();
            // Chunks that lie across the border of two sections are read for both.
            assert!((count..=8 * count).contains(&read), "{copy}: {read} chunks read");
            let compare = format!(
                "SELECT count(*), sum(abs(v - 0.5 * (a * 5000 + b * 50 + c))), sum(v) FROM read_array('{}')",
                to.display()
            );
            let found = rows_from(&reducing(2, 8192), &compare).await;
            assert_eq!(found, [["1000000", "0.0", "249999750000.0"]], "{copy}");
        }
    }
}

#[tokio::test]
async fn parts_of_arrays_are_inserted_without_rows() {
    let mut found = vec![];
    for on in [true, false] {
        let places = Places::new(reducing(2, 512)).await;
        set_copies(&places.ctx, on).await;
        let first = "SELECT time, lat, lon, t2m FROM air WHERE time < TIMESTAMP '2023-06-01'";
        places.copy(first, "x.zarr", "'chunks' 'time=4,lat=4,lon=7'").await.unwrap();
        let at = places.at("x.zarr").display().to_string();
        let table = format!("CREATE EXTERNAL TABLE x STORED AS ZARR LOCATION '{at}'");
        query(&places.ctx, &table).await.unwrap();
        let statements = [
            "INSERT INTO x SELECT time, lat, lon, t2m FROM air WHERE time >= TIMESTAMP '2023-06-01' AND time < TIMESTAMP '2024-03-01'",
            "REPLACE INTO x SELECT time, lat, lon, t2m + 1 AS t2m FROM air WHERE time = TIMESTAMP '2023-05-01' AND lat > 30 AND lon IN (15, 45, 60)",
            "INSERT OVERWRITE x SELECT time, lat, lon, t2m - 1 AS t2m FROM air WHERE lat BETWEEN -20 AND 40 AND time IN (TIMESTAMP '2023-02-01', TIMESTAMP '2023-08-01')",
            "INSERT INTO x SELECT time, lat, lon, t2m FROM air WHERE time > TIMESTAMP '2024-03-01'",
            "INSERT INTO x SELECT time, lat, lon, t2m FROM air WHERE time > TIMESTAMP '2024-07-01'",
        ];
        let mut results = vec![];
        for statement in statements {
            assert_eq!(copies(&places.ctx, statement).await, on, "{statement}");
            let done = query(&places.ctx, statement).await;
            results.push(done.map(|_| ()).map_err(|error| error.to_string().replace(&at, "x")));
        }
        assert!(
            results.pop().unwrap().unwrap_err().contains("existing"),
            "the last one repeats cells"
        );
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        found.push(places.read("x.zarr", "time, lat, lon, t2m").await);
    }
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].len(), 23 * 15 * 24);
}

/// Chunks between two that change are not written.
#[tokio::test]
async fn only_chunks_with_cells_are_written() {
    let mut written = vec![];
    for on in [true, false] {
        let places = Places::new(reducing(2, 512)).await;
        set_copies(&places.ctx, on).await;
        let all = "SELECT time, lat, lon, t2m FROM air";
        places.copy(all, "x.zarr", "'chunks' 'time=2,lat=15,lon=24'").await.unwrap();
        let replace = format!(
            "COPY (SELECT time, lat, lon, t2m + 1 AS t2m FROM air WHERE time IN (TIMESTAMP '2023-02-01', TIMESTAMP '2024-11-01')) TO '{}' OPTIONS ('mode' 'append', 'existing' 'overwrite')",
            places.at("x.zarr").display()
        );
        assert_eq!(copies(&places.ctx, &replace).await, on);
        let plan = plan(&places.ctx, &replace).await;
        collect(Arc::clone(&plan), places.ctx.task_ctx()).await.unwrap();
        let metrics = plan.metrics().unwrap();
        written.push(metrics.sum_by_name("cells_written").unwrap().as_usize());
    }
    // A month of each of two chunks.
    assert_eq!(written, [2 * 15 * 24, 2 * 15 * 24]);
}

#[tokio::test]
async fn plans_that_need_rows_keep_them() {
    let places = Places::new(reducing(2, 512)).await;
    let limited = Places::new(limited(2, 512, 64 << 20)).await;
    let to = places.at("x.zarr");
    let copied = [
        "SELECT time, lat, lon, t2m FROM air",
        "SELECT lon, time, t2m - 273.15 AS celsius, lat FROM air ORDER BY celsius",
        "SELECT lat, lon, t2m, tp FROM air WHERE time = TIMESTAMP '2023-05-01'",
        "SELECT time, lat, lon, concat('a', t2m) AS text FROM air",
        "SELECT -lat AS south, lon, time, t2m * cos(radians(lat)) AS weighted FROM air",
    ];
    let by_rows = [
        "SELECT time, lat, lon, t2m FROM air WHERE t2m > 280",
        "SELECT time, lat, lon, t2m FROM air LIMIT 100",
        "SELECT time, lat, lon, random() AS t2m FROM air",
        "SELECT time, lat, lon, avg(t2m) AS t2m FROM air GROUP BY time, lat, lon",
        "SELECT date_trunc('year', time) AS time, lat, lon, t2m FROM air",
        "SELECT time, lat, lon, t2m FROM air UNION ALL SELECT time, lat, lon, t2m FROM air",
    ];
    let queries = copied.map(|it| (it, true)).into_iter().chain(by_rows.map(|it| (it, false)));
    for (sql, expected) in queries {
        let dimensions = sql.replace("-lat AS south", "south");
        let mut names = ["time", "lat", "lon", "south"].map(str::to_owned).to_vec();
        let listed = dimensions.split(" FROM").next().unwrap();
        names.retain(|it| listed.split([' ', ',', '(']).any(|word| word == it));
        names.retain(|it| !(it == "lat" && listed.contains("south")));
        let copy = format!(
            "COPY ({sql}) TO '{}' OPTIONS ('dimensions' '{}')",
            to.display(),
            names.join(",")
        );
        assert_eq!(copies(&places.ctx, &copy).await, expected, "{sql}");
        let may_be_copied = expected && !sql.contains("text");
        assert_eq!(copies(&limited.ctx, &copy).await, may_be_copied, "{sql}, limited");
    }
}

/// Errors of cells name their labels, and leave nothing, as those of rows do.
#[tokio::test]
async fn cells_that_cannot_be_written_are_named() {
    let places = Places::new(reducing(2, 512)).await;
    let cells = "SELECT x, y, CASE WHEN x = 3 AND y = 1 THEN NULL ELSE x END AS v FROM (SELECT value % 5 AS x, value / 5 AS y FROM range(20))";
    places.copy(cells, "from.zarr", "'dimensions' 'x, y', 'fill' '-1'").await.unwrap();
    let sql = format!("SELECT x, y, v FROM read_array('{}')", places.at("from.zarr").display());
    for on in [true, false] {
        set_copies(&places.ctx, on).await;
        let error = places.copy(&sql, "to.zarr", "'chunks' 'x=2,y=3'").await.unwrap_err();
        let expected = "the cell x=3, y=1 of \"v\" cannot be written: it is NULL";
        assert!(error.contains(expected), "{error}");
        assert!(!places.at("to.zarr").join("zarr.json").exists());
        let divided = sql.replace(", v", ", 6 / (v - 4) AS v");
        let error = places.copy(&divided, "to.zarr", "'fill' '-9'").await.unwrap_err();
        assert!(error.contains("Divide by zero"), "{error}");
        assert!(!places.at("to.zarr").join("zarr.json").exists());
    }
}
