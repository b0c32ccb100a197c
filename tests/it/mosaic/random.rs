//! Random variables in random files as one table, compared with a `MemTable` of the same rows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringViewArray,
};
use arrow::datatypes::{Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use gridfusion::GridTable;
use gridfusion::array::{GridArray, ReadOptions};
use gridfusion::io::{ByteSource, MemorySource, ObjectSource};
use gridfusion::source::{FileArrays, MosaicOptions};
use gridfusion_tet::{TetReader, open_dataset};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use serde_json::{Map, json};

use crate::support::cases::{Axis, name};
use crate::support::{
    F32, F64, I16, I32, Layout, TestDataset, positions, query, reducing, rows_of, tet_bytes,
};

/// Files of variables over the same dimensions, and the rows of one table over all files.
pub(crate) struct Mosaic {
    /// The location and the bytes of each file, in any order.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    /// The dimension along which the files follow one another.
    pub(crate) along: usize,
    axes: Vec<Axis>,
    variables: Vec<&'static str>,
    rows: RecordBatch,
    /// The most bytes of a chunk of the table.
    chunk_bytes: u64,
    /// Whether the files are in an object store, where reads wait, instead of in memory.
    waits: bool,
    pub(crate) description: String,
}

/// How a file stores a variable.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Form {
    tag: u32,
    /// The factor and the offset of packed numbers, which are whole numbers for whole values.
    packing: Option<(f64, f64)>,
    /// The number that stands for NULL; `None` if there is no NULL, in files without `_FillValue`.
    fill: Option<i32>,
}

impl Form {
    fn random(rng: &mut StdRng, has_nulls: bool) -> Self {
        let (tag, packing) = *[
            (F64, None),
            (F64, None),
            (I32, None),
            (I32, None),
            (F32, None),
            (I16, None),
            (I32, Some((0.5, 10.0))),
            (I16, Some((-0.25, 3.0))),
        ]
        .choose(rng)
        .unwrap();
        let fill = *[-9_999, -7_777].choose(rng).unwrap();
        Self { tag, packing, fill: (has_nulls || rng.random()).then_some(fill) }
    }

    /// The stored number of a value.
    fn stored(self, value: Option<i32>) -> i32 {
        match (value, self.packing) {
            (None, _) => self.fill.unwrap(),
            (Some(value), None) => value,
            (Some(value), Some((scale, offset))) => ((f64::from(value) - offset) / scale) as i32,
        }
    }

    fn bytes(self, stored: i32) -> Vec<u8> {
        match self.tag {
            F64 => f64::from(stored).to_le_bytes().to_vec(),
            F32 => (stored as f32).to_le_bytes().to_vec(),
            I16 => (stored as i16).to_le_bytes().to_vec(),
            _ => stored.to_le_bytes().to_vec(),
        }
    }

    fn attributes(self) -> serde_json::Value {
        let mut attributes = json!({});
        if let Some(fill) = self.fill {
            attributes["_FillValue"] = fill.to_string().into();
        }
        if let Some((scale, offset)) = self.packing {
            attributes["scale_factor"] = scale.to_string().into();
            attributes["add_offset"] = offset.to_string().into();
        }
        attributes
    }

    /// The bits of the type of its values, if they are floats.
    fn float_bits(self) -> u32 {
        match (self.packing, self.tag) {
            (Some(_), _) | (_, F64) => 64,
            (_, F32) => 32,
            _ => 0,
        }
    }
}

/// One variable over all files. It has whole numbers, so that sums are exact in any order.
struct Variable {
    name: &'static str,
    /// How each file stores it.
    forms: Vec<Form>,
    /// The values in row-major order over all files; `None` is NULL.
    values: Vec<Option<i32>>,
}

