//! Stores that are not folders of their own objects, in SQL: Icechunk repositories, zip files and references in Parquet.

use std::path::Path;

use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use gridfusion::{GridfusionSessionContextExt, RemoteLimits};
use serde_json::Value;

use crate::codec::sent::{bytes, plan, received};
use crate::io::remote::{Link, files};
use crate::support::object_server::ObjectServer;
use crate::support::{cell, query, reducing, rows_from, shipped, sorted_rows_from};

fn session() -> SessionContext {
    let ctx = reducing(2, 64);
    ctx.enable_gridfusion_urls();
    ctx
}

/// The cells that the library reads in the versions of a repository.
fn expected(spec: &str) -> Value {
    let text = std::fs::read_to_string(shipped("tests/data/icechunk/expected.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[spec].take()
}

fn repository(spec: &str) -> String {
    shipped(&format!("tests/data/icechunk/{spec}/small.icechunk"))
}

fn sum(cells: &Value) -> f64 {
    cells.as_array().unwrap().iter().filter_map(Value::as_f64).sum()
}

#[tokio::test]
async fn names_and_options_choose_versions() {
    let ctx = session();
    for spec in ["spec1", "spec2"] {
        let (expected, at) = (expected(spec), repository(spec));
        for (version, option) in
            [("main", "branch => 'main'"), ("dev", "branch => 'dev'"), ("v1", "tag => 'v1'")]
        {
            let array = &expected[version]["arrays"]["t"];
            let id = expected[version]["history"][0]["id"].as_str().unwrap();
            let total = sum(&array["cells"]);
            for from in [
                format!("'{at}#{version}/t'"),
                format!("'{at}#{id}/t'"),
                format!("read_icechunk('{at}', 't', {option})"),
                format!("read_array('{at}', '{version}/t')"),
                format!("read_icechunk('{at}', 't', snapshot => '{id}')"),
            ] {
                let found =
                    rows_from(&ctx, &format!("SELECT sum(value), count(*) FROM {from}")).await;
                let count = array["cells"].as_array().unwrap().len().to_string();
                assert_eq!(found[0][0].parse::<f64>().unwrap(), total, "{from}");
                assert_eq!(found[0][1], count, "{from}");
            }
        }
        // Without a version, the dataset is one of the branch `main`.
        let own = cell(&ctx, &format!("SELECT sum(value) FROM '{at}#t'")).await;
        assert_eq!(own, cell(&ctx, &format!("SELECT sum(value) FROM '{at}#main/t'")).await);
        let shards = cell(&ctx, &format!("SELECT sum(value) FROM '{at}#deep/inner/sharded'")).await;
        let cells = &expected["main"]["arrays"]["deep/inner/sharded"]["cells"];
        assert_eq!(shards.parse::<f64>().unwrap(), sum(cells));
        let names = rows_from(&ctx, &format!("SELECT value FROM '{at}#names'")).await;
        assert_eq!(names.concat(), ["Oslo", "Bergen", "Zürich"]);
    }
}

#[tokio::test]
async fn versions_are_compared_and_listed() {
    let ctx = session();
    for spec in ["spec1", "spec2"] {
        let (expected, at) = (expected(spec), repository(spec));
        let changed = format!(
            "SELECT count(*) FROM read_icechunk('{at}', 't', tag => 'v1', index_columns => true) AS old \
             JOIN read_icechunk('{at}', 't', index_columns => true) AS new USING (time_idx, x) \
             WHERE old.value IS DISTINCT FROM new.value"
        );
        let cells =
            |version: &str| expected[version]["arrays"]["t"]["cells"].as_array().unwrap().clone();
        let pairs = cells("v1").into_iter().zip(cells("main"));
        let differ = pairs.filter(|(old, new)| old != new).count();
        assert!(differ > 0);
        assert_eq!(cell(&ctx, &changed).await, differ.to_string());
        let names = format!(
            "SELECT old.value, new.value FROM '{at}#v1/names' AS old JOIN '{at}#main/names' AS new USING (n) WHERE old.value <> new.value"
        );
        assert_eq!(rows_from(&ctx, &names).await, [["", "Bergen"]]);
        let history = format!("SELECT snapshot FROM icechunk_history('{at}') ORDER BY time DESC");
        let ids = expected["main"]["history"].as_array().unwrap();
        let ids: Vec<&str> = ids.iter().map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!(rows_from(&ctx, &history).await.concat()[..ids.len()], ids);
        let refs = format!("SELECT kind, name FROM icechunk_refs('{at}') ORDER BY kind, name");
        let refs = rows_from(&ctx, &refs).await;
        assert!(refs.contains(&vec!["branch".into(), "dev".into()]), "{refs:?}");
        assert!(refs.contains(&vec!["tag".into(), "v1".into()]), "{refs:?}");
        for (from, words) in [
            (
                format!("read_icechunk('{at}', 't', branch => 'none')"),
                "there is no branch \"none\"",
            ),
            (format!("read_icechunk('{at}', 't', tag => 'none')"), "there is no tag \"none\""),
            (
                format!("read_icechunk('{at}', 't', tag => 'v1', branch => 'main')"),
                "each choose a version",
            ),
            (format!("read_icechunk('{at}', 't', as_of => '2000-01-01')"), "as_of"),
            (format!("read_zarr('{at}', 't')"), "Icechunk"),
        ] {
            let error =
                query(&ctx, &format!("SELECT * FROM {from}")).await.unwrap_err().to_string();
            assert!(error.contains(words), "{from}: {error}");
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to.join(entry.file_name())),
            false => _ = std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap(),
        }
    }
}

/// A branch that moves on after a query was planned changes neither the plan nor the table.
#[tokio::test]
async fn plans_name_the_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("moves.icechunk");
    copy_folder(Path::new(&repository("spec1")), &at);
    let expected = expected("spec1");
    let total = |version: &str| sum(&expected[version]["arrays"]["t"]["cells"]);
    assert_ne!(total("main"), total("v1"));
    let (ctx, worker) = (session(), session());
    let location = at.display();
    query(&ctx, &format!("CREATE EXTERNAL TABLE kept STORED AS ICECHUNK LOCATION '{location}' OPTIONS (dataset 't')"))
        .await
        .unwrap();
    let mut sent = vec![];
    // Beside a repository that cannot be opened.
    let beside = folder.path().join("beside");
    for name in ["broken.icechunk", "moves.icechunk"] {
        copy_folder(Path::new(&repository("spec1")), &beside.join(name));
    }
    std::fs::remove_dir_all(beside.join("broken.icechunk/snapshots")).unwrap();
    let pattern = folder.path().join("*.icechunk");
    let (pattern, beside) = (pattern.display(), beside.display());
    for from in [
        "kept".to_owned(),
        format!("'{location}#main/t'"),
        format!("'{location}#t'"),
        // Tables of many repositories name the snapshot of each.
        format!("'{pattern}#t'"),
        format!("read_icechunk('{pattern}', 't', stack => 'run=moves')"),
        format!("read_icechunk('{pattern}', 't', branch => 'main')"),
        format!(
            "read_icechunk('{beside}/*.icechunk', 't', stack => 'run=a,b', skip_unreadable => true)"
        ),
    ] {
        let sql = format!("SELECT sum(value) AS total FROM {from}");
        sent.push((from, bytes(&plan(&ctx, &sql).await.unwrap()).unwrap()));
    }
    // The branch moves back to the snapshot of the tag.
    for at in [at.clone(), folder.path().join("beside/moves.icechunk")] {
        let refs = at.join("refs");
        std::fs::copy(refs.join("tag.v1/ref.json"), refs.join("branch.main/ref.json")).unwrap();
    }
    for (from, bytes) in sent {
        let rows = collect(received(&bytes, &worker).unwrap(), worker.task_ctx()).await.unwrap();
        let found = arrow::util::pretty::pretty_format_batches(&rows).unwrap().to_string();
        assert!(found.contains(&total("main").to_string()), "{from}: {found}");
    }
    let kept = cell(&ctx, "SELECT sum(value) FROM kept").await;
    assert_eq!(kept.parse::<f64>().unwrap(), total("main"));
    let moved = cell(&ctx, &format!("SELECT sum(value) FROM '{location}#t'")).await;
    assert_eq!(moved.parse::<f64>().unwrap(), total("v1"));
}

