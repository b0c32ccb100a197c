//! The description of one TileDB array.
//!
//! ```text
//!   arrays/overlap                                                   title
//!     dense TileDB array, format version 22, 16.7 KiB, 3 fragments …
//!     row-major tiles of 3 × 3 row-major cells
//!     DIMENSION   TYPE   LENGTH   FIRST   LAST   TILE   DOMAIN       dimension_table
//!     ATTRIBUTE   TYPE   VALUES   NULL   STORED   RATIO   FILTERS    attribute_table
//!     ATTRIBUTE   OF   VALUE                                         metadata, with --metadata
//!     FRAGMENT   FROM   TO   TILES   CELLS   LEVELS   STORED         fragment_table, with --chunks
//! ```
//!
//! Facts of the schema and of the fragments are always there. Sparse arrays have no shape. Facts of the table
//! are missing for arrays that SQL cannot query.

use super::known_attributes::metadata;
use super::reader::TileDbReader;
use super::view::TileDbView;
use crate::bytes::{ArrayKind, ArraySchema, Attribute, DimensionSchema, Fragment};
use gridfusion_core::array::GridArray;
use gridfusion_core::error::{Result, shown_location};
use gridfusion_core::source::OpenedArray;
use gridfusion_core::source::facts::{KnownAttribute, KnownDimension, ends};
use gridfusion_core::source::show::{shape_text, size_text, utc_milliseconds};
use gridfusion_core::source::{Detail, Fact, Page, PageTable, Side};
use gridfusion_core::verify::counted;

/// An array to describe, with its fragments and metadata.
pub(super) struct DescribedArray {
    name: String,
    /// The path or URL.
    location: String,
    opened: TileDbReader,
    /// `None` if the array cannot be shown as a table.
    table: Option<OpenedArray>,
    /// In the order of the schema.
    dimensions: Vec<KnownDimension>,
    warnings: Vec<String>,
    /// Per fragment, the levels of its R-tree; empty unless fragments are listed.
    levels: Vec<Option<u32>>,
    /// `None` unless requested.
    metadata: Option<Vec<KnownAttribute>>,
    /// The most fragments to list; `None` for no list.
    listed: Option<usize>,
}

