//! An opened TileDB array: from its schema and fragments to a table's dimensions and values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::ArrayRef;
use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Mutex, OnceCell};

use crate::array::{
    CellColumn, CellKind, ChunkSource, Counter, Dimension, Encoding, GridArray, Labels, NOT_A_TIME,
    NumberColumn, ReadOptions, Scalar, Temporal, Value, ValueColumn,
};
use crate::error::{Error, Result};
use crate::format::tiledb::{
    Attribute, Datatype, DimensionDomain, DimensionSchema, Enumeration, MetadataValue, Open,
    OpenOptions, TileDbArray, ValuesPerCell, Window,
};
use crate::format::{Bound, ElementType, StoredChunk, Zone, Zones, bound};
use crate::grid::{AxisSelection, ChunkTask, Selection};
use crate::io::{Folder, last_part};
use crate::tile::{CellFormat, Objects, Tile, drive};

/// What of a TileDB array is shown, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TileDbView {
    /// Shows the whole domain instead of the part that is in use. Default: false.
    pub full_domain: bool,
    /// Shows text as bytes, valid or not. Default: false.
    pub text_as_binary: bool,
    /// Shows dates and times as the integers that are stored. Default: false.
    pub time_as_integer: bool,
    /// How stored data becomes SQL values. The fill value declares nothing to be missing here, so
    /// [`ReadOptions::fill_as_null`] is false by default.
    pub read: ReadOptions,
}

impl Default for TileDbView {
    fn default() -> Self {
        let read = ReadOptions { fill_as_null: false, ..ReadOptions::default() };
        Self { full_domain: false, text_as_binary: false, time_as_integer: false, read }
    }
}

/// A TileDB array whose schema and fragments are known.
#[derive(Debug, Clone)]
pub struct OpenedTileDb {
    array: Arc<TileDbArray>,
    objects: Arc<Objects>,
}

/// Tables with more chunks than this are opened only if the fragments have as many tiles: planning
/// lists the chunks of an axis, and a domain may promise any number of them.
const MAX_UNWRITTEN_CHUNKS: u64 = 1 << 22;

impl OpenedTileDb {
    /// Reads the schema and the fragments' footers of the array in `folder`.
    ///
    /// # Errors
    /// `Usage` if the folder is no array, `Corrupt` or `Unsupported` if it cannot be read.
    pub async fn open(folder: Arc<dyn Folder>, mut options: OpenOptions) -> Result<Self> {
        // Like TileDB: what is dated later than now is not seen yet.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        options.end.get_or_insert(u64::try_from(now).unwrap_or(u64::MAX));
        let objects = Arc::new(Objects::many(folder));
        let array = Arc::new(drive(Open::new(options), &objects).await?);
        Ok(Self { array, objects })
    }

    /// The format's view of the array.
    pub fn tiledb(&self) -> &Arc<TileDbArray> {
        &self.array
    }

    /// The objects that the array is stored in.
    pub(crate) fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// The path or URL of the array.
    pub fn location(&self) -> &str {
        self.objects.name()
    }

    /// What the array is called: the last part of its path.
    pub fn name(&self) -> &str {
        last_part(self.location())
    }

    /// The array's own metadata: keys and values.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if they cannot be read.
    pub async fn metadata(&self) -> Result<Vec<(String, MetadataValue)>> {
        drive(self.array.read_metadata(), &self.objects).await
    }

    /// A coordinate as its column shows it: a date rather than a count of days. What no column can show
    /// is shown as it is stored.
    pub fn coordinate_text(&self, dimension: &DimensionSchema, coordinate: i128) -> String {
        let label = table_dimension(dimension, coordinate, 1, &TileDbView::default())
            .and_then(|dimension| dimension.labels().text(0))
            .ok()
            .flatten();
        label.unwrap_or_else(|| coordinate.to_string())
    }

    /// The least and the greatest coordinate of a dimension, see [`OpenedTileDb::coordinate_text`];
    /// `None` where any text is one.
    pub fn domain_text(&self, dimension: &DimensionSchema) -> Option<[String; 2]> {
        match &dimension.domain {
            DimensionDomain::Integer { low, high, .. } => {
                Some([low, high].map(|coordinate| self.coordinate_text(dimension, *coordinate)))
            }
            DimensionDomain::Float { low, high, .. } => Some([low, high].map(f64::to_string)),
            DimensionDomain::Text => None,
        }
    }

    /// The array as a table: dimensions with their coordinates, then attributes.
    ///
    /// # Errors
    /// `Unsupported` for a sparse array, or a type that has no place in a table.
    pub fn array(&self, view: &TileDbView) -> Result<GridArray> {
        self.grid_array(view).map_err(|error| self.objects.named(error))
    }

