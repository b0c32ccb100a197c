//! [`DeclaredTable`]: the table of an array that its first rows make.
//!
//! ```text
//!   CREATE EXTERNAL TABLE t (time TIMESTAMP, v REAL) STORED AS ZARR … ──▶ no array: no rows
//!   INSERT INTO t …                                                   ──▶ a new array, and a GridTable of it
//!   SELECT, INSERT INTO, MERGE INTO                                   ──▶ the GridTable, with the columns in the order of the declaration
//! ```

use std::sync::{Arc, PoisonError, RwLock};

use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchemaRef, plan_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::dml::{InsertOp, MergeIntoClause};
use datafusion::logical_expr::{CreateExternalTable, Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;

use super::exact_cast::cast_exactly;
use super::inserts::insert_plan;
use super::merges::merge_plan;
use super::opener::ArrayOpener;
use super::table::GridTable;
use crate::exec::{AfterWrite, NewArrayPlan};
use crate::options::{ArrayOptions, is_of_store};

/// A table whose array is made by the first rows that are inserted.
#[derive(Debug, Clone)]
pub(super) struct DeclaredTable {
    location: String,
    format: String,
    /// The columns as they were declared.
    declared: SchemaRef,
    new_array: NewArrayPlan,
    /// The table of the array, once there is one.
    opened: Arc<RwLock<Option<GridTable>>>,
}

impl DeclaredTable {
    /// Makes the table of a statement.
    ///
    /// # Errors
    /// If the format is not written, an option is wrong, or something is at the place already.
    pub(super) async fn try_new(
        cmd: &CreateExternalTable,
        format: &str,
        session: &dyn Session,
    ) -> Result<Self> {
        let declared = Arc::clone(cmd.schema.inner());
        let [location] = cmd.locations.as_slice() else {
            return plan_err!("an array is written to one place");
        };
        // Options of object stores are not those of the array.
        let options = cmd.options.iter().filter(|(name, _)| !is_of_store(name));
        let options = options.map(|(name, value)| (name.clone(), value.clone())).collect();
        let new_array = NewArrayPlan::try_new(format, location, &declared, &options)?;
        if let Some(name) = cmd.column_defaults.keys().next() {
            return plan_err!(
                "the column \"{name}\" of an array has no DEFAULT; a cell without a value is NULL"
            );
        }
        let is_variable = |field: &&Arc<Field>| !new_array.is_dimension(field.name());
        let mut variables = declared.fields().iter().filter(is_variable);
        if let Some(field) = variables.find(|field| !field.is_nullable()) {
            return plan_err!(
                "the variable \"{}\" cannot be NOT NULL: a cell without a row is NULL",
                field.name()
            );
        }
        if !new_array.is_place_empty(session).await? {
            return plan_err!(
                "'{location}' is there, and a {} table takes its columns from the stored arrays; leave the column list out",
                format.to_uppercase()
            );
        }
        new_array.check()?;
        let opened = Arc::default();
        let (location, format) = (location.clone(), format.to_owned());
        Ok(Self { location, format, declared, new_array, opened })
    }

    pub(super) fn opened(&self) -> Option<GridTable> {
        self.opened.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the table of the array; `None` if there is no array.
    async fn find(&self, session: &dyn Session) -> Result<Option<GridTable>> {
        if let Some(opened) = self.opened() {
            return Ok(Some(opened));
        }
        if self.new_array.is_place_empty(session).await? {
            return Ok(None);
        }
        self.open(ArrayOpener::from_session(session)).await?;
        Ok(self.opened())
    }

    async fn open(&self, opener: ArrayOpener) -> Result<()> {
        let options = match self.new_array.group() {
            Some(group) => ArrayOptions::default().with_option("group", group),
            None => ArrayOptions::default(),
        };
        let format = Some(self.format.as_str());
        let table = opener.table(self.location.as_str(), format, &options).await?;
        let Some(grid) = table.as_grid() else {
            return plan_err!("the array at '{}' is no grid", self.location);
        };
        let found = grid.schema();
        let columns = |schema: &Schema| {
            let mut names: Vec<String> =
                schema.fields().iter().map(|field| field.name().clone()).collect();
            names.sort();
            names
        };
        let (declared, found) = (columns(&self.declared), columns(&found));
        if declared != found {
            return plan_err!(
                "the array at '{}' has the columns {}, and the table was declared with {}",
                self.location,
                found.join(", "),
                declared.join(", ")
            );
        }
        *self.opened.write().unwrap_or_else(PoisonError::into_inner) = Some(grid.clone());
        Ok(())
    }
}

/// Opens the table once its array is there.
#[async_trait]
impl AfterWrite for DeclaredTable {
    async fn written(&self, context: &TaskContext) -> Result<()> {
        self.open(ArrayOpener::from_task(context)).await
    }
}

#[async_trait]
impl TableProvider for DeclaredTable {
    fn schema(&self) -> SchemaRef {
        let Some(opened) = self.opened() else { return Arc::clone(&self.declared) };
        let found = opened.schema();
        let field = |declared: &Arc<Field>| {
            found
                .field_with_name(declared.name())
                .map_or_else(|_| Arc::clone(declared), |it| Arc::new(it.clone()))
        };
        let fields: Vec<Arc<Field>> = self.declared.fields().iter().map(field).collect();
        Arc::new(Schema::new(fields))
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        match self.opened() {
            Some(opened) => opened.supports_filters_pushdown(filters),
            None => Ok(vec![TableProviderFilterPushDown::Unsupported; filters.len()]),
        }
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.declared.fields().len()).collect();
        let columns = projection.unwrap_or(&all);
        // An array that another program has made since is found by the next statement, whose plan has its columns.
        let Some(opened) = self.opened() else {
            let schema = Arc::new(self.declared.project(columns)?);
            self.find(session).await?;
            return match self.opened() {
                None => Ok(Arc::new(EmptyExec::new(schema))),
                Some(_) => plan_err!("the array of the table was made just now; try again"),
            };
        };
        let found = opened.schema();
        let at = columns.iter().map(|at| found.index_of(self.declared.field(*at).name()));
        let columns = at.collect::<Result<Vec<usize>, _>>()?;
        opened.scan(session, Some(&columns), filters, limit).await
    }

    async fn insert_into(
        &self,
        session: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match self.find(session).await? {
            Some(opened) => insert_plan(&opened, session, input, op).await,
            None => {
                let rows = cast_exactly(input, &self.declared)?;
                self.new_array.plan(rows, session, Arc::new(self.clone())).await
            }
        }
    }

    async fn merge_into(
        &self,
        session: &dyn Session,
        source: Arc<dyn ExecutionPlan>,
        schema: DFSchemaRef,
        on: Expr,
        clauses: Vec<MergeIntoClause>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match self.find(session).await? {
            Some(opened) => merge_plan(&opened, session, source, &schema, on, clauses).await,
            None => plan_err!("the table has no rows yet; INSERT INTO makes its array"),
        }
    }
}
