//! The text is that of Arrow's writer, byte by byte.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array,
};
use datafusion::arrow::array::{ArrayData, make_array};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::compute::{cast, cast_with_options, take};
use datafusion::arrow::csv::{QuoteStyle, WriterBuilder};
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::CsvFormatter;

/// Texts that need quotes with some delimiter, and others.
const TEXTS: [&str; 14] = [
    "",
    "Oslo",
    "a,b",
    "a;b",
    "\"",
    "it's \"x\"",
    "a\nb",
    "a\r",
    "\t",
    " a ",
    "é,",
    "'",
    "NULL",
    "0123456789,",
];

fn by_arrow(writer: &WriterBuilder, rows: &RecordBatch, has_header: bool) -> (Vec<u8>, String) {
    let mut out = vec![];
    let outcome = writer.clone().with_header(has_header).build(&mut out).write(rows);
    (out, outcome.err().map_or(String::new(), |it| it.to_string()))
}

fn by_us(writer: &WriterBuilder, rows: &RecordBatch, has_header: bool) -> (Vec<u8>, String) {
    // Rows may follow others.
    let mut out = b"before".to_vec();
    let outcome = CsvFormatter::new(writer.clone()).format(rows, has_header, &mut out);
    (out.split_off(6), outcome.err().map_or(String::new(), |it| it.to_string()))
}

/// Returns values of a type, some of them twice in succession, and a seventh of them NULL.
fn random(random: &mut SmallRng, data_type: &DataType, rows: usize) -> ArrayRef {
    let width = data_type.primitive_width();
    let bits: Vec<u8> = match (data_type, width) {
        (DataType::Boolean, _) => (0..rows.div_ceil(8)).map(|_| random.random()).collect(),
        (_, Some(width)) => {
            let mut bits = vec![0_u8; rows * width];
            for row in 0..rows {
                // Of wide numbers, half are small: most other times are out of the range of dates.
                let used = if random.random() { width } else { width.div_ceil(2) };
                let sign = if random.random() { 0xff } else { 0 };
                let number = &mut bits[row * width..][..width];
                number[used..].fill(sign);
                number[..used].fill_with(|| random.random());
            }
            bits
        }
        _ => {
            let mut text = |_| TEXTS[random.random_range(0..TEXTS.len())];
            let texts = StringArray::from_iter_values((0..rows).map(&mut text));
            return with_repeats(random, &cast(&texts, data_type).unwrap());
        }
    };
    let data = ArrayData::builder(data_type.clone())
        .len(rows)
        .add_buffer(Buffer::from(bits))
        .align_buffers(true);
    let array = make_array(data.build().unwrap());
    with_repeats(random, &array)
}

fn with_repeats(random: &mut SmallRng, array: &dyn Array) -> ArrayRef {
    let mut row = 0;
    let rows = (0..array.len()).map(|at| {
        row = if random.random_range(0..3) > 0 { at as u32 } else { row };
        (random.random_range(0..7) > 0).then_some(row)
    });
    take(array, &rows.collect::<UInt32Array>(), None).unwrap()
}

fn types() -> Vec<DataType> {
    use DataType::{
        Binary, Boolean, Date32, Date64, Decimal128, Dictionary, Duration, Float16, Float32,
        Float64, Int8, Int16, Int32, Int64, LargeUtf8, Time32, Time64, Timestamp, UInt8, UInt16,
        UInt32, UInt64, Utf8, Utf8View,
    };
    let mut types = vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Decimal128(20, 3),
        Date32,
        Date64,
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        Dictionary(Box::new(Int8), Box::new(Utf8)),
        Dictionary(Box::new(UInt32), Box::new(LargeUtf8)),
    ];
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    for unit in [Second, Millisecond, Microsecond, Nanosecond] {
        types.extend([
            Timestamp(unit, None),
            Timestamp(unit, Some("UTC".into())),
            Timestamp(unit, Some("+05:30".into())),
            Duration(unit),
        ]);
    }
    types.extend([Time32(Second), Time32(Millisecond), Time64(Microsecond), Time64(Nanosecond)]);
    types
}

fn writers() -> Vec<WriterBuilder> {
    let plain = WriterBuilder::new;
    vec![
        plain(),
        plain().with_delimiter(b'\t'),
        plain().with_delimiter(b';').with_quote(b'\'').with_null("NULL".to_owned()),
        plain().with_null("a,\"b".to_owned()),
        plain().with_delimiter(b'-'),
        plain().with_quote(b'1'),
        plain().with_double_quote(false),
        plain().with_quote_style(QuoteStyle::Always),
        plain().with_timestamp_format("%Y".to_owned()),
        plain().with_ignore_leading_whitespace(true),
    ]
}

