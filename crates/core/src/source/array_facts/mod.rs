//! The facts about arrays of any format as tables: `array_info`, `array_chunks` and `array_attributes`.
//!
//! ```text
//!   ArrayGroup ── info ───────▶ KnownDataset   ─┐
//!              ── arrays ─────▶ KnownChunk     ─┼─ Column: a cell of a row ──▶ FactRows, a FactTable
//!              ── attributes ─▶ KnownAttribute ─┘
//! ```
//!
//! The functions of a single format, such as `tet_info`, are tables of some of the same columns.

mod chunk_facts;
mod chunk_list;
mod columns;
mod object_sizes;

use std::collections::HashSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt};

pub use chunk_facts::{ARRAY_CHUNKS, KnownChunk, StoredFacts};
pub use columns::{Column, FactRows, Needs};

use super::array_format::ArrayGroup;
use super::chosen_columns::names_in;
use super::fact_table::FactTable;
use super::facts::KnownAttribute;
use super::known_dataset::KnownDataset;
use crate::error::{Error, Result};

/// A table of facts that every format has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayFacts {
    /// A row per dataset or variable.
    Info,
    /// A row per chunk.
    Chunks,
    /// A row per attribute of a dataset, a group or the place itself.
    Attributes,
}

impl ArrayFacts {
    /// All tables.
    pub const ALL: [Self; 3] = [Self::Info, Self::Chunks, Self::Attributes];

    /// Returns the name of the table function.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "array_info",
            Self::Chunks => "array_chunks",
            Self::Attributes => "array_attributes",
        }
    }
}

/// Returns the facts about the arrays of a group, or about those that `dataset` names. They are read when a query
/// runs.
///
/// # Errors
/// `Usage` for a name that no array has; `Unsupported` for an array that cannot be read.
pub async fn array_facts(
    facts: ArrayFacts,
    group: Arc<dyn ArrayGroup>,
    dataset: Option<&str>,
) -> Result<Arc<dyn FactTable>> {
    let mut only = dataset.map(|names| names_in(names, |name| group.has(name)));
    if let Some(names) = &mut only {
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
    }
    if let Some(unknown) = only.iter().flatten().find(|name| !group.has(name)) {
        // The error of the group lists its names.
        group.arrays(std::slice::from_ref(unknown)).await?;
        return Err(Error::internal(format!("no facts about \"{unknown}\"")));
    }
    Ok(match facts {
        ArrayFacts::Info => Arc::new(FactRows::new(ARRAY_INFO.to_vec(), move |needs| {
            let (group, only) = (Arc::clone(&group), only.clone());
            stream::once(async move { group.info(only.as_deref(), needs).await }).boxed()
        })),
        ArrayFacts::Attributes => Arc::new(FactRows::new(ARRAY_ATTRIBUTES.to_vec(), move |_| {
            let (group, only) = (Arc::clone(&group), only.clone());
            stream::once(async move { group.attributes(only.as_deref()).await }).boxed()
        })),
        ArrayFacts::Chunks => Arc::new(FactRows::new(ARRAY_CHUNKS.to_vec(), move |needs| {
            chunk_list::chunk_list(Arc::clone(&group), only.clone(), needs)
        })),
    })
}

/// A column of `array_info`.
type Dataset = Column<KnownDataset>;

/// A column of `array_attributes`.
type Attribute = Column<KnownAttribute>;

/// The columns of `array_info`.
pub static ARRAY_INFO: &[Dataset] = &[
    Dataset::text("dataset", |it| Some(it.name.clone())).required(),
    Dataset::text("group_name", |it| group_of(&it.name).map(str::to_owned)),
    Dataset::text("variable", |it| Some(it.variable().to_owned())).required(),
    Dataset::text("role", |it| it.role.map(|role| role.name().to_owned())),
    Dataset::text("element_type", |it| it.element_type.clone()),
    Dataset::text("data_type", |it| it.data_type.clone()),
    Dataset::texts("dimensions", |it| Some(it.dimensions.clone())).required(),
    Dataset::numbers("shape", |it| it.shape.clone()),
    Dataset::numbers("chunk_shape", |it| it.chunk_shape.clone()),
    Dataset::number("chunks", |it| it.chunks),
    Dataset::number("stored_chunks", |it| it.stored_chunks).of_stored(),
    Dataset::number("stored_bytes", |it| it.stored_bytes).of_stored(),
    Dataset::number("raw_bytes", |it| it.raw_bytes).of_stored(),
    Dataset::float("ratio", KnownDataset::ratio).of_stored(),
    Dataset::text("codec", |it| it.codec.clone()),
    Dataset::text("units", |it| it.units.clone()),
    Dataset::text("long_name", |it| it.long_name.clone()),
    Dataset::flag("has_zone_maps", |it| it.has_zone_maps),
    Dataset::texts("warnings", |it| Some(it.warnings.clone())).required().of_stored(),
];

/// The columns of `array_attributes`.
pub static ARRAY_ATTRIBUTES: &[Attribute] = &[
    Attribute::text("dataset", |it| it.of.clone().filter(|_| !it.is_of_group)),
    Attribute::text("group_name", |it| match (it.of.as_deref(), it.is_of_group) {
        (Some(group), true) => Some(group.to_owned()),
        (of, _) => of.and_then(group_of).map(str::to_owned),
    }),
    Attribute::text("variable", |it| it.variable.clone()),
    Attribute::text("key", |it| Some(it.key.clone())).required(),
    Attribute::text("type", |it| Some(it.kind.to_owned())).required(),
    Attribute::text("value", |it| Some(it.value.clone())).required(),
];

/// Returns the group in the path of a dataset; `None` for the outermost one.
fn group_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(group, _)| group)
}
