//! [`StoredType`]: how cells of an Arrow type are stored, in the formats that have numbers and texts.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Float64Array, Int32Array, Int64Array,
    PrimitiveArray, StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, ToByteSlice};
use arrow::downcast_primitive_array;

use crate::array::failed_to;
use crate::error::{Error, Result};

/// The type of stored cells: numbers, or texts. Times are numbers with units.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, Int32Array};
/// use arrow::datatypes::{DataType, TimeUnit};
/// use gridfusion_core::write::StoredType;
///
/// # fn main() -> gridfusion_core::Result<()> {
/// let times = StoredType::new(&DataType::Timestamp(TimeUnit::Second, None))?;
/// assert_eq!(times.bits(), &DataType::Int64);
/// assert_eq!(times.time_units(), Some("seconds since 1970-01-01"));
///
/// let cells: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
/// let bad = StoredType::new(&DataType::Int32)?.check(&cells, None).unwrap_err();
/// assert_eq!(bad.at, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct StoredType {
    /// The Arrow type that has the stored bits, to which cells are cast.
    bits: DataType,
    /// `units` of times.
    time_units: Option<&'static str>,
}

/// A cell that cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadCell {
    /// The number of the cell.
    pub at: usize,
    /// Why, and what to do.
    pub reason: &'static str,
}

const IS_NULL: &str = "it is NULL, and the variable has no fill value; choose one";
const IS_FILL: &str = "it has the fill value, which would read as NULL; choose another fill value";

impl StoredType {
    /// Finds the stored type of an Arrow type. Truth values are bytes.
    ///
    /// # Errors
    /// `Unsupported` for types that are neither numbers, times nor texts.
    pub fn new(data_type: &DataType) -> Result<Self> {
        let since = |units| (DataType::Int64, Some(units));
        let (bits, time_units) = match data_type {
            DataType::Boolean => (DataType::UInt8, None),
            it if it.is_integer() || it.is_floating() => (it.clone(), None),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => (DataType::Utf8, None),
            DataType::Timestamp(TimeUnit::Second, _) => since("seconds since 1970-01-01"),
            DataType::Timestamp(TimeUnit::Millisecond, _) => since("milliseconds since 1970-01-01"),
            DataType::Timestamp(TimeUnit::Microsecond, _) => since("microseconds since 1970-01-01"),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => since("nanoseconds since 1970-01-01"),
            DataType::Date32 => (DataType::Int32, Some("days since 1970-01-01")),
            other => {
                return Err(Error::unsupported(format!(
                    "writing columns of {other}; cast the column to a number, a time or text"
                )));
            }
        };
        Ok(Self { bits, time_units })
    }

    /// Returns the Arrow type of stored cells.
    pub fn bits(&self) -> &DataType {
        &self.bits
    }

    /// Returns the units of times, in the calendar `proleptic_gregorian`; `None` for other types.
    pub fn time_units(&self) -> Option<&'static str> {
        self.time_units
    }

    /// Whether cells have no fixed width.
    pub fn is_text(&self) -> bool {
        self.bits == DataType::Utf8
    }

    /// Returns cells in the stored type.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub fn stored(&self, cells: &ArrayRef) -> Result<ArrayRef> {
        cast(cells, &self.bits).map_err(failed_to("store cells"))
    }

    /// Returns the value that is stored for NULL if the array does not choose one: NaN, or a time that is none. `None` for other types.
    pub fn natural_fill(&self) -> Option<ArrayRef> {
        match self.bits {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                let nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
                cast(&nan, &self.bits).ok()
            }
            DataType::Int64 if self.time_units.is_some() => {
                Some(Arc::new(Int64Array::from(vec![i64::MIN])))
            }
            DataType::Int32 if self.time_units.is_some() => {
                Some(Arc::new(Int32Array::from(vec![i32::MIN])))
            }
            _ => None,
        }
    }

    /// Returns the value of cells outside of an array whose variable has no fill value.
    pub fn zero(&self) -> ArrayRef {
        let zero: ArrayRef = Arc::new(Int64Array::from(vec![0]));
        match self.bits {
            DataType::Utf8 => Arc::new(StringArray::from(vec![""])),
            _ => cast(&zero, &self.bits).unwrap_or(zero),
        }
    }

    /// Returns the little-endian bytes of stored numbers, with `fill` in the places of NULL.
    ///
    /// # Errors
    /// `Internal` for texts, and for a fill value of another type.
    pub fn number_bytes(&self, cells: &ArrayRef, fill: &ArrayRef) -> Result<Vec<u8>> {
        let wrong = || Error::internal("numbers of another type than their fill value");
        if fill.data_type() != cells.data_type() || fill.len() != 1 {
            return Err(wrong());
        }
        let cells = cells.as_ref();
        Ok(downcast_primitive_array!(
            cells => number_bytes(cells, fill),
            _ => return Err(wrong())
        ))
    }

    /// Checks stored cells: none must be NULL without a fill value, or have the fill value without being NULL.
    ///
    /// # Errors
    /// The first wrong cell.
    pub fn check(&self, cells: &ArrayRef, fill: Option<&ArrayRef>) -> Result<(), BadCell> {
        let Some(fill) = fill else {
            return match (0..cells.len()).find(|at| cells.null_count() > 0 && cells.is_null(*at)) {
                Some(at) => Err(BadCell { at, reason: IS_NULL }),
                None => Ok(()),
            };
        };
        let cells = cells.as_ref();
        let same = downcast_primitive_array!(
            cells => first_equal(cells, fill),
            _ => first_equal_text(cells.as_string(), fill.as_string())
        );
        same.map_or(Ok(()), |at| Err(BadCell { at, reason: IS_FILL }))
    }
}

fn number_bytes<T: ArrowPrimitiveType>(cells: &PrimitiveArray<T>, fill: &ArrayRef) -> Vec<u8> {
    if cells.null_count() == 0 {
        return cells.values().to_byte_slice().to_vec();
    }
    let fill = fill.as_primitive::<T>().value(0);
    let values: Vec<T::Native> = cells.iter().map(|value| value.unwrap_or(fill)).collect();
    values.to_byte_slice().to_vec()
}

fn first_equal<T: ArrowPrimitiveType>(cells: &PrimitiveArray<T>, fill: &ArrayRef) -> Option<usize> {
    let fill = fill.as_primitive::<T>().value(0);
    let mut same = (0..cells.len()).filter(|at| cells.values()[*at] == fill);
    same.find(|at| cells.is_valid(*at))
}

fn first_equal_text(cells: &StringArray, fill: &StringArray) -> Option<usize> {
    cells.iter().position(|text| text == Some(fill.value(0)))
}