impl Variable {
    /// `file_of` has the file of each cell.
    fn random(rng: &mut StdRng, name: &'static str, file_of: &[usize], files: usize) -> Self {
        let rises = rng.random_range(0..3);
        let value =
            |cell: usize, rng: &mut StdRng| cell as i32 * rises / 4 + rng.random_range(-9..10);
        let nulls = *[0.0, 0.2, 0.9].choose(rng).unwrap();
        let has_nulls: Vec<bool> = (0..files).map(|_| rng.random_bool(0.7)).collect();
        let values = file_of.iter().enumerate().map(|(cell, file)| {
            let is_null = has_nulls[*file] && rng.random_bool(nulls);
            (!is_null).then(|| value(cell, rng))
        });
        let values = values.collect();
        let (one, agree) = (Form::random(rng, true), rng.random_bool(0.5));
        let forms =
            has_nulls.into_iter().map(|has| if agree { one } else { Form::random(rng, has) });
        let forms = forms.collect();
        Self { name, forms, values }
    }

    /// The column, of the narrowest type that holds the values of all files.
    fn column(&self) -> ArrayRef {
        let floats = self.forms.iter().map(|form| form.float_bits()).max().unwrap();
        let wide = self.forms.iter().any(|form| form.float_bits() == 0 && form.tag == I32);
        let values = self.values.iter().copied();
        match (floats, wide) {
            (0, false) => Arc::new(values.map(|it| it.map(|it| it as i16)).collect::<Int16Array>()),
            (0, true) => Arc::new(values.collect::<Int32Array>()),
            (32, false) => {
                Arc::new(values.map(|it| it.map(|it| it as f32)).collect::<Float32Array>())
            }
            _ => Arc::new(values.map(|it| it.map(f64::from)).collect::<Float64Array>()),
        }
    }
}

/// The whole array, before it is split into files.
struct Whole {
    /// The dimension along which files follow one another.
    along: usize,
    shape: Vec<u64>,
    axes: Vec<Axis>,
    cells: Vec<Vec<u64>>,
    variables: Vec<Variable>,
}