    fn grid_array(&self, view: &TileDbView) -> Result<GridArray> {
        let window = Arc::new(self.array.window(view.full_domain)?);
        let tiles: u64 = self.array.fragments().iter().map(|fragment| fragment.tiles).sum();
        if window.grid.chunks() > tiles.max(MAX_UNWRITTEN_CHUNKS) {
            let (chunks, shape) = (window.grid.chunks(), window.grid.shape());
            return Err(Error::unsupported(format!(
                "a table of {shape:?} cells in {chunks} tiles, of which {tiles} are written"
            )));
        }
        let schema = self.array.schema();
        let axes = schema.dimensions.iter().zip(&window.low).zip(window.grid.shape());
        let dims = axes
            .map(|((dimension, low), len)| table_dimension(dimension, *low, *len, view))
            .collect::<Result<_>>()?;
        let values = schema.attributes.iter().enumerate().map(|(number, attribute)| {
            let enumeration = self.array.enumeration(number);
            let value = table_value(attribute, enumeration.map(AsRef::as_ref), view);
            value.map_err(|error| error.about(&format!("attribute \"{}\"", attribute.name)))
        });
        let values: Vec<Value> = values.collect::<Result<_>>()?;
        let source = TileDbSource {
            array: Arc::clone(&self.array),
            objects: Arc::clone(&self.objects),
            window: Arc::clone(&window),
            zones: values.iter().map(|_| OnceCell::new()).collect(),
            looking_up: Mutex::new(()),
            view: view.clone(),
        };
        let (name, grid) = (self.name().to_owned(), window.grid.clone());
        Ok(GridArray::new(name, Arc::new(source), grid, dims, values, view.read.index_columns))
    }
}

fn table_dimension(
    dimension: &DimensionSchema,
    low: i128,
    len: u64,
    view: &TileDbView,
) -> Result<Dimension> {
    let scalar = match (&dimension.domain, scalar(dimension.datatype, view)) {
        (DimensionDomain::Integer { .. }, Some(scalar)) => scalar,
        _ => {
            let (name, datatype) = (&dimension.name, dimension.datatype);
            return Err(Error::unsupported(format!("dimension \"{name}\" of type {datatype}")));
        }
    };
    let labels = Counter::new(low, len, scalar)
        .map_err(|error| error.about(&format!("dimension \"{}\"", dimension.name)))?;
    let attributes = attributes_of(dimension.datatype, scalar);
    Ok(Dimension::new(dimension.name.clone(), Some(Labels::Counted(labels)), len, attributes))
}

/// What a column's type alone does not tell: the unit of times that Arrow has none for.
fn attributes_of(datatype: Datatype, scalar: Scalar) -> BTreeMap<String, String> {
    let told = !datatype.is_temporal() || scalar.data_type().is_temporal();
    let tell = (!told).then(|| ("tiledb_datatype".to_owned(), datatype.to_string()));
    tell.into_iter().collect()
}

fn table_value(
    attribute: &Attribute,
    enumeration: Option<&Enumeration>,
    view: &TileDbView,
) -> Result<Value> {
    let column = match enumeration {
        Some(enumeration) => enumerated(attribute, enumeration, view)?,
        None => column(attribute, view)?,
    };
    let width = attribute.cell_size().map(usize::try_from).transpose();
    let width = width.map_err(|_| Error::unsupported("cells that do not fit in memory"))?;
    let name = if attribute.name.is_empty() { "value" } else { &attribute.name };
    let attributes = scalar(attribute.datatype, view)
        .map(|scalar| attributes_of(attribute.datatype, scalar))
        .unwrap_or_default();
    let cells = CellFormat {
        width,
        nullable: attribute.nullable,
        fill: attribute.fill.clone(),
        fill_is_valid: attribute.fill_valid,
    };
    Ok(Value { name: name.to_owned(), column, cells, attributes })
}

