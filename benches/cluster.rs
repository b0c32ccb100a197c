//! Compares two workers with one, and measures the cost of several processes: time, bytes, and plans of a large cluster.
//!
//! The coordinator is this process. Each worker is a process of its own, on one processor. The array has 2^20 hours x 256 stations of
//! f32 (1 GiB) in chunks of 4096 x 256, uncompressed and with zstd. `GRIDFUSION_BENCH_SMALL=1` shrinks it for a smoke run.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use datafusion_distributed::DistributedLeafExec;
use datafusion_proto::bytes::physical_plan_to_bytes_with_extension_codec;
use gridfusion::codec::GridfusionCodec;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use gridfusion_distributed::{Cluster, WorkerServer, with_worker_metrics};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::common::figures::Figures;
use crate::common::support::{F32, Layout, TempTet, TestDataset, reducing, tet_bytes};
use crate::common::zarr_files::put_many_chunks;
use crate::common::{file, is_small, run, runtime, values};

/// The environment variable that makes this program a worker.
const WORKS: &str = "GRIDFUSION_BENCH_WORKS";

const BY_STATION: &str = "SELECT station, avg(value) FROM t GROUP BY station";
/// A key over values, which takes rows.
const BY_VALUE: &str = "SELECT round(value) AS v, count(*) FROM t GROUP BY v";
/// A join that looks up the normal of each cell, and is not reduced before.
const ANOMALY: &str =
    "SELECT avg(abs(t.value - n.normal)) FROM t JOIN normals n ON t.station = n.station";
const NORMALS: &str =
    "CREATE TABLE normals AS SELECT station, avg(value) AS normal FROM t GROUP BY station";
const BY_MONTH: &str = "SELECT date_trunc('month', time) AS m, max(value) FROM t GROUP BY m";

/// A worker in another process, on one processor.
struct Worker {
    process: Child,
    url: String,
}

impl Worker {
    fn start(processor: usize) -> Self {
        let mut process = Command::new("taskset")
            .args(["-c", &processor.to_string()])
            .arg(std::env::current_exe().unwrap())
            .arg("cluster")
            .env(WORKS, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("taskset, of util-linux");
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim_end().to_owned() }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Works until the other process closes the standard input of this one.
fn work() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("http://{}", listener.local_addr().unwrap());
        let closed = tokio::task::spawn_blocking(|| {
            drop(std::io::stdin().read_to_end(&mut vec![]));
        });
        let closed = async { drop(closed.await) };
        WorkerServer::default().without_token().serve(listener, closed).await.unwrap();
    });
}

/// A session whose queries these workers run.
fn coordinator(workers: &[&Worker], bytes_per_task: u64) -> SessionContext {
    let urls = workers.iter().map(|worker| worker.url.as_str());
    session(&Cluster::new(urls).unwrap().with_bytes_per_task(bytes_per_task))
}

fn session(cluster: &Cluster) -> SessionContext {
    let state = SessionStateBuilder::new_from_existing(reducing(2, 8192).state());
    SessionContext::new_with_state(cluster.coordinate(state).unwrap().build())
}

fn register(runtime: &Runtime, ctx: &SessionContext, location: &str) {
    let options = ArrayOptions::default();
    runtime.block_on(ctx.register_array("t", location, options)).unwrap();
}

pub(crate) fn main() {
    if std::env::var_os(WORKS).is_some() {
        return work();
    }
    let runtime = runtime();
    let workers = [Worker::start(0), Worker::start(1)];
    let (mut figures, mut remarks) = (Figures::new("cluster"), vec![]);
    let copies = if is_small() { 1 } else { 4 };
    for (zstd, kind) in [(false, "uncompressed"), (true, "zstd")] {
        let file = file(values().repeat(copies), zstd);
        let sessions = [&[0][..], &[0, 1]].map(|numbers| {
            let chosen: Vec<&Worker> = numbers.iter().map(|at| &workers[*at]).collect();
            let ctx = coordinator(&chosen, 1 << 20);
            register(&runtime, &ctx, file.location());
            ctx
        });
        let alone = reducing(2, 8192);
        register(&runtime, &alone, file.location());
        [&sessions[0], &sessions[1], &alone]
            .into_iter()
            .for_each(|ctx| run(&runtime, ctx, NORMALS));
        for (sql, name) in [
            (BY_STATION, "`GROUP BY station`"),
            (BY_MONTH, "`GROUP BY` month"),
            (BY_VALUE, "`GROUP BY round(value)`, over rows"),
            (ANOMALY, "mean size of anomalies, a join with normals"),
        ] {
            let name = format!("{name}, {kind}, two workers");
            let one: Box<dyn FnMut()> = Box::new(|| run(&runtime, &sessions[0], sql));
            let threads: Box<dyn FnMut()> = Box::new(|| run(&runtime, &alone, sql));
            figures.compare(
                name.as_str(),
                || run(&runtime, &sessions[1], sql),
                vec![("one worker", one), ("two threads of one process", threads)],
            );
        }
        if !zstd {
            let bytes = runtime.block_on(bytes_between(&sessions[1], BY_STATION));
            remarks.push(format!(
                "Between processes, `GROUP BY station` takes {bytes} bytes per task, for plans and rows."
            ));
        }
    }
    overhead(&runtime, &workers, &mut figures);
    remarks.push(large_cluster(&runtime));
    remarks.iter().for_each(|remark| figures.remark(remark));
    figures.finish();
}

