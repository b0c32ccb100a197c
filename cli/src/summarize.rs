//! `SUMMARIZE`: one row of statistics per column of a table or query.
//!
//! The statement becomes ordinary SQL, so that it is planned, printed and timed like other queries.
//!
//! - If the rows are few, or not those of an array, one pass computes the statistics of all columns.
//! - For the dimensions of a large array, each label is weighted by its number of cells. These numbers need
//!   no chunk, and no row is made per cell.
//!
//! ```text
//!   SUMMARIZE t        columns time, station, value; 10 000 × 200 cells
//!
//!   time               10 000 labels × 200 cells each  ┐
//!   station               200 labels × 10 000 cells    ├ UNION ALL ──▶ ORDER BY place
//!   value              one pass over 2 000 000 rows    ┘
//! ```

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::plan_err;
use datafusion::common::utils::expr::COUNT_STAR_EXPANSION;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::execution::context::SQLOptions;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, LogicalPlan, lit};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{DataFrame, SessionContext};
use gridfusion::GridTable;

use crate::lexer::code;

/// Number of rows up to which quantiles are exact, because sorting takes little time and memory.
const MAX_EXACT_ROWS: i64 = 1_000_000;

/// The columns of the result, in order.
const NAMES: [&str; 11] = [
    "column_name",
    "data_type",
    "count",
    "nulls",
    "min",
    "max",
    "mean",
    "std",
    "q25",
    "q50",
    "q75",
];

const QUANTILES: [&str; 3] = ["0.25", "0.5", "0.75"];