impl DescribedArray {
    /// Collects the facts about an opened array.
    ///
    /// # Errors
    /// If the metadata or a label cannot be read. An array that cannot be a table is only a warning.
    pub(super) async fn try_new(
        name: &str,
        location: &str,
        opened: TileDbReader,
        view: &TileDbView,
        detail: &Detail,
    ) -> Result<Self> {
        let (table, warnings) = match opened.array(view) {
            Ok(table) => (Some(table), vec![]),
            Err(error) => (None, vec![format!("not a table: {error}")]),
        };
        let metadata = match detail.metadata {
            true => {
                // The document and the page are of this array alone.
                let all = metadata(name, &opened).await?.into_iter();
                Some(all.map(|it| KnownAttribute { of: None, ..it }).collect())
            }
            false => None,
        };
        let described = opened.tiledb().schema().dimensions.iter().enumerate();
        let grid = table.as_ref().and_then(OpenedArray::as_grid);
        let dimensions = described.map(|(axis, it)| dimension(it, axis, &opened, grid));
        Ok(Self {
            dimensions: dimensions.collect::<Result<_>>()?,
            name: name.to_owned(),
            location: location.to_owned(),
            table,
            warnings,
            levels: if detail.listed.is_some() { opened.rtree_levels().await? } else { vec![] },
            opened,
            metadata,
            listed: detail.listed,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn schema(&self) -> &ArraySchema {
        self.opened.tiledb().schema()
    }

    pub(super) fn fragments(&self) -> &[Fragment] {
        self.opened.tiledb().fragments()
    }

    /// Cells per axis of the table; `None` if there is no table.
    pub(super) fn shape(&self) -> Option<Vec<u64>> {
        self.grid().map(|grid| grid.grid().shape().to_vec())
    }

    /// Cells per axis of a tile; `None` if there is no table.
    pub(super) fn tile_shape(&self) -> Option<Vec<u64>> {
        self.grid().map(|grid| grid.grid().chunk_shape().collect())
    }

    /// The table of a dense array.
    fn grid(&self) -> Option<&GridArray> {
        self.table.as_ref().and_then(OpenedArray::as_grid)
    }

    /// Bytes of all visible fragments, metadata included.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.fragments().iter().map(Fragment::bytes).fold(0, u64::saturating_add)
    }

    /// The earliest and the latest time at which fragments were written, in UTC.
    fn written(&self) -> [Option<String>; 2] {
        let from = self.fragments().iter().map(|it| it.t1).min();
        let to = self.fragments().iter().map(|it| it.t2).max();
        [from, to].map(|time| time.map(utc_milliseconds))
    }

    /// The fragments to list, the oldest ones; `None` if no list is requested.
    fn listed(&self) -> Option<&[Fragment]> {
        self.listed.map(|most| &self.fragments()[..most.min(self.fragments().len())])
    }

    pub(super) fn document(&self) -> Fact {
        let schema = self.schema();
        let dimensions = self.dimensions.iter().zip(&schema.dimensions);
        let dimensions = dimensions.map(|(known, it)| self.dimension_fact(known, it));
        let [written_from, written_to] = self.written();
        let mut fields = vec![
            ("path", shown_location(&self.location).into()),
            ("format", "tiledb".into()),
            ("name", self.name.as_str().into()),
            ("kind", schema.kind.to_string().into()),
            ("format_version", schema.version.into()),
            ("tile_order", schema.tile_order.to_string().into()),
            ("cell_order", schema.cell_order.to_string().into()),
            ("shape", self.shape().into()),
            ("tile_shape", self.tile_shape().into()),
            ("dimensions", Fact::List(dimensions.collect())),
            ("attributes", Fact::List(stored(&self.opened).map(|it| it.document()).collect())),
            ("fragments", (self.fragments().len() as u64).into()),
            ("stored_bytes", self.stored_bytes().into()),
            ("written_from", written_from.into()),
            ("written_to", written_to.into()),
            ("warnings", self.warnings.clone().into()),
        ];
        fields.extend(self.metadata.as_deref().map(|it| ("metadata", KnownAttribute::list(it))));
        let fragments = self.listed().map(|all| {
            Fact::List(
                all.iter().zip(&self.levels).map(|(it, level)| fragment(it, *level)).collect(),
            )
        });
        fields.extend(fragments.map(|fragments| ("fragment_list", fragments)));
        Fact::Record(fields)
    }

    /// Adds the domain and the extent of tiles to the common facts about a dimension.
    fn dimension_fact(&self, known: &KnownDimension, dimension: &DimensionSchema) -> Fact {
        let mut fields = known.fields();
        let domain = self.opened.domain_text(dimension);
        fields.extend(domain.map(|ends| ("domain", Vec::from(ends).into())));
        fields.extend(dimension.extent_text().map(|extent| ("tile_extent", extent.into())));
        Fact::Record(fields)
    }

    pub(super) fn page(&self) -> Page {
        let schema = self.schema();
        let mut fragments = counted(self.fragments().len() as u64, "fragment");
        match self.written() {
            [Some(from), Some(to)] if from == to => fragments += &format!(" of {from}"),
            [Some(from), Some(to)] => fragments += &format!(" of {from} to {to}"),
            _ => {}
        }
        let facts = [
            format!("{} TileDB array", schema.kind),
            format!("format version {}", schema.version),
            size_text(self.stored_bytes()),
            fragments,
        ];
        let shape = self.tile_shape().map(|lengths| shape_text(&lengths) + " ").unwrap_or_default();
        let (tile_order, cell_order) = (schema.tile_order, schema.cell_order);
        let tiles = match schema.kind {
            ArrayKind::Dense => format!("{tile_order} tiles of {shape}{cell_order} cells"),
            ArrayKind::Sparse => {
                let duplicates = if schema.allows_duplicates { ", duplicates allowed" } else { "" };
                format!("tiles of {} {cell_order} cells{duplicates}", schema.capacity)
            }
        };
        let mut tables = vec![self.dimension_table(), self.attribute_table()];
        tables.extend(self.metadata.as_deref().map(KnownAttribute::table));
        tables.extend(self.listed().map(|listed| {
            fragment_table(listed, &self.levels).of_all(self.fragments().len() as u64)
        }));
        Page::new(shown_location(&self.location), vec![facts.join(", "), tiles])
            .with_tables(tables)
            .with_warnings(self.warnings.clone())
    }

    fn dimension_table(&self) -> PageTable {
        let columns = [
            ("DIMENSION", Side::Left),
            ("TYPE", Side::Left),
            ("LENGTH", Side::Right),
            ("FIRST", Side::Left),
            ("LAST", Side::Left),
            ("TILE", Side::Right),
            ("DOMAIN", Side::Left),
        ];
        let rows = self.dimensions.iter().zip(&self.schema().dimensions).map(|(known, it)| {
            [
                Some(known.name.clone()),
                known.data_type.clone(),
                known.length.map(|length| length.to_string()),
                known.first.clone(),
                known.last.clone(),
                it.extent_text(),
                self.opened.domain_text(it).map(|ends| ends.join(" to ")),
            ]
        });
        PageTable::new(columns, rows)
    }

    fn attribute_table(&self) -> PageTable {
        let columns = [
            ("ATTRIBUTE", Side::Left),
            ("TYPE", Side::Left),
            ("VALUES", Side::Left),
            ("NULL", Side::Left),
            ("STORED", Side::Right),
            ("RATIO", Side::Right),
            ("FILTERS", Side::Left),
            ("ENUMERATION", Side::Left),
        ];
        let mut attributes = self.schema().attributes.iter();
        // If every cell of every attribute has one value, the column VALUES stays empty and is not printed.
        let one_value = attributes.all(|it| it.values_per_cell.to_string() == "1");
        let rows = stored(&self.opened).map(|it| {
            let values = it.attribute.values_per_cell.to_string();
            [
                Some(it.attribute.name.clone()),
                Some(it.attribute.datatype.to_string()),
                (!one_value).then_some(values),
                it.attribute.nullable.then(|| "yes".to_owned()),
                Some(size_text(it.bytes)),
                it.ratio().map(|ratio| format!("{ratio:.2}")),
                Some(it.attribute.pipeline.to_string()),
                it.enumeration.clone(),
            ]
        });
        PageTable::new(columns, rows)
    }
}

/// Returns the facts about a dimension. Its labels come from the table of a dense array. A
/// sparse array has the ends of its fragments.
fn dimension(
    dimension: &DimensionSchema,
    axis: usize,
    opened: &TileDbReader,
    table: Option<&GridArray>,
) -> Result<KnownDimension> {
    let [first, last] = match table {
        Some(table) => ends(&table.dims()[axis])?,
        None => opened.coordinate_ends(axis),
    };
    Ok(KnownDimension {
        name: dimension.name.clone(),
        length: table.map(|table| table.grid().shape()[axis]),
        data_type: Some(dimension.datatype.to_string()),
        first,
        last,
        units: None,
        calendar: None,
    })
}

/// Returns the stored sizes of each attribute.
pub(super) fn stored(opened: &TileDbReader) -> impl Iterator<Item = StoredAttribute<'_>> {
    let fragments = opened.tiledb().fragments();
    opened.tiledb().schema().attributes.iter().map(|attribute| {
        let name = attribute.name.as_str();
        let bytes = fragments.iter().map(|it| it.attribute_bytes(name));
        let mut raw_bytes = fragments.iter().map(|it| it.attribute_raw_bytes(name));
        StoredAttribute {
            attribute,
            enumeration: attribute.enumeration.clone(),
            bytes: bytes.fold(0, u64::saturating_add),
            raw_bytes: raw_bytes.try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?)),
        }
    })
}

