//! [`CoverageTable`]: what `grid_coverage` returns.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use gridfusion_spatial::CoverageRule;

use super::rows::{SourceRows, refuse_same_names};
use crate::exec::spatial::{
    CoverageColumn, CoverageWork, Geometries, GridCoverageExec, LabelledGrid,
};

/// A row per polygon and cell that it covers.
#[derive(Debug)]
pub(super) struct CoverageTable {
    grid: Arc<LabelledGrid>,
    rule: CoverageRule,
    polygons: SourceRows,
    /// The number of the polygons' column of geometries.
    geometry: usize,
    columns: Vec<CoverageColumn>,
    schema: SchemaRef,
}

impl CoverageTable {
    /// Makes the table. `geometry` is the name of the column of geometries; `None` to recognise it.
    ///
    /// # Errors
    /// If the column is not known, or two columns would have the same name.
    pub(super) fn try_new(
        grid: LabelledGrid,
        rule: CoverageRule,
        polygons: SourceRows,
        geometry: Option<&str>,
        function: &str,
    ) -> Result<Self> {
        let geometry = match geometry {
            Some(name) => polygons.column(name)?,
            None => geometry_of(&polygons, function)?,
        };
        let fields: Vec<Field> = polygons.fields().cloned().collect();
        let data_type = fields[geometry].data_type();
        if !Geometries::is_type(data_type) {
            let name = fields[geometry].name();
            return plan_err!(
                "{function}: the column \"{name}\" is of type {data_type}, and polygons are WKB in a binary column, or WKT or GeoJSON text"
            );
        }
        let [y, x] = [&grid.y, &grid.x].map(|it| it.field.name().as_str());
        refuse_same_names(&polygons, function, &[y, x, "coverage", "area_m2"])?;
        let own = (0..fields.len()).filter(|at| *at != geometry).map(CoverageColumn::Own);
        let columns: Vec<CoverageColumn> = own
            .chain([
                CoverageColumn::Y,
                CoverageColumn::X,
                CoverageColumn::Coverage,
                CoverageColumn::Area,
            ])
            .collect();
        let own = Schema::new(fields);
        let fields: Vec<Field> = columns.iter().map(|it| it.field(&own, &grid)).collect();
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { grid: Arc::new(grid), rule, polygons, geometry, columns, schema })
    }
}

/// Finds the column of polygons: the one that GeoParquet names, the only binary one, or one with a usual name.
fn geometry_of(polygons: &SourceRows, function: &str) -> Result<usize> {
    const NAMES: [&str; 8] =
        ["geometry", "geom", "wkb_geometry", "wkb", "wkt", "geojson", "the_geom", "shape"];
    let fields: Vec<&Field> = polygons.fields().collect();
    if let Some((primary, _)) = polygons.geoparquet_column(None) {
        return polygons.column(&primary);
    }
    let with = |is_type: fn(&DataType) -> bool| {
        let all = fields.iter().enumerate().filter(move |(_, it)| is_type(it.data_type()));
        all.map(|(at, _)| at).collect::<Vec<_>>()
    };
    if let [only] = with(Geometries::is_binary).as_slice() {
        return Ok(*only);
    }
    let named = NAMES.iter().find_map(|name| {
        let all = with(Geometries::is_type);
        all.into_iter().find(|at| fields[*at].name().eq_ignore_ascii_case(name))
    });
    match named {
        Some(at) => Ok(at),
        None => plan_err!(
            "{function}: it is not known which column has the polygons: name it with option 'geometry'; there are {}",
            polygons.listed()
        ),
    }
}

#[async_trait]
impl TableProvider for CoverageTable {
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
        Ok(filters.iter().map(|it| self.polygons.pushdown(it)).collect())
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
        let columns: Vec<CoverageColumn> = projection.iter().map(|at| self.columns[*at]).collect();
        let own = columns.iter().filter_map(|it| match it {
            CoverageColumn::Own(at) => Some(*at),
            _ => None,
        });
        // Messages name a row by its first columns.
        let first = (0..self.columns.len() - 3).filter(|at| *at != self.geometry).take(2);
        let read: BTreeSet<usize> = own.chain(first).chain([self.geometry]).collect();
        let input = self.polygons.plan(state, &read, filters).await?;
        let place = |at: usize| read.range(..at).count();
        let columns = columns.into_iter().map(|it| match it {
            CoverageColumn::Own(at) => CoverageColumn::Own(place(at)),
            other => other,
        });
        let work = CoverageWork {
            grid: Arc::clone(&self.grid),
            rule: self.rule,
            geometry: place(self.geometry),
            columns: columns.collect(),
            is_numbered: filters.is_empty(),
            schema: Arc::new(self.schema.project(projection)?),
        };
        Ok(Arc::new(GridCoverageExec::try_new(input, work)?))
    }
}
