//! Rows that are appended to stores with and without consolidated metadata: programs that fail, are killed, or meet others.

mod blosc;
mod failing;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use futures::TryStreamExt;
use gridfusion_core::io::{LocalFolder, WritableFolder};
use gridfusion_core::tile::{Objects, WriteSession, write_all};
use gridfusion_core::write::{
    AppendTarget, ArrayWriter, ExistingCells, NewArray, NewChunk, NewDimension, NewVariable,
    cells_of_box,
};
use gridfusion_core::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use crate::{ZarrEncoding, ZarrTarget, ZarrWriter, open};
use failing::Failing;

fn dimension(name: &str, labels: impl IntoIterator<Item = i64>) -> NewDimension {
    let labels = Arc::new(Int64Array::from_iter_values(labels));
    NewDimension { name: name.to_owned(), labels, attributes: Default::default() }
}

fn variables() -> Vec<NewVariable> {
    let variable = |name: &str, data_type| NewVariable {
        name: name.to_owned(),
        data_type,
        fill: None,
        attributes: Default::default(),
    };
    vec![variable("v", DataType::Float64), variable("w", DataType::Int64)]
}

/// The cells of a variable at labels.
fn cells(variable: usize, x: &[i64], y: &[i64], change: i64) -> ArrayRef {
    let value = |(x, y): (i64, i64)| 100 * x + y + 7 * variable as i64 + change;
    let all = || x.iter().flat_map(|x| y.iter().map(|y| (*x, *y)));
    match variable {
        0 => Arc::new(Float64Array::from_iter_values(all().map(|at| value(at) as f64))),
        _ => Arc::new(Int64Array::from_iter_values(all().map(value))),
    }
}

/// The first label along `x`; the others follow it, and are no indices.
const X: f64 = 50.0;
const Y: [i64; 4] = [0, 1, 2, 3];

/// Chunks of a writer, whose cells are those at `x`; all others of the region have none.
fn chunks(writer: &dyn ArrayWriter, x: &[i64], y: &[i64], change: i64) -> Vec<NewChunk> {
    let array = writer.array();
    let ranges = array.chunks_of_region();
    let mut chunks = vec![];
    for variable in 0..2 {
        for (at, other) in
            ranges[0].clone().flat_map(|at| ranges[1].clone().map(move |other| (at, other)))
        {
            let coordinates = vec![at, other];
            let within = array.ranges_in(&coordinates);
            let labels = |axis: usize| -> Vec<i64> {
                let labels = array.dimensions()[axis].labels.as_primitive::<Int64Type>().clone();
                let first = if axis == 0 { X as i64 } else { 0 };
                within[axis].clone().map(|at| labels.value(at as usize) - first).collect()
            };
            let (own, other) = (labels(0), labels(1));
            let given =
                own.iter().flat_map(|at| other.iter().map(|it| x.contains(at) && y.contains(it)));
            let given: Vec<bool> = given.collect();
            let cells = cells(variable, &own, &other, change);
            chunks.push(NewChunk { variable, coordinates, cells, given: Some(given.into()) });
        }
    }
    chunks
}

/// Makes a store with the rows 0, 1 and 2, with or without consolidated metadata.
async fn make(path: &Path, encoding: ZarrEncoding, is_consolidated: bool) {
    fs::create_dir_all(path).unwrap();
    let (x, labels) = ([0, 1, 2], [dimension("x", 50..53), dimension("y", Y)]);
    let array = NewArray::try_new(labels.to_vec(), variables(), &[2, 4]).unwrap();
    let writer = ZarrWriter::try_new(array, encoding).unwrap();
    let grid = writer.array().grid().clone();
    let chunk = |variable: usize, number: u64| {
        let coordinates = grid.chunk_coordinates(number);
        let ranges: Vec<_> = (0..2).map(|axis| grid.axis_range(axis, coordinates[axis])).collect();
        let cells = cells_of_box(&cells(variable, &x, &Y, 0), grid.shape(), &ranges).unwrap();
        Ok(NewChunk { variable, coordinates, cells, given: None })
    };
    let all: Vec<_> =
        (0..2).flat_map(|variable| (0..grid.chunks()).map(move |it| (variable, it))).collect();
    let chunks = all.into_iter().map(|(variable, number)| chunk(variable, number));
    let folder = Arc::new(LocalFolder::open(path, false).unwrap());
    write_all(writer, futures::stream::iter(chunks), folder).await.unwrap();
    if !is_consolidated {
        let root = json!({"attributes": {}, "zarr_format": 3, "node_type": "group"});
        fs::write(path.join("zarr.json"), root.to_string()).unwrap();
    }
}