/// The column of an attribute that holds its values itself.
fn column(attribute: &Attribute, view: &TileDbView) -> Result<ValueColumn> {
    let scalar = scalar(attribute.datatype, view);
    if let (Some(Scalar::Number(element)), ValuesPerCell::Fixed(1)) =
        (scalar, attribute.values_per_cell)
    {
        let fill = view.read.fill_as_null.then(|| bound(&attribute.fill));
        let column = NumberColumn::plain(element, fill, attribute.nullable, &view.read);
        return Ok(ValueColumn::Number(column));
    }
    let kind = cell_kind(attribute.datatype, attribute.values_per_cell, view)?;
    let mut nulls = Vec::new();
    if view.read.fill_as_null {
        nulls.push(attribute.fill.clone());
    }
    if view.read.nan_as_null && matches!(kind, CellKind::Scalar(Scalar::Temporal(_))) {
        nulls.push(NOT_A_TIME.to_le_bytes().to_vec());
    }
    let column = CellColumn::new(kind, attribute.nullable, nulls);
    Ok(ValueColumn::Cells(column.with_missing_items(view.read.nan_as_null)))
}

fn cell_kind(
    datatype: Datatype,
    values_per_cell: ValuesPerCell,
    view: &TileDbView,
) -> Result<CellKind> {
    let encoding = match datatype {
        Datatype::StringAscii | Datatype::StringUtf8 | Datatype::GeomWkt => Some(Encoding::Utf8),
        Datatype::StringUtf16 | Datatype::StringUcs2 => Some(Encoding::Utf16),
        Datatype::StringUtf32 | Datatype::StringUcs4 => Some(Encoding::Utf32),
        _ => None,
    };
    Ok(match (values_per_cell, scalar(datatype, view), encoding) {
        (ValuesPerCell::Fixed(1), Some(scalar), _) => CellKind::Scalar(scalar),
        (ValuesPerCell::Fixed(len), Some(scalar), _) if i32::try_from(len).is_ok() => {
            CellKind::FixedList(scalar, len)
        }
        (ValuesPerCell::Fixed(len), None, _) => {
            let width = u64::from(len) * datatype.size();
            match i32::try_from(width) {
                Ok(width) => CellKind::FixedBytes(width.unsigned_abs()),
                Err(_) => return Err(Error::unsupported(format!("cells of {width} bytes"))),
            }
        }
        (ValuesPerCell::Fixed(len), ..) => {
            return Err(Error::unsupported(format!("cells of {len} values")));
        }
        (ValuesPerCell::Variable, Some(scalar), _) => CellKind::List(scalar),
        (ValuesPerCell::Variable, None, Some(encoding)) if !view.text_as_binary => {
            CellKind::Text(encoding)
        }
        (ValuesPerCell::Variable, None, _) => CellKind::Bytes,
    })
}

/// What a single value of a type is, if it is not text or bytes.
fn scalar(datatype: Datatype, view: &TileDbView) -> Option<Scalar> {
    Some(match datatype {
        Datatype::Bool => Scalar::Boolean,
        Datatype::DateTime(_) | Datatype::Time(_) if view.time_as_integer => {
            Scalar::Temporal(Temporal::Count)
        }
        Datatype::DateTime(unit) => Scalar::Temporal(Temporal::Point(unit)),
        Datatype::Time(unit) => Scalar::Temporal(Temporal::Length(unit)),
        _ => Scalar::Number(element(datatype)?),
    })
}

pub(crate) fn element(datatype: Datatype) -> Option<ElementType> {
    Some(match datatype {
        Datatype::Int8 => ElementType::I8,
        Datatype::Int16 => ElementType::I16,
        Datatype::Int32 => ElementType::I32,
        Datatype::Int64 => ElementType::I64,
        Datatype::UInt8 => ElementType::U8,
        Datatype::UInt16 => ElementType::U16,
        Datatype::UInt32 => ElementType::U32,
        Datatype::UInt64 => ElementType::U64,
        Datatype::Float32 => ElementType::F32,
        Datatype::Float64 => ElementType::F64,
        _ => return None,
    })
}

/// The column of an attribute whose cells are indices into the values of an enumeration.
fn enumerated(
    attribute: &Attribute,
    enumeration: &Enumeration,
    view: &TileDbView,
) -> Result<ValueColumn> {
    let (Some(index), ValuesPerCell::Fixed(1)) =
        (element(attribute.datatype).filter(|it| it.is_integer()), attribute.values_per_cell)
    else {
        let (name, datatype) = (&enumeration.name, attribute.datatype);
        let message = format!("indices of type {datatype} into enumeration \"{name}\"");
        return Err(Error::unsupported(message));
    };
    let values = values_of(enumeration, view)?;
    let kind = CellKind::Enumerated { index, values };
    let nulls = if view.read.fill_as_null { vec![attribute.fill.clone()] } else { vec![] };
    Ok(ValueColumn::Cells(CellColumn::new(kind, attribute.nullable, nulls)))
}