impl Whole {
    fn random(rng: &mut StdRng, lens: &[u64]) -> Self {
        let rank = rng.random_range(1..=3);
        let along = rng.random_range(0..rank);
        let mut shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..8)).collect();
        shape[along] = lens.iter().sum();
        let mut axes: Vec<Axis> = shape.iter().map(|&len| Axis::random(rng, len)).collect();
        axes[along] = labels_along(rng, lens);
        let cells = positions(&shape);
        let names = &["alpha", "beta", "gamma"][..rng.random_range(1..=3)];
        let mut ends = vec![0];
        lens.iter().for_each(|len| ends.push(ends[ends.len() - 1] + len));
        let file = |cell: &Vec<u64>| ends.partition_point(|end| *end <= cell[along]) - 1;
        let file_of: Vec<usize> = cells.iter().map(file).collect();
        let variable = |name: &&'static str| Variable::random(rng, name, &file_of, lens.len());
        let variables = names.iter().map(variable).collect();
        Self { along, shape, axes, cells, variables }
    }

    /// The file of this number, which has some elements of the dimension `along`, and a description of its chunks.
    fn file(&self, rng: &mut StdRng, number: usize, elements: &Range<u64>) -> (Vec<u8>, String) {
        let mut shape = self.shape.clone();
        shape[self.along] = elements.end - elements.start;
        let (mut datasets, mut zones, mut description) = (Vec::new(), Vec::new(), String::new());
        for (id, variable) in self.variables.iter().enumerate() {
            let Variable { name, values, .. } = variable;
            let form = variable.forms[number];
            let chunk: Vec<u64> = shape.iter().map(|_| rng.random_range(1..9)).collect();
            description += &format!(", {name} {chunk:?} {form:?}");
            let of_file =
                self.cells.iter().zip(values).filter(|(at, _)| elements.contains(&at[self.along]));
            let values: Vec<Option<i32>> = of_file.map(|(_, value)| *value).collect();
            let data = values.iter().flat_map(|it| form.bytes(form.stored(*it))).collect();
            let dataset = TestDataset::new(name, form.tag, &shape, &chunk, data);
            let attributes = form.attributes();
            let metadata = metadata(&self.axes, self.along, elements, &attributes);
            datasets.push(dataset.with_zstd(rng.random()).with_metadata(metadata));
            zones.extend(zones_of(id, form, &values, &shape, &chunk));
        }
        for (axis, labels) in self.axes.iter().enumerate() {
            let labels = if axis == self.along { &cut(labels, elements) } else { labels };
            datasets.extend(labels.dataset(&name(axis)));
        }
        let missing = *[0.0, 0.0, 0.1].choose(rng).unwrap();
        zones.retain(|_| !rng.random_bool(missing));
        let layout = Layout {
            shuffle: rng.random_bool(0.3).then(|| StdRng::seed_from_u64(rng.random())),
            history_version: Some(2),
            zones: rng.random_bool(0.8).then(|| json!({"version": 1, "chunks": zones})),
            ..Layout::default()
        };
        (tet_bytes(&datasets, &layout), description)
    }

    /// The rows of the table, whose files end at these elements.
    fn rows(&self, ends: &[u64]) -> RecordBatch {
        let labels = self.axes.iter().enumerate().map(|(axis, labels)| {
            (name(axis), labels.column(self.cells.iter().map(|cell| cell[axis])))
        });
        let mut columns: Vec<(String, ArrayRef)> = labels.collect();
        for variable in &self.variables {
            columns.push((variable.name.into(), variable.column()));
        }
        for axis in 0..self.axes.len() {
            let index = self.cells.iter().map(|cell| cell[axis] as i64);
            columns.push((format!("d{axis}_idx"), Arc::new(Int64Array::from_iter_values(index))));
        }
        let file = |cell: &Vec<u64>| ends.partition_point(|end| *end <= cell[self.along]);
        let files = self.cells.iter().map(|cell| format!("part-{}.tet", file(cell)));
        columns.push(("_file".into(), Arc::new(StringViewArray::from_iter_values(files))));
        let field = |(name, column): &(String, ArrayRef)| {
            Field::new(name, column.data_type().clone(), true)
        };
        let fields: Vec<Field> = columns.iter().map(field).collect();
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }
}