#[tokio::test]
async fn a_repository_with_half_of_its_marks_is_no_empty_table() {
    let folder = tempfile::tempdir().unwrap();
    for (spec, lost) in [
        ("spec1", "refs"),
        ("spec1", "snapshots"),
        ("spec2", "repo"),
        ("spec2", "snapshots"),
        ("spec2", "manifests"),
    ] {
        let at = folder.path().join(format!("{spec}-{lost}.icechunk"));
        copy_folder(Path::new(&repository(spec)), &at);
        let lost = at.join(lost);
        match lost.is_dir() {
            true => std::fs::remove_dir_all(&lost).unwrap(),
            false => std::fs::remove_file(&lost).unwrap(),
        }
        let sql = format!("SELECT sum(value) FROM '{}#split'", at.display());
        let error = query(&session(), &sql).await.unwrap_err().to_string();
        assert!(!error.is_empty(), "{error}");
    }
}

/// Archives answer as the store that is in them.
#[tokio::test]
async fn stores_in_zip_files_are_tables() {
    let ctx = session();
    let store = shipped("examples/data/sea.zarr");
    for archive in ["sea.zarr.zip", "product.zip"] {
        let at = shipped(&format!("tests/data/zipped/{archive}"));
        for sql in [
            "SELECT * FROM 'PLACE' WHERE lat > 0",
            "SELECT lat, round(avg(sst), 9), round(corr(sst, ssh), 9) FROM 'PLACE' GROUP BY lat",
            "SELECT count(*), min(time), max(time) FROM 'PLACE#sst'",
            "SELECT time, round(avg(value), 9) FROM 'PLACE#ssh' WHERE lon BETWEEN 10 AND 200 GROUP BY time",
        ] {
            let found = sorted_rows_from(&ctx, &sql.replace("PLACE", &at)).await;
            assert_eq!(
                found,
                sorted_rows_from(&ctx, &sql.replace("PLACE", &store)).await,
                "{archive}: {sql}"
            );
        }
    }
    // The plan of a table in an archive is sent to another process.
    let at = shipped("tests/data/zipped/sea.zarr.zip");
    let sql = format!("SELECT lat, avg(value) AS mean FROM '{at}#sst' GROUP BY lat");
    let sent = bytes(&plan(&ctx, &sql).await.unwrap()).unwrap();
    let worker = session();
    let rows = collect(received(&sent, &worker).unwrap(), worker.task_ctx()).await.unwrap();
    let found: usize = rows.iter().map(arrow::array::RecordBatch::num_rows).sum();
    assert_eq!(found, rows_from(&ctx, &sql).await.len());
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.zip");
    std::fs::copy(shipped("tests/data/zipped/product.zip"), &other).unwrap();
    let read = format!("SELECT count(*) FROM read_zarr('{}', 'sst')", other.display());
    assert_eq!(
        cell(&ctx, &read).await,
        cell(&ctx, &format!("SELECT count(*) FROM '{store}#sst'")).await
    );
}

