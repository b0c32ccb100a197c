//! The default description of a group, for arrays of any format.
//!
//! It shows only facts that every array has: dimensions, chunk grid and columns. A format that knows more,
//! such as stored sizes, overrides `ArrayGroup::describe`.

use super::NamedGrid;
use crate::array::{ColumnSource, GridArray, is_mark};
use crate::error::{Error, Result, shown_location};
use crate::source::description::{Description, Detail, Fact, Page, PageTable, Side};
use crate::source::facts::{KnownAttribute, KnownDimension};
use crate::source::show::{chunks_text, shape_text};
use crate::verify::counted;

/// Describes the arrays at `location`. An array that cannot be opened is an error if it is the only one, and
/// otherwise a warning.
pub(crate) fn describe_arrays(
    location: &str,
    arrays: &[NamedGrid],
    left_out: &[Error],
    detail: &Detail,
) -> Result<Description> {
    if let [(_, Err(error))] = arrays {
        return Err(error.clone());
    }
    let (mut known, mut warnings) = (Vec::new(), Vec::new());
    for (name, array) in arrays {
        match array
            .as_ref()
            .map_err(Error::clone)
            .and_then(|array| KnownArray::try_new(name, array))
        {
            Ok(array) => known.push(array),
            Err(error) => warnings.push(format!("array \"{name}\": {error}")),
        }
    }
    warnings.extend(left_out.iter().map(|error| format!("left out: {error}")));
    let attributes: Option<Vec<KnownAttribute>> =
        detail.metadata.then(|| known.iter().flat_map(KnownArray::attributes).collect());
    let mut fields = vec![
        ("path", shown_location(location).into()),
        ("format", "array_group".into()),
        ("arrays", Fact::List(known.iter().map(KnownArray::document).collect())),
        ("warnings", warnings.clone().into()),
    ];
    fields.extend(attributes.as_deref().map(|it| ("metadata", KnownAttribute::list(it))));
    let mut tables = vec![array_table(&known), column_table(&known), dimension_table(&known)];
    tables.extend(attributes.as_deref().map(KnownAttribute::table));
    let page = Page {
        title: shown_location(location),
        lines: vec![counted(known.len() as u64, "array")],
        tables,
        warnings,
    };
    Ok(Description { document: Fact::Record(fields), pages: vec![page] })
}

/// The facts about one array.
struct KnownArray<'a> {
    /// The name in the group.
    name: &'a str,
    array: &'a GridArray,
    dimensions: Vec<KnownDimension>,
}

impl<'a> KnownArray<'a> {
    fn try_new(name: &'a str, array: &'a GridArray) -> Result<Self> {
        let dimensions = array.dims().iter().map(KnownDimension::try_new).collect::<Result<_>>()?;
        Ok(Self { name, array, dimensions })
    }

    fn chunk_shape(&self) -> Vec<u64> {
        self.array.grid().chunk_shape().collect()
    }

    /// Returns the record of the array in the document; `docs/info.md` lists its fields.
    fn document(&self) -> Fact {
        let grid = self.array.grid();
        let dimensions = self.dimensions.iter().map(|it| Fact::Record(it.fields()));
        let columns = self.array.schema().fields().iter().map(|field| {
            Fact::Record(vec![
                ("name", field.name().as_str().into()),
                ("type", field.data_type().to_string().into()),
                ("nullable", field.is_nullable().into()),
            ])
        });
        Fact::Record(vec![
            ("name", self.name.into()),
            ("shape", grid.shape().to_vec().into()),
            ("chunk_shape", self.chunk_shape().into()),
            ("chunks", grid.chunks().into()),
            ("dimensions", Fact::List(dimensions.collect())),
            ("columns", Fact::List(columns.collect())),
        ])
    }

    /// Returns the attributes of each column, sorted by key.
    fn attributes(&self) -> Vec<KnownAttribute> {
        let mut all = Vec::new();
        for field in self.array.schema().fields() {
            let pairs = field.metadata().iter();
            let mut pairs: Vec<_> = pairs.filter(|(key, _)| !is_mark(key)).collect();
            pairs.sort_unstable();
            let of = format!("{}.{}", self.name, field.name());
            let known =
                |(key, value): (&String, &String)| KnownAttribute::text(Some(&of), key, value);
            all.extend(pairs.into_iter().map(known));
        }
        all
    }
}

/// Makes the table with a row per array.
fn array_table(arrays: &[KnownArray<'_>]) -> PageTable {
    let columns = [
        ("ARRAY", Side::Left),
        ("SHAPE", Side::Left),
        ("CHUNKS", Side::Left),
        ("DIMENSIONS", Side::Left),
    ];
    let rows = arrays.iter().map(|it| {
        let (grid, dimensions) = (it.array.grid(), &it.dimensions);
        let dimensions: Vec<&str> = dimensions.iter().map(|it| it.name.as_str()).collect();
        [
            Some(it.name.to_owned()),
            Some(shape_text(grid.shape())),
            Some(chunks_text(grid.chunks(), &it.chunk_shape())),
            Some(dimensions.join(", ")),
        ]
    });
    PageTable::new(columns, rows)
}

/// Makes the table of all columns except the label columns, which the dimension table lists.
fn column_table(arrays: &[KnownArray<'_>]) -> PageTable {
    let columns =
        [("COLUMN", Side::Left), ("OF", Side::Left), ("TYPE", Side::Left), ("NULL", Side::Left)];
    let rows = arrays.iter().flat_map(|it| {
        let fields = it.array.schema().fields().iter().zip(it.array.columns());
        let own = fields.filter(|(_, source)| !matches!(source, ColumnSource::Label(_)));
        own.map(|(field, _)| {
            [
                Some(field.name().clone()),
                Some(it.name.to_owned()),
                Some(field.data_type().to_string()),
                field.is_nullable().then(|| "yes".to_owned()),
            ]
        })
    });
    PageTable::new(columns, rows)
}

/// Makes the table of dimensions, in which a dimension that arrays share appears once.
fn dimension_table(arrays: &[KnownArray<'_>]) -> PageTable {
    let mut all: Vec<&KnownDimension> = Vec::new();
    for dimension in arrays.iter().flat_map(|it| &it.dimensions) {
        if !all.contains(&dimension) {
            all.push(dimension);
        }
    }
    KnownDimension::table(all)
}
