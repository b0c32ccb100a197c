//! Queries on a scheduler and two executors of Ballista, compared with the same queries in this process.

use std::sync::Arc;

use ballista_core::config::BallistaConfig;
use ballista_core::execution_plans::execute_physical_plan;
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_executor::new_standalone_executor_from_state;
use ballista_scheduler::standalone::new_standalone_scheduler_from_state;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::TryStreamExt;
use gridfusion::codec::with_work_lists;
use gridfusion::{
    ArrayOptions, GridfusionConfig, GridfusionSessionContextExt, GridfusionSessionStateBuilderExt,
};
use gridfusion_ballista_tests::GridfusionOnBallista;

const QUERIES: [&str; 12] = [
    "SELECT count(*) FROM temperature WHERE value > -100",
    "SELECT * FROM temperature",
    "SELECT station, avg(value) FROM temperature GROUP BY station",
    "SELECT date_trunc('day', time) AS day, max(value) FROM temperature GROUP BY day",
    "SELECT * FROM temperature ORDER BY time DESC, station LIMIT 7",
    "SELECT * FROM temperature ORDER BY value DESC NULLS LAST, time, station LIMIT 5",
    "SELECT lat, corr(sst, ssh), count(sst) FROM sea WHERE lon > 90 GROUP BY lat",
    "SELECT lat, lon, max(t2m) FROM air GROUP BY lat, lon",
    "SELECT ship, count(*) FROM ships GROUP BY ship",
    "SELECT count(*), sum(speed), min(depth) FROM ships WHERE lat < 60",
    "SELECT date_part('year', time) AS y, avg(t2m) FROM years GROUP BY y",
    "SELECT e.station, avg(t.value) FROM temperature t JOIN elevation e ON t.station = e.station GROUP BY e.station",
];

/// A session with tables, whose plans Ballista can cut.
async fn tables() -> SessionContext {
    let mut settings = GridfusionConfig::default();
    settings.optimizer.declare_range = false;
    let config = SessionConfig::new_with_ballista().with_target_partitions(3);
    let config = config.with_option_extension(settings);
    let state = SessionStateBuilder::new().with_config(config).with_default_features();
    let ctx = SessionContext::new_with_state(state.with_gridfusion().build());
    for (name, location, dataset) in [
        ("temperature", "stations.tet", Some("temperature")),
        ("elevation", "stations.tet", Some("elevation")),
        ("sea", "sea.zarr", None),
        ("air", "air.nc", None),
        ("ships", "ships", None),
        ("years", "years/*", None),
    ] {
        let options = dataset
            .into_iter()
            .fold(ArrayOptions::default(), |it, dataset| it.with_dataset(dataset));
        let location = format!("{}/../examples/data/{location}", env!("CARGO_MANIFEST_DIR"));
        ctx.register_array(name, location, options).await.unwrap();
    }
    ctx
}

/// Starts a scheduler and two executors; returns the scheduler's URL.
async fn cluster() -> (String, SessionState) {
    let config = SessionConfig::new_with_ballista()
        .with_ballista_physical_extension_codec(Arc::new(GridfusionOnBallista::default()));
    let state = SessionStateBuilder::new().with_config(config).with_default_features();
    let state = state.with_gridfusion().build();
    let address = new_standalone_scheduler_from_state(&state).await.unwrap();
    let url = format!("http://localhost:{}", address.port());
    for _ in 0..2 {
        let client = loop {
            match SchedulerGrpcClient::connect(url.clone()).await {
                Ok(client) => break client,
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        };
        new_standalone_executor_from_state(client, 2, &state).await.unwrap();
    }
    (url, state)
}

async fn on_ballista(
    url: &str,
    state: &SessionState,
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Vec<RecordBatch>> {
    let (config, codec) = (BallistaConfig::default(), GridfusionOnBallista::default());
    let session = state.config().clone();
    let rows = execute_physical_plan::<PhysicalPlanNode>(
        url.to_owned(),
        &config,
        plan,
        &codec,
        state.session_id().to_owned(),
        session,
    );
    rows.await?.try_collect().await
}

/// The rows as text, in order; floats with nine digits, because sums are added in another order.
fn rows_of(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = vec![];
    for batch in batches {
        let options = FormatOptions::default().with_null("NULL");
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|it| ArrayFormatter::try_new(it.as_ref(), &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayFormatter<'_>| {
                let text = column.value(row).to_string();
                match text.parse::<f64>() {
                    Ok(number) => format!("{number:.9e}"),
                    Err(_) => text,
                }
            };
            rows.push(columns.iter().map(cell).collect::<Vec<_>>().join(", "));
        }
    }
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_give_the_same_rows_and_plain_leaves_are_refused() {
    let ctx = tables().await;
    let (url, state) = cluster().await;
    let mut refused = 0;
    for sql in QUERIES {
        let expected = rows_of(&ctx.sql(sql).await.unwrap().collect().await.unwrap());
        let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let listed = with_work_lists(Arc::clone(&plan)).unwrap();
        let found = on_ballista(&url, &state, listed)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(rows_of(&found), expected, "{sql}");
        // Without lists of partitions, each task would run all of them.
        match on_ballista(&url, &state, plan).await {
            Ok(found) => assert_eq!(rows_of(&found), expected, "{sql}, without lists"),
            Err(error) => {
                assert!(error.to_string().contains("rows would multiply"), "{sql}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > QUERIES.len() / 2, "{refused}");
}
