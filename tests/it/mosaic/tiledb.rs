//! Random TileDB arrays concatenated to one table, compared with the rows of their models.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion::datasource::MemTable;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, IoMode};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::reduce::random::compare;
use crate::support::columns::Table;
use crate::support::tiledb_cases::{OF_ONE_WRITE, QUERIED, limits, random_array};
use crate::support::tiledb_model::Seen;
use crate::support::tiledb_writer::{
    Files, Filters, INT32, INT64, TestArray, TestAttribute, TestDimension, TestFragment,
    TestSchema, TestStatistics, integer, put_in_folder,
};
use crate::support::{reducing, rows_from, session};
use crate::tiledb::random::magnitude;

/// The array with its cells reversed, shifted by `by` along its first dimension.
fn moved(array: &TestArray, by: i128) -> TestArray {
    let mut array = array.clone();
    let shift = |range: &mut (i128, i128)| *range = (range.0 + by, range.1 + by);
    for schema in &mut array.schemas {
        shift(&mut schema.dimensions[0].domain);
        schema.current_domain.iter_mut().for_each(|ranges| shift(&mut ranges[0]));
    }
    for fragment in &mut array.fragments {
        shift(&mut fragment.ranges[0]);
        fragment.cells.iter_mut().for_each(|cells| cells.reverse());
    }
    array
}

/// A shift after which the two arrays do not overlap; `None` if the dimension's type has no room for one.
fn distance(rng: &mut StdRng, array: &TestArray, rows: &Seen<'_>) -> Option<i128> {
    let dimension = &array.schemas[0].dimensions[0];
    let len = i128::from(rows.shape()[0]);
    let by = len + rng.random_range(0..3);
    let (least, greatest) = limits(dimension.code);
    let inside =
        |by: &i128| dimension.domain.0 + by >= least && dimension.domain.1 + by <= greatest;
    [by, -by].into_iter().find(inside)
}

/// Writes the arrays to an object store or a folder; returns their locations.
async fn put(
    rng: &mut StdRng,
    ctx: &datafusion::prelude::SessionContext,
    folder: &std::path::Path,
    arrays: [&Files; 2],
) -> Vec<String> {
    let names = ["b", "a"];
    if rng.random_bool(0.3) {
        arrays.iter().zip(names).for_each(|(files, name)| put_in_folder(files, &folder.join(name)));
        return names.map(|name| folder.join(name).to_str().unwrap().to_owned()).to_vec();
    }
    let store = Arc::new(InMemory::new());
    for (files, name) in arrays.iter().zip(names) {
        for (path, bytes) in *files {
            let path = object_store::path::Path::from(format!("{name}/{path}"));
            store.put(&path, bytes.clone().into()).await.unwrap();
        }
    }
    let url = "memory://arrays".parse().unwrap();
    ctx.register_object_store(&url, store as Arc<dyn ObjectStore>);
    names.map(|name| format!("memory://arrays/{name}")).to_vec()
}

#[tokio::test]
async fn arrays_one_after_the_other_agree_with_their_models() {
    let mut rng = StdRng::seed_from_u64(5);
    let (mut asked, mut not_empty) = (0, 0);
    for number in 0..60 {
        let profile = *[QUERIED, OF_ONE_WRITE].choose(&mut rng).unwrap();
        let array = random_array(&mut rng, profile);
        let options = ArrayOptions::default()
            .with_fill_as_null(rng.random_bool(0.3))
            .with_concat_dimension("d0");
        let seen = Seen::new(&array, &options);
        let Some(by) = distance(&mut rng, &array, &seen) else { continue };
        let other = moved(&array, by);
        let other_seen = Seen::new(&other, &options);
        let (Ok(first), Ok(second)) = (seen.rows(), other_seen.rows()) else { continue };
        if first.num_rows() == 0 {
            continue;
        }
        let in_order = if by > 0 { [&first, &second] } else { [&second, &first] };
        let rows: RecordBatch = concat_batches(&first.schema(), in_order).unwrap();

        let ours = reducing(rng.random_range(1..5), *[3, 64, 8192].choose(&mut rng).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let files = [array.files(&mut rng), other.files(&mut rng)];
        let locations = put(&mut rng, &ours, folder.path(), [&files[0], &files[1]]).await;
        ours.register_array("t", locations, options.clone()).await.unwrap();
        let theirs = session(1, 8192);
        let table = MemTable::try_new(rows.schema(), vec![vec![rows.clone()]]).unwrap();
        theirs.register_table("t", Arc::new(table)).unwrap();

        let table = Table { rows: &rows, rank: seen.schema.dimensions.len() };
        let mut queries: Vec<_> = (0..10).map(|_| table.query(&mut rng)).collect();
        queries.extend(table.sums());
        for query in queries {
            let magnitude = if query.is_exact { 0.0 } else { magnitude(&rows, &query.sql) };
            match compare(&ours, &theirs, &query.sql, query.keys, magnitude).await {
                Ok(rows) => not_empty += usize::from(rows > 0),
                Err(difference) => panic!("array {number}: {}\n{difference}", query.sql),
            }
            asked += 1;
        }
    }
    assert!(asked > 400 && not_empty > asked / 2, "{asked} queries, {not_empty} of them with rows");
}

/// Opens more arrays than most systems allow open files.
#[tokio::test]
async fn only_some_files_of_many_arrays_are_open() {
    let mut rng = StdRng::seed_from_u64(6);
    let array = TestArray {
        schemas: vec![TestSchema {
            time: 1,
            dimensions: vec![TestDimension {
                name: "x".into(),
                code: INT64,
                domain: (0, 3),
                extent: 2,
            }],
            attributes: vec![TestAttribute {
                name: "v".into(),
                code: INT32,
                values: Some(1),
                nullable: false,
                fill: vec![0; 4],
                fill_valid: true,
                filters: Filters::None,
            }],
            column_major: [false; 2],
            current_domain: None,
            offsets: Filters::None,
            validity: Filters::None,
        }],
        fragments: vec![TestFragment {
            times: (2, 2),
            schema: 0,
            ranges: vec![(0, 3)],
            cells: vec![(0..4).map(|value| Some(integer(INT32, value))).collect()],
            statistics: TestStatistics::Absent,
        }],
        vacuums: vec![],
        commit_list: false,
    };
    let folder = tempfile::tempdir().unwrap();
    let count = 600;
    for number in 0..count {
        let files = moved(&array, number * 4).files(&mut rng);
        put_in_folder(&files, &folder.path().join(format!("{number}.tdb")));
    }
    let pattern = format!("{}/*.tdb", folder.path().display());
    for io in [IoMode::Mmap, IoMode::Pread] {
        let ctx = reducing(2, 8192);
        let options = ArrayOptions::default().with_io(io);
        ctx.register_array("t", pattern.as_str(), options).await.unwrap();
        let found = rows_from(&ctx, "SELECT count(*), sum(v), max(x) FROM t").await;
        let row = [count * 4, count * 6, count * 4 - 1].map(|number| number.to_string());
        assert_eq!(found, [row]);
    }
}