/// Random bits are times within and beyond the years of dates, NaN, infinity and numbers of all sizes.
#[test]
fn all_types_have_the_text_of_arrow() {
    let mut generator = SmallRng::seed_from_u64(45);
    let (mut same, mut failed, mut fast) = (0, 0, 0);
    for data_type in types() {
        for writer in writers() {
            fast += usize::from(CsvFormatter::new(writer.clone()).style.is_some());
            for columns in 1..3 {
                let rows = generator.random_range(0..300);
                let column = |_| random(&mut generator, &data_type, rows);
                let columns: Vec<ArrayRef> = (0..columns).map(column).collect();
                let field = |at: usize| Field::new(format!("c,{at}"), data_type.clone(), true);
                let schema = Schema::new((0..columns.len()).map(field).collect::<Vec<_>>());
                let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
                let start = generator.random_range(0..=rows);
                for batch in [batch.clone(), batch.slice(start, rows - start)] {
                    for has_header in [false, true] {
                        let expected = by_arrow(&writer, &batch, has_header);
                        let found = by_us(&writer, &batch, has_header);
                        assert_eq!(found, expected, "{data_type} {writer:?}");
                        same += usize::from(found.1.is_empty());
                        failed += usize::from(!found.1.is_empty());
                    }
                }
            }
        }
    }
    assert!(same > 1000 && failed > 100 && fast > 100, "{same} {failed} {fast}");
}

/// Dates around the ends of years, months and the range of four digits.
#[test]
fn times_have_the_text_of_arrow() {
    let mut generator = SmallRng::seed_from_u64(11);
    let day = 86_400_i64;
    let mut seconds: Vec<i64> = vec![0, -1, 1, day - 1, -day, 951_782_400, 951_868_799];
    for days in [-719_529, -719_528, 2_932_896, 2_932_897] {
        seconds.extend([days * day, days * day + day - 1]);
    }
    seconds.extend((0..5000).map(|_| generator.random_range(-62_500_000_000..254_000_000_000)));
    let mut columns: Vec<(String, ArrayRef)> = vec![];
    for (unit, per_second) in [
        (TimeUnit::Second, 1_i64),
        (TimeUnit::Millisecond, 1000),
        (TimeUnit::Microsecond, 1_000_000),
        (TimeUnit::Nanosecond, 1_000_000_000),
    ] {
        let parts = [1, 1000, 1_000_000, 1_000_000_000].map(|it| (per_second / it).max(1));
        let value = |second: &i64| {
            let fraction = generator.random_range(0..per_second);
            let part = parts[generator.random_range(0..4)];
            second.checked_mul(per_second).map(|it| it + fraction / part * part)
        };
        let values: Int64Array = seconds.iter().map(value).collect();
        let data_type = DataType::Timestamp(unit, None);
        columns.push((data_type.to_string(), cast(&values, &data_type).unwrap()));
        if unit == TimeUnit::Millisecond {
            columns.push(("Date64".to_owned(), cast(&values, &DataType::Date64).unwrap()));
        }
    }
    let days: Int64Array = seconds.iter().map(|it| Some(it.div_euclid(day))).collect();
    let options = Default::default();
    let days = cast_with_options(&days, &DataType::Int32, &options).unwrap();
    columns.push(("Date32".to_owned(), cast(&days, &DataType::Date32).unwrap()));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let found = by_us(&WriterBuilder::new(), &batch, true);
    assert_eq!(found, by_arrow(&WriterBuilder::new(), &batch, true));
    let text = String::from_utf8(found.0).unwrap();
    assert!(
        text.contains("9999-12-31T23:59:59")
            && text.contains("+10000-01-01")
            && text.contains("-0001-12-31")
    );
}

#[test]
fn nested_values_are_the_error_of_arrow() {
    let items = datafusion::arrow::array::ListArray::from_iter_primitive::<
        datafusion::arrow::datatypes::Int8Type,
        _,
        _,
    >([Some([Some(1)])]);
    let batch = RecordBatch::try_from_iter([("a", Arc::new(items) as ArrayRef)]).unwrap();
    let found = by_us(&WriterBuilder::new(), &batch, true);
    assert_eq!(found, by_arrow(&WriterBuilder::new(), &batch, true));
    assert!(found.1.contains("Nested type"), "{found:?}");
}
