//! Compares scans with the same rows in memory, and with the codec alone.
//!
//! Queries over the array of `common` are warm, on two partitions, and aggregate rows.

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::prelude::SessionContext;

use crate::common::figures::Figures;
use crate::common::support::session;
use crate::common::{decompress, file, run, runtime, size, table, values};

const CONSUME_ALL: &str = "SELECT max(time), max(station), max(value) FROM t";
const COUNT_VALUES: &str = "SELECT count(value) FROM t";
const MAX_VALUE: &str = "SELECT max(value) FROM t";
const ONE_DAY: &str = "SELECT time, value FROM t WHERE station = 'ST00007'
    AND time BETWEEN '1990-02-01T00:00:00' AND '1990-02-01T23:00:00'";

/// A session in which a scan reads everything: `max` does not prune chunks.
fn reading_all() -> SessionContext {
    let ctx = session(2, 8192);
    let state = ctx.state_ref();
    let mut state = state.write();
    state.config_mut().options_mut().optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    drop(state);
    ctx
}

/// The same rows in memory, where no column shares a buffer with another batch.
async fn exploded(ctx: &SessionContext) -> SessionContext {
    let plan = ctx.sql("SELECT * FROM t").await.unwrap().create_physical_plan().await.unwrap();
    let mut partitions = Vec::new();
    for partition in 0..plan.output_partitioning().partition_count() {
        let stream = plan.execute(partition, ctx.task_ctx()).unwrap();
        let batches: Vec<RecordBatch> = futures::TryStreamExt::try_collect(stream).await.unwrap();
        let copy = |batch: &RecordBatch| {
            let rows = UInt32Array::from_iter_values(0..batch.num_rows() as u32);
            take_record_batch(batch, &rows).unwrap()
        };
        partitions.push(batches.iter().map(copy).collect());
    }
    let memory = reading_all();
    memory
        .register_table("t", Arc::new(MemTable::try_new(plan.schema(), partitions).unwrap()))
        .unwrap();
    memory
}

pub(crate) fn main() {
    let runtime = runtime();
    let data = values();
    let (_, stations, chunk) = size();
    let tile_len = (chunk * stations * 4) as usize;
    let frames: Vec<Vec<u8>> =
        data.chunks(tile_len).map(|tile| zstd::encode_all(tile, 1).unwrap()).collect();
    let (raw_file, zstd_file) = (file(data.clone(), false), file(data, true));
    let raw = runtime.block_on(table(&raw_file, reading_all()));
    let packed = runtime.block_on(table(&zstd_file, reading_all()));
    let memory = runtime.block_on(exploded(&raw));

    let mut figures = Figures::new("scan");
    figures.compare(
        "`max(time), max(station), max(value)`, raw chunks",
        || run(&runtime, &raw, CONSUME_ALL),
        vec![(
            "DataFusion over the same rows in memory",
            Box::new(|| run(&runtime, &memory, CONSUME_ALL)),
        )],
    );
    // `count` needs every value, but hardly computes, so it measures the cost of reading.
    for (name, sql) in
        [("`count(value)`, zstd chunks", COUNT_VALUES), ("`max(value)`, zstd chunks", MAX_VALUE)]
    {
        figures.compare(
            name,
            || run(&runtime, &packed, sql),
            vec![("decompression alone", Box::new(|| decompress(&frames, tile_len)))],
        );
    }
    figures.compare("one day of one station, 24 rows", || run(&runtime, &raw, ONE_DAY), vec![]);
    figures.finish();
}
