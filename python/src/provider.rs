//! Queries as tables of the package `datafusion`: the host plans its query, and we plan and run the part that is ours.
//!
//! ```text
//!   host   SELECT … FROM t WHERE …  ──▶ Part of the plan, with the host's filters, columns and limit
//!   ours   Guest: a query ──▶ filter ──▶ columns ──▶ our optimizer ──▶ OwnPlan ──▶ batches, on our threads
//! ```
//!
//! The plan runs in our session: with its object stores and its memory limit, and not with those of the host.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown, TableType,
};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::FFI_TableProvider;
use datafusion_ffi::udtf::FFI_TableFunction;
use gridfusion_cli::embed::EmbeddedSession;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tokio::runtime::Handle;

use crate::foreign::codec_of;
use crate::runtime::runtime;

/// A query that another engine reads as a table.
struct Guest {
    session: Arc<EmbeddedSession>,
    plan: LogicalPlan,
    schema: SchemaRef,
    threads: Handle,
}

/// Returns a capsule with a query as a table, for a session of the package `datafusion`.
pub(crate) fn table_capsule<'py>(
    session: &Arc<EmbeddedSession>,
    plan: &LogicalPlan,
    schema: &SchemaRef,
    host: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let threads = runtime(host.py())?.handle().clone();
    let (session, plan, schema) = (Arc::clone(session), plan.clone(), Arc::clone(schema));
    let guest = Arc::new(Guest { session, plan, schema, threads: threads.clone() });
    let codec = codec(host)?;
    let table = FFI_TableProvider::new_with_ffi_codec(guest, true, Some(threads), codec);
    PyCapsule::new_with_value(host.py(), table, c"datafusion_table_provider")
}

fn codec(host: &Bound<'_, PyAny>) -> PyResult<FFI_LogicalExtensionCodec> {
    let capsule = host.call_method0("__datafusion_logical_extension_codec__")?;
    codec_of(&capsule.cast_into::<PyCapsule>()?)
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gridfusion: {}", self.plan.display())
    }
}

impl Guest {
    /// Plans the query with these columns, filters and limit, on our threads.
    async fn planned(&self, plan: LogicalPlan) -> Result<OwnPlan> {
        let session = Arc::clone(&self.session);
        let planned = self.threads.spawn(async move {
            let frame = DataFrame::new(session.ctx().state(), plan);
            let context = Arc::new(frame.task_ctx());
            let plan = Box::pin(frame.create_physical_plan()).await;
            plan.map_err(|error| session.explain(error)).map(|it| OwnPlan::new(it, context))
        });
        planned.await.map_err(|error| DataFusionError::External(error.into()))?
    }
}

#[async_trait]
impl TableProvider for Guest {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match filter.is_volatile() {
            true => TableProviderFilterPushDown::Unsupported,
            false => TableProviderFilterPushDown::Exact,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut plan = LogicalPlanBuilder::from(self.plan.clone()).alias("t")?;
        if let Some(filter) = filters.iter().cloned().reduce(Expr::and) {
            plan = plan.filter(filter)?;
        }
        if let Some(columns) = projection {
            plan = plan.select(columns.iter().copied())?;
        }
        if limit.is_some() {
            plan = plan.limit(0, limit)?;
        }
        Ok(Arc::new(self.planned(plan.build()?).await?))
    }
}

/// A plan that runs in our session, whatever context the host has.
#[derive(Debug)]
struct OwnPlan {
    /// The operators, which the host shows.
    name: String,
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
}

impl OwnPlan {
    fn new(plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Self {
        let mut name = "gridfusion".to_owned();
        let mut node = Some(&plan);
        while let Some(it) = node {
            name = format!("{name}: {}", it.name());
            node = it.children().first().copied();
        }
        Self { name, plan, context }
    }
}

impl DisplayAs for OwnPlan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl ExecutionPlan for OwnPlan {
    fn name(&self) -> &str {
        &self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&PhysicalExprRef) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.is_empty() {
            true => Ok(self),
            false => internal_err!("{} has no children", self.name),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, recompute)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.plan.execute(partition, Arc::clone(&self.context))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        StatisticsContext::new().compute(self.plan.as_ref(), args)
    }
}

/// A table function of a session, for a session of the package `datafusion`.
#[pyclass(frozen, module = "gridfusion._internal")]
pub(crate) struct TableFunction {
    session: Arc<EmbeddedSession>,
    name: String,
}

impl TableFunction {
    pub(crate) fn new(session: &Arc<EmbeddedSession>, name: String) -> Self {
        Self { session: Arc::clone(session), name }
    }
}

#[pymethods]
impl TableFunction {
    /// A capsule with the function, for a session of the package `datafusion`.
    fn __datafusion_table_function__<'py>(
        &self,
        session: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let threads = runtime(session.py())?.handle().clone();
        let own = Arc::clone(&self.session);
        let function = GuestFunction { own, name: self.name.clone(), threads: threads.clone() };
        let codec = codec(session)?;
        let function =
            FFI_TableFunction::new_with_ffi_codec(Arc::new(function), Some(threads), codec);
        PyCapsule::new_with_value(session.py(), function, c"datafusion_table_function")
    }
}

/// A table function whose arrays our session opens and reads.
struct GuestFunction {
    own: Arc<EmbeddedSession>,
    name: String,
    threads: Handle,
}

impl fmt::Debug for GuestFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gridfusion: {}", self.name)
    }
}

impl TableFunctionImpl for GuestFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let state = self.own.ctx().state();
        let functions = state.table_functions();
        let Some(function) = functions.get(&self.name) else {
            return Err(DataFusionError::Plan(format!("no table function {}", self.name)));
        };
        let _entered = self.threads.enter();
        let arguments = TableFunctionArgs::new(args.exprs(), &state);
        let table = function.create_table_provider_with_args(arguments);
        let table = table.map_err(|error| self.own.explain(error))?;
        let schema = table.schema();
        let plan =
            LogicalPlanBuilder::scan(&self.name, provider_as_source(table), None)?.build()?;
        let (session, threads) = (Arc::clone(&self.own), self.threads.clone());
        Ok(Arc::new(Guest { session, plan, schema, threads }))
    }
}
