//! [`parquet_type`]: the type in which Parquet keeps the meaning of a column.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};

/// Returns the type in which a Parquet file keeps the meaning of a column; `None` if it keeps the column's own.
///
/// Parquet has no type for times in seconds, nor for Arrow's days in milliseconds. Arrow's writer stores them as integers, which
/// only Arrow's reader turns into times again.
///
/// ```text
///   Timestamp(s) ──▶ Timestamp(ms)     Time32(s) ──▶ Time32(ms)
///   Duration(s)  ──▶ Duration(ms)      Date64    ──▶ Timestamp(ms)
/// ```
pub fn parquet_type(data_type: &DataType) -> Option<DataType> {
    use TimeUnit::{Millisecond, Second};
    Some(match data_type {
        DataType::Timestamp(Second, zone) => DataType::Timestamp(Millisecond, zone.clone()),
        DataType::Date64 => DataType::Timestamp(Millisecond, None),
        DataType::Time32(Second) => DataType::Time32(Millisecond),
        DataType::Duration(Second) => DataType::Duration(Millisecond),
        DataType::Dictionary(key, value) => {
            DataType::Dictionary(key.clone(), Box::new(parquet_type(value)?))
        }
        DataType::List(item) => DataType::List(field(item)?),
        DataType::LargeList(item) => DataType::LargeList(field(item)?),
        DataType::ListView(item) => DataType::ListView(field(item)?),
        DataType::LargeListView(item) => DataType::LargeListView(field(item)?),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(field(item)?, *length),
        DataType::Map(entries, is_sorted) => DataType::Map(field(entries)?, *is_sorted),
        DataType::Struct(fields) => {
            let changed: Vec<Option<FieldRef>> = fields.iter().map(field).collect();
            if changed.iter().all(Option::is_none) {
                return None;
            }
            let or_same =
                |(new, old): (Option<FieldRef>, &FieldRef)| new.unwrap_or(Arc::clone(old));
            DataType::Struct(changed.into_iter().zip(fields).map(or_same).collect())
        }
        _ => return None,
    })
}

/// Returns the field with its type in Parquet; `None` if that is its own.
fn field(field: &FieldRef) -> Option<FieldRef> {
    let data_type = parquet_type(field.data_type())?;
    Some(Arc::new(Field::clone(field).with_data_type(data_type)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_found_at_any_depth() {
        let seconds = DataType::Timestamp(TimeUnit::Second, Some("UTC".into()));
        let millis = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let within = |of: &DataType| {
            let item = Arc::new(Field::new("item", of.clone(), true));
            let list = DataType::FixedSizeList(item, 2);
            let fields = [Field::new("a", DataType::Int8, true), Field::new("b", list, false)];
            DataType::Struct(fields.into_iter().collect())
        };
        assert_eq!(parquet_type(&within(&seconds)), Some(within(&millis)));
        assert_eq!(parquet_type(&within(&millis)), None);
    }
}
