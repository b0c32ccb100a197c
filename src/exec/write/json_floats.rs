//! [`JsonFloats`]: infinity and NaN as texts in JSON.

use std::sync::LazyLock;

use datafusion::arrow::array::{Array, ArrowPrimitiveType, AsArray};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float16Type, Float32Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{
    Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder,
};

/// Encodes floats for Arrow's JSON writer: infinity and NaN become `"Infinity"`, `"-Infinity"` and `"NaN"`, which DuckDB, pandas and
/// Arrow read as floats. Arrow's own encoder writes `null`, as for NULL.
#[derive(Debug, Clone, Copy)]
pub struct JsonFloats;

/// The options of Arrow's own encoder of finite floats, which these do not change.
static PLAIN: LazyLock<EncoderOptions> = LazyLock::new(EncoderOptions::default);

impl EncoderFactory for JsonFloats {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let value: Box<dyn Fn(usize) -> f64 + 'a> = match array.data_type() {
            DataType::Float16 => values::<Float16Type>(array, |value| value.into()),
            DataType::Float32 => values::<Float32Type>(array, |value| value.into()),
            DataType::Float64 => values::<Float64Type>(array, |value| value),
            _ => return Ok(None),
        };
        let finite = make_encoder(field, array, &PLAIN)?;
        let encoder = Box::new(Floats { value, finite });
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

/// Returns the value at each index of an array.
fn values<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    number: fn(T::Native) -> f64,
) -> Box<dyn Fn(usize) -> f64 + 'a> {
    let array = array.as_primitive::<T>();
    Box::new(move |at| number(array.value(at)))
}

/// Floats, which Arrow's encoder writes if they are finite.
struct Floats<'a> {
    value: Box<dyn Fn(usize) -> f64 + 'a>,
    finite: NullableEncoder<'a>,
}

impl Encoder for Floats<'_> {
    fn encode(&mut self, at: usize, out: &mut Vec<u8>) {
        let text: &[u8] = match (self.value)(at) {
            value if value.is_nan() => b"\"NaN\"",
            f64::INFINITY => b"\"Infinity\"",
            f64::NEG_INFINITY => b"\"-Infinity\"",
            _ => return self.finite.encode(at, out),
        };
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float32Array, RecordBatch};
    use arrow::json::writer::{LineDelimited, WriterBuilder};

    use super::*;

    #[test]
    fn infinity_is_a_text() {
        let column = Arc::new(Float32Array::from(vec![f32::INFINITY, 1.5, f32::NAN])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("v", column)]).unwrap();
        let mut text = vec![];
        let builder = WriterBuilder::new().with_encoder_factory(Arc::new(JsonFloats));
        builder.build::<_, LineDelimited>(&mut text).write(&batch).unwrap();
        assert_eq!(text, b"{\"v\":\"Infinity\"}\n{\"v\":1.5}\n{\"v\":\"NaN\"}\n");
    }
}
