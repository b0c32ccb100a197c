//! The description of a file or store of variables for `gridfusion info`.
//!
//! ```text
//!   sst.nc                                                               title
//!     NetCDF classic file, CDF-2, 12.3 KiB, 4 variables, 32 records …    StoreFacts
//!     VARIABLE   TYPE   SHAPE   CHUNKS   CODEC   STORED   RATIO   …      KnownDataset::table
//!     DIMENSION   LENGTH   TYPE   FIRST   LAST   UNITS                   KnownDimension::table
//!     ATTRIBUTE   OF   VALUE                                             with --metadata
//! ```

use std::sync::Arc;

use super::labels::grid;
use super::options::HierarchyView;
use super::roles::{Roles, is_coordinate};
use super::store::VariableStore;
use super::variable_array::{KnownLabels, open_variable};
use crate::hierarchy::{Attribute, Attributes, Variable};
use gridfusion_core::error::{Error, Result, shown_location};
use gridfusion_core::source::KnownDataset;
use gridfusion_core::source::facts::{KnownAttribute, KnownDimension};
use gridfusion_core::source::show::size_text;
use gridfusion_core::source::{Description, Detail, Fact, Page};
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
    /// The errors of arrays that cannot be read.
    pub(super) left_out: &'a [Error],
}

/// Describes the variables of a group. A variable that cannot be opened gets a warning instead of dimensions.
pub(super) async fn describe(of: &Variables<'_>, detail: &Detail) -> Result<Description> {
    let facts = of.store.facts();
    let mut known = GroupFacts { warnings: facts.warnings.clone(), ..GroupFacts::default() };
    known.warnings.extend(of.left_out.iter().map(|error| format!("left out: {error}")));
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
        ("datasets", records(known.datasets.iter().map(KnownDataset::fields))),
        ("dimensions", records(known.dimensions.iter().map(KnownDimension::fields))),
        ("warnings", known.warnings.clone().into()),
    ];
    fields.extend(attributes.as_deref().map(|it| ("metadata", KnownAttribute::list(it))));
    let mut line = vec![facts.noun];
    line.extend(facts.size.map(size_text));
    line.push(counted(known.datasets.len() as u64, "variable"));
    line.extend(facts.more);
    let mut tables = vec![
        KnownDataset::table("VARIABLE", &known.datasets),
        KnownDimension::table(&known.dimensions),
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
    /// Each dimension once, however many variables have it.
    dimensions: Vec<KnownDimension>,
    warnings: Vec<String>,
}

impl GroupFacts {
    async fn add_variable(
        &mut self,
        of: &Variables<'_>,
        (number, variable, name): (usize, &Variable, &str),
        labels: &mut KnownLabels,
    ) {
        let mut dimensions = Vec::new();
        let opened = open_variable(of.store, of.roles, number, of.view, labels).await;
        let described = opened.and_then(|array| {
            array.dims().iter().map(KnownDimension::try_new).collect::<Result<Vec<_>>>()
        });
        match described {
            Ok(known) => dimensions = known,
            Err(error) => self.warn(of, name, error),
        }
        let stored = match of.store.stored(number).await {
            Ok(stored) => stored,
            Err(error) => {
                self.warn(of, name, error);
                None
            }
        };
        // Where nothing was counted, looking takes a request.
        if stored.is_none_or(|it| it.chunks == 0) {
            match of.store.explain_absence(number).await {
                Ok(warning) => self.warnings.extend(warning),
                Err(error) => self.warn(of, name, error),
            }
        }
        let grid = grid(variable).ok();
        let text = |key: &str| variable.attributes.get(key).map(Attribute::to_string);
        self.datasets.push(KnownDataset {
            name: name.to_owned(),
            element_type: Some(variable.cell.to_string()),
            shape: variable.shape(),
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
            is_coordinate: is_coordinate(variable),
        });
        for dimension in dimensions {
            if !self.dimensions.contains(&dimension) {
                self.dimensions.push(dimension);
            }
        }
    }

    fn warn(&mut self, of: &Variables<'_>, name: &str, error: Error) {
        let error = of.store.objects().named(error);
        self.warnings.push(format!("variable \"{name}\": {error}"));
    }
}

/// Returns the attributes of the group, of the groups in it, and of each variable.
fn attributes(described: &Variables<'_>) -> Vec<KnownAttribute> {
    fn known(of: Option<&str>, all: &Attributes) -> Vec<KnownAttribute> {
        let attribute = |(key, value): (&String, &Attribute)| KnownAttribute {
            of: of.map(str::to_owned),
            key: key.clone(),
            value: value.to_string(),
        };
        all.iter().map(attribute).collect()
    }
    let groups = described.groups.iter().flat_map(|(name, all)| known(*name, all));
    let members = described.members.iter();
    let variables = members.flat_map(|(_, it, name)| known(Some(name), &it.attributes));
    groups.chain(variables).collect()
}
