//! Tables that the crate `parquet` writes, with all that can be wrong in them.

use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use gridfusion_core::ErrorKind;

const SCHEMA: &str =
    "optional binary path (utf8); optional int64 offset; required int64 size; optional binary raw;";

/// A value of a column; `None` is null.
#[derive(Clone)]
enum Cell {
    Text(Option<&'static str>),
    Number(Option<i64>),
}

/// A row: path, offset, size, raw.
pub(crate) type Row = (Option<&'static str>, Option<i64>, i64, Option<&'static str>);

const ROWS: [Row; 4] = [
    (Some("s3://b/x"), Some(10), 5, None),
    (None, Some(0), 0, Some("base64:Bw==")),
    (None, None, 0, None),
    (Some("y.nc"), Some(0), 0, None),
];

fn cells(rows: &[Row]) -> Vec<Vec<Cell>> {
    let column = |cell: &dyn Fn(&Row) -> Cell| rows.iter().map(cell).collect();
    vec![
        column(&|row| Cell::Text(row.0)),
        column(&|row| Cell::Number(row.1)),
        column(&|row| Cell::Number(Some(row.2))),
        column(&|row| Cell::Text(row.3)),
    ]
}

/// Writes columns, each with a row group per entry of `groups`.
fn file(schema: &str, groups: &[Vec<Vec<Cell>>], properties: WriterProperties) -> Bytes {
    let schema = parse_message_type(&format!("message m {{ {schema} }}")).unwrap();
    let mut bytes = vec![];
    let mut writer =
        SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties)).unwrap();
    for columns in groups {
        let mut group = writer.next_row_group().unwrap();
        let mut columns = columns.iter();
        while let Some(mut column) = group.next_column().unwrap() {
            write(column.untyped(), columns.next().unwrap());
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    bytes.into()
}

fn write(column: &mut ColumnWriter<'_>, cells: &[Cell]) {
    let is_there = |cell: &Cell| match cell {
        Cell::Text(text) => text.is_some(),
        Cell::Number(number) => number.is_some(),
    };
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(is_there(cell))).collect();
    let numbers: Vec<i64> = cells
        .iter()
        .filter_map(|cell| if let Cell::Number(number) = cell { *number } else { None })
        .collect();
    match column {
        ColumnWriter::Int64ColumnWriter(writer) => {
            writer.write_batch(&numbers, Some(&levels), None)
        }
        ColumnWriter::Int32ColumnWriter(writer) => {
            let numbers: Vec<i32> = numbers.iter().map(|it| *it as i32).collect();
            writer.write_batch(&numbers, Some(&levels), None)
        }
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            let texts = cells
                .iter()
                .filter_map(|cell| if let Cell::Text(text) = cell { *text } else { None });
            let texts: Vec<_> = texts.map(parquet::data_type::ByteArray::from).collect();
            writer.write_batch(&texts, Some(&levels), None)
        }
        _ => panic!("a column of another type"),
    }
    .unwrap();
}

fn zstd() -> WriterProperties {
    WriterProperties::builder().set_compression(Compression::ZSTD(Default::default())).build()
}

pub(crate) fn table(rows: &[Row]) -> Bytes {
    file(SCHEMA, &[cells(rows)], zstd())
}

/// Parses the first table of an array of four chunks, and tables of at most five.
fn parsed(bytes: Bytes) -> Result<ReferenceTable> {
    ReferenceTable::parse(bytes, 0, 5, 4)
}

fn is_of_rows(table: &ReferenceTable) -> bool {
    let paths: Vec<Option<&str>> =
        table.path_of.iter().map(|path| table.paths.get(*path as usize).map(|it| &**it)).collect();
    paths == [Some("s3://b/x"), None, None, Some("y.nc")]
        && (table.ranges[0], table.ranges[3]) == ((10, 5), (0, 0))
        && table.raw == HashMap::from([(1, Bytes::from_static(&[7]))])
}

#[test]
fn tables_of_all_kinds_are_read() {
    let builder = WriterProperties::builder;
    let narrow = SCHEMA.replace("int64", "int32");
    let required = SCHEMA.replace("required", "optional");
    for (schema, properties) in [
        (SCHEMA, zstd()),
        (SCHEMA, builder().set_compression(Compression::SNAPPY).build()),
        (SCHEMA, builder().set_compression(Compression::GZIP(Default::default())).build()),
        (
            SCHEMA,
            builder()
                .set_writer_version(WriterVersion::PARQUET_2_0)
                .set_dictionary_enabled(true)
                .build(),
        ),
        (SCHEMA, builder().set_dictionary_enabled(false).set_data_page_row_count_limit(1).build()),
        (&narrow, zstd()),
        (&required, zstd()),
    ] {
        let is_delta = properties.writer_version() == WriterVersion::PARQUET_2_0;
        let bytes = file(schema, &[cells(&ROWS[..1]), cells(&ROWS[1..])], properties);
        let table = match parsed(bytes) {
            // Only values without a dictionary are written as differences.
            Err(error) if is_delta && error.kind() == ErrorKind::Unsupported => continue,
            table => table.unwrap(),
        };
        assert!(is_of_rows(&table), "{schema} {table:?}");
        assert_eq!((table.references(), table.names_stores()), (3, true));
    }
    // Tables of values only, and of other objects only.
    let raw = file("optional binary raw;", &[cells(&[ROWS[1]; 4]).split_off(3)], zstd());
    assert_eq!(parsed(raw).unwrap().references(), 4);
    let mut columns = cells(&[ROWS[0]; 4]);
    columns.truncate(3);
    let urls = SCHEMA.rsplit_once("optional").unwrap().0;
    assert_eq!(parsed(file(urls, &[columns], zstd())).unwrap().references(), 4);
    // A last table may have rows that no chunk has.
    assert!(parsed(table(&[&ROWS[..], &[ROWS[2]]].concat())).is_ok());
}

