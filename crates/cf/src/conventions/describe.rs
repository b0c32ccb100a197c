//! The description of a file or store of variables for `gridfusion info`.
//!
//! ```text
//!   sst.nc                                                               title
//!     NetCDF classic file, CDF-2, 12.3 KiB, 4 variables, 32 records …    StoreFacts
//!     VARIABLE   TYPE   SHAPE   CHUNKS   CODEC   STORED   RATIO   …      KnownDataset::table
//!     DIMENSION   LENGTH   TYPE   FIRST   LAST   UNITS                   KnownDimension::table
//!     VARIABLE   NULL   PACKING   COORDINATES   BOUNDS   …               Conventions::table
//!     ATTRIBUTE   OF   VALUE                                             with --metadata
//! ```

use std::sync::Arc;

use super::labels::grid;
use super::options::HierarchyView;
use super::ragged::described;
use super::roles::Roles;
use super::store::VariableStore;
use super::variable_array::{KnownLabels, open_variable};
use crate::hierarchy::{Attribute, Attributes, Variable};
use gridfusion_core::error::{Error, Result, shown_location};
use gridfusion_core::source::facts::{KnownAttribute, KnownDimension};
use gridfusion_core::source::show::size_text;
use gridfusion_core::source::{Conventions, Description, Detail, Fact, Page};
use gridfusion_core::source::{KnownDataset, Needs};
use gridfusion_core::verify::counted;

/// The variables to describe.
pub(super) struct Variables<'a> {
    pub(super) location: &'a str,
    pub(super) store: &'a Arc<dyn VariableStore>,
    pub(super) roles: &'a Roles,
    pub(super) view: &'a HierarchyView,
    /// The variables with their numbers and names.
    pub(super) members: Vec<(usize, &'a Variable, &'a str)>,
    /// The attributes of groups by name; those of the file or store have none.
    pub(super) groups: Vec<(Option<&'a str>, &'a Attributes)>,
    /// The names and errors of arrays that cannot be read.
    pub(super) left_out: Vec<(&'a str, &'a Error)>,
}

/// Describes the variables of a group. A variable that cannot be opened gets a warning instead of dimensions.
pub(super) async fn describe(of: &Variables<'_>, detail: &Detail) -> Result<Description> {
    let facts = of.store.facts();
    let mut known = GroupFacts { warnings: facts.warnings.clone(), ..GroupFacts::default() };
    known.warnings.extend(of.left_out.iter().map(|(_, error)| format!("left out: {error}")));
    let mut labels = KnownLabels::new();
    for member in &of.members {
        known.add_variable(of, *member, &mut labels).await;
    }
    let attributes = detail.metadata.then(|| attributes(of));
    let shown = shown_location(of.location);
    let mut fields = vec![
        ("path", shown.clone().into()),
        ("format", facts.format.into()),
        ("version", facts.version.into()),
        ("size_bytes", facts.size.into()),
        ("datasets", records(known.all().map(|(it, more)| [it.fields(), more.fields()].concat()))),
        ("dimensions", records(known.dimensions.iter().map(KnownDimension::fields))),
        ("warnings", known.warnings.clone().into()),
    ];
    fields.extend(attributes.as_deref().map(|it| ("metadata", KnownAttribute::list(it))));
    let mut line = vec![facts.noun];
    line.extend(facts.size.map(size_text));
    line.push(counted(known.datasets.len() as u64, "variable"));
    line.extend(facts.more);
    line.extend(described(of.store.hierarchy()));
    let mut tables = vec![
        KnownDataset::table("VARIABLE", &known.datasets),
        KnownDimension::table(&known.dimensions),
        Conventions::table("VARIABLE", known.all()),
    ];
    tables.extend(attributes.as_deref().map(KnownAttribute::table));
    let page =
        Page::new(shown, vec![line.join(", ")]).with_tables(tables).with_warnings(known.warnings);
    Ok(Description::new(Fact::Record(fields), vec![page]))
}

