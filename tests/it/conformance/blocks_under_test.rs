//! The third format in the suite, and further tests of it. The library's `write_all` writes its folders:
//! without chunks that are all fill, and with various orders of axes and bytes.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use async_trait::async_trait;
use datafusion::prelude::SessionContext;
use futures::stream;
use gridfusion::extend::{
    ArrayFormat, ArrayGroup, Content, Ending, Entry, FactTable, Facts, InfoFunction, LocalFolder,
    OpenedArray, OptionInfo, Place, Publish, RecognisedFormat, ResolvedOptions, ValueKind, Write,
    Writer, write_all,
};
use gridfusion::grid::ravel;
use gridfusion::source::Detail;
use gridfusion::verify::{Depth, Progress};
use gridfusion::{ArrayOptions, Error, ErrorKind, GridfusionSessionContextExt, Result};

use super::arrays::arrays;
use super::blocks::{
    Axis, AxisLabels, Blocks, HEADER, Header, Note, Number, Numbers, corrupt, object,
};
use super::format::{Capabilities, FormatUnderTest, as_given};
use super::logical::{Cell, Chunk, Element, Labels, Logical, Values};
use super::subject::{Subject, metrics};
use crate::support::{cell, open, positions, query};

/// Writes an object per chunk, and then the header, which makes the array visible.
struct BlocksWriter(Header);

impl Writer for BlocksWriter {
    /// The number of the value, the coordinates of the chunk, its stored bytes, and its note, if any.
    type Chunk = (usize, Vec<u64>, Vec<u8>, Option<Note>);

    fn write(&mut self, (value, at, bytes, note): Self::Chunk) -> Result<Vec<Write>> {
        let value = &mut self.0.values[value];
        let object = object(&value.name, &at);
        value.notes.extend(note.map(|note| (object.clone(), note)));
        Ok(vec![Write::Put(vec![Content::new(object, bytes)])])
    }

    fn finish(&mut self) -> Result<(Vec<Write>, Publish)> {
        let header = serde_json::to_vec(&self.0).map_err(|error| corrupt(error.to_string()))?;
        Ok((vec![], Publish::Create(Content::new(HEADER, header))))
    }
}

pub(crate) struct BlocksUnderTest;

impl FormatUnderTest for BlocksUnderTest {
    fn name(&self) -> &'static str {
        "blocks"
    }

    fn suffix(&self) -> &'static str {
        ".blocks"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            holds: |_| true,
            divides: as_given,
            hours: DataType::Timestamp(TimeUnit::Second, None),
            notes_bounds: true,
            has_attributes: false,
            holds_chunks_in_metadata: false,
        }
    }

    fn write(&self, array: &Logical, path: &Path) {
        std::fs::create_dir(path).unwrap();
        let folder = Arc::new(LocalFolder::open(path, false).unwrap());
        let chunks = array.chunks();
        let written = chunks.iter().enumerate().filter(|(_, chunk)| !array.is_all_fill(chunk));
        let all = written.flat_map(|(number, chunk)| {
            let of_value = move |(value, values): (usize, &Values)| {
                let (bytes, note) = stored(number + value, chunk, values);
                Ok((value, chunk.at.clone(), bytes, note))
            };
            array.values.iter().enumerate().map(of_value).collect::<Vec<_>>()
        });
        let written = write_all(BlocksWriter(header(array)), stream::iter(all), folder);
        // A task of Tokio must neither block nor drop a runtime, so another thread does both.
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(written)
        };
        std::thread::scope(|scope| scope.spawn(run).join().unwrap()).unwrap();
    }

    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        let file = path.join("header.json");
        let len = std::fs::read(&file).unwrap().len();
        (file, 0..len)
    }

    fn install(&self, ctx: &SessionContext) {
        ctx.register_array_format(Arc::new(Blocks));
    }
}

fn header(array: &Logical) -> Header {
    let axis = |axis: &super::logical::Axis| Axis {
        name: axis.name.into(),
        length: axis.labels.len(),
        chunk: axis.chunk,
        labels: match axis.labels.clone() {
            Labels::Index(_) => None,
            Labels::Integers(all) => Some(AxisLabels::Integers(all)),
            Labels::Hours(all) => Some(AxisLabels::Hours(all)),
            Labels::Floats(all) => Some(AxisLabels::Floats(all)),
            Labels::Singles(all) => Some(AxisLabels::Singles(all)),
            Labels::Text(all) => Some(AxisLabels::Text(all)),
        },
    };
    let numbers = |values: &Values| Numbers {
        name: values.name.into(),
        number: match values.element {
            Element::F32 => Number::F32,
            Element::F64 => Number::F64,
            Element::I32 => Number::I32,
            Element::I64 => Number::I64,
        },
        fill: values.element.fill().parse().unwrap(),
        notes: Default::default(),
    };
    Header {
        name: array.name.into(),
        axes: array.axes.iter().map(axis).collect(),
        values: array.values.iter().map(numbers).collect(),
    }
}

