//! Random numbers of different values, and most frequent values, compared with rows in memory.

use std::collections::BTreeMap;

use datafusion::physical_plan::{collect, displayable};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::pairs::compare_cases;
use super::plans::{plan, reduction};
use super::random::{agree, keys, small, tier};
use crate::support::cases::{Case, name};
use crate::support::{
    F32, Layout, TempTet, TestDataset, limited, query, reducing, rows_of, tet_bytes,
};

/// A random aggregate of which DataFusion makes two aggregations, if its argument is `value`.
fn aggregate(case: &Case, rng: &mut StdRng) -> String {
    let choices = ["count(DISTINCT value)", "sum(value)", "min(value)", "max(value)"];
    match rng.random_range(0..12) {
        0 => "mode(value)".into(),
        1 => "count(DISTINCT value * 2)".into(),
        2 => format!("max({})", name(rng.random_range(0..case.axes.len()))),
        3 => "count(DISTINCT value) FILTER (WHERE value > 0)".into(),
        4 => "mode(CAST(value AS INT)) FILTER (WHERE value < 3)".into(),
        _ => choices.choose(rng).unwrap().to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_of_different_values_agree_with_rows() {
    let compared = |seed| compare_cases(seed, (80, 12), aggregate, "mode=whole, tier=accumulators");
    let halves = [47, 48].map(|seed| tokio::spawn(compared(seed)));
    let mut found = 0;
    for half in halves {
        found += half.await.unwrap();
    }
    assert!(found > 500, "{found} queries were reductions");
}

/// The accumulator for rows is compared with counts per value.
#[tokio::test]
async fn modes_are_the_most_frequent_values() {
    let mut rng = StdRng::seed_from_u64(49);
    let mut reduced = 0;
    for _ in 0..120 {
        let (shape, chunk) = small(&mut rng);
        let case = Case::of_shape(&mut rng, &shape, &chunk, false);
        let ours = reducing(rng.random_range(1..=4), 64);
        let options = ArrayOptions::default().with_dataset("v");
        ours.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        let mut keys = keys(&case, &mut rng, 2);
        // DataFusion gives `d0` and `CAST(d0 AS VARCHAR)` one name.
        keys.retain(|key| !key.contains("CAST"));
        let by = |keys: &[String], more: &str| match [keys.join(", "), more.to_owned()].map(|it| it)
        {
            [keys, more] if keys.is_empty() || more.is_empty() => keys + &more,
            [keys, more] => format!("{keys}, {more}"),
        };
        let group_by = |list: &str| match list {
            "" => String::new(),
            list => format!("GROUP BY {list}"),
        };
        let names: Vec<String> = (0..keys.len()).map(|at| format!("k{at}")).collect();
        let shown: Vec<String> =
            keys.iter().zip(&names).map(|(key, name)| format!("{key} AS {name}")).collect();
        let modes =
            format!("SELECT {} FROM t {}", by(&keys, "mode(value)"), group_by(&keys.join(", ")));
        // A group of NULLs alone has no mode.
        let expected = format!(
            "SELECT {}, first_value(value ORDER BY n DESC, value) FILTER (WHERE value IS NOT NULL)
             FROM (SELECT {}, count(*) AS n FROM t {}) {}",
            if names.is_empty() { "1".to_owned() } else { names.join(", ") },
            by(&shown, "value"),
            group_by(&by(&keys, "value")),
            group_by(&names.join(", ")),
        );
        let expected = query(&theirs, &expected).await.unwrap();
        let expected: Vec<_> = match names.is_empty() {
            true => expected.iter().map(|batch| batch.project(&[1]).unwrap()).collect(),
            false => expected,
        };
        for ctx in [&ours, &theirs] {
            let found = query(ctx, &modes).await;
            let same = agree(found, Ok(expected.clone()), keys.len(), 0.0);
            same.unwrap_or_else(|difference| panic!("{modes}: {difference}"));
        }
        reduced += usize::from(tier(&ours, &modes).await.contains("tier=accumulators"));
    }
    assert!(reduced > 60, "{reduced}");
}

/// Values of many bits: DataFusion counts zeros of both signs once alone, and twice beside some other aggregates.
#[tokio::test]
async fn zeros_are_as_different_as_in_rows() {
    let numbers = [0.0, -0.0, 1.0, 1.0, f32::NAN, -0.0, 2.0, 2.5];
    let data = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
    let dataset = TestDataset::new("v", F32, &[4, 2], &[2, 2], data);
    let file = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("t", file.location(), options).await.unwrap();
    for (calls, expected) in [
        ("count(DISTINCT value)", [["0", "3"], ["1", "3"]]),
        ("count(DISTINCT value) FILTER (WHERE value < 9)", [["0", "3"], ["1", "3"]]),
    ] {
        let sql = format!("SELECT dim_1, {calls} FROM t GROUP BY dim_1 ORDER BY dim_1");
        let shown = tier(&ctx, &sql).await;
        assert!(shown.contains("tier=accumulators"), "{sql}: {shown}");
        assert_eq!(rows_of(&query(&ctx, &sql).await.unwrap()), expected, "{sql}");
    }
    let sql = "SELECT count(DISTINCT value), count(DISTINCT value) FILTER (WHERE value < 9) FROM t";
    assert_eq!(rows_of(&query(&ctx, sql).await.unwrap()), [["5", "5"]], "zeros are two values");
    let sql = "SELECT dim_0 / 9, count(DISTINCT value) FROM t GROUP BY dim_0 / 9";
    for (partitions, expected) in [(1, "mode=whole, tier=accumulators"), (2, "rows")] {
        let ctx = reducing(partitions, 8192);
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array("t", file.location(), options).await.unwrap();
        assert_eq!(tier(&ctx, sql).await, expected);
        assert_eq!(rows_of(&query(&ctx, sql).await.unwrap()), [["0", "4"]], "zeros are one value");
    }
    let sql = "SELECT mode(DISTINCT value), mode(DISTINCT value) FILTER (WHERE value > 0) FROM t";
    assert_eq!(rows_of(&query(&ctx, sql).await.unwrap()), [["0.0", "1.0"]]);
}

/// The values of one group do not fit in memory, but the few different ones do. Approximate quantiles take as little.
#[tokio::test]
async fn one_group_that_does_not_fit_is_summarized() {
    let numbers = (0..40_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 29) as f32);
    let data = numbers.flat_map(f32::to_le_bytes).collect();
    let dataset = TestDataset::new("v", F32, &[20_000, 2], &[500, 2], data);
    let file = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
    let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
    for limit in [100_000, 2_000_000] {
        let ctx = limited(1, 512, limit);
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array("t", file.location(), options).await.unwrap();
        for (call, expected) in [
            ("count(DISTINCT value)", "8"),
            ("count(DISTINCT value) FILTER (WHERE value > 3)", "4"),
            ("CAST(round(approx_median(value)) AS INT) IN (3, 4)", "true"),
        ] {
            let sql = format!("SELECT dim_1, {call} FROM t GROUP BY dim_1");
            let plan = plan(&ctx, &sql).await;
            let reduction = reduction(&plan).unwrap_or_else(|| panic!("{sql}"));
            let shown = displayable(reduction.as_ref()).one_line().to_string();
            assert!(shown.contains("mode=whole"), "{shown}");
            let mut rows = rows_of(&collect(plan, ctx.task_ctx()).await.unwrap());
            rows.sort();
            assert_eq!(rows, [["0", expected], ["1", expected]], "{sql}");
            let read = reduction.metrics().unwrap().sum_by_name("chunks_read").unwrap().as_usize();
            *answers.entry(if read > 40 { "again" } else { "once" }).or_default() += 1;
        }
        // Exact quantiles need all values of a group.
        let median = query(&ctx, "SELECT dim_1, median(value) FROM t GROUP BY dim_1").await;
        assert_eq!(median.is_ok(), limit == 2_000_000);
    }
    assert_eq!(answers, BTreeMap::from([("again", 3), ("once", 3)]));
}

/// Approximate quantiles of groups are exact where the values fit in memory.
#[tokio::test]
async fn approximate_quantiles_of_gathered_values_are_exact() {
    let mut rng = StdRng::seed_from_u64(50);
    let data = (0..3000).flat_map(|_| rng.random_range(-9.0..9.0_f32).to_le_bytes()).collect();
    let dataset = TestDataset::new("v", F32, &[1000, 3], &[100, 3], data);
    let file = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("t", file.location(), options).await.unwrap();
    let sql = "SELECT dim_1, approx_median(value) = median(value),
            approx_percentile_cont(value, 0.9) = percentile_cont(value, 0.9),
            approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY value DESC) = percentile_cont(value, 0.1)
        FROM t GROUP BY dim_1 ORDER BY dim_1";
    assert!(tier(&ctx, sql).await.contains("mode=whole, tier=accumulators"));
    let row = |key: &str| [key, "true", "true", "true"].map(str::to_owned).to_vec();
    assert_eq!(rows_of(&query(&ctx, sql).await.unwrap()), ["0", "1", "2"].map(row));
}

