//! Random medians and percentiles, compared with rows in memory.

use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::pairs::compare_cases;
use super::plans::{plan, reduction};
use super::random::tier;
use crate::support::cases::{Case, name};
use crate::support::{
    F32, Layout, TempTet, TestDataset, limited, query, reducing, rows_of, tet_bytes,
};

/// A random quantile.
fn aggregate(case: &Case, rng: &mut StdRng) -> String {
    let axis = rng.random_range(0..case.axes.len());
    let predicate = case.axes[axis].predicate(&name(axis), rng);
    let number = rng.random_range(-4..6);
    let fraction = ["0.0", "0.1", "0.5", "0.75", "0.9", "1.0"].choose(rng).unwrap();
    let choices = [
        "median(value)".to_owned(),
        "median(CAST(value AS DOUBLE))".to_owned(),
        format!("median(value * 2) FILTER (WHERE {predicate})"),
        format!("percentile_cont(value, {fraction})"),
        format!("percentile_cont(value, {fraction})"),
        format!("percentile_cont({fraction}) WITHIN GROUP (ORDER BY value)"),
        format!("percentile_cont({fraction}) WITHIN GROUP (ORDER BY value DESC)"),
        format!("percentile_cont(CAST(value AS DOUBLE), {fraction})"),
        format!(
            "percentile_cont(value, {fraction}) FILTER (WHERE value > {number} OR {predicate})"
        ),
        format!("percentile_cont(DISTINCT value, {fraction})"),
        "approx_percentile_cont(0.0) WITHIN GROUP (ORDER BY value)".to_owned(),
        "count(DISTINCT value)".to_owned(),
        format!("count(DISTINCT value) FILTER (WHERE value > {number} OR {predicate})"),
        "mode(value)".to_owned(),
    ];
    choices.choose(rng).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quantiles_agree_with_rows() {
    let compared = |seed| compare_cases(seed, (60, 10), aggregate, "tier=accumulators");
    let halves = [45, 46].map(|seed| tokio::spawn(compared(seed)));
    let mut found = 0;
    for half in halves {
        found += half.await.unwrap();
    }
    assert!(found > 500, "{found} queries were reductions");
}

/// The spelling of the SQL standard sorts no rows.
#[tokio::test]
async fn percentiles_within_groups_are_reductions() {
    let mut rng = StdRng::seed_from_u64(1);
    let case = Case::of_shape(&mut rng, &[12, 5], &[4, 5], false);
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("t", case.file.location(), options).await.unwrap();
    for call in [
        "percentile_cont(0.9) WITHIN GROUP (ORDER BY value)",
        "percentile_cont(0.1) WITHIN GROUP (ORDER BY value DESC)",
        "approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY value)",
    ] {
        let sql = format!("SELECT d1, {call} FROM t GROUP BY d1");
        let plan = tier(&ctx, &sql).await;
        assert!(plan.contains("tier=accumulators"), "{sql}\n{plan}");
    }
    let sql = "SELECT percentile_cont(value, 1.5) FROM t GROUP BY d1";
    let error = query(&ctx, sql).await.unwrap_err().to_string();
    assert!(error.contains("between 0.0 and 1.0"), "{error}");
}

/// Returns the sorted rows of a reduction, and the number of chunks that it read; `None` if rows are aggregated.
async fn reduced(ctx: &SessionContext, sql: &str) -> Option<(Vec<Vec<String>>, usize)> {
    let plan = plan(ctx, sql).await;
    let reduction = reduction(&plan)?;
    // Each partition has all values of its groups, though chunks may be read twice.
    let shown = displayable(reduction.as_ref()).one_line().to_string();
    assert!(shown.contains("mode=whole"), "{shown}");
    let mut rows = rows_of(&collect(plan, ctx.task_ctx()).await.unwrap());
    rows.sort();
    let read = reduction.metrics().unwrap().sum_by_name("chunks_read").unwrap().as_usize();
    Some((rows, read))
}

/// Values that do not fit in memory are gathered block by block of their groups, and none is lost or counted twice.
#[tokio::test]
async fn blocks_of_groups_have_the_answers_of_all_groups() {
    let (shape, mut rng) = ([64, 16, 6], StdRng::seed_from_u64(45));
    let value = |_| if rng.random_bool(0.3) { f32::NAN } else { rng.random_range(-9.0..9.0) };
    let data: Vec<u8> = (0..64 * 16 * 6).map(value).flat_map(f32::to_le_bytes).collect();
    let mut more_chunks_read = 0;
    for (chunk, chunks) in [([64, 4, 3], 8), ([1, 16, 6], 64), ([5, 7, 6], 39), ([64, 16, 6], 1)] {
        let dataset = TestDataset::new("v", F32, &shape, &chunk, data.clone());
        let file = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
        let options = || ArrayOptions::default().with_dataset("v");
        for (keys, partitions) in [
            ("dim_1, dim_2", 1),
            ("dim_1, dim_2", 3),
            ("dim_2", 1),
            ("dim_1 % 5, dim_2", 1),
            ("dim_1 / 3", 2),
            ("dim_0 % 7, dim_1", 1),
            ("dim_0 % 7", 3),
        ] {
            let sql = format!(
                "SELECT {keys}, median(value), percentile_cont(value, 0.9), count(DISTINCT value)
                 FROM t WHERE dim_2 <> 4 AND dim_1 NOT IN (2, 3) GROUP BY {keys}"
            );
            let all = reducing(partitions, 8192);
            all.register_array("t", file.location(), options()).await.unwrap();
            let (expected, read) = reduced(&all, &sql).await.unwrap();
            assert!(read <= chunks * partitions, "{keys} {chunk:?}: {read}");
            for memory in [36_000, 45_000] {
                let blocks = reducing(partitions, 8192);
                blocks.register_array("t", file.location(), options()).await.unwrap();
                let set = format!("SET gridfusion.reduce_memory = {memory}");
                query(&blocks, &set).await.unwrap();
                let Some((rows, read_by_blocks)) = reduced(&blocks, &sql).await else { continue };
                assert_eq!(rows, expected, "{keys} {chunk:?} {memory}");
                if chunk == [64, 4, 3]
                    && keys == "dim_1, dim_2"
                    && partitions == 1
                    && memory == 45_000
                {
                    assert_eq!(read_by_blocks, read, "blocks at borders of chunks");
                }
                more_chunks_read += usize::from(read_by_blocks > read);
            }
        }
    }
    assert!(more_chunks_read >= 20, "{more_chunks_read}");
}

/// Many partitions do not all read every chunk: they merge their values.
#[tokio::test]
async fn many_partitions_merge_their_values() {
    let numbers = (0..64 * 16_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 8) as f32);
    let data = numbers.flat_map(f32::to_le_bytes).collect();
    let dataset = TestDataset::new("v", F32, &[64, 16], &[1, 16], data);
    let file = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
    let sql =
        "SELECT dim_1, percentile_cont(value, 0.3), median(value) FROM t GROUP BY dim_1 ORDER BY 1";
    let mut answers = vec![];
    for (partitions, mode) in [(1, "mode=whole"), (4, "mode=whole"), (5, "mode=partial")] {
        let ctx = reducing(partitions, 8192);
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array("t", file.location(), options).await.unwrap();
        let shown = displayable(plan(&ctx, sql).await.as_ref()).indent(false).to_string();
        assert!(shown.contains(mode), "{partitions}: {shown}");
        answers.push(rows_of(&query(&ctx, sql).await.unwrap()));
    }
    assert!(answers[0].len() == 16 && answers.iter().all(|it| *it == answers[0]));
}