/// The stored bytes and the note of a chunk. Every sixth chunk is row-major and has no note. The others
/// differ in the order of axes, and every second one is big-endian.
fn stored(number: usize, chunk: &Chunk, values: &Values) -> (Vec<u8>, Option<Note>) {
    if number % 6 == 5 {
        return (values.bytes(&chunk.places), None);
    }
    let rank = chunk.shape.len();
    let mut axes: Vec<usize> = (0..rank).collect();
    match number % 3 {
        0 => axes.reverse(),
        turns => axes.rotate_left(turns % rank),
    }
    let shape: Vec<u64> = axes.iter().map(|axis| chunk.shape[*axis]).collect();
    let big_endian = number % 2 == 1;
    let cell = |stored: Vec<u64>| {
        let mut at = vec![0; rank];
        axes.iter().zip(stored).for_each(|(axis, place)| at[*axis] = place);
        let place = chunk.places[ravel(&at, &chunk.shape) as usize];
        let mut bytes = values.element.bytes(values.cells[place]);
        if big_endian {
            bytes.reverse();
        }
        bytes
    };
    let bytes = positions(&shape).into_iter().flat_map(cell).collect();
    let scale = if values.element.is_float() { 0.25 } else { 1.0 };
    let numbers = chunk.places.iter().filter_map(|place| match values.cells[*place] {
        Cell::Number(number) => Some(f64::from(number) * scale),
        Cell::Nan | Cell::Fill => None,
    });
    let numbers: Vec<f64> = numbers.collect();
    let bounds =
        numbers.iter().copied().reduce(f64::min).zip(numbers.iter().copied().reduce(f64::max));
    let nulls = (chunk.places.len() - numbers.len()) as u64;
    (bytes, Some(Note { axes, big_endian, nulls, bounds }))
}

fn subject(name: &str) -> Subject<'static> {
    let array = arrays().into_iter().find(|array| array.name == name).unwrap();
    Subject::new(&BlocksUnderTest, &array)
}

#[tokio::test]
async fn doors_of_no_format_know_it() {
    let subject = subject("climate");
    let (ctx, location) = (subject.session(2, 8192), subject.location());
    let sql = format!(
        "CREATE EXTERNAL TABLE x STORED AS ARRAY LOCATION '{location}' OPTIONS (fill_as_null 'true')"
    );
    query(&ctx, &sql).await.unwrap();
    subject.assert_rows(&ctx, "x").await;
    subject.assert_rows(&ctx, &format!("read_array('{location}')")).await;
    let error = query(&ctx, &format!("SELECT * FROM read_tet('{location}')")).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("this is a folder of blocks, not a") && text.contains("read_blocks"),
        "{text}"
    );
}

#[tokio::test]
async fn it_is_described_without_a_word_of_its_own() {
    let subject = subject("climate");
    let (ctx, options) = (subject.session(1, 8192), ArrayOptions::default());
    let group = open::open(&subject.location(), &options, &ctx).await.unwrap();
    let described = group.describe(&Detail::default()).await.unwrap();
    let document = serde_json::to_value(&described.document).unwrap();
    let array = &document["arrays"][0];
    assert_eq!((&array["name"], &array["chunks"]), (&"climate".into(), &36.into()), "{document}");
    assert_eq!(array["dimensions"][2]["first"], "b");
    assert_eq!(array["columns"][3]["type"], "Float32");
}

/// Notes answer `max` without reading cells: only the two chunks without a note are read.
#[tokio::test]
async fn notes_answer_extremes() {
    let subject = subject("counts");
    let ctx = subject.table(1, 8192).await;
    let sql = "SELECT max(counts) FROM t";
    let found = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    assert_eq!(found[0].column(0).as_primitive::<Int64Type>().value(0), 5106);
    let [bytes] = metrics(&ctx, sql, ["bytes_read"]).await;
    assert_eq!(bytes, 2 * 4 * 6 * 8);
    let [read] = metrics(&ctx, "SELECT * FROM t WHERE counts > 5100", ["chunks_read"]).await;
    assert!((1..=3).contains(&read), "{read}");
}

#[tokio::test]
async fn a_chunk_of_another_length_is_named() {
    let subject = subject("counts");
    let file = subject.path().join("c/counts/1/0");
    std::fs::write(&file, [0; 16]).unwrap();
    let ctx = subject.table(1, 8192).await;
    let error = query(&ctx, "SELECT * FROM t").await.unwrap_err();
    let root = error.find_root().to_string();
    assert!(root.contains("c/counts/1/0") && root.contains("chunk [1, 0] of \"counts\""), "{root}");
    let group = open::open(&subject.location(), &ArrayOptions::default(), &ctx).await.unwrap();
    let report = crate::conformance::doors::verify(&ctx, group.location()).await;
    assert_eq!(report.check("chunk_decode").unwrap().findings().len(), 1, "{report:#?}");
}

