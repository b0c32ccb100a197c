//! Checks of every interface that opens a table: SQL, paths, and the methods of sessions.

use crate::conformance::doors;
use crate::conformance::doors::FILL;
use crate::conformance::logical::Labels;
use crate::conformance::subject::Subject;
use crate::sql::ways_in::in_memory;
use crate::support::{cell, query, rows_from};

pub(crate) async fn external_table(subject: &Subject<'_>) {
    let ctx = subject.session(2, 8192);
    let (format, location) = (subject.format.name().to_uppercase(), subject.location());
    let sql = format!(
        "CREATE EXTERNAL TABLE x STORED AS {format} LOCATION '{location}' OPTIONS ({FILL} 'true')"
    );
    query(&ctx, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    subject.assert_rows(&ctx, "x").await;
}

pub(crate) async fn table_function(subject: &Subject<'_>) {
    let ctx = subject.session(2, 8192);
    let (format, location) = (subject.format.name(), subject.location());
    subject.assert_rows(&ctx, &format!("read_{format}('{location}', {FILL} => true)")).await;
    subject.assert_rows(&ctx, &format!("read_{format}(['{location}'], {FILL} => 'true')")).await;
    let options = format!("{FILL} => true, io => 'pread', trust_zone_maps => false");
    subject.assert_rows(&ctx, &format!("read_{format}('{location}', {options})")).await;
    let count = doors::read(&ctx, &location).await.unwrap();
    assert_eq!(count, subject.rows.num_rows(), "{}", subject.what());
}

pub(crate) async fn quoted_path(subject: &Subject<'_>) {
    let ctx = subject.session(2, 8192);
    doors::enable_paths(&ctx);
    query(&ctx, &format!("SET gridfusion.{FILL} = true")).await.unwrap();
    let location = subject.location();
    subject.assert_rows(&ctx, &format!("'{location}'")).await;
    subject.assert_rows(&ctx, &format!("'file://{location}'")).await;
}

pub(crate) async fn object_store(subject: &Subject<'_>) {
    let ctx = subject.session(2, 8192);
    doors::enable_paths(&ctx);
    query(&ctx, &format!("SET gridfusion.{FILL} = true")).await.unwrap();
    in_memory(&ctx, subject.folder.path()).await;
    let name = subject.path().file_name().unwrap().to_str().unwrap().to_owned();
    let location = format!("memory://bucket/data/{name}");
    subject.assert_rows(&ctx, &format!("'{location}'")).await;
    doors::register(&ctx, "t", vec![location]).await.unwrap();
    subject.assert_rows(&ctx, "t").await;
}

/// A schema has a table with the array's name. Arrays of several values are left out, as each format has
/// its own tables for them.
pub(crate) async fn schema(subject: &Subject<'_>) {
    let [_] = &subject.array.values[..] else { return };
    let ctx = subject.session(2, 8192);
    doors::register_schema(&ctx, "s", &subject.location()).await.unwrap();
    // The column of one dataset is `value`.
    let table = format!("(SELECT * FROM s.{}) AS t({})", subject.array.name, subject.columns());
    subject.assert_rows(&ctx, &table).await;
    let sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 's'";
    let listed = rows_from(&ctx, sql).await;
    assert!(
        listed.contains(&vec![subject.array.name.to_owned()]),
        "{}: {listed:?}",
        subject.what()
    );
}

/// A catalog has a schema for each array of its directory.
pub(crate) async fn catalog(subject: &Subject<'_>) {
    let [_] = &subject.array.values[..] else { return };
    let ctx = subject.session(2, 8192);
    query(&ctx, &format!("SET gridfusion.{FILL} = true")).await.unwrap();
    std::fs::write(subject.folder.path().join("notes.txt"), "no array").unwrap();
    let folder = subject.folder.path().to_str().unwrap();
    doors::register_catalog(&ctx, "c", folder).await.unwrap();
    let name = subject.array.name;
    let table = format!("(SELECT * FROM c.{name}.{name}) AS t({})", subject.columns());
    subject.assert_rows(&ctx, &table).await;
    let sql = "SELECT DISTINCT table_schema FROM information_schema.tables
        WHERE table_catalog = 'c' AND table_schema <> 'information_schema'";
    assert_eq!(cell(&ctx, sql).await, name, "{}", subject.what());
}

/// Two files that follow one another along their first dimension are one table, listed in any order.
pub(crate) async fn several_files(subject: &Subject<'_>) {
    let first = &subject.array.axes[0];
    if matches!(first.labels, Labels::Index(_)) {
        return; // the indices of both halves begin at 0
    }
    let (format, suffix) = (subject.format.name(), subject.format.suffix());
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, half)| {
        let path = folder.path().join(format!("{name}{suffix}"));
        subject.format.write(half, &path);
        path.to_str().unwrap().to_owned()
    };
    let halves = subject.array.halves();
    let [a, b] = [("part-2", &halves[0]), ("part-1", &halves[1])].map(write);
    let ctx = subject.session(2, 8192);
    doors::register(&ctx, "t", vec![b.clone(), a.clone()]).await.unwrap();
    subject.assert_rows(&ctx, "t").await;
    let pattern = format!("{}/part-*{suffix}", folder.path().display());
    for files in [format!("['{a}', '{b}']"), format!("'{pattern}'")] {
        subject.assert_rows(&ctx, &format!("read_{format}({files}, {FILL} => true)")).await;
    }
    // Two files with the same labels are an error.
    let again = write(("again", &halves[0]));
    let twice = doors::register(&ctx, "u", vec![a, again]).await.unwrap_err();
    assert!(doors::is_mistake(&twice), "{}: {twice}", subject.what());
}