/// A pool that refuses the values of all groups gets those of half of them, and of half of these.
#[tokio::test]
async fn refused_memory_halves_the_groups() {
    let numbers = (0..4096_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 8) as f32);
    let data = numbers.flat_map(f32::to_le_bytes).collect();
    let dataset = TestDataset::new("v", F32, &[512, 8], &[16, 8], data);
    let file = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
    let sql = "SELECT dim_1, count(DISTINCT value), stddev(value) > 0 FROM t GROUP BY dim_1";
    let mut halved = 0;
    for limit in (4_000..300_000).step_by(4_000) {
        let ctx = limited(1, 64, limit);
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array("t", file.location(), options).await.unwrap();
        let plan = plan(&ctx, sql).await;
        let Some(reduction) = reduction(&plan) else { continue };
        // One group may need too much memory as well.
        let Ok(batches) = collect(plan, ctx.task_ctx()).await else { continue };
        let mut rows = rows_of(&batches);
        rows.sort();
        let expected: Vec<Vec<String>> =
            (0..8).map(|b| vec![b.to_string(), "512".into(), "true".into()]).collect();
        assert_eq!(rows, expected, "{limit}");
        let read = reduction.metrics().unwrap().sum_by_name("chunks_read").unwrap().as_usize();
        halved += usize::from(read > 32);
    }
    assert!(halved > 0, "no limit halved the groups");
}
