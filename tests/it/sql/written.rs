//! Files that programs write with the library: their types and texts are those that other programs know.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use gridfusion::{GridfusionSessionContextExt, GridfusionSessionStateBuilderExt};

const ROWS: &str = "SELECT arrow_cast('2024-03-01T01:02:03', 'Timestamp(s)') AS t, \
                    arrow_cast(arrow_cast(5, 'Int64'), 'Duration(s)') AS d, CAST('-inf' AS DOUBLE) AS v";

/// Sessions made in each way that adds gridfusion, also twice.
fn sessions() -> Vec<SessionContext> {
    let enabled = SessionContext::new();
    enabled.enable_gridfusion();
    enabled.enable_gridfusion();
    let state = SessionStateBuilder::new().with_default_features().with_gridfusion();
    let built = SessionContext::new_with_state(state.with_gridfusion().build());
    vec![enabled, built]
}

#[tokio::test]
async fn parquet_files_have_milliseconds() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (at, ctx) in sessions().iter().enumerate() {
        let (copied, written) =
            (path(&format!("copy{at}.parquet")), path(&format!("frame{at}.parquet")));
        ctx.sql(&format!("COPY ({ROWS}) TO '{copied}'")).await.unwrap().collect().await.unwrap();
        let frame = ctx.sql(ROWS).await.unwrap();
        frame.write_parquet(&written, DataFrameWriteOptions::new(), None).await.unwrap();
        for file in [copied, written] {
            let read = ctx.read_parquet(file, Default::default()).await.unwrap();
            let types: Vec<&DataType> =
                read.schema().fields().iter().map(|field| field.data_type()).collect();
            let expected = [
                DataType::Timestamp(TimeUnit::Millisecond, None),
                DataType::Duration(TimeUnit::Millisecond),
                DataType::Float64,
            ];
            assert_eq!(types, expected.iter().collect::<Vec<_>>());
        }
    }
}

#[tokio::test]
async fn json_files_have_infinity() {
    let folder = tempfile::tempdir().unwrap();
    for (at, ctx) in sessions().iter().enumerate() {
        let path = folder.path().join(format!("{at}.json"));
        let frame = ctx.sql(ROWS).await.unwrap();
        let name = path.to_str().unwrap();
        frame.write_json(name, DataFrameWriteOptions::new(), None).await.unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(r#""v":"-Infinity""#), "{text}");
    }
}
