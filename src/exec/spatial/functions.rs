//! `haversine(lat1, lon1, lat2, lon2)` and `cell_area(south, north, west, east)`, on the sphere of `gridfusion-spatial`.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray, Float64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{ScalarValue, exec_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Returns the function `haversine`.
pub(crate) fn haversine_udf() -> Arc<ScalarUDF> {
    static UDF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Measure::Distance));
    Arc::clone(&UDF)
}

/// Returns the function `cell_area`.
pub(crate) fn cell_area_udf() -> Arc<ScalarUDF> {
    static UDF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Measure::Area));
    Arc::clone(&UDF)
}

fn function(measure: Measure) -> Arc<ScalarUDF> {
    let signature = Signature::exact(vec![DataType::Float64; 4], Volatility::Immutable);
    Arc::new(ScalarUDF::from(OnSphere { measure, signature }))
}

/// The quantity that a function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Measure {
    Distance,
    Area,
}

impl Measure {
    /// Computes the quantity of four numbers in degrees.
    fn of(self, [a, b, c, d]: [f64; 4]) -> f64 {
        match self {
            Self::Distance => gridfusion_spatial::haversine(a, b, c, d),
            // The cells at the ends of many grids reach beyond the poles.
            Self::Area => {
                gridfusion_spatial::cell_area([a, b].map(|it| it.clamp(-90.0, 90.0)), [c, d])
            }
        }
    }
}

/// A function of four numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OnSphere {
    measure: Measure,
    signature: Signature,
}

impl ScalarUDFImpl for OnSphere {
    fn name(&self) -> &str {
        match self.measure {
            Measure::Distance => "haversine",
            Measure::Area => "cell_area",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|it| matches!(it, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let columns = arrays.iter().map(|it| it.as_primitive_opt::<Float64Type>());
        let columns: Vec<&Float64Array> = columns.collect::<Option<_>>().unwrap_or_default();
        let [a, b, c, d] = columns.as_slice() else {
            return Err(exec_datafusion_err!("{} takes four numbers", self.name()));
        };
        let nulls = NullBuffer::union_many([a, b, c, d].map(|it| it.nulls()));
        let rows = a.values().iter().zip(b.values()).zip(c.values()).zip(d.values());
        let values = rows.map(|(((a, b), c), d)| self.measure.of([*a, *b, *c, *d]));
        let values = Float64Array::new(values.collect(), nulls);
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
            false => ColumnarValue::Array(Arc::new(values)),
        })
    }
}