/// A program that appends, and has opened the store.
struct Program {
    session: WriteSession,
    writer: Box<dyn ArrayWriter>,
    chunks: Vec<NewChunk>,
}

const COLUMNS: [&str; 4] = ["x", "y", "v", "w"];

impl Program {
    /// Opens the store as `COPY` does; ends what another program began.
    async fn begin(
        path: &Path,
        folder: Arc<dyn WritableFolder>,
        (x, y): (&[i64], &[i64]),
        change: Option<i64>,
    ) -> Result<Self> {
        let objects =
            || Arc::new(Objects::many_rewritten(Arc::new(LocalFolder::open(path, false).unwrap())));
        let mut session = WriteSession::new(folder);
        let mut target = ZarrTarget::open(objects(), &COLUMNS).await?;
        let (repair, changes_cells) = target.repair()?;
        if !repair.is_empty() {
            session.write(repair).await?;
            if changes_cells {
                return Err(Error::usage("cells have changed; run the statement again"));
            }
            target = ZarrTarget::open(objects(), &COLUMNS).await?;
        }
        let existing = match change {
            None => ExistingCells::Refuse,
            Some(_) => ExistingCells::Overwrite,
        };
        let labels =
            [dimension("x", x.iter().map(|x| x + X as i64)), dimension("y", y.iter().copied())];
        let (writer, _) = Box::new(target).writer(labels.to_vec(), variables(), existing)?;
        let chunks = chunks(writer.as_ref(), x, y, change.unwrap_or(0));
        Ok(Self { session, writer, chunks })
    }

    /// Writes the rows. A program that is killed removes nothing if that fails.
    async fn end(mut self, is_killed: bool) -> Result<()> {
        let written = async {
            for chunk in std::mem::take(&mut self.chunks) {
                self.session.write(self.writer.write(chunk)?).await?;
            }
            let (rest, publish) = self.writer.finish()?;
            self.session.write(rest).await?;
            self.session.publish(publish).await?;
            self.session.write(self.writer.afterwards()).await
        };
        let written = written.await;
        match written.is_err() && !is_killed {
            true => self.session.abort().await,
            false => std::mem::forget(self.session),
        }
        written
    }
}

async fn append(path: &Path, x: &[i64], change: Option<i64>) -> Result<()> {
    let folder = Arc::new(LocalFolder::open(path, false)?);
    Program::begin(path, folder, (x, &Y), change).await?.end(false).await
}

/// Reads both variables, row by row.
async fn read(path: &Path) -> Result<Vec<[f64; 4]>> {
    let mut rows = vec![];
    for name in ["v", "w"] {
        let reader = open(path.to_str().unwrap()).await?.array(name).await?;
        let batches: Vec<_> = reader.batches().try_collect().await?;
        let batch = concat_batches(&batches[0].schema(), &batches).unwrap();
        let numbers = |column: usize| {
            let column = arrow::compute::cast(batch.column(column), &DataType::Float64).unwrap();
            assert_eq!(column.null_count(), 0);
            column.as_primitive::<Float64Type>().values().to_vec()
        };
        let [x, y, values] = [0, 1, 2].map(numbers);
        let x: Vec<f64> = x.into_iter().map(|x| x - X).collect();
        let variable = if name == "v" { 0.0 } else { 1.0 };
        rows.extend((0..x.len()).map(|row| [variable, x[row], y[row], values[row]]));
    }
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
    Ok(rows)
}

fn rows(x: &[i64], y: &[i64], change: impl Fn(i64) -> i64) -> Vec<[f64; 4]> {
    let mut rows = vec![];
    for variable in 0..2 {
        for (x, y) in x.iter().flat_map(|x| y.iter().map(move |y| (*x, *y))) {
            let value = cells(variable, &[x], &[y], change(x));
            let value = arrow::compute::cast(&value, &DataType::Float64).unwrap();
            let value = value.as_primitive::<Float64Type>().value(0);
            rows.push([variable as f64, x as f64, y as f64, value]);
        }
    }
    rows
}

