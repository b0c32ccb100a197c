//! [`FileVariable`]: a variable of a file, with the type that the file has for its cells.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use gridfusion_core::array::failed_to;
use gridfusion_core::write::{Attributes, StoredType};
use gridfusion_core::{Error, Result};
use netcdf_writer::{DimensionId, NcAttrValue, NcFileBuilder, NcFillValueType, VariableId};
use serde_json::Value;

use super::encoding::{NetcdfEncoding, NetcdfVersion};

/// How the cells of a variable are written.
#[derive(Debug, Clone)]
pub(super) struct FileVariable {
    pub(super) name: String,
    pub(super) stored: StoredType,
    /// The type of numbers in the file; texts have none.
    file_type: DataType,
    /// The value that stands for NULL, in the stored type.
    pub(super) fill: Option<ArrayRef>,
    is_boolean: bool,
}

/// Integers of doubles are exact up to this one.
const EXACT: i64 = 1 << 53;

impl FileVariable {
    /// Finds out how a column of this type is written.
    ///
    /// # Errors
    /// `Unsupported` if the version of the file has no such type.
    pub(super) fn try_new(
        name: &str,
        data_type: &DataType,
        version: NetcdfVersion,
    ) -> Result<Self> {
        let failed = |error| Error::unsupported(format!("\"{name}\": {error}"));
        let stored = StoredType::new(data_type).map_err(failed)?;
        let is_boolean = *data_type == DataType::Boolean;
        let has_64 = matches!(version, NetcdfVersion::Netcdf4 | NetcdfVersion::Data64);
        let file_type = match stored.bits() {
            // Conventions have truth values as signed bytes.
            DataType::UInt8 if is_boolean => DataType::Int8,
            // Classic files have no integers of 64 bits, and times are numbers of any type.
            DataType::Int64 if !has_64 && stored.time_units().is_some() => DataType::Float64,
            DataType::Float16 => return Err(no_type(name, data_type, "cast it to FLOAT")),
            DataType::Utf8 if version != NetcdfVersion::Netcdf4 => {
                return Err(no_type(name, data_type, "write version 'netcdf4'"));
            }
            it if !has_64 && (*it == DataType::Int64 || it.is_unsigned_integer()) => {
                return Err(no_type(name, data_type, "cast it, or write version 'netcdf4'"));
            }
            it => it.clone(),
        };
        let fill = stored.natural_fill();
        Ok(Self { name: name.to_owned(), stored, file_type, fill, is_boolean })
    }

    /// Sets the value that stands for NULL.
    ///
    /// # Errors
    /// `Unsupported` for truth values: xarray reads those that are missing as true, without a warning.
    pub(super) fn with_fill(self, fill: &ArrayRef) -> Result<Self> {
        if self.is_boolean {
            return Err(Error::unsupported(format!(
                "\"{}\": NetCDF has no truth values that are missing; cast it to TINYINT",
                self.name
            )));
        }
        let fill = Some(self.stored.stored(fill)?);
        Ok(Self { fill, ..self })
    }

    /// Takes away the value that stands for NULL: labels have none.
    pub(super) fn without_fill(self) -> Self {
        Self { fill: None, ..self }
    }

    /// Returns the bytes of a cell; texts have 16 or more.
    pub(super) fn width(&self) -> u64 {
        self.file_type.primitive_width().unwrap_or(16) as u64
    }

    /// Adds the variable to a file, with its stored cells.
    ///
    /// # Errors
    /// `Unsupported` if the format has no place for a name, an attribute or a cell.
    pub(super) fn add(
        &self,
        file: &mut NcFileBuilder,
        dimensions: &[DimensionId],
        cells: &ArrayRef,
        attributes: &Attributes,
    ) -> Result<VariableId> {
        let refused = |error: netcdf_writer::Error| {
            Error::unsupported(format!("\"{}\" in a NetCDF file: {error}", self.name))
        };
        let id = if self.stored.is_text() {
            self.add_texts(file, dimensions, cells).map_err(refused)?
        } else {
            let fill = self.fill.as_ref().map(|fill| self.in_file(fill)).transpose()?;
            let cells = self.in_file(cells)?;
            self.add_numbers(file, dimensions, &cells, fill.as_ref()).map_err(refused)?
        };
        // `dtype` would make numbers truth values.
        for (name, value) in attributes.iter().filter(|(name, _)| *name != "dtype") {
            file.add_variable_attribute(id, name, attribute(value)).map_err(refused)?;
        }
        if self.is_boolean {
            let value = NcAttrValue::Chars("bool".to_owned());
            file.add_variable_attribute(id, "dtype", value).map_err(refused)?;
        }
        Ok(id)
    }

    /// Returns stored cells in the type of the file.
    fn in_file(&self, cells: &ArrayRef) -> Result<ArrayRef> {
        if self.stored.bits() == &DataType::Int64 && self.file_type == DataType::Float64 {
            let times = cells.as_primitive::<Int64Type>();
            let is_exact = |time: &i64| *time == i64::MIN || (-EXACT..=EXACT).contains(time);
            let mut valid = times.iter().flatten();
            if let Some(time) = valid.find(|time| !is_exact(time)) {
                return Err(Error::unsupported(format!(
                    "\"{}\": the time {time} {} has more digits than a double, and classic NetCDF files have no integers of 64 bits; write version 'netcdf4'",
                    self.name,
                    self.stored.time_units().unwrap_or_default()
                )));
            }
        }
        cast(cells, &self.file_type).map_err(failed_to("store cells"))
    }

