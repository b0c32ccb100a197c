//! Times without seconds, minutes or days stand for their beginning, wherever a text is compared with a time or cast to one.

use crate::support::{query, reducing, rows_from};

const SEA: &str = "read_array('examples/data/sea.zarr')";

/// A time, its parts that people leave out, and the same time in full.
const WRITTEN: [(&str, &str); 8] = [
    ("2024-02", "2024-02-01 00:00:00"),
    ("2024-2-3", "2024-02-03 00:00:00"),
    ("2024-02-03 00:00", "2024-02-03 00:00:00"),
    ("2024-02-03T00:00", "2024-02-03 00:00:00"),
    ("2024-02-03 0", "2024-02-03 00:00:00"),
    ("2024-02-03 00:00Z", "2024-02-03 00:00:00"),
    ("2024-02-03 02:00+02:00", "2024-02-03 00:00:00"),
    ("2024-02-02T22:30 -01:30", "2024-02-03 00:00:00"),
];

#[tokio::test]
async fn parts_that_are_left_out_are_the_first() {
    let ctx = reducing(2, 100);
    for (written, full) in WRITTEN {
        for template in [
            "SELECT count(*), min(time), max(time) FROM SEA WHERE time >= 'T'",
            "SELECT count(*), min(time), max(time) FROM SEA WHERE 'T' > time",
            "SELECT count(*) FROM SEA WHERE time BETWEEN 'T' AND '2024-02-20'",
            "SELECT count(*) FROM SEA WHERE time IN ('T', '2024-01-05 00:00')",
            "SELECT count(*) FROM SEA WHERE time = TIMESTAMP 'T'",
            "SELECT count(*) FROM SEA WHERE time < CAST('T' AS TIMESTAMP) + INTERVAL '1 day'",
            "SELECT count(*) FILTER (WHERE time < 'T') FROM SEA",
            "SELECT sum(CASE WHEN time < 'T' THEN 1 ELSE 0 END) FROM SEA",
            "SELECT count(*) FROM SEA WHERE time IN (SELECT time FROM SEA WHERE time <= 'T')",
            "SELECT count(*) FROM (VALUES (TIMESTAMP 'T')) AS v(t) JOIN SEA s ON s.time = v.t",
        ] {
            let with =
                |time: &str| template.replace("'T'", &format!("'{time}'")).replace("SEA", SEA);
            assert_eq!(
                rows_from(&ctx, &with(written)).await,
                rows_from(&ctx, &with(full)).await,
                "{template} {written}"
            );
        }
    }
}

/// Columns keep the names that DataFusion gives them, and texts of no time are errors as before.
#[tokio::test]
async fn names_and_errors_stay() {
    let ctx = reducing(2, 100);
    let batches =
        query(&ctx, "SELECT TIMESTAMP '2024-02-03 12:00', '2024-02'::DATE").await.unwrap();
    let schema = batches[0].schema();
    let names: Vec<&str> = schema.fields().iter().map(|it| it.name().as_str()).collect();
    assert_eq!(names, ["Utf8(\"2024-02-03 12:00\")", "Utf8(\"2024-02\")"]);
    for text in ["2024-13", "2024-02-30 12:00", "2024-02-03 25:00", "soon", ""] {
        let sql = format!("SELECT count(*) FROM {SEA} WHERE time > '{text}'");
        let error = query(&ctx, &sql).await.unwrap_err().to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
    let sql =
        "SELECT TRY_CAST('2024-02' AS DATE), TRY_CAST('2024-13' AS DATE), '2024-02' = '2024-02-01'";
    assert_eq!(rows_from(&ctx, sql).await, [["2024-02-01", "NULL", "false"]]);
}