fn records(all: impl Iterator<Item = Vec<(&'static str, Fact)>>) -> Fact {
    Fact::List(all.map(Fact::Record).collect())
}

/// The facts about a group.
#[derive(Default)]
struct GroupFacts {
    datasets: Vec<KnownDataset>,
    /// The conventions of each dataset.
    conventions: Vec<Conventions>,
    /// Each dimension once, however many variables have it.
    dimensions: Vec<KnownDimension>,
    warnings: Vec<String>,
}

impl GroupFacts {
    fn all(&self) -> impl Iterator<Item = (&KnownDataset, &Conventions)> {
        self.datasets.iter().zip(&self.conventions)
    }

    async fn add_variable(
        &mut self,
        of: &Variables<'_>,
        member: (usize, &Variable, &str),
        labels: &mut KnownLabels,
    ) {
        let needs = Needs { stored: true, statistics: false };
        let (dataset, dimensions, conventions) = known_variable(of, member, needs, labels).await;
        self.conventions.push(conventions);
        self.warnings.extend(dataset.warnings.iter().cloned());
        self.datasets.push(dataset);
        for dimension in dimensions {
            if !self.dimensions.contains(&dimension) {
                self.dimensions.push(dimension);
            }
        }
    }
}

/// Returns the facts about variables: the rows of `array_info`. Arrays that cannot be read are rows with the reason.
pub(super) async fn info(of: &Variables<'_>, needs: Needs) -> Vec<KnownDataset> {
    let (mut rows, mut labels) = (vec![], KnownLabels::new());
    for member in &of.members {
        rows.push(known_variable(of, *member, needs, &mut labels).await.0);
    }
    rows.extend(
        of.left_out
            .iter()
            .map(|(name, error)| KnownDataset::unreadable(*name, format!("left out: {error}"))),
    );
    rows
}

/// Returns the facts about a variable, its dimensions, and what its attributes tell. Errors are warnings.
async fn known_variable(
    of: &Variables<'_>,
    (number, variable, name): (usize, &Variable, &str),
    needs: Needs,
    labels: &mut KnownLabels,
) -> (KnownDataset, Vec<KnownDimension>, Conventions) {
    let mut warnings = Vec::new();
    let warning =
        |error: Error| format!("variable \"{name}\": {}", of.store.objects().named(error));
    let (mut dimensions, mut data_type) = (Vec::new(), None);
    let opened = open_variable(of.store, of.roles, number, of.view, labels).await;
    let described = opened.and_then(|array| {
        let dimensions = array.dims().iter().map(KnownDimension::try_new);
        Ok((dimensions.collect::<Result<Vec<_>>>()?, array.value(0).clone()))
    });
    let mut conventions = conventions(variable);
    match described {
        Ok((known, column)) => {
            (dimensions, data_type) = (known, Some(column.data_type().to_string()));
            conventions = conventions.with_column(&column);
            if !declares_missing(variable) {
                // The default of NetCDF tells nothing about the file.
                conventions.missing = None;
            }
        }
        Err(error) => warnings.push(warning(error)),
    }
    let mut stored = None;
    if needs.stored {
        match of.store.stored(number).await {
            Ok(Some(totals)) if totals.chunks > 0 => stored = Some(totals),
            // Where nothing was counted, looking takes a request.
            Ok(totals) => {
                stored = totals;
                match of.store.explain_absence(number).await {
                    Ok(warning) => warnings.extend(warning),
                    Err(error) => warnings.push(warning(error)),
                }
            }
            Err(error) => warnings.push(warning(error)),
        }
    }
    let grid = grid(variable).ok();
    let text = |key: &str| variable.attributes.get(key).map(Attribute::to_string);
    let dataset = KnownDataset {
        name: name.to_owned(),
        variable: None,
        role: Some(of.roles.role(number, variable)),
        data_type,
        element_type: Some(variable.cell.to_string()),
        shape: Some(variable.shape()),
        chunk_shape: grid.as_ref().map(|grid| grid.chunk_shape().collect()),
        chunks: grid.as_ref().map(|grid| grid.chunks()),
        dimensions: match dimensions.as_slice() {
            // Without the array, these are the names in the file.
            [] => variable.axes.iter().filter_map(|axis| axis.name.clone()).collect(),
            known => known.iter().map(|it| it.name.clone()).collect(),
        },
        stored_chunks: stored.map(|it| it.chunks),
        stored_bytes: stored.map(|it| it.bytes),
        raw_bytes: stored.and_then(|it| it.raw_bytes),
        codec: of.store.codec(number),
        units: text("units"),
        long_name: text("long_name"),
        has_zone_maps: Some(false),
        warnings,
    };
    (dataset, dimensions, conventions)
}

/// Returns the names of other variables, and the calendar, in the attributes of a variable.
fn conventions(variable: &Variable) -> Conventions {
    let text = |key: &str| {
        let text = variable.attributes.get(key)?.text()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    Conventions {
        calendar: text("calendar"),
        coordinates: text("coordinates"),
        grid_mapping: text("grid_mapping"),
        bounds: text("bounds").or_else(|| text("climatology")),
        ..Conventions::default()
    }
}

/// Returns the attributes of the group, of the groups in it, and of each variable.
pub(super) fn attributes(described: &Variables<'_>) -> Vec<KnownAttribute> {
    let groups = described.groups.iter();
    let groups = groups.flat_map(|(name, all)| known_attributes(*name, name.is_some(), None, all));
    let members = described.members.iter();
    let variables = members.flat_map(|(_, it, name)| {
        known_attributes(Some(name), false, Some(it.name()), &it.attributes)
    });
    groups.chain(variables).collect()
}

fn known_attributes<'a>(
    of: Option<&'a str>,
    is_of_group: bool,
    variable: Option<&'a str>,
    all: &'a Attributes,
) -> impl Iterator<Item = KnownAttribute> + 'a {
    all.iter().map(move |(key, value)| KnownAttribute {
        of: of.map(str::to_owned),
        is_of_group,
        variable: variable.map(str::to_owned),
        key: key.clone(),
        kind: value.kind(),
        value: value.to_string(),
    })
}

/// Whether a variable declares missing values.
fn declares_missing(variable: &Variable) -> bool {
    let declares = |name| variable.attributes.contains_key(name);
    variable.fill_is_missing || declares("_FillValue") || declares("missing_value")
}