/// The stored sizes of an attribute, over all fragments.
pub(super) struct StoredAttribute<'a> {
    pub(super) attribute: &'a Attribute,
    /// The name of its enumeration.
    enumeration: Option<String>,
    /// Bytes of its files.
    pub(super) bytes: u64,
    /// Bytes of its decoded tiles; `None` if cells vary in length, or if the number does not fit.
    pub(super) raw_bytes: Option<u64>,
}

impl StoredAttribute<'_> {
    /// Decoded bytes per stored byte; `None` if one of them is not known, or nothing is stored.
    fn ratio(&self) -> Option<f64> {
        let raw_bytes = self.raw_bytes.filter(|_| self.bytes > 0);
        raw_bytes.map(|raw_bytes| raw_bytes as f64 / self.bytes as f64)
    }

    fn document(&self) -> Fact {
        Fact::Record(vec![
            ("name", self.attribute.name.as_str().into()),
            ("datatype", self.attribute.datatype.to_string().into()),
            ("values_per_cell", self.attribute.values_per_cell.to_string().into()),
            ("nullable", self.attribute.nullable.into()),
            ("enumeration", self.enumeration.as_deref().into()),
            ("filters", self.attribute.pipeline.to_string().into()),
            ("stored_bytes", self.bytes.into()),
            ("raw_bytes", self.raw_bytes.into()),
            ("ratio", self.ratio().into()),
        ])
    }
}

fn fragment(known: &Fragment, levels: Option<u32>) -> Fact {
    let mut fields = vec![
        ("name", known.name.as_str().into()),
        ("written_from", utc_milliseconds(known.t1).into()),
        ("written_to", utc_milliseconds(known.t2).into()),
        ("format_version", known.version.into()),
        ("tiles", known.tiles.into()),
        ("cells", known.cells.into()),
        ("stored_bytes", known.bytes().into()),
    ];
    fields.extend(levels.map(|levels| ("rtree_levels", levels.into())));
    Fact::Record(fields)
}

fn fragment_table(fragments: &[Fragment], levels: &[Option<u32>]) -> PageTable {
    let columns = [
        ("FRAGMENT", Side::Left),
        ("FROM", Side::Left),
        ("TO", Side::Left),
        ("TILES", Side::Right),
        ("CELLS", Side::Right),
        ("LEVELS", Side::Right),
        ("STORED", Side::Right),
    ];
    let rows = fragments.iter().zip(levels).map(|(it, levels)| {
        [
            Some(it.name.clone()),
            Some(utc_milliseconds(it.t1)),
            Some(utc_milliseconds(it.t2)),
            Some(it.tiles.to_string()),
            it.cells.map(|cells| cells.to_string()),
            levels.map(|levels| levels.to_string()),
            Some(size_text(it.bytes())),
        ]
    });
    PageTable::new(columns, rows)
}
