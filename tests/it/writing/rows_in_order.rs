//! Rows whose partitions follow one another become arrays without a merge of rows.

use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use crate::support::cases::{Case, name};
use crate::support::{limited, query, reducing, sorted_rows_from};

async fn text(ctx: &SessionContext, sql: &str) -> String {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn random_rows_become_the_same_arrays() {
    let mut rng = StdRng::seed_from_u64(4747);
    let (mut in_order, mut written) = (0, 0);
    for round in 0..480 {
        let case = Case::random(&mut rng);
        let ctx = match rng.random_range(0..4) {
            0 => limited(rng.random_range(2..6), 512, 32 << 20),
            _ => reducing(rng.random_range(2..6), *[16, 512].choose(&mut rng).unwrap()),
        };
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array("t", case.file.location(), options).await.unwrap();
        let theirs = case.in_memory();
        let rank = case.axes.len();
        let mut dimensions: Vec<String> = (0..rank).map(name).collect();
        if rng.random_bool(0.2) {
            dimensions.shuffle(&mut rng);
        }
        let columns = dimensions.join(", ");
        let condition =
            *["value > -1e9", "value > 3", "value < 50 OR value IS NULL"].choose(&mut rng).unwrap();
        let sql = format!("SELECT {columns}, value FROM t WHERE {condition}");
        let chunks: Vec<String> =
            dimensions.iter().map(|it| format!("{it}={}", rng.random_range(1..9))).collect();
        let format = *["zarr", "zarr", "nc"].choose(&mut rng).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join(format!("out.{format}"));
        let to = to.display();
        let copy = format!(
            "COPY ({sql}) TO '{to}' OPTIONS ('dimensions' '{}', 'chunks' '{}', 'fill' 'value=77', 'max_cells' '1000000')",
            dimensions.join(","),
            chunks.join(",")
        );
        let about = format!("round {round}, {}: {copy}", case.description);
        let Ok(plan) = ctx.sql(&copy).await.unwrap().create_physical_plan().await else { continue };
        let plan = displayable(plan.as_ref()).indent(false).to_string();
        in_order += usize::from(plan.contains("InOrderExec"));
        match query(&ctx, &copy).await {
            Ok(_) => {
                written += 1;
                // Cells without a row are NULL.
                let read = format!(
                    "SELECT {columns}, value FROM read_array('{to}') WHERE value IS NOT NULL"
                );
                let expected = format!("SELECT * FROM ({sql}) WHERE value IS NOT NULL");
                assert_eq!(
                    sorted_rows_from(&reducing(1, 64), &read).await,
                    sorted_rows_from(&theirs, &expected).await,
                    "{about}"
                );
            }
            // Labels that come twice, NULL among them, and no rows at all.
            Err(error) => {
                let error = error.to_string();
                let known = [
                    "two rows have the labels",
                    "NULL among its labels",
                    "no rows",
                    "0 rows",
                    "empty",
                ];
                assert!(known.iter().any(|it| error.contains(it)), "{about}: {error}");
            }
        }
    }
    assert!(in_order > 20 && written > 200, "{in_order} in order, {written} written");
}

/// Only partitions that are ranges of the first key of the order need no merge.
#[tokio::test]
async fn partitions_that_are_no_ranges_of_the_first_key_are_merged() {
    let ctx = reducing(3, 64);
    let mut rng = StdRng::seed_from_u64(1);
    let case = loop {
        let case = Case::random(&mut rng);
        if case.axes.len() == 2 {
            break case;
        }
    };
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("t", case.file.location(), options).await.unwrap();
    let (a, b) = (name(0), name(1));
    let copy = |dimensions: &str| {
        format!(
            "COPY (SELECT {a}, {b}, value FROM t WHERE value > 1) TO 'x.zarr' OPTIONS ('dimensions' '{dimensions}')"
        )
    };
    let swapped = text(&ctx, &copy(&format!("{b}, {a}"))).await;
    assert!(!swapped.contains("InOrderExec"), "{swapped}");
    query(&ctx, "SET gridfusion.declare_range = false").await.unwrap();
    ctx.register_array("u", case.file.location(), ArrayOptions::default().with_dataset("v"))
        .await
        .unwrap();
    let undeclared = text(&ctx, &copy(&format!("{a}, {b}")).replace("FROM t", "FROM u")).await;
    assert!(!undeclared.contains("InOrderExec"), "{undeclared}");
}