/// The values of an enumeration as an array, in order.
fn values_of(enumeration: &Enumeration, view: &TileDbView) -> Result<ArrayRef> {
    let kind = cell_kind(enumeration.datatype, enumeration.values_per_cell, view)?;
    let mut content = Vec::new();
    let mut spans = Vec::with_capacity(enumeration.len());
    for at in 0..enumeration.len() {
        let start = content.len() as u64;
        content.extend_from_slice(enumeration.value(at));
        spans.push(start..content.len() as u64);
    }
    let content = Bytes::from(content);
    let tile = match enumeration.values_per_cell {
        ValuesPerCell::Fixed(len) => {
            Tile::fixed(content, len as usize * enumeration.datatype.size() as usize)
        }
        ValuesPerCell::Variable => Tile::variable(spans, content)?,
    };
    let column = CellColumn::new(kind, false, vec![]);
    let column = ValueColumn::Cells(column.with_missing_items(view.read.nan_as_null));
    column.decode(&tile, &[AxisSelection::all(enumeration.len() as u64)], false)
}

/// One view of a TileDB array, as a scan sees it: value `n` is attribute `n`.
#[derive(Debug)]
struct TileDbSource {
    array: Arc<TileDbArray>,
    objects: Arc<Objects>,
    window: Arc<Window>,
    view: TileDbView,
    /// Per attribute.
    zones: Vec<OnceCell<Option<Arc<dyn Zones>>>>,
    /// Held while tiles are looked up: partitions that start together read where they are once.
    looking_up: Mutex<()>,
}

#[async_trait]
impl ChunkSource for TileDbSource {
    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let _alone = self.looking_up.lock().await;
        let chunks = tasks.iter().map(|task| task.coordinates.clone()).collect();
        let machine = self.array.locate(&self.window, chunks, values.to_vec());
        drive(machine.map_err(|error| self.objects.named(error))?, &self.objects).await
    }

    async fn zones(
        &self,
        value: usize,
        _: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        /// Bytes of statistics per tile.
        const NOTED: u64 = 32;
        /// So many bytes of them are read whatever is to be gained.
        const CHEAP: u64 = 1 << 16;
        let tiles: u64 = self.array.fragments().iter().map(|fragment| fragment.tiles).sum();
        let worthwhile = tiles.saturating_mul(NOTED) <= bytes_to_read.max(CHEAP);
        if !self.view.read.trust_zone_maps || !worthwhile {
            return None;
        }
        self.zones[value].get_or_init(|| self.read_zones(value)).await.clone()
    }
}

impl TileDbSource {
    async fn read_zones(&self, value: usize) -> Option<Arc<dyn Zones>> {
        let attribute = &self.array.schema().attributes[value];
        let element = match scalar(attribute.datatype, &self.view)? {
            Scalar::Number(element) => element,
            Scalar::Temporal(_) => ElementType::I64,
            Scalar::Boolean => return None,
        };
        let machine = self.array.read_zones(&self.window, value)?;
        let zones = match drive(machine, &self.objects).await {
            Ok(zones) => zones,
            Err(error) => {
                log::warn!("statistics of attribute \"{}\" are ignored: {error}", attribute.name);
                return None;
            }
        };
        let mut nulls = Vec::new();
        if self.view.read.fill_as_null {
            nulls.push(bound(&attribute.fill));
        }
        if self.view.read.nan_as_null && attribute.datatype.is_temporal() {
            nulls.push(NOT_A_TIME.to_le_bytes());
        }
        Some(Arc::new(WithNulls { zones, element, nulls }))
    }
}

/// The zones that hold none of the values that the table takes for NULL.
#[derive(Debug)]
struct WithNulls<Z> {
    zones: Z,
    element: ElementType,
    nulls: Vec<Bound>,
}

impl<Z: Zones> Zones for WithNulls<Z> {
    fn zone(&self, chunk: u64) -> Option<Zone> {
        let zone = self.zones.zone(chunk)?;
        // Bounds do not tell the two zeros of floats, -1 and 0 by rank, apart.
        let rank = |bound: &Bound| {
            let rank = self.element.rank(&bound[..self.element.size() as usize])?;
            Some(if self.element.is_integer() || rank >= 0 { rank } else { rank + 1 })
        };
        let may_hold = |null: &Bound| match &zone.bounds {
            Some((least, greatest)) => match (rank(least), rank(null), rank(greatest)) {
                (Some(least), Some(null), Some(greatest)) => least <= null && null <= greatest,
                (_, None, _) => false, // NaN is in no zone
                _ => true,
            },
            None => zone.sum.is_some(),
        };
        if self.nulls.iter().any(may_hold) { None } else { Some(zone) }
    }
}