    fn add_texts(
        &self,
        file: &mut NcFileBuilder,
        dimensions: &[DimensionId],
        cells: &ArrayRef,
    ) -> netcdf_writer::Result<VariableId> {
        let fill = self.fill.as_ref().map_or("", |fill| fill.as_string::<i32>().value(0));
        let id = file.add_string_variable(&self.name, dimensions)?;
        let texts: Vec<&str> =
            cells.as_string::<i32>().iter().map(|it| it.unwrap_or(fill)).collect();
        file.write_string_variable(id, &texts)?;
        if self.fill.is_some() {
            // xarray does not open files in which texts of any length have `_FillValue`.
            let value = NcAttrValue::Chars(fill.to_owned());
            file.add_variable_attribute(id, "missing_value", value)?;
        }
        Ok(id)
    }

    fn add_numbers(
        &self,
        file: &mut NcFileBuilder,
        dimensions: &[DimensionId],
        cells: &ArrayRef,
        fill: Option<&ArrayRef>,
    ) -> netcdf_writer::Result<VariableId> {
        let name = &self.name;
        match self.file_type {
            DataType::Int8 => add::<Int8Type>(file, name, dimensions, cells, fill),
            DataType::Int16 => add::<Int16Type>(file, name, dimensions, cells, fill),
            DataType::Int32 => add::<Int32Type>(file, name, dimensions, cells, fill),
            DataType::Int64 => add::<Int64Type>(file, name, dimensions, cells, fill),
            DataType::UInt8 => add::<UInt8Type>(file, name, dimensions, cells, fill),
            DataType::UInt16 => add::<UInt16Type>(file, name, dimensions, cells, fill),
            DataType::UInt32 => add::<UInt32Type>(file, name, dimensions, cells, fill),
            DataType::UInt64 => add::<UInt64Type>(file, name, dimensions, cells, fill),
            DataType::Float32 => add::<Float32Type>(file, name, dimensions, cells, fill),
            _ => add::<Float64Type>(file, name, dimensions, cells, fill),
        }
    }

    /// Sets chunks and compression of a variable of a NetCDF-4 file.
    ///
    /// # Errors
    /// `Unsupported` if the format refuses them.
    pub(super) fn encode(
        &self,
        file: &mut NcFileBuilder,
        id: VariableId,
        chunk_shape: Vec<u64>,
        encoding: &NetcdfEncoding,
    ) -> Result<()> {
        let refused = |error: netcdf_writer::Error| {
            Error::unsupported(format!("chunks of \"{}\" in a NetCDF file: {error}", self.name))
        };
        file.set_variable_chunking(id, chunk_shape).map_err(refused)?;
        match encoding.deflate {
            // The chunks of texts have references to them, which have no order of bytes.
            Some(level) if !self.stored.is_text() => {
                file.set_variable_deflate(id, Some(level), true).map_err(refused)
            }
            _ => Ok(()),
        }
    }
}

fn no_type(name: &str, data_type: &DataType, advice: &str) -> Error {
    Error::unsupported(format!("\"{name}\": this version of NetCDF has no {data_type}; {advice}"))
}

fn add<T>(
    file: &mut NcFileBuilder,
    name: &str,
    dimensions: &[DimensionId],
    cells: &ArrayRef,
    fill: Option<&ArrayRef>,
) -> netcdf_writer::Result<VariableId>
where
    T: ArrowPrimitiveType,
    T::Native: NcFillValueType,
{
    let id = file.add_variable::<T::Native>(name, dimensions)?;
    let cells = cells.as_primitive::<T>();
    let fill = fill.map(|fill| fill.as_primitive::<T>().value(0));
    match fill {
        Some(fill) if cells.null_count() > 0 => {
            let cells: Vec<T::Native> = cells.iter().map(|cell| cell.unwrap_or(fill)).collect();
            file.write_variable(id, &cells)?;
        }
        _ => file.write_variable(id, cells.values())?,
    }
    if let Some(fill) = fill {
        file.set_variable_fill_value(id, fill)?;
    }
    Ok(id)
}

/// Returns an attribute as NetCDF has it: a number, several numbers, or text. Integers of more digits than a double are text.
pub(super) fn attribute(value: &Value) -> NcAttrValue {
    let list: &[Value] = match value {
        Value::Array(values) => values,
        one => std::slice::from_ref(one),
    };
    let small = |it: &Value| it.as_i64().and_then(|number| i32::try_from(number).ok());
    if let Some(numbers) = all(list, small) {
        return NcAttrValue::Ints(numbers);
    }
    let is_exact = |it: &Value| it.as_i64().is_some_and(|it| (-EXACT..=EXACT).contains(&it));
    if let Some(numbers) = all(list, |it| it.as_f64().filter(|_| it.is_f64() || is_exact(it))) {
        return NcAttrValue::Doubles(numbers);
    }
    match value {
        Value::String(text) => NcAttrValue::Chars(text.clone()),
        other => NcAttrValue::Chars(other.to_string()),
    }
}

/// Returns all values as numbers of a type, if there are any and all are.
fn all<T>(values: &[Value], number: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    let numbers = values.iter().map(number).collect::<Option<Vec<T>>>();
    numbers.filter(|numbers| !numbers.is_empty())
}
