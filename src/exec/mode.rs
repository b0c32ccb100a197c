//! The SQL function `mode(x)`: the most frequent value of `x`, and the least of several ones. NULLs do not count.
//!
//! Over dimensions, the values of groups are gathered and sorted. Over other rows, the accumulator of this file holds them all, as that of
//! `median` does.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, ListArray, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{cast, concat, filter, is_not_null, partition, sort};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

/// Returns `mode(x)`: the most frequent value of `x`, and the least of several ones. NULLs do not count, and zeros of both signs
/// are one value.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// ctx.register_udaf(gridfusion::functions::mode_udaf().as_ref().clone());
/// let found = ctx.sql("SELECT mode(x) FROM (VALUES (7), (3), (7), (3), (1), (NULL)) AS t (x)").await?;
/// assert!(found.to_string().await?.contains("| 3 "));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn mode_udaf() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(AggregateUDF::from(Mode { signature }))
    });
    Arc::clone(&FUNCTION)
}

/// The definition of the function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mode {
    signature: Signature,
}

impl AggregateUDFImpl for Mode {
    fn name(&self) -> &'static str {
        "mode"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        let field = Field::new(self.name(), args[0].data_type().clone(), true);
        Ok(Arc::new(field.with_metadata(args[0].metadata().clone())))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let item = Field::new_list_field(args.input_fields[0].data_type().clone(), true);
        Ok(vec![Arc::new(Field::new_list(format_state_name(args.name, "values"), item, true))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type().clone();
        Ok(Box::new(AllValues {
            values: vec![],
            data_type,
            is_distinct: args.is_distinct,
            bytes: 0,
        }))
    }
}

/// The values of a group.
#[derive(Debug)]
struct AllValues {
    values: Vec<ArrayRef>,
    data_type: DataType,
    /// Whether equal values count once, so that none is more frequent than the least.
    is_distinct: bool,
    /// The bytes of the values. Arrays may share their memory with those of other groups.
    bytes: usize,
}

impl AllValues {
    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        let known = match values.null_count() {
            0 => Arc::clone(values),
            _ => filter(values, &is_not_null(values)?)?,
        };
        if !known.is_empty() {
            self.bytes += known.to_data().get_slice_memory_size()? + size_of::<ArrayRef>();
            self.values.push(known);
        }
        Ok(())
    }

    /// Returns all values in one array.
    fn all(&self) -> Result<ArrayRef> {
        let values: Vec<&dyn Array> = self.values.iter().map(AsRef::as_ref).collect();
        Ok(if values.is_empty() { new_empty_array(&self.data_type) } else { concat(&values)? })
    }
}

impl Accumulator for AllValues {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states[0].as_list::<i32>().iter().flatten().try_for_each(|values| self.add(&values))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self.all()?;
        let item = Arc::new(Field::new_list_field(self.data_type.clone(), true));
        if i32::try_from(values.len()).is_err() {
            return exec_err!("mode of more than 2³¹ values of a group in a partition");
        }
        let offsets = OffsetBuffer::from_lengths([values.len()]);
        let list = ListArray::try_new(item, offsets, values, None)?;
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let values = sort(&with_one_zero(&self.all()?)?, None)?;
        let runs = partition(&[Arc::clone(&values)])?.ranges().into_iter();
        let is_longer = |run: &Range<usize>, best: &Range<usize>| run.len() > best.len();
        let longest = runs.reduce(|best, run| match is_longer(&run, &best) && !self.is_distinct {
            true => run,
            false => best,
        });
        match longest {
            Some(longest) => ScalarValue::try_from_array(&values, longest.start),
            None => ScalarValue::try_new_null(&self.data_type),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }
}

/// Returns floats with 0 for a zero with a sign, and other values as they are.
fn with_one_zero(values: &ArrayRef) -> Result<ArrayRef> {
    if !values.data_type().is_floating() {
        return Ok(Arc::clone(values));
    }
    let doubles = cast(values, &DataType::Float64)?;
    let doubles = doubles.as_primitive::<Float64Type>();
    let one_zero = doubles.unary::<_, Float64Type>(|number| number + 0.0);
    Ok(cast(&one_zero, values.data_type())?)
}
