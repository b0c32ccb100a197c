//! [`SourceRows`]: polygons or points as a logical plan, whether of a table, a file or a query.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, TableReference, plan_datafusion_err, plan_err};
use datafusion::datasource::listing::{
    ListingTable, ListingTableConfig, ListingTableConfigExt, ListingTableUrl,
};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown,
};
use datafusion::physical_plan::ExecutionPlan;
use gridfusion_spatial::Crs;

use super::arguments::RowsArgument;
use super::features;
use crate::io::is_not_found;
use crate::provider::ArrayOpener;

/// Rows of polygons or points.
#[derive(Debug)]
pub(super) struct SourceRows {
    plan: LogicalPlan,
    /// The kind of coordinates that a GeoJSON file declares.
    crs: Crs,
    /// The polygons or points, for messages.
    what: &'static str,
}

impl SourceRows {
    /// Finds the rows of an argument. `what` names them in messages.
    ///
    /// # Errors
    /// If there is no such table or file, or it cannot be read.
    pub(super) async fn open(
        state: &SessionState,
        opener: &ArrayOpener,
        argument: &RowsArgument,
        what: &'static str,
    ) -> Result<Self> {
        let (plan, crs) = match argument {
            RowsArgument::Query(plan) => (plan.as_ref().clone(), Crs::Unknown),
            RowsArgument::Named(name) => {
                let (reference, table, crs) = named(state, opener, name, what).await?;
                let scan = LogicalPlanBuilder::scan(reference, provider_as_source(table), None)?;
                (scan.build()?, crs)
            }
        };
        // The types of columns are those that the plan will have.
        let config = state.config_options();
        let plan = state.analyzer().execute_and_check(plan, config, |_, _| {})?;
        let rows = Self { plan, crs, what };
        let names: Vec<&String> = rows.fields().map(Field::name).collect();
        if let Some(name) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
            let name = names[name];
            return plan_err!("the {what} have two columns \"{name}\": rename one with AS");
        }
        Ok(rows)
    }

    /// The columns, in order.
    pub(super) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.plan.schema().fields().iter().map(AsRef::as_ref)
    }

    /// Returns the number of a column.
    ///
    /// # Errors
    /// If there is none of this name.
    pub(super) fn column(&self, name: &str) -> Result<usize> {
        self.fields().position(|it| it.name() == name).ok_or_else(|| {
            plan_datafusion_err!(
                "the {} have no column \"{name}\"; there are {}",
                self.what,
                self.listed()
            )
        })
    }

    /// Returns the column of geometries that the metadata of GeoParquet names, or the `wanted` one, and the kind of its coordinates.
    pub(super) fn geoparquet_column(&self, wanted: Option<&str>) -> Option<(String, Crs)> {
        let text = self.plan.schema().metadata().get("geo")?;
        gridfusion_spatial::geoparquet_column(text, wanted)
    }

    /// The kind of coordinates that the file of the rows declares for a column; `None` for its primary one.
    pub(super) fn crs(&self, column: Option<&str>) -> Crs {
        self.geoparquet_column(column).map_or(self.crs, |it| it.1)
    }

    /// The names of the columns, for messages.
    pub(super) fn listed(&self) -> String {
        self.fields().map(|it| format!("\"{}\"", it.name())).collect::<Vec<_>>().join(", ")
    }

    /// Whether a filter uses only columns of the rows, and so can be evaluated before cells are found.
    pub(super) fn pushdown(&self, filter: &Expr) -> TableProviderFilterPushDown {
        let is_own = |column: &&Column| self.fields().any(|it| *it.name() == column.name);
        let has_query = filter.exists(|it| {
            Ok(matches!(
                it,
                Expr::ScalarSubquery(_)
                    | Expr::InSubquery(_)
                    | Expr::Exists(_)
                    | Expr::SetComparison(_)
                    | Expr::OuterReferenceColumn(..)
            ))
        });
        let columns = filter.column_refs();
        let is_own = !columns.is_empty() && columns.iter().all(is_own);
        match is_own && !filter.is_volatile() && !has_query.unwrap_or(true) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        }
    }

    /// Plans the rows that pass the filters, with these columns in order.
    pub(super) async fn plan(
        &self,
        session: &dyn Session,
        columns: &BTreeSet<usize>,
        filters: &[Expr],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut builder = LogicalPlanBuilder::from(self.plan.clone());
        for filter in filters {
            // Names are those of the function's table, and unique among the rows.
            let own = filter.clone().transform(|it| {
                Ok(match it {
                    Expr::Column(column) => {
                        let at = self.column(&column.name)?;
                        let column = Column::from(self.plan.schema().qualified_field(at));
                        Transformed::yes(Expr::Column(column))
                    }
                    other => Transformed::no(other),
                })
            })?;
            builder = builder.filter(own.data)?;
        }
        let schema = self.plan.schema();
        let own = columns.iter().map(|at| Expr::Column(Column::from(schema.qualified_field(*at))));
        let plan = builder.project(own.collect::<Vec<_>>())?.build()?;
        session.create_physical_plan(&plan).await
    }
}

