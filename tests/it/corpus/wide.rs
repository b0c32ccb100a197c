//! A converted climate file as one table, whose two variables have different chunks.

use std::sync::Arc;

use datafusion::physical_plan::collect;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use super::corpus;
use crate::plan::dynamic::metric;
use crate::support::{cell, reducing, rows_from};

const SHARED: &str = "converted/nc_climate_small.tet";

#[tokio::test]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn corpus_variables_of_a_climate_file_are_one_table() {
    let corpus = corpus();
    let location = corpus.join(SHARED).to_str().unwrap().to_owned();
    let ctx = reducing(2, 8192);
    ctx.register_array("climate", location.as_str(), ArrayOptions::default()).await.unwrap();
    for dataset in ["temperature", "precipitation"] {
        let options = ArrayOptions::default().with_dataset(dataset);
        ctx.register_array(dataset, location.as_str(), options).await.unwrap();
    }

    let wide = "SELECT lat, round(corr(temperature, precipitation), 9) AS r FROM climate GROUP BY lat ORDER BY lat";
    let joined = "SELECT t.lat, round(corr(t.value, p.value), 9) AS r FROM temperature t
                  JOIN precipitation p USING (time, lat, lon) GROUP BY t.lat ORDER BY t.lat";
    let rows = rows_from(&ctx, wide).await;
    assert_eq!(rows.len(), 37);
    assert_eq!(rows, rows_from(&ctx, joined).await);

    // Chunks of 73 x 37 x 72 and of 73 x 20 x 40: each is read once.
    let plan = ctx.sql(wide).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    let stored = format!(
        "SELECT sum(stored_bytes) FROM tet_info('{location}') WHERE dataset IN ('temperature', 'precipitation')"
    );
    assert_eq!(metric(&plan, "bytes_read").to_string(), cell(&ctx, &stored).await);
}
