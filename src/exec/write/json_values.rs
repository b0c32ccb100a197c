//! [`JsonValues`]: floats and times in JSON.

use std::sync::LazyLock;

use datafusion::arrow::array::{Array, ArrowPrimitiveType, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Date64Type, FieldRef, Float16Type, Float32Type, Float64Type, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{
    Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder,
};

use super::times::{push_date, push_time};

/// Encodes floats and times for Arrow's JSON writer, which must have no patterns for times.
///
/// Infinity and NaN become `"Infinity"`, `"-Infinity"` and `"NaN"`, which DuckDB, pandas and Arrow read as floats. Arrow's own encoder
/// writes `null`, as for NULL. Times have the text of Arrow's encoder, in less time.
#[derive(Debug, Clone, Copy)]
pub struct JsonValues;

/// The options of Arrow's own encoders, which encode the other values.
static PLAIN: LazyLock<EncoderOptions> = LazyLock::new(EncoderOptions::default);

impl EncoderFactory for JsonValues {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        use DataType::{Date32, Date64, Float16, Float32, Float64, Timestamp};
        use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
        let push: Push<'a> = match array.data_type() {
            Float16 => values::<Float16Type>(array, |value, out| push_infinite(value.into(), out)),
            Float32 => values::<Float32Type>(array, |value, out| push_infinite(value.into(), out)),
            Float64 => values::<Float64Type>(array, push_infinite),
            Date32 => values::<Date32Type>(array, |days, out| {
                quoted(out, |out| push_date(days.into(), out))
            }),
            Date64 => times::<Date64Type, 1000>(array),
            Timestamp(Second, None) => times::<TimestampSecondType, 1>(array),
            Timestamp(Millisecond, None) => times::<TimestampMillisecondType, 1000>(array),
            Timestamp(Microsecond, None) => times::<TimestampMicrosecondType, 1_000_000>(array),
            Timestamp(Nanosecond, None) => times::<TimestampNanosecondType, 1_000_000_000>(array),
            _ => return Ok(None),
        };
        let others = make_encoder(field, array, &PLAIN)?;
        let encoder = Box::new(Values { push, others });
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

/// Appends the value at an index. Appends nothing and returns false if Arrow's encoder is to append it.
type Push<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> bool + 'a>;

fn values<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    push: fn(T::Native, &mut Vec<u8>) -> bool,
) -> Push<'a> {
    let array = array.as_primitive::<T>();
    Box::new(move |at, out| push(array.value(at), out))
}

fn times<'a, T: ArrowPrimitiveType<Native = i64>, const PER_SECOND: i64>(
    array: &'a dyn Array,
) -> Push<'a> {
    values::<T>(array, |value, out| quoted(out, |out| push_time::<PER_SECOND>(value, out)))
}

/// Appends a text in quotes, if `push` appends it.
fn quoted(out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
    out.push(b'"');
    let is_pushed = push(out);
    match is_pushed {
        true => out.push(b'"'),
        false => drop(out.pop()),
    }
    is_pushed
}

fn push_infinite(value: f64, out: &mut Vec<u8>) -> bool {
    let text: &[u8] = match value {
        value if value.is_nan() => b"\"NaN\"",
        f64::INFINITY => b"\"Infinity\"",
        f64::NEG_INFINITY => b"\"-Infinity\"",
        _ => return false,
    };
    out.extend_from_slice(text);
    true
}

/// The values that [`Push`] appends, and others.
struct Values<'a> {
    push: Push<'a>,
    others: NullableEncoder<'a>,
}

impl Encoder for Values<'_> {
    fn encode(&mut self, at: usize, out: &mut Vec<u8>) {
        if !(self.push)(at, out) {
            self.others.encode(at, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float32Array, Int64Array, ListArray, RecordBatch};
    use arrow::buffer::OffsetBuffer;
    use arrow::compute::cast;
    use arrow::datatypes::Field;
    use arrow::json::writer::{LineDelimited, WriterBuilder};
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn infinity_is_a_text() {
        let column = Arc::new(Float32Array::from(vec![f32::INFINITY, 1.5, f32::NAN])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("v", column)]).unwrap();
        let mut text = vec![];
        let builder = WriterBuilder::new().with_encoder_factory(Arc::new(JsonValues));
        builder.build::<_, LineDelimited>(&mut text).write(&batch).unwrap();
        assert_eq!(text, b"{\"v\":\"Infinity\"}\n{\"v\":1.5}\n{\"v\":\"NaN\"}\n");
    }

    /// Times in all units, within and beyond the years of four digits, also in lists, have the text of Arrow's own encoder.
    #[test]
    fn times_have_the_text_of_arrow() {
        let mut generator = SmallRng::seed_from_u64(45);
        let mut columns: Vec<(String, ArrayRef)> = vec![];
        for data_type in [
            DataType::Date32,
            DataType::Date64,
            DataType::Timestamp(TimeUnit::Second, None),
            DataType::Timestamp(TimeUnit::Millisecond, None),
            DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Timestamp(TimeUnit::Nanosecond, None),
        ] {
            let number = |_| {
                let number = generator.random::<i64>() >> generator.random_range(0..64);
                (number % 9 != 0).then_some(number)
            };
            let numbers: Int64Array = (0..2000).map(number).collect();
            let narrow = match data_type {
                DataType::Date32 => cast(&numbers, &DataType::Int32).unwrap(),
                _ => Arc::new(numbers),
            };
            let values = cast(&narrow, &data_type).unwrap();
            let item = Arc::new(Field::new("item", data_type.clone(), true));
            let offsets = OffsetBuffer::from_lengths([1; 2000]);
            let lists = ListArray::new(item, offsets, Arc::clone(&values), None);
            columns.push((data_type.to_string(), values));
            columns.push((format!("{data_type} in lists"), Arc::new(lists)));
        }
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let (mut expected, mut found) = (vec![], vec![]);
        let builder = || WriterBuilder::new().with_explicit_nulls(true);
        builder().build::<_, LineDelimited>(&mut expected).write(&batch).unwrap();
        let ours = builder().with_encoder_factory(Arc::new(JsonValues));
        ours.build::<_, LineDelimited>(&mut found).write(&batch).unwrap();
        let (found, expected) = (String::from_utf8(found), String::from_utf8(expected));
        assert_eq!(found, expected);
        assert!(found.unwrap().contains("ERROR"), "some times cannot be shown");
    }
}