/// Finds the table of a name, or of a file.
async fn named(
    state: &SessionState,
    opener: &ArrayOpener,
    name: &str,
    what: &str,
) -> Result<(TableReference, Arc<dyn TableProvider>, Crs)> {
    if let Some((reference, table)) = registered(state, name).await? {
        return Ok((reference, table, Crs::Unknown));
    }
    // A session with a root refuses paths outside of it.
    let place = opener.place(name)?;
    let reference = TableReference::bare(name);
    if features::is_name(&place.path()) {
        let (table, crs) = features::table(&place).await?;
        return Ok((reference, table, crs));
    }
    if place.path().to_ascii_lowercase().ends_with(".parquet") {
        return match listed(state, name).await {
            Ok(table) => Ok((reference, table, Crs::Unknown)),
            // A file that is not there has a better message.
            Err(error) => place.object().await.map_err(Into::into).and(Err(error)),
        };
    }
    // The session may know paths as tables.
    let schema = state.schema_for_ref(reference.clone())?;
    if let Some(table) = schema.table(name).await? {
        return Ok((reference, table, Crs::Unknown));
    }
    let error = match listed(state, name).await {
        Ok(table) => return Ok((reference, table, Crs::Unknown)),
        Err(error) => error,
    };
    let is_missing = place.object().await.is_err_and(|error| is_not_found(&error));
    let file = match is_missing {
        true => "no such file".to_owned(),
        false => format!("no file that can be read ({})", error.strip_backtrace()),
    };
    let is_name = name.chars().all(|it| it.is_alphanumeric() || it == '_');
    let hint = match is_name {
        true => format!("; a name of WITH is a query here: (SELECT * FROM {name})"),
        false => String::new(),
    };
    plan_err!("there are no {what} '{name}': no table of this name, and {file}{hint}")
}

/// Returns a table that is registered with the session; `None` if there is none of this name.
pub(super) async fn registered(
    state: &SessionState,
    name: &str,
) -> Result<Option<(TableReference, Arc<dyn TableProvider>)>> {
    for reference in [TableReference::bare(name), TableReference::from(name)] {
        let Ok(schema) = state.schema_for_ref(reference.clone()) else { continue };
        if schema.table_exist(reference.table())
            && let Some(table) = schema.table(reference.table()).await?
        {
            return Ok(Some((reference, table)));
        }
    }
    Ok(None)
}

/// Opens a file of rows by the session's formats.
async fn listed(state: &SessionState, path: &str) -> Result<Arc<dyn TableProvider>> {
    // The metadata of GeoParquet names the column of geometries.
    let mut state = state.clone();
    state.config_mut().options_mut().execution.parquet.skip_metadata = false;
    let config = ListingTableConfig::new(ListingTableUrl::parse(path)?);
    let config = config.infer_options(&state).await?;
    Ok(Arc::new(ListingTable::try_new(config.infer_schema(&state).await?)?))
}

/// Refuses columns of the rows that have the name of another column. `means` tells for what the function uses the name.
pub(super) fn refuse_same_names(rows: &SourceRows, function: &str, added: &[&str]) -> Result<()> {
    let own = rows.fields().find(|it| added.contains(&it.name().as_str()));
    match own {
        None => Ok(()),
        Some(own) => {
            let (name, what) = (own.name(), rows.what);
            plan_err!(
                "the {what} have a column \"{name}\", which is also the name of a column of {function}: rename it in a query, as in \
                 {function}(…, (SELECT \"{name}\" AS other, … FROM …))"
            )
        }
    }
}
