//! Names of tables without the secrets of URLs, and places that remote files may not name.

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SessionContext;
use gridfusion::GridfusionSessionContextExt;
use gridfusion::io::RemoteLimits;

use super::remote::{Link, large};
use crate::support::object_server::ObjectServer;
use crate::support::query;

const SECRET: &str = "0123456789abcdefSECRET";

async fn shown(ctx: &SessionContext, sql: &str) -> String {
    pretty_format_batches(&query(ctx, sql).await.unwrap()).unwrap().to_string()
}

#[tokio::test]
async fn tables_of_urls_have_names_without_secrets() {
    let link = Link::new(ObjectServer::start([("bucket/large.tet", large())]));
    let ctx = link.session(RemoteLimits::default());
    ctx.enable_gridfusion_urls();
    let url = format!("{}/bucket/large.tet?X-Signature={SECRET}", link.server.url());
    for sql in [
        format!("SELECT count(value) FROM '{url}'"),
        format!("SELECT value + 1 FROM '{url}' LIMIT 1"),
        format!(
            "SELECT t.value + 1 FROM (SELECT value + 1 FROM '{url}') JOIN '{url}' AS t ON false"
        ),
        format!("EXPLAIN VERBOSE SELECT sum(value) FROM '{url}' WHERE value > 7"),
        format!("EXPLAIN FORMAT TREE SELECT sum(value) + 1 FROM '{url}'"),
        format!("WITH \"{url}\" AS (SELECT 1 AS a) SELECT a + 1 FROM \"{url}\""),
    ] {
        let text = shown(&ctx, &sql).await;
        let is_of_user = sql.starts_with("WITH");
        assert!(is_of_user || !text.contains(&SECRET[4..]), "{sql}: {text}");
    }
    let name = format!("{}/bucket/large.tet", link.server.url());
    let text = shown(&ctx, &format!("SELECT count(value) FROM '{url}'")).await;
    assert!(text.contains(&format!("count({name}.value)")), "{text}");
    ctx.sql(&format!("CREATE VIEW v AS SELECT value + 1 FROM '{url}'")).await.unwrap();
    let text = shown(&ctx, "SELECT * FROM information_schema.views").await
        + &shown(&ctx, "SHOW CREATE TABLE v").await
        + &shown(&ctx, "SHOW COLUMNS FROM v").await;
    assert!(text.contains(&name) && !text.contains(SECRET), "{text}");
}

fn references(place: &str) -> String {
    let array = r#"{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [4], \"dtype\": \"|u1\", \"fill_value\": null, \"order\": \"C\", \"filters\": null, \"compressor\": null}"#;
    let attributes = r#"{\"_ARRAY_DIMENSIONS\": [\"x\"]}"#;
    format!(
        r#"{{"version": 1, "refs": {{".zgroup": "{{\"zarr_format\": 2}}", "a/.zarray": "{array}",
            "a/.zattrs": "{attributes}", "a/0": ["{place}", 0, 4]}}}}"#
    )
}

#[tokio::test]
async fn remote_files_reach_private_hosts_only_if_allowed() {
    let server = ObjectServer::start([("bucket/chunk", vec![1_u8, 2, 3, 4])]);
    let link = Link::new(server);
    let sum = async |place: &str, allowed: bool| {
        link.server.put("bucket/refs.json", references(place).into_bytes());
        let limits = RemoteLimits::default().with_private_references(allowed);
        let ctx = link.session(limits);
        let sql = format!("SELECT sum(a) FROM read_zarr('{}/bucket/refs.json')", link.server.url());
        query(&ctx, &sql).await.map(|_| ()).map_err(|error| error.to_string())
    };
    let own = format!("{}/bucket/chunk", link.server.url());
    assert_eq!(sum(&own, false).await, Ok(()));
    assert_eq!(sum("s3://bucket/chunk", false).await, Ok(()));
    for place in ["http://127.0.0.1:1/x", "http://localhost/x", "http://[::1]/x", "http://0/x"] {
        let error = sum(place, false).await.unwrap_err();
        assert!(error.contains("RemoteLimits::private_references"), "{place}: {error}");
        let error = sum(place, true).await.unwrap_err();
        assert!(error.contains("no object store is registered"), "{place}: {error}");
    }
    let error = sum("/etc/hostname", true).await.unwrap_err();
    assert!(error.contains("only local reference files may do that"), "{error}");
}