/// The zone maps that the reference writer stores for a dataset.
fn zones_of(
    id: usize,
    form: Form,
    values: &[Option<i32>],
    shape: &[u64],
    chunk: &[u64],
) -> Vec<serde_json::Value> {
    let mut of_chunks: BTreeMap<Vec<u64>, Vec<Option<i32>>> = BTreeMap::new();
    for (cell, value) in positions(shape).iter().zip(values) {
        let at = cell.iter().zip(chunk).map(|(place, edge)| place / edge).collect();
        of_chunks.entry(at).or_default().push(*value);
    }
    let zone = |(at, cells): (Vec<u64>, Vec<Option<i32>>)| {
        let values = || cells.iter().flatten().map(|value| form.stored(Some(*value)));
        let hex = |value: i32| {
            form.bytes(value).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let mut zone = json!({"dataset_id": id, "chunk_index": at, "element_count": cells.len(),
            "null_count": cells.len() - values().count()});
        if let (Some(least), Some(greatest)) = (values().min(), values().max()) {
            zone["min_le"] = hex(least).into();
            zone["max_le"] = hex(greatest).into();
        }
        zone
    };
    of_chunks.into_iter().map(zone).collect()
}

impl Mosaic {
    pub(crate) fn random(rng: &mut StdRng) -> Self {
        let lens: Vec<u64> = (0..rng.random_range(1..=4)).map(|_| rng.random_range(1..6)).collect();
        let whole = Whole::random(rng, &lens);
        let mut description = format!("shape {:?} along {} by {lens:?}", whole.shape, whole.along);
        let (mut files, mut ends) = (Vec::new(), Vec::new());
        for (number, len) in lens.iter().enumerate() {
            let start = ends.last().copied().unwrap_or_default();
            ends.push(start + len);
            let (bytes, cut) = whole.file(rng, number, &(start..start + len));
            description += &cut;
            files.push((format!("part-{number}.tet"), bytes));
        }
        files.shuffle(rng);
        let chunk_bytes = *[1, 100, 1 << 20].choose(rng).unwrap();
        description += &format!(", chunk bytes {chunk_bytes}");
        let rows = whole.rows(&ends);
        let variables = whole.variables.iter().map(|variable| variable.name).collect();
        Self {
            files,
            along: whole.along,
            axes: whole.axes,
            variables,
            rows,
            chunk_bytes,
            waits: rng.random_bool(0.3),
            description,
        }
    }

    /// The files as one table.
    async fn array(&self) -> gridfusion::Result<GridArray> {
        let mut files = Vec::new();
        for (location, bytes) in &self.files {
            let bytes = bytes::Bytes::from(bytes.clone());
            let source: Arc<dyn ByteSource> = match self.waits {
                true => {
                    let (store, key) = (Arc::new(InMemory::new()), location.as_str().into());
                    store.put(&key, bytes.into()).await.unwrap();
                    Arc::new(ObjectSource::open(location.clone(), store, key).await?)
                }
                false => Arc::new(MemorySource::new(location.clone(), bytes)),
            };
            let file = TetReader::open(source).await?;
            let mut arrays = Vec::new();
            for variable in file.data_variables() {
                let array = open_dataset(&file, &variable, &ReadOptions::default()).await?;
                arrays.push(array.with_variable_name());
            }
            files.push(FileArrays::new(location.clone(), arrays));
        }
        let options = MosaicOptions {
            concat_dimension: Some(name(self.along)),
            file_column: true,
            index_columns: true,
            chunk_bytes: self.chunk_bytes,
            ..MosaicOptions::default()
        };
        GridArray::combine("all".into(), files, &options)
    }

    async fn contexts(&self, rng: &mut StdRng) -> (SessionContext, SessionContext) {
        let batch_size = *[1, 3, 16, 8192].choose(rng).unwrap();
        let ours = reducing(rng.random_range(1..5), batch_size);
        let table = GridTable::new(Arc::new(self.array().await.unwrap()));
        ours.register_table("t", Arc::new(table)).unwrap();
        let theirs = reducing(1, 8192);
        let table = MemTable::try_new(self.rows.schema(), vec![vec![self.rows.clone()]]).unwrap();
        theirs.register_table("t", Arc::new(table)).unwrap();
        (ours, theirs)
    }

    pub(crate) fn query(&self, rng: &mut StdRng) -> String {
        let rank = self.axes.len();
        let mut conditions: Vec<String> = Vec::new();
        for _ in 0..rng.random_range(0..3) {
            let axis = rng.random_range(0..rank);
            let of_axis = self.axes[axis].predicate(&name(axis), rng);
            let value = self.variables.choose(rng).unwrap();
            let other = self.variables.choose(rng).unwrap();
            conditions.push(match rng.random_range(0..7) {
                0 => format!("{value} > {}", rng.random_range(-9..9)),
                1 => format!("{value} <= {other}"),
                2 => format!("_file = 'part-{}.tet'", rng.random_range(0..4)),
                3 => format!("({of_axis} OR _file LIKE '%{}.tet')", rng.random_range(0..4)),
                _ => of_axis,
            });
        }
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", conditions.join(" AND ")),
        };
        let of_values = self.variables.iter().map(ToString::to_string);
        let all: Vec<String> = (0..rank).map(name).chain(of_values).collect();
        let columns: Vec<String> = all.iter().filter(|_| rng.random_bool(0.6)).cloned().collect();
        let (value, other) =
            (self.variables.choose(rng).unwrap(), self.variables.choose(rng).unwrap());
        let keys: Vec<String> = (0..rank).map(name).chain(["_file".into()]).collect();
        let key = keys.choose(rng).unwrap();
        let axes: Vec<String> = (0..rank).map(|axis| format!("d{axis}_idx")).collect();
        let label = name(rng.random_range(0..rank));
        let limit = rng.random_range(1..9);
        let some = format!("(SELECT DISTINCT {label} AS k FROM t{filter}) AS some");
        let weights = (axes.choose(rng).unwrap(), axes.choose(rng).unwrap());
        let number = rng.random_range(-9..9);
        let along = axes.choose(rng).unwrap();
        let others: Vec<&str> =
            axes.iter().filter(|axis| *axis != along).map(String::as_str).collect();
        let partition = match others.as_slice() {
            [] => String::new(),
            others => format!("PARTITION BY {}", others.join(", ")),
        };
        match rng.random_range(0..16) {
            0 => format!("SELECT count(*), count({value}), sum({other}) FROM t{filter}"),
            1 => format!(
                "SELECT {key}, count(*), sum({value}), min({other}), max({value}), avg({other}) FROM t{filter} GROUP BY {key}"
            ),
            2 => format!(
                "SELECT {key}, sum({value} * {other}), count(DISTINCT {value}) FROM t{filter} GROUP BY {key}"
            ),
            3 => format!(
                "SELECT {0}, {value} FROM t{filter} ORDER BY {0} LIMIT {1}",
                axes.join(", "),
                rng.random_range(1..9)
            ),
            4 => format!(
                "SELECT {value} FROM t{filter} ORDER BY {value} DESC NULLS LAST LIMIT {}",
                rng.random_range(1..9)
            ),
            5 => format!(
                "SELECT min({key}), max({key}), count(DISTINCT {key}), min({value}) FROM t{filter}"
            ),
            6 => {
                format!("SELECT {label} FROM t{filter} ORDER BY {label} NULLS FIRST LIMIT {limit}")
            }
            7 => format!(
                "SELECT {label} FROM t{filter} ORDER BY {label} DESC NULLS LAST LIMIT {limit}"
            ),
            8 => format!(
                "SELECT {0}, sum({value}) OVER (PARTITION BY {key} ORDER BY {0}) FROM t{filter}",
                axes.join(", ")
            ),
            9 => format!("SELECT count(*), sum({value}) FROM t JOIN {some} ON t.{label} = some.k"),
            10 => format!(
                "SELECT {value} FROM t JOIN {some} ON t.{label} = some.k{filter} ORDER BY {value} NULLS LAST LIMIT {limit}"
            ),
            11 => format!(
                "SELECT {key}, sum({value} * ({0} * 0.5 - 1)), weighted_avg({other}, {1} + 0.5), count(*) FILTER (WHERE {value} > {number}), avg({other}) FILTER (WHERE {1} > 1) FROM t{filter} GROUP BY {key}",
                weights.0, weights.1
            ),
            12 => format!(
                "SELECT avg({value} * {0} * 0.25 - {1}), sum(CASE WHEN {value} > {number} THEN 1 ELSE 0 END), sum({0} * 0.5) FILTER (WHERE {other} IS NOT NULL) FROM t{filter}",
                weights.0, weights.1
            ),
            13 => format!(
                "SELECT {0}, sum({value}) OVER ({partition} ORDER BY {along} ROWS BETWEEN {limit} PRECEDING AND 1 FOLLOWING), lag({other}, {limit}) OVER ({partition} ORDER BY {along} DESC) FROM t{filter}",
                axes.join(", ")
            ),
            14 => format!(
                "SELECT {}, {value}, c.m FROM t JOIN (SELECT {label} AS k, max({other}) AS m FROM t{filter} GROUP BY {label}) c ON t.{label} = c.k",
                axes.join(", ")
            ),
            _ if columns.is_empty() => format!("SELECT count(*) FROM t{filter}"),
            _ => format!("SELECT {}, _file FROM t{filter}", columns.join(", ")),
        }
    }
}