/// A small header can declare any number of chunks. The verification leaves them out and still ends.
#[tokio::test]
async fn too_many_chunks_are_a_warning() {
    let subject = subject("counts");
    let axis = |length| Axis { name: "x".into(), length, chunk: 1, labels: None };
    let numbers =
        Numbers { name: "v".into(), number: Number::F64, fill: 0.0, notes: Default::default() };
    let header = Header { name: "many".into(), axes: vec![axis(1 << 25)], values: vec![numbers] };
    std::fs::write(subject.path().join(HEADER), serde_json::to_vec(&header).unwrap()).unwrap();
    let ctx = subject.session(1, 8192);
    let group = open::open(&subject.location(), &ArrayOptions::default(), &ctx).await.unwrap();
    let progress = Arc::new(Progress::default());
    let reports = group.verify(Depth::Cells, &progress).await;
    let located = reports[0].1.check("chunk_locations").unwrap();
    assert_eq!((located.warnings(), located.failures()), (1, 0), "{located:?}");
    assert_eq!((progress.done(), progress.total()), (1 << 25, 1 << 25));
}

/// A chunk with a note must have an object.
#[tokio::test]
async fn a_chunk_with_a_note_and_no_object_is_an_error() {
    let subject = subject("holes");
    std::fs::remove_file(subject.path().join("c/holes/0/0")).unwrap();
    let ctx = subject.table(1, 8192).await;
    let error = query(&ctx, "SELECT * FROM t").await.unwrap_err();
    assert!(error.to_string().contains("c/holes/0/0"), "{error}");
}

#[tokio::test]
async fn a_folder_without_a_header_is_no_array() {
    let subject = subject("holes");
    std::fs::remove_file(subject.path().join("header.json")).unwrap();
    let ctx = subject.session(1, 8192);
    let error: Error =
        open::open(&subject.location(), &ArrayOptions::default(), &ctx).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(error.to_string().contains("header.json"), "{error}");
}

/// The blocks format with an additional option and table function.
#[derive(Debug)]
struct Told;

const OPTIONS: &[OptionInfo] =
    &[OptionInfo::new("gentle", ValueKind::Flag, "`false`", "reads with care").in_session()];

#[async_trait]
impl ArrayFormat for Told {
    fn name(&self) -> &'static str {
        "told"
    }

    fn title(&self) -> &'static str {
        "Told"
    }

    fn nouns(&self) -> &'static [&'static str] {
        &["told folder"]
    }

    fn endings(&self) -> &'static [Ending] {
        const ENDINGS: &[Ending] = &[];
        ENDINGS
    }

    fn probe_folder(&self, entries: &[Entry]) -> Option<RecognisedFormat> {
        Blocks.probe_folder(entries)
    }

    fn options(&self) -> &'static [OptionInfo] {
        OPTIONS
    }

    fn info_functions(&self) -> &'static [InfoFunction] {
        const FUNCTIONS: &[InfoFunction] = &[InfoFunction::new("told_info")];
        FUNCTIONS
    }

    async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>> {
        let gentle = options.flag("gentle").unwrap_or_default();
        Ok(Arc::new(ToldGroup(Blocks.open(place, options).await?, gentle)))
    }
}

#[derive(Debug)]
struct ToldGroup(Arc<dyn ArrayGroup>, bool);

#[async_trait]
impl ArrayGroup for ToldGroup {
    fn location(&self) -> &str {
        self.0.location()
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    async fn arrays(&self, names: &[String]) -> Result<Vec<OpenedArray>> {
        self.0.arrays(names).await
    }

    async fn facts(&self, function: &str, _: Option<&str>) -> Result<Arc<dyn FactTable>> {
        let fact = StringArray::from(vec![format!("{function} of {:?}: {}", self.names(), self.1)]);
        Ok(Arc::new(Facts::new(
            RecordBatch::try_from_iter([("fact", Arc::new(fact) as _)]).unwrap(),
        )))
    }
}

#[tokio::test]
async fn options_and_table_functions_of_its_own() {
    let subject = subject("holes");
    let (ctx, location) = (crate::support::session(1, 8192), subject.location());
    ctx.enable_gridfusion();
    ctx.register_array_format(Arc::new(Told));
    let fact = |arguments: &str| format!("SELECT fact FROM told_info('{location}'{arguments})");
    assert_eq!(cell(&ctx, &fact("")).await, "told_info of [\"holes\"]: false");
    assert_eq!(cell(&ctx, &fact(", gentle => true")).await, "told_info of [\"holes\"]: true");
    query(&ctx, "SET gridfusion.gentle = true").await.unwrap();
    assert_eq!(cell(&ctx, &fact("")).await, "told_info of [\"holes\"]: true");
    let error = query(&ctx, &fact(", gentel => true")).await.unwrap_err().to_string();
    assert!(error.contains("did you mean 'gentle'?"), "{error}");
    let rows = cell(&ctx, &format!("SELECT count(*) FROM read_told('{location}')")).await;
    assert_eq!(rows, "110");
}