fn upto(len: i64) -> Vec<i64> {
    (0..len).collect()
}

fn document(path: &Path, array: &str) -> Value {
    serde_json::from_slice(&fs::read(path.join(array).join("zarr.json")).unwrap()).unwrap()
}

fn lens(path: &Path) -> [u64; 3] {
    ["v", "w", "x"].map(|array| document(path, array)["shape"][0].as_u64().unwrap())
}

/// Copies a store in which all arrays have this length along `x`.
fn with_len(from: &Path, to: &Path, len: u64) {
    super::copy(from, to);
    for array in ["v", "w", "x"] {
        let mut own = document(to, array);
        own["shape"][0] = json!(len);
        fs::write(to.join(array).join("zarr.json"), own.to_string()).unwrap();
    }
}

/// Each call of a folder fails, before or after its effect, in a program that tidies up or is killed. A reader sees the old rows or the new
/// ones, also if arrays have several lengths. Each array by itself is the old or the new one. The next append mends all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_may_fail() {
    let mut torn = [0, 0];
    for is_consolidated in [true, false] {
        for (is_killed, has_effect) in [(false, false), (false, true), (true, false), (true, true)]
        {
            for fails in 0.. {
                let folder = tempfile::tempdir().unwrap();
                let path = &folder.path().join("x.zarr");
                make(path, ZarrEncoding::default(), is_consolidated).await;
                let failing = Arc::new(Failing::new(path, fails, is_killed, has_effect));
                let name = format!("{is_consolidated} {is_killed} {has_effect} {fails}");
                let program = Program::begin(path, failing, (&[3, 4], &Y), None).await;
                let written = program.unwrap().end(is_killed).await;
                let lens = lens(path);
                let is_torn = lens != [lens[0]; 3];
                // Publishing decides: without it, no array is longer.
                let is_new = lens.contains(&5);
                let new = if is_new { 5 } else { 3 };
                let found = read(path).await.unwrap();
                let known = [3, 5].map(|len| rows(&upto(len), &Y, |_| 0));
                assert!(known.contains(&found), "{name}: {found:?}");
                assert!(is_consolidated || found == known[usize::from(is_new)], "{name}");
                torn[usize::from(is_killed)] += usize::from(is_torn && !is_consolidated);
                // The root of a consolidated store is the first, and the arrays' documents follow.
                for len in lens.into_iter().filter(|_| !is_consolidated) {
                    let whole = &folder.path().join(format!("{len}.zarr"));
                    if !whole.exists() {
                        with_len(path, whole, len);
                        let found = read(whole).await.unwrap();
                        assert_eq!(found, rows(&upto(len as i64), &Y, |_| 0), "{name} {len}");
                    }
                }
                if written.is_ok() {
                    assert!(is_new && !is_torn, "{name}");
                    break;
                }
                let is_new = is_new || read(path).await.is_ok_and(|found| found.len() == 40);
                let end = if is_new { 5 } else { new };
                append(path, &(end..7).collect::<Vec<_>>(), None).await.unwrap();
                assert_eq!(read(path).await.unwrap(), rows(&upto(7), &Y, |_| 0), "{name}");
                assert!(!path.join(".gridfusion-append").exists());
            }
        }
    }
    assert!(torn.iter().all(|count| *count > 0), "{torn:?}");
}

/// Cells that change, and new ones beside them, of a program that is killed at each call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_cells_are_those_of_before_or_after() {
    for is_consolidated in [true, false] {
        for has_effect in [false, true] {
            for fails in 0.. {
                let folder = tempfile::tempdir().unwrap();
                let path = &folder.path().join("x.zarr");
                make(path, ZarrEncoding::default(), is_consolidated).await;
                let failing = Arc::new(Failing::new(path, fails, true, has_effect));
                let program = Program::begin(path, failing, (&[1, 2, 3], &Y), Some(1000)).await;
                let written = program.unwrap().end(true).await;
                let name = format!("{is_consolidated} {has_effect} {fails}");
                if written.is_ok() {
                    break;
                }
                // The next program ends what was begun, and asks to run its statement again if cells have changed.
                let mut again = append(path, &[0], Some(0)).await;
                if let Err(error) = &again {
                    assert!(error.to_string().contains("run the statement again"), "{error}");
                    again = append(path, &[0], Some(0)).await;
                }
                again.unwrap();
                let found = read(path).await.unwrap();
                let (old, new) =
                    (rows(&upto(3), &Y, |_| 0), rows(&upto(4), &Y, |x| i64::from(x > 0) * 1000));
                assert!(found == old || found == new, "{name}: {found:?}");
                assert_eq!(lens(path), [found.len() as u64 / 8; 3], "{name}");
            }
        }
    }
}