/// Labels that repeat within a file, are unsorted or NULL, or interleave with labels of other files.
fn odd_labels(rng: &mut StdRng, lens: &[u64]) -> Axis {
    let (files, interleaved) = (lens.len() as i32, rng.random());
    let mut labels: Vec<f64> = Vec::new();
    for (file, &len) in (0..).zip(lens) {
        let first = labels.len();
        for at in 0..len as i32 {
            labels.push(match at {
                _ if interleaved => f64::from(file + at * files) / 4.0,
                1.. if rng.random_bool(0.2) => f64::NAN,
                _ => f64::from(file * 5 + rng.random_range(0..4)) / 4.0,
            });
        }
        // Avoids files whose labels all descend, as they would be concatenated in descending order.
        if len > 1 && !interleaved {
            labels[first + 1] = labels[first];
        }
    }
    Axis::Numbers(labels)
}

/// Labels along the concatenated dimension: mostly distinct, and sorted in either direction.
fn labels_along(rng: &mut StdRng, lens: &[u64]) -> Axis {
    let len = lens.iter().sum();
    if rng.random_bool(0.3) {
        return odd_labels(rng, lens);
    }
    let mut numbers: Vec<i32> = (0..len as i32).map(|at| at * 2 - 5).collect();
    // Labels can only be seen to descend if some file has several of them.
    if rng.random() && lens.iter().any(|len| *len > 1) {
        numbers.reverse();
    }
    match rng.random_range(0..4) {
        0 => Axis::Index(len),
        1 => Axis::Numbers(numbers.iter().map(|&number| f64::from(number) / 4.0).collect()),
        _ => Axis::Hours(numbers),
    }
}