/// Returns the SQL for a `SUMMARIZE` statement; `None` for other statements.
///
/// # Errors
/// If the table or query is missing, or cannot be planned.
pub(crate) async fn summarize(ctx: &SessionContext, statement: &str) -> Result<Option<String>> {
    match summarized(statement)? {
        Some(query) => Box::pin(summary(ctx, &query, MAX_EXACT_ROWS)).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the SQL that summarizes a query. Quantiles are exact if the query is known to have at most `few`
/// rows.
async fn summary(ctx: &SessionContext, query: &str, few: i64) -> Result<String> {
    let only_queries =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let frame = Box::pin(ctx.sql_with_options(query, only_queries)).await?;
    let is_small = Box::pin(rows(&frame)).await?.is_some_and(|rows| rows <= few);
    let along_axes = along_axes(frame.logical_plan());

    let fields = frame.schema().fields();
    let source = source(query, fields.len());
    let columns = fields.iter().enumerate();
    let columns = columns.map(|(place, field)| Column::new(place, field.name(), field.data_type()));
    let is_by_label = |column: &Column| !is_small && along_axes.get(column.place) == Some(&true);
    let (by_label, by_row): (Vec<_>, Vec<_>) = columns.partition(is_by_label);
    let mut parts: Vec<String> = by_label.iter().map(|column| column.by_label(&source)).collect();
    if !by_row.is_empty() {
        parts.push(all_by_row(&by_row, &source, is_small));
    }
    let (names, parts) = (NAMES.join(", "), parts.join("\nUNION ALL\n"));
    Ok(format!("SELECT {names} FROM (\n{parts}\n) AS summary ORDER BY place"))
}

/// Returns the query to summarize. After `SUMMARIZE` comes a query, or anything that may follow `FROM`.
fn summarized(statement: &str) -> Result<Option<String>> {
    let pieces = code(statement);
    let end = pieces.iter().rposition(|piece| !piece.is_symbol(";")).map_or(0, |last| last + 1);
    let [first, rest @ ..] = &pieces[..end] else { return Ok(None) };
    if !first.is_word("summarize") {
        return Ok(None);
    }
    let ([second, ..], Some(last)) = (rest, rest.last()) else {
        return plan_err!("name a table or query: SUMMARIZE t, or SUMMARIZE SELECT x FROM t");
    };
    let what = &statement[second.start..last.start + last.text.len()];
    let begins = |words: &[&str]| words.iter().any(|word| second.is_word(word));
    Ok(Some(if begins(&["select", "with", "values"]) {
        what.to_owned()
    } else if begins(&["from"]) {
        format!("SELECT * {what}")
    } else {
        format!("SELECT * FROM {what}")
    }))
}

/// Returns for each column whether it holds labels along an axis. Empty unless the plan scans a whole array.
fn along_axes(plan: &LogicalPlan) -> Vec<bool> {
    let LogicalPlan::Projection(projection) = plan else { return vec![] };
    let LogicalPlan::TableScan(scan) = projection.input.as_ref() else { return vec![] };
    let is_whole = scan.filters.is_empty() && scan.fetch.is_none();
    let Ok(provider) = source_as_provider(&scan.source) else { return vec![] };
    let Some(table) = provider.downcast_ref::<GridTable>() else { return vec![] };
    let array = table.array();
    let columns = array.columns();
    if !is_whole {
        return vec![];
    }
    let is_along_axis = |expr: &Expr| {
        let Expr::Column(column) = expr else { return false };
        let Some(at) = scan.projected_schema.maybe_index_of_column(column) else { return false };
        let at = scan.projection.as_ref().map_or(at, |projection| projection[at]);
        columns.get(at).is_some_and(|column| array.labels_of(*column).is_some())
    };
    projection.expr.iter().map(is_along_axis).collect()
}

/// Returns the number of rows, if it is known without reading them.
async fn rows(frame: &DataFrame) -> Result<Option<i64>> {
    let frame = frame.clone().aggregate(vec![], vec![count(lit(COUNT_STAR_EXPANSION))])?;
    let context = Arc::new(frame.task_ctx());
    let plan = Box::pin(frame.create_physical_plan()).await?;
    if reads(plan.as_ref()) {
        return Ok(None);
    }
    let batches = collect(plan, context).await?;
    let counts = batches.first().and_then(|batch| batch.column(0).as_primitive_opt::<Int64Type>());
    Ok(counts.map(|counts| counts.value(0)))
}

/// Whether a plan has a source other than a row of constants.
fn reads(plan: &dyn ExecutionPlan) -> bool {
    let children = plan.children();
    match children.is_empty() {
        true => plan.downcast_ref::<PlaceholderRowExec>().is_none(),
        false => children.iter().any(|child| reads(child.as_ref())),
    }
}

/// Returns a subquery with unique column names that need no quotes: `c0`, `c1`, …
fn source(query: &str, columns: usize) -> String {
    let names: Vec<String> = (0..columns).map(|place| format!("c{place}")).collect();
    // The line feed ends a comment at the end of the query.
    format!("(\n{query}\n) AS summarized ({})", names.join(", "))
}

/// A column to summarize.
struct Column {
    place: usize,
    /// The name as a quoted SQL text.
    name: String,
    /// The type as a quoted SQL text.
    data_type: String,
    /// Whether the result shows a least and a greatest value.
    is_ordered: bool,
    measure: Measure,
}

/// How the values of a column become numbers.
enum Measure {
    /// The values are numbers.
    Number,
    /// The values, such as times, are stored as integers of this SQL type.
    Integer(&'static str),
    /// The values cannot become numbers.
    None,
}

impl Column {
    fn new(place: usize, name: &str, data_type: &DataType) -> Self {
        let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let measure = match data_type {
            _ if data_type.is_numeric() => Measure::Number,
            DataType::Date32 | DataType::Time32(_) => Measure::Integer("INT"),
            DataType::Date64 | DataType::Time64(_) | DataType::Timestamp(..) => {
                Measure::Integer("BIGINT")
            }
            _ => Measure::None,
        };
        let is_text = matches!(
            data_type,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean
        );
        let is_ordered = is_text || !matches!(measure, Measure::None);
        let (name, data_type) = (text(name), text(&data_type.to_string()));
        Self { place, name, data_type, is_ordered, measure }
    }

    /// Returns SQL for `value` as a `DOUBLE`.
    fn number(&self, value: &str) -> Option<String> {
        match self.measure {
            Measure::Number => Some(format!("CAST({value} AS DOUBLE)")),
            Measure::Integer(integer) => {
                Some(format!("CAST(CAST({value} AS {integer}) AS DOUBLE)"))
            }
            Measure::None => None,
        }
    }

    /// Returns SQL for a result of [`number`](Self::number) as text, in the form of the column's own values.
    fn shown(&self, number: &str) -> String {
        match self.measure {
            Measure::Integer(integer) => {
                let value = format!("CAST(round({number}) AS {integer})");
                as_text(&format!("arrow_cast({value}, {})", self.data_type))
            }
            _ => as_text(number),
        }
    }

    /// Returns the column's row of the result, in the order of [`NAMES`].
    fn row(&self, aggregates: &Aggregates) -> [String; 11] {
        let Aggregates { count, nulls, least, greatest, mean, std, quantiles } = aggregates;
        let ordered = |value: &str| if self.is_ordered { as_text(value) } else { null("VARCHAR") };
        let is_number = matches!(self.measure, Measure::Number);
        let number = |value: &str| if is_number { value.to_owned() } else { null("DOUBLE") };
        let quantile = |value: &String| match self.measure {
            Measure::None => null("VARCHAR"),
            _ => self.shown(value),
        };
        let [q25, q50, q75] = quantiles.each_ref().map(quantile);
        let (name, data_type) = (self.name.clone(), self.data_type.clone());
        let (count, nulls) = (count.clone(), nulls.clone());
        let (least, greatest) = (ordered(least), ordered(greatest));
        let (mean, std) = (number(mean), number(std));
        [name, data_type, count, nulls, least, greatest, mean, std, q25, q50, q75]
    }

    /// Returns the aggregates over the rows.
    fn of_rows(&self, is_exact: bool) -> Aggregates {
        let c = format!("c{}", self.place);
        let x = self.number(&c).unwrap_or_else(|| null("DOUBLE"));
        let quantile = if is_exact { "percentile_cont" } else { "approx_percentile_cont" };
        Aggregates {
            count: format!("count({c})"),
            nulls: format!("count(*) - count({c})"),
            least: format!("min({c})"),
            greatest: format!("max({c})"),
            // Without a cast of the column, so that both are reductions over the array.
            mean: format!("CAST(avg({c}) AS DOUBLE)"),
            std: format!("CAST(stddev({c}) AS DOUBLE)"),
            quantiles: QUANTILES.map(|p| format!("{quantile}({p}) WITHIN GROUP (ORDER BY {x})")),
        }
    }

    /// Returns a query for the column's row, over the labels and their numbers of cells.
    ///
    /// `x` is a label, `w` its number of cells, and `m` the mean of the column. The innermost query counts
    /// cells per label, the next adds the mean to each label, and the outer one aggregates with weights.
    fn by_label(&self, source: &str) -> String {
        let Self { place, .. } = self;
        let x = self.number("x").unwrap_or_else(|| null("DOUBLE"));
        let known = "CASE WHEN x IS NULL THEN 0 ELSE w END";
        let aggregates = Aggregates {
            count: format!("sum({known})"),
            nulls: "sum(CASE WHEN x IS NULL THEN w ELSE 0 END)".to_owned(),
            least: "min(x)".to_owned(),
            greatest: "max(x)".to_owned(),
            mean: "max(m)".to_owned(),
            std: format!("sqrt(sum(w * power({x} - m, 2)) / nullif(sum({known}) - 1, 0))"),
            quantiles: QUANTILES.map(|p| {
                format!("approx_percentile_cont_with_weight(w, {p}) WITHIN GROUP (ORDER BY {x})")
            }),
        };
        let row = named(&self.row(&aggregates));
        let labels = format!("SELECT c{place} AS x, count(*) AS w FROM {source} GROUP BY c{place}");
        let mean = format!("sum({x} * w) OVER () / nullif(sum({known}) OVER (), 0) AS m");
        format!(
            "SELECT {place} AS place, {row} FROM (SELECT x, w, {mean} FROM ({labels}) AS labels) AS means"
        )
    }
}

/// SQL expressions for the statistics of a column.
struct Aggregates {
    count: String,
    nulls: String,
    least: String,
    greatest: String,
    mean: String,
    std: String,
    quantiles: [String; 3],
}

/// Returns a query for the rows of several columns, with one pass over the source.
///
/// All aggregates are computed as the columns of one row: an array of one struct per column. `unnest` makes
/// the array into rows.
fn all_by_row(columns: &[Column], source: &str, is_exact: bool) -> String {
    let rows = columns.iter().map(|column| {
        let row = column.row(&column.of_rows(is_exact));
        let fields = NAMES.iter().zip(row).map(|(name, value)| format!("'{name}', {value}"));
        let fields = fields.collect::<Vec<_>>().join(", ");
        format!("named_struct('place', {}, {fields})", column.place)
    });
    let rows = rows.collect::<Vec<_>>().join(",\n");
    let fields = named(&NAMES.map(|name| format!("get_field(r, '{name}')")));
    format!(
        "SELECT get_field(r, 'place') AS place, {fields} FROM (SELECT unnest(rs) AS r FROM (\n\
         SELECT make_array({rows}) AS rs FROM {source}) AS one) AS many"
    )
}

/// Returns the items of a select list, with their names.
fn named(row: &[String; 11]) -> String {
    let items = NAMES.iter().zip(row).map(|(name, value)| format!("{value} AS {name}"));
    items.collect::<Vec<_>>().join(", ")
}

fn as_text(value: &str) -> String {
    format!("CAST({value} AS VARCHAR)")
}

fn null(data_type: &str) -> String {
    format!("CAST(NULL AS {data_type})")
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::execution::SessionStateBuilder;
    use gridfusion::GridfusionSessionStateBuilderExt;

    use super::*;

    #[test]
    fn what_is_summed_up() {
        for (statement, query) in [
            ("SUMMARIZE t;", Some("SELECT * FROM t")),
            ("\n  summarize 'a;b.tet' ; ", Some("SELECT * FROM 'a;b.tet'")),
            ("SUMMARIZE (SELECT 1) -- all", Some("SELECT * FROM (SELECT 1)")),
            ("SUMMARIZE SELECT x FROM t WHERE y", Some("SELECT x FROM t WHERE y")),
            ("Summarize FROM t", Some("SELECT * FROM t")),
            ("SELECT summarize FROM t", None),
            ("summarized t", None),
            ("", None),
        ] {
            assert_eq!(summarized(statement).unwrap().as_deref(), query, "{statement}");
        }
        assert!(summarized("SUMMARIZE;").is_err());
    }

    /// Returns the lines of the result, without borders.
    async fn lines(ctx: &SessionContext, statement: &str) -> Vec<String> {
        answer(ctx, &summarize(ctx, statement).await.unwrap().unwrap()).await
    }

    async fn answer(ctx: &SessionContext, sql: &str) -> Vec<String> {
        let rows = ctx.sql(sql).await.unwrap().collect().await.unwrap();
        let table = pretty_format_batches(&rows).unwrap().to_string();
        let cells = |line: &str| {
            line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(",")
        };
        table.lines().skip(3).filter(|line| line.starts_with('|')).map(cells).collect()
    }

    #[tokio::test]
    async fn columns_of_every_kind() {
        let ctx = SessionContext::new();
        let sql = "CREATE TABLE t AS SELECT column1 AS \"it's\", column2 AS t, column3 AS d, \
                   CAST(column4 AS TIMESTAMP) AS at, CAST(column4 AS DATE) AS day, [column1] AS l \
                   FROM (VALUES (1, 'a', 1.5, '2024-01-01'), (2, NULL, 2.5, '2024-01-03'), \
                   (3, 'c', NULL, '2024-01-05'), (4, 'b', 4.5, NULL), (5, 'e', 5.5, '2024-01-09'))";
        ctx.sql(sql).await.unwrap();
        let expected = [
            "it's,Int64,5,0,1,5,3.0,1.5811388300841898,2.0,3.0,4.0",
            "t,Utf8,4,1,a,e,,,,,",
            "d,Float64,4,1,1.5,5.5,3.5,1.8257418583505538,2.25,3.5,4.75",
            "at,Timestamp(ns),4,1,2024-01-01T00:00:00,2024-01-09T00:00:00,,,\
             2024-01-02T12:00:00,2024-01-04T00:00:00,2024-01-06T00:00:00",
            "day,Date32,4,1,2024-01-01,2024-01-09,,,2024-01-03,2024-01-04,2024-01-06",
            "l,List(Int64),5,0,,,,,,,",
        ];
        let found = lines(&ctx, "SUMMARIZE t").await;
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found, expected);
        }
        // The same name twice, and a filter.
        let twice = lines(&ctx, "SUMMARIZE t AS a JOIN t AS b USING (d) WHERE a.d > 2").await;
        assert!(twice.len() > 9 && twice[0].starts_with("it's,Int64,3,0,2,5,"), "{twice:#?}");
    }

    #[tokio::test]
    async fn labels_have_weights() {
        let ctx = SessionContext::new();
        ctx.sql("CREATE TABLE t AS VALUES (1), (1), (1), (4), (NULL)").await.unwrap();
        let column = Column::new(0, "x", &DataType::Int64);
        let sql = column.by_label(&source("SELECT * FROM t", 1));
        let rows = ctx.sql(&sql).await.unwrap().collect().await.unwrap();
        let table = pretty_format_batches(&rows).unwrap().to_string();
        let found = table.lines().nth(3).unwrap().replace(' ', "");
        assert!(found.starts_with("|0|x|Int64|4|1|1|4|1.75|1.5|1.0|"), "{table}");
    }

    #[tokio::test]
    async fn dimensions_of_arrays_are_summed_up_by_label() {
        let state = SessionStateBuilder::new().with_default_features().with_gridfusion().build();
        let ctx = SessionContext::new_with_state(state);
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/climate.tet");
        let query = format!("SELECT * FROM read_tet('{file}', 't2m, tp')");
        let exact = summary(&ctx, &query, i64::MAX).await.unwrap();
        let by_label = summary(&ctx, &query, 0).await.unwrap();
        assert!(!exact.contains("approx_") && by_label.contains("approx_"));
        assert_eq!(by_label.matches("GROUP BY").count(), 3, "{by_label}");
        // In another order, the dimensions are the same columns.
        let other =
            format!("SELECT tp + 1 AS more, t2m, lon, time FROM read_tet('{file}', 't2m, tp')");
        let other = summary(&ctx, &other, 0).await.unwrap();
        for place in 0..4 {
            let is_by_label = other.contains(&format!("GROUP BY c{place})"));
            assert_eq!(is_by_label, place > 1, "{place} of {other}");
        }
        let (exact, by_label) = (answer(&ctx, &exact).await, answer(&ctx, &by_label).await);
        assert_eq!(exact.len(), 5);
        for (exact, by_label) in exact.iter().zip(&by_label) {
            // Quartiles are approximate by label. Means and deviations differ by the order of summation.
            let cells = |row: &str| row.split(',').map(str::to_owned).collect::<Vec<_>>();
            let (exact, by_label) = (cells(exact), cells(by_label));
            assert_eq!(exact[..6], by_label[..6]);
            for (exact, by_label) in exact[6..8].iter().zip(&by_label[6..8]) {
                let numbers = exact.parse::<f64>().ok().zip(by_label.parse::<f64>().ok());
                let is_near = |(a, b): (f64, f64)| (a - b).abs() <= 1e-6 * a.abs();
                assert!(numbers.map_or(exact == by_label, is_near), "{exact} {by_label}");
            }
        }
    }

    #[tokio::test]
    async fn only_queries_are_summed_up() {
        let ctx = SessionContext::new();
        assert!(summarize(&ctx, "SUMMARIZE (CREATE TABLE t AS SELECT 1)").await.is_err());
        assert!(summarize(&ctx, "SUMMARIZE nothing").await.is_err());
    }
}