/// Two programs that have opened one store without a lock: the second to publish fails, and changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_programs_one_wins() {
    let longer_y: Vec<i64> = (4..6).collect();
    for is_consolidated in [true, false] {
        for (x, y) in [(&[3, 4][..], &Y[..]), (&[0, 1, 2], &longer_y)] {
            let folder = tempfile::tempdir().unwrap();
            let path = &folder.path().join("x.zarr");
            make(path, ZarrEncoding::default(), is_consolidated).await;
            let local = || Arc::new(LocalFolder::open(path, false).unwrap());
            let first = Program::begin(path, local(), (&[3, 4], &Y), None).await.unwrap();
            let second = Program::begin(path, local(), (x, y), None).await.unwrap();
            first.end(false).await.unwrap();
            let error = second.end(true).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
            assert_eq!(lens(path), [5; 3]);
            assert_eq!(document(path, "v")["shape"], json!([5, 4]));
            // Along another dimension, the second has put its old cells into objects, from which only a lock keeps it.
            if y == Y {
                assert_eq!(read(path).await.unwrap(), rows(&upto(5), &Y, |_| 0));
                append(path, &[5], None).await.unwrap();
                assert_eq!(read(path).await.unwrap(), rows(&upto(6), &Y, |_| 0));
            }
        }
    }
}

/// Along the second dimension, and in any order of columns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_without_consolidated_metadata_grow_along_each_dimension() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("x.zarr");
    make(path, ZarrEncoding::default(), false).await;
    let root = fs::read(path.join("zarr.json")).unwrap();
    append(path, &[3, 4], None).await.unwrap();
    let local = Arc::new(LocalFolder::open(path, false).unwrap());
    let y = [4, 5, 6];
    Program::begin(path, local, (&upto(5), &y), None).await.unwrap().end(false).await.unwrap();
    let all: Vec<i64> = Y.into_iter().chain(y).collect();
    assert_eq!(read(path).await.unwrap(), rows(&upto(5), &all, |_| 0));
    assert_eq!(fs::read(path.join("zarr.json")).unwrap(), root, "the root has no lengths");
}

/// Lengths that differ without a journal are those of another program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrays_of_other_lengths_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("x.zarr");
    make(path, ZarrEncoding::default(), false).await;
    let mut own = document(path, "w");
    own["shape"][0] = json!(4);
    fs::write(path.join("w/zarr.json"), own.to_string()).unwrap();
    let error = append(path, &[3], None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(
        error.to_string().contains("\"w\" has 4 places along x, which has 3 labels"),
        "{error}"
    );
    // A journal explains lengths only of the arrays that it names.
    let journal = json!({"id": "", "dimension": "x", "from": 3, "to": 4, "arrays": ["w", "x"]});
    fs::write(path.join(".gridfusion-append"), journal.to_string()).unwrap();
    let error = append(path, &[3], None).await.unwrap_err();
    assert!(
        error.to_string().contains("\"v\" has 3 places along x, which has 4 labels"),
        "{error}"
    );
}

/// Metadata that is consolidated while a part of the arrays is longer is not taken for that of the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn torn_metadata_that_was_consolidated_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("x.zarr");
    make(path, ZarrEncoding::default(), true).await;
    let mut root: Value =
        serde_json::from_slice(&fs::read(path.join("zarr.json")).unwrap()).unwrap();
    root["consolidated_metadata"]["metadata"]["v"]["shape"][0] = json!(5);
    fs::write(path.join("zarr.json"), root.to_string()).unwrap();
    let journal =
        json!({"id": "", "dimension": "x", "from": 3, "to": 5, "arrays": ["v", "w", "x"]});
    fs::write(path.join(".gridfusion-append"), journal.to_string()).unwrap();
    let error = append(path, &[5], None).await.unwrap_err();
    assert!(error.to_string().contains("was consolidated after"), "{error}");
}