/// Partitions that cannot all have groups of their own leave the work to as many as may read one chunk.
#[tokio::test]
async fn many_partitions_count_different_values() {
    let numbers = (0..64 * 16_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 26) as f32);
    let data = numbers.flat_map(f32::to_le_bytes).collect();
    let dataset = TestDataset::new("v", F32, &[64, 16], &[1, 16], data);
    let file = TempTet::new(&tet_bytes(&[dataset], &Layout::default()));
    let counts = "SELECT dim_1, count(DISTINCT value) FROM t GROUP BY dim_1 ORDER BY 1";
    let runs =
        "SELECT dim_1, longest_run(value > 9 ORDER BY dim_0) FROM t GROUP BY dim_1 ORDER BY 1";
    for sql in [counts, runs] {
        let mut answers = vec![];
        for partitions in [1, 3, 4, 5, 16] {
            let ctx = reducing(partitions, 8192);
            let options = ArrayOptions::default().with_dataset("v");
            ctx.register_array("t", file.location(), options).await.unwrap();
            let plan = plan(&ctx, sql).await;
            let reduction = reduction(&plan).unwrap_or_else(|| panic!("{sql} in {partitions}"));
            let shown = displayable(reduction.as_ref()).one_line().to_string();
            assert!(shown.contains("mode=whole, gby=[dim_1]"), "{partitions}: {shown}");
            answers.push(rows_of(&collect(plan, ctx.task_ctx()).await.unwrap()));
            let read = reduction.metrics().unwrap().sum_by_name("chunks_read").unwrap().as_usize();
            assert_eq!(read, 64 * partitions.min(4), "{sql} in {partitions}");
        }
        assert!(answers[0].len() == 16 && answers.iter().all(|it| *it == answers[0]), "{sql}");
    }
}