#[test]
fn contradictions_are_corrupt() {
    let [one, inline, absent, _] = ROWS;
    let with = |row: Row| vec![one, inline, row, absent];
    for (rows, expected) in [
        (vec![one, inline, absent], "3 rows for 4 chunks"),
        (vec![absent; 6], "6 rows for 4 chunks"),
        (vec![one; 5], "row 4, where the array has 4 chunks"),
        (vec![inline; 5], "row 4, where the array has 4 chunks"),
        (with((Some("x"), Some(-1), 2, None)), "negative offset in row 2"),
        (with((Some("x"), Some(1), -2, None)), "negative size in row 2"),
        (with((Some("x"), None, 2, None)), "2 paths, and 1 of them with offset"),
        (with((Some(""), Some(0), 2, None)), "empty path in row 2"),
        (with((None, Some(0), 0, Some("base64:?"))), "not base64 in row 2"),
    ] {
        let error = parsed(table(&rows)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(expected), "{error}, not {expected}");
    }
    let whole = [(Some("x"), Some(i64::MAX), i64::MAX, None); 4];
    assert!(parsed(table(&whole)).is_ok());
    for schema in [
        "optional double path; optional int64 offset; required int64 size; optional binary raw;",
        "repeated binary path (utf8); optional int64 offset; required int64 size; optional binary raw;",
        "optional group path { optional binary a; } optional int64 offset; required int64 size; optional binary raw;",
    ] {
        let parsed_schema = parse_message_type(&format!("message m {{ {schema} }}")).unwrap();
        let writer =
            SerializedFileWriter::new(vec![], Arc::new(parsed_schema), Arc::new(zstd())).unwrap();
        let bytes = writer.into_inner().unwrap();
        let error = ReferenceTable::parse(bytes.into(), 0, 5, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
    for bytes in ["", "PAR1PAR1", "PAR1\0\0\0\0PAR1", "PAR1\u{1}\0\0\0PAR1", "{\"a\": 1}"] {
        assert_eq!(parsed(bytes.into()).unwrap_err().kind(), ErrorKind::Corrupt, "{bytes:?}");
    }
}

/// Other bytes are an error, or a table that is as large as the file claims within bounds.
#[test]
fn flipped_bytes_and_truncations_are_answered() {
    let builder = WriterProperties::builder;
    let shipped = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/references");
        Bytes::from(std::fs::read(format!("{folder}/{name}")).unwrap())
    };
    answers_to_changes(&shipped("fastparquet.parq/t/refs.0.parq"));
    answers_to_changes(&shipped("pyarrow.parq/t/refs.1.parq"));
    for properties in [
        zstd(),
        builder().set_dictionary_enabled(false).build(),
        builder()
            .set_compression(Compression::SNAPPY)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .build(),
    ] {
        answers_to_changes(&file(SCHEMA, &[cells(&ROWS)], properties));
    }
}

fn answers_to_changes(whole: &Bytes) {
    for end in 0..whole.len() {
        assert!(parsed(whole.slice(..end)).is_err(), "{end}");
    }
    for at in 0..whole.len() {
        for mask in [1, 0x10, 0x55, 0x80, 0xff] {
            let mut bytes = whole.to_vec();
            bytes[at] ^= mask;
            let table = parsed(bytes.into());
            assert!(table.map_or(true, |table| table.memory() < 1 << 20), "{at}");
        }
    }
    let mut random = StdRng::seed_from_u64(whole.len() as u64);
    for _ in 0..1000 {
        let mut bytes = whole.to_vec();
        for _ in 0..random.random_range(2..6) {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        let from = random.random_range(0..bytes.len());
        let to = random.random_range(from..bytes.len().min(from + 40));
        let target = random.random_range(0..bytes.len() - (to - from));
        if random.random() {
            bytes.copy_within(from..to, target);
        }
        let table = parsed(bytes.into());
        assert!(table.map_or(true, |table| table.memory() < 1 << 20));
    }
}

#[test]
fn names_of_tables() {
    let names = ["refs.0.parq", "refs.12.parq", "refs.012.parq", "refs..parq", "refs.0.parquet"];
    assert_eq!(names.map(TableNames::number), [Some(0), Some(12), None, None, None]);
}