/// A query of 1,000 cells costs little more on workers.
fn overhead(runtime: &Runtime, workers: &[Worker; 2], figures: &mut Figures) {
    let cells = (0..1000).flat_map(|cell| (cell as f32).to_le_bytes()).collect();
    let labels: Vec<String> = (0..10).map(|i| format!("ST{i:05}")).collect();
    let metadata =
        json!({"dim_names": ["time", "station"], "coords": {"station": {"labels": labels}}});
    let value =
        TestDataset::new("value", F32, &[100, 10], &[25, 10], cells).with_metadata(metadata);
    let file = TempTet::new(&tet_bytes(&[value], &layout()));
    let (alone, together) = (reducing(2, 8192), coordinator(&[&workers[0], &workers[1]], 1));
    for ctx in [&alone, &together] {
        register(runtime, ctx, file.location());
    }
    let here: Box<dyn FnMut()> = Box::new(|| run(runtime, &alone, BY_STATION));
    figures.compare(
        "`GROUP BY station` of 1,000 cells, two workers",
        || run(runtime, &together, BY_STATION),
        vec![("one process", here)],
    );
}

/// Returns the bytes that a query sends between processes, per task.
async fn bytes_between(ctx: &SessionContext, sql: &str) -> usize {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    let plan = with_worker_metrics(plan).await.unwrap();
    let mut bytes = 0;
    plan.apply(|node| {
        for metric in node.metrics().unwrap_or_default().iter() {
            if ["bytes_transferred", "plan_bytes_sent"].contains(&metric.value().name()) {
                bytes += metric.value().as_usize();
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    bytes / 2
}

/// Plans a query over 10 million chunks for 1,000 workers, and encodes the plan of each task. No worker needs to exist.
fn large_cluster(runtime: &Runtime) -> String {
    let (side, workers) = if is_small() { (100, 10) } else { (3_162, 1_000) };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("many.zarr");
    put_many_chunks(&store, side);
    let urls = (0..workers).map(|number| format!("http://127.0.0.1:{}", 1_000 + number));
    let ctx = session(&Cluster::new(urls).unwrap().with_bytes_per_task(1 << 20));
    register(runtime, &ctx, store.to_str().unwrap());
    let begin = Instant::now();
    let plan = runtime.block_on(async {
        ctx.sql("SELECT avg(value) FROM t").await.unwrap().create_physical_plan().await.unwrap()
    });
    let planning = begin.elapsed();
    let (begin, mut sizes) = (Instant::now(), vec![]);
    for share in shares(&plan) {
        let bytes = physical_plan_to_bytes_with_extension_codec(share, &GridfusionCodec).unwrap();
        sizes.push(bytes.len());
    }
    let encoding = begin.elapsed();
    assert_eq!(sizes.len(), workers);
    let chunks = side * side;
    format!(
        "A plan over {chunks} chunks for {workers} workers: planning takes {:.2} s and encoding {:.2} s. All tasks together have {} bytes, \
         and the largest has {}.",
        planning.as_secs_f64(),
        encoding.as_secs_f64(),
        sizes.iter().sum::<usize>(),
        sizes.iter().max().unwrap(),
    )
}

/// Returns the leaves of all tasks.
fn shares(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    let mut shares = vec![];
    plan.apply(|node| {
        if let Some(leaf) = node.downcast_ref::<DistributedLeafExec>() {
            shares.extend(leaf.variants().iter().cloned());
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    shares
}

/// The layout of files with metadata.
fn layout() -> Layout {
    Layout { history_version: Some(2), ..Layout::default() }
}
