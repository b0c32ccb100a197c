//! [`CellType`]: the stored type of the cells of a column.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit as ArrowUnit};
use gridfusion_core::array::failed_to;
use gridfusion_core::format::{ElementType, TimeUnit};
use gridfusion_core::write::{BadCell, StoredType};
use gridfusion_core::{Error, Result};

use crate::bytes::{Attribute, Datatype, Pipeline, ValuesPerCell};

const NOT_EXACT: &str = "the array's type does not have the value";

/// How the cells of a column are stored.
#[derive(Debug, Clone)]
pub(super) struct CellType {
    /// The Arrow type of cells.
    data_type: DataType,
    pub(super) datatype: Datatype,
    /// The Arrow type that has the stored bits.
    bits: DataType,
    /// The type of numbers, times among them; `None` for text.
    pub(super) element: Option<ElementType>,
    /// Conversions of these bits.
    stored: StoredType,
}

impl CellType {
    /// Finds the stored type of a column.
    ///
    /// # Errors
    /// `Unsupported` for types that TileDB does not have.
    pub(super) fn new(data_type: &DataType) -> Result<Self> {
        let (datatype, bits, element) = match data_type {
            DataType::Boolean => (Datatype::Bool, DataType::UInt8, Some(ElementType::U8)),
            DataType::Int8 => number(Datatype::Int8, data_type, ElementType::I8),
            DataType::Int16 => number(Datatype::Int16, data_type, ElementType::I16),
            DataType::Int32 => number(Datatype::Int32, data_type, ElementType::I32),
            DataType::Int64 => number(Datatype::Int64, data_type, ElementType::I64),
            DataType::UInt8 => number(Datatype::UInt8, data_type, ElementType::U8),
            DataType::UInt16 => number(Datatype::UInt16, data_type, ElementType::U16),
            DataType::UInt32 => number(Datatype::UInt32, data_type, ElementType::U32),
            DataType::UInt64 => number(Datatype::UInt64, data_type, ElementType::U64),
            DataType::Float32 => number(Datatype::Float32, data_type, ElementType::F32),
            DataType::Float64 => number(Datatype::Float64, data_type, ElementType::F64),
            DataType::Date32 => time(Datatype::DateTime(TimeUnit::Day)),
            DataType::Timestamp(unit, _) => time(Datatype::DateTime(unit_of(*unit))),
            DataType::Duration(unit) => time(Datatype::Time(unit_of(*unit))),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                (Datatype::StringUtf8, DataType::Utf8, None)
            }
            other => {
                return Err(Error::unsupported(format!(
                    "TileDB has no {other}; cast the column to another number, a time or text"
                )));
            }
        };
        let stored = StoredType::new(&bits)?;
        Ok(Self { data_type: data_type.clone(), datatype, bits, element, stored })
    }

    /// Returns the stored type of an attribute that is there, whose column has this type.
    ///
    /// # Errors
    /// `Unsupported` if a column of the type is stored otherwise.
    pub(super) fn of_attribute(data_type: &DataType, datatype: Datatype) -> Result<Self> {
        let is_text = matches!(datatype, Datatype::StringAscii | Datatype::StringUtf8);
        match Self::new(data_type) {
            Ok(cell) if cell.datatype == datatype || cell.is_text() && is_text => Ok(cell),
            _ => Err(Error::unsupported(format!("writing TileDB's {datatype}"))),
        }
    }

    /// Returns the value with these stored bytes.
    ///
    /// # Errors
    /// `Unsupported` for a text that is none.
    pub(super) fn filled(&self, bytes: &[u8]) -> Result<ArrayRef> {
        if let Some(number) = self.numbers(bytes) {
            return Ok(number);
        }
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| Error::unsupported("a fill value that is no text"))?;
        Ok(Arc::new(StringArray::from(vec![text])))
    }

    /// Whether cells have no fixed size.
    pub(super) fn is_text(&self) -> bool {
        self.element.is_none()
    }

    /// Returns cells in the type of the column; the first cell that would be another one is an error.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub(super) fn shown_exactly(&self, cells: &ArrayRef) -> Result<Result<ArrayRef, BadCell>> {
        if cells.data_type() == &self.data_type {
            return Ok(Ok(ArrayRef::clone(cells)));
        }
        let failed = failed_to("store cells");
        let shown = cast(cells, &self.data_type).map_err(&failed)?;
        let back = cast(&shown, cells.data_type()).map_err(failed)?;
        if back.as_ref() != cells.as_ref() {
            let differs = |at: &usize| back.slice(*at, 1) != cells.slice(*at, 1);
            if let Some(at) = (0..cells.len()).find(differs) {
                return Ok(Err(BadCell { at, reason: NOT_EXACT }));
            }
        }
        Ok(Ok(shown))
    }

    /// Returns cells in the stored type; the first cell that would be another one is an error.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub(super) fn stored_exactly(&self, cells: &ArrayRef) -> Result<Result<ArrayRef, BadCell>> {
        match self.shown_exactly(cells)? {
            Ok(shown) => self.stored(&shown).map(Ok),
            Err(bad) => Ok(Err(bad)),
        }
    }

    /// Returns cells in the stored type.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub(super) fn stored(&self, cells: &ArrayRef) -> Result<ArrayRef> {
        let failed = failed_to("store cells");
        // Arrow makes days from dates by way of their own integers only.
        match cells.data_type() {
            DataType::Date32 => {
                let days = cast(cells, &DataType::Int32).map_err(&failed)?;
                cast(&days, &self.bits).map_err(failed)
            }
            _ => cast(cells, &self.bits).map_err(failed),
        }
    }

    /// Returns the value that is stored for NULL without a validity file: NaN, or a time that is none. `None` for other types.
    pub(super) fn natural_fill(&self) -> Option<ArrayRef> {
        if self.datatype.is_temporal() {
            return Some(Arc::new(Int64Array::from(vec![i64::MIN])));
        }
        let nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
        cast(&nan, &self.bits).ok().filter(|_| self.datatype.is_float())
    }

    /// Returns the value of cells that were not written, if the column has no fill value: that of TileDB, which is the least signed
    /// number and the greatest unsigned one.
    pub(super) fn default_fill(&self) -> ArrayRef {
        let bytes = match self.datatype {
            Datatype::Bool => vec![0],
            it if it.is_unsigned() => vec![0xff; it.size() as usize],
            it => least(it),
        };
        self.natural_fill().or_else(|| self.numbers(&bytes)).unwrap_or_else(|| {
            match self.is_text() {
                true => Arc::new(StringArray::from(vec!["\0"])),
                false => new_empty_array(&self.bits),
            }
        })
    }

    /// Returns the array of numbers with these bytes.
    fn numbers(&self, bytes: &[u8]) -> Option<ArrayRef> {
        let element = self.element?;
        let data = arrow::array::ArrayData::builder(self.bits.clone())
            .len(bytes.len() / element.size() as usize)
            .add_buffer(arrow::buffer::Buffer::from(bytes));
        data.build().ok().map(arrow::array::make_array)
    }

    /// Returns the bytes of stored numbers, with `fill` in the places of NULL.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub(super) fn bytes(&self, cells: &ArrayRef, fill: &ArrayRef) -> Result<Vec<u8>> {
        self.stored.number_bytes(cells, fill)
    }

    /// Returns conversions of the stored bits.
    pub(super) fn bits(&self) -> &StoredType {
        &self.stored
    }

    /// Returns an attribute without NULL.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub(super) fn attribute(
        &self,
        name: &str,
        fill: &ArrayRef,
        pipeline: Pipeline,
    ) -> Result<Attribute> {
        let fill = match self.is_text() {
            true => text_bytes(fill),
            false => self.bytes(fill, fill)?,
        };
        Ok(Attribute {
            name: name.to_owned(),
            datatype: self.datatype,
            values_per_cell: match self.is_text() {
                true => ValuesPerCell::Variable,
                false => ValuesPerCell::Fixed(1),
            },
            nullable: false,
            fill,
            fill_valid: false,
            enumeration: None,
            pipeline,
        })
    }
}

/// Returns the bytes of the only text of an array.
fn text_bytes(text: &ArrayRef) -> Vec<u8> {
    use arrow::array::AsArray;
    text.as_string::<i32>().iter().flatten().flat_map(str::bytes).collect()
}

fn number(
    datatype: Datatype,
    bits: &DataType,
    element: ElementType,
) -> (Datatype, DataType, Option<ElementType>) {
    (datatype, bits.clone(), Some(element))
}

fn time(datatype: Datatype) -> (Datatype, DataType, Option<ElementType>) {
    (datatype, DataType::Int64, Some(ElementType::I64))
}

fn unit_of(unit: ArrowUnit) -> TimeUnit {
    match unit {
        ArrowUnit::Second => TimeUnit::Second,
        ArrowUnit::Millisecond => TimeUnit::Millisecond,
        ArrowUnit::Microsecond => TimeUnit::Microsecond,
        ArrowUnit::Nanosecond => TimeUnit::Nanosecond,
    }
}

/// Returns the least signed number of a type.
pub(super) fn least(datatype: Datatype) -> Vec<u8> {
    let mut bytes = vec![0; datatype.size() as usize];
    if let Some(last) = bytes.last_mut() {
        *last = 0x80;
    }
    bytes
}