/// References in Parquet have the cells of the file that they name.
#[cfg(feature = "hdf5")]
#[tokio::test]
async fn references_in_parquet_are_tables() {
    let ctx = session();
    let data = shipped("tests/data/references/data.h5");
    for name in ["t", "x"] {
        let own = cell(&ctx, &format!("SELECT count(value) FROM '{data}#{name}'")).await;
        for folder in ["fastparquet.parq", "pyarrow.parq", "virtualizarr.parq"] {
            let at = shipped(&format!("tests/data/references/{folder}"));
            let found = cell(&ctx, &format!("SELECT count(value) FROM '{at}#{name}'")).await;
            assert_eq!(found, own, "{folder}#{name}");
        }
    }
    let part = shipped("tests/data/references/pyarrow.parq/t");
    let error =
        query(&ctx, &format!("SELECT * FROM read_zarr('{part}')")).await.unwrap_err().to_string();
    assert!(error.contains("name the folder above it"), "{error}");
}

/// In a bucket, the ending leads to a listing. A plain web server lists nothing, so there the documents tell.
#[tokio::test]
async fn references_in_parquet_need_no_function_in_stores() {
    let shipped = shipped("tests/data/references");
    let link = Link::new(ObjectServer::start(files(Path::new(&shipped), "bucket/references")));
    let ctx = link.session(RemoteLimits::default());
    ctx.enable_gridfusion_urls();
    let web = format!("{}/bucket/references", link.server.url());
    for base in ["s3://bucket/references", &web] {
        for folder in ["fastparquet.parq", "pyarrow.parq", "virtualizarr.parq"] {
            let sql = format!("SELECT count(value), sum(value) FROM '{base}/{folder}#y'");
            assert_eq!(rows_from(&ctx, &sql).await, [["10", "550.0"]], "{sql}");
        }
        // Folders of rows may have the ending, too.
        let error = query(&ctx, &format!("SELECT * FROM '{base}/rows.parq'")).await.unwrap_err();
        assert!(error.to_string().contains("not found"), "{error}");
    }
    // Opened anew: two listings, the metadata, and a table of references for each array of labels. Their chunks are in one range.
    let ctx = link.session(RemoteLimits::default());
    ctx.enable_gridfusion_urls();
    link.server.take_requests();
    let sql = "SELECT count(*) FROM 's3://bucket/references/pyarrow.parq#t'";
    assert_eq!(cell(&ctx, sql).await, "70");
    let requests = link.server.take_requests();
    let listings = requests.iter().filter(|request| request.listing.is_some()).count();
    assert_eq!((listings, requests.len()), (2, 6), "{requests:#?}");
}
