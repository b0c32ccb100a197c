//! [`PointsTable`]: what `grid_points` returns.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::roles::{NAMES, Role};
use super::rows::{SourceRows, refuse_same_names};
use crate::exec::spatial::{
    GridPointsExec, LabelledGrid, PointCells, PointColumn, PointInputs, PointWork, TimeLabels,
};

/// A row per point, or per point and cell around it.
#[derive(Debug)]
pub(super) struct PointsTable {
    grid: Arc<LabelledGrid>,
    times: Option<Arc<TimeLabels>>,
    cells: PointCells,
    points: SourceRows,
    inputs: PointInputs,
    columns: Vec<PointColumn>,
    schema: SchemaRef,
}

impl PointsTable {
    /// Makes the table.
    ///
    /// # Errors
    /// If a coordinate is no number, or two columns would have the same name.
    pub(super) fn try_new(
        grid: LabelledGrid,
        times: Option<TimeLabels>,
        cells: PointCells,
        points: SourceRows,
        inputs: PointInputs,
        function: &str,
    ) -> Result<Self> {
        let own = Schema::new(points.fields().cloned().collect::<Vec<Field>>());
        for at in [inputs.y, inputs.x] {
            let field = own.field(at);
            if !field.data_type().is_numeric() {
                let (name, data_type) = (field.name(), field.data_type());
                return plan_err!(
                    "{function}: the column \"{name}\" is of type {data_type}, and a coordinate is a number: cast it in a query"
                );
            }
        }
        let measure = match cells {
            PointCells::Nearest { .. } => PointColumn::Distance,
            PointCells::Linear => PointColumn::Weight,
        };
        let time = times.is_some().then_some(PointColumn::Time);
        let added = time.into_iter().chain([PointColumn::Y, PointColumn::X, measure]);
        let field = |it: PointColumn| it.field(&own, &grid, times.as_ref());
        let names: Vec<String> = added.clone().map(|it| field(it).name().clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        refuse_same_names(&points, function, &names)?;
        let columns: Vec<PointColumn> =
            (0..own.fields().len()).map(PointColumn::Own).chain(added).collect();
        let fields: Vec<Field> = columns.iter().map(|it| field(*it)).collect();
        let schema = Arc::new(Schema::new(fields));
        let (grid, times) = (Arc::new(grid), times.map(Arc::new));
        Ok(Self { grid, times, cells, points, inputs, columns, schema })
    }
}

/// Finds the column of a coordinate of points: the one that is named, or one with a usual name.
pub(super) fn coordinate(
    points: &SourceRows,
    option: &str,
    name: Option<&str>,
    roles: &[Role],
    grid: &LabelledGrid,
    function: &str,
) -> Result<usize> {
    if let Some(name) = name {
        return points.column(name);
    }
    let usual = roles.iter().flat_map(|role| NAMES.iter().filter(move |it| it.1 == *role));
    let mut usual = usual.flat_map(|it| it.0);
    let found =
        usual.find_map(|name| points.fields().position(|it| it.name().eq_ignore_ascii_case(name)));
    found.ok_or_else(|| {
        let (y, x) = (grid.y.field.name(), grid.x.field.name());
        let of = match grid.is_geographic() {
            true => format!("the {option}"),
            false => format!("the coordinate along \"{}\"", if option == "lat" { y } else { x }),
        };
        plan_datafusion_err!(
            "{function}: it is not known which column of the points is {of}: name it with option '{option}'; there are {}",
            points.listed()
        )
    })
}

#[async_trait]
impl TableProvider for PointsTable {
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
        Ok(filters.iter().map(|it| self.points.pushdown(it)).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = (0..self.columns.len()).collect();
        let projection = projection.unwrap_or(&all);
        let columns: Vec<PointColumn> = projection.iter().map(|at| self.columns[*at]).collect();
        let own = columns.iter().filter_map(|it| match it {
            PointColumn::Own(at) => Some(*at),
            _ => None,
        });
        let needs_time = columns.contains(&PointColumn::Time);
        let time = self.inputs.time.filter(|_| needs_time);
        let read: BTreeSet<usize> = own.chain([self.inputs.y, self.inputs.x]).chain(time).collect();
        let input = self.points.plan(state, &read, filters).await?;
        let place = |at: usize| read.range(..at).count();
        let columns = columns.into_iter().map(|it| match it {
            PointColumn::Own(at) => PointColumn::Own(place(at)),
            other => other,
        });
        let work = PointWork {
            grid: Arc::clone(&self.grid),
            times: self.times.clone(),
            cells: self.cells,
            inputs: PointInputs {
                y: place(self.inputs.y),
                x: place(self.inputs.x),
                time: time.map(place),
            },
            columns: columns.collect(),
            schema: Arc::new(self.schema.project(projection)?),
        };
        Ok(Arc::new(GridPointsExec::new(input, work)))
    }
}
