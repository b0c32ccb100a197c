//! Titles for the columns of a query: their aliases, or else the attributes of the table columns they come
//! from.
//!
//! | column | title | unit |
//! |---|---|---|
//! | `value` of `temperature`, with `long_name` and `units` | the long name | `degC` |
//! | `max(value)` | `max(` the long name `)` | `degC` |
//! | `avg(value) AS mean` | `mean` | `degC` |
//! | `value * 2` | the text of the expression | none |

use datafusion::arrow::datatypes::Field;
use datafusion::common::JoinType;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, TableScan};
use gridfusion::GridTable;
use gridfusion_plot::{CalendarUnits, Role, Title};

/// Aggregates and window functions whose results have the unit of their argument.
const KEEP_UNIT: [&str; 19] = [
    "approx_median",
    "approx_percentile_cont",
    "avg",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "max",
    "max_by",
    "median",
    "min",
    "min_by",
    "mode",
    "nth_value",
    "percentile_cont",
    "stddev",
    "stddev_pop",
    "sum",
    "weighted_avg",
];

/// Returns the title of each column of a plan.
pub(super) fn of(plan: &LogicalPlan) -> Vec<Title> {
    let names = plan.schema().fields().iter().map(|field| field.name());
    let title = |(at, name): (usize, &String)| {
        let title = Trace::from_plan(plan, at).map(|trace| trace.title(name));
        title.unwrap_or_else(|| Title {
            role: Role::from_attributes(name, |_| None),
            ..Title::new(name)
        })
    };
    names.enumerate().map(title).collect()
}

/// Returns the name of the array that a scan reads: the table of a function has the name of the function.
fn array_of(scan: &TableScan) -> Option<String> {
    let provider = source_as_provider(&scan.source).ok()?;
    let array = provider.downcast_ref::<GridTable>()?.array();
    Some(array.name().rsplit('/').next()?.to_owned())
}

/// The origin of a column of a query.
#[derive(Debug)]
pub(crate) struct Trace<'a> {
    /// The field of the table column, whose metadata has the attributes.
    pub(crate) field: &'a Field,
    /// The table.
    pub(crate) scan: &'a TableScan,
    /// The aggregate or window function over the column; at most one.
    pub(crate) aggregate: Option<&'a str>,
    /// Whether the column shows other values than the table: a cast may change them, their order and their number.
    pub(crate) is_cast: bool,
    is_renamed: bool,
}

impl<'a> Trace<'a> {
    /// Follows a column down to a table column, through operators and functions that keep the meaning of
    /// its values.
    pub(crate) fn from_plan(plan: &'a LogicalPlan, at: usize) -> Option<Self> {
        match plan {
            LogicalPlan::Projection(node) => Self::from_expr(node.expr.get(at)?, &node.input),
            LogicalPlan::Aggregate(node) => {
                let is_grouping_set = matches!(node.group_expr[..], [Expr::GroupingSet(_)]);
                let expr = node.group_expr.iter().chain(&node.aggr_expr).nth(at)?;
                if is_grouping_set { None } else { Self::from_expr(expr, &node.input) }
            }
            LogicalPlan::Window(node) => match at.checked_sub(node.input.schema().fields().len()) {
                Some(at) => Self::from_expr(node.window_expr.get(at)?, &node.input),
                None => Self::from_plan(&node.input, at),
            },
            LogicalPlan::TableScan(scan) => Some(Self {
                field: scan.projected_schema.fields().get(at)?,
                scan,
                aggregate: None,
                is_cast: false,
                is_renamed: false,
            }),
            LogicalPlan::Join(join) => {
                use JoinType::{LeftAnti, LeftMark, LeftSemi, RightAnti, RightMark, RightSemi};
                let left = join.left.schema().fields().len();
                match join.join_type {
                    // These have the columns of one side, and perhaps a mark after them.
                    RightSemi | RightAnti | RightMark => Self::from_plan(&join.right, at),
                    LeftSemi | LeftAnti | LeftMark => Self::from_plan(&join.left, at),
                    _ if at < left => Self::from_plan(&join.left, at),
                    _ => Self::from_plan(&join.right, at - left),
                }
            }
            LogicalPlan::Distinct(Distinct::All(input)) => Self::from_plan(input, at),
            LogicalPlan::Filter(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Repartition(_) => Self::from_plan(plan.inputs().first()?, at),
            _ => None,
        }
    }

    /// Follows an expression over the columns of `input`; `None` if it computes other values.
    fn from_expr(expr: &'a Expr, input: &'a LogicalPlan) -> Option<Self> {
        match expr {
            Expr::Column(column) => {
                Self::from_plan(input, input.schema().maybe_index_of_column(column)?)
            }
            Expr::Alias(alias) => {
                let trace = Self::from_expr(&alias.expr, input)?;
                Some(Self { is_renamed: true, ..trace })
            }
            Expr::Cast(cast) => {
                let trace = Self::from_expr(&cast.expr, input)?;
                Some(Self { is_cast: true, ..trace })
            }
            Expr::AggregateFunction(AggregateFunction { func, params }) => {
                let AggregateFunctionParams { args, .. } = params;
                Self::from_function(func.name(), args, input)
            }
            Expr::WindowFunction(window) => {
                Self::from_function(window.fun.name(), &window.params.args, input)
            }
            _ => None,
        }
    }

    /// Follows the first argument of a function that keeps its unit.
    fn from_function(name: &str, args: &'a [Expr], input: &'a LogicalPlan) -> Option<Self> {
        let name = KEEP_UNIT.into_iter().find(|it| *it == name)?;
        let trace = Self::from_expr(args.first()?, input)?;
        trace.aggregate.is_none().then_some(Self { aggregate: Some(name), ..trace })
    }

    /// Returns the title of the column. `name` is the name of the column in the query.
    fn title(&self, name: &str) -> Title {
        let attribute = |key: &str| self.field.metadata().get(key).filter(|text| !text.is_empty());
        let described = || {
            let standard = || attribute("standard_name").map(|name| name.replace('_', " "));
            let table =
                || array_of(self.scan).unwrap_or_else(|| self.scan.table_name.table().to_owned());
            let plain = match self.field.name().as_str() {
                "value" => table(),
                name => name.to_owned(),
            };
            let long = attribute("long_name").cloned();
            long.or_else(standard).unwrap_or(plain)
        };
        let shown = match (self.is_renamed, self.aggregate) {
            (true, _) => name.to_owned(),
            (false, None) => described(),
            (false, Some(aggregate)) => format!("{aggregate}({})", described()),
        };
        let role =
            |name: &str| Role::from_attributes(name, |key| attribute(key).map(String::as_str));
        let keeps_values = !matches!(self.aggregate, Some("stddev" | "stddev_pop" | "sum"));
        let role = [name, self.field.name()].map(role).into_iter().find(|it| *it != Role::Other);
        let calendar = || CalendarUnits::parse(attribute("units")?, attribute("calendar")?);
        Title {
            name: shown,
            unit: attribute("units").cloned(),
            role: role.filter(|_| keeps_values).unwrap_or_default(),
            calendar: calendar().filter(|_| keeps_values),
        }
    }
}