/// The labels of some elements.
fn cut(labels: &Axis, elements: &Range<u64>) -> Axis {
    let range = elements.start as usize..elements.end as usize;
    match labels {
        Axis::Index(_) => Axis::Index(elements.end - elements.start),
        Axis::Text(labels) => Axis::Text(labels[range].to_vec()),
        Axis::Numbers(labels) => Axis::Numbers(labels[range].to_vec()),
        Axis::Hours(labels) => Axis::Hours(labels[range].to_vec()),
    }
}

fn metadata(
    axes: &[Axis],
    along: usize,
    elements: &Range<u64>,
    attributes: &serde_json::Value,
) -> serde_json::Value {
    let mut coords = Map::new();
    for (axis, labels) in axes.iter().enumerate() {
        let labels = if axis == along { &cut(labels, elements) } else { labels };
        if let Axis::Text(labels) = labels {
            coords.insert(name(axis), json!({"labels": labels}));
        }
    }
    let names: Vec<String> = (0..axes.len()).map(name).collect();
    json!({"dim_names": names, "coords": coords, "attrs": attributes})
}

#[tokio::test]
async fn random_queries_agree_with_rows_in_memory() {
    let mut rng = StdRng::seed_from_u64(11);
    let mut not_empty = 0;
    for number in 0..150 {
        let case = Mosaic::random(&mut rng);
        let (ours, theirs) = case.contexts(&mut rng).await;
        for _ in 0..12 {
            let sql = case.query(&mut rng);
            let context = || format!("case {number}, {}: {sql}", case.description);
            let found = query(&ours, &sql).await;
            let expected = query(&theirs, &sql).await;
            let (found, expected) = match (found, expected) {
                (Ok(found), Ok(expected)) => (found, expected),
                (Err(_), Err(_)) => continue,
                (found, expected) => panic!(
                    "{}\ngridfusion: {:?}\nin memory: {:?}",
                    context(),
                    found.map(|_| ()),
                    expected.map(|_| ())
                ),
            };
            let (mut found, mut expected) = (rows_of(&found), rows_of(&expected));
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{}", context());
            not_empty += usize::from(!found.is_empty());
        }
    }
    assert!(not_empty > 1_000, "only {not_empty} queries had rows; they test little");
}
