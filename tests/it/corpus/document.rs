//! Translates the corpus's query documents, which are for the reference engine, to SQL.

use std::collections::BTreeMap;

use datafusion::prelude::SessionContext;
use gridfusion::ArrayOptions;
use serde_json::Value;

use super::Result;
use super::tables::{columns, quoted, rows};

/// A number; `None` for NULL and for numbers that JSON cannot represent.
pub(crate) type Number = Option<f64>;

/// The schemas of a file: each reads NaN and fill values either as NULL or as values.
pub(crate) fn schemas() -> [(&'static str, ArrayOptions); 4] {
    let read = |nan, fill| {
        let options = ArrayOptions::default().with_index_columns(true);
        options.with_nan_as_null(nan).with_fill_as_null(fill)
    };
    [
        ("present", read(true, true)),
        ("numbers", read(true, false)),
        ("filled", read(false, true)),
        ("stored", read(false, false)),
    ]
}

/// A query document, and the columns of its dataset.
pub(crate) struct Asked<'a> {
    dataset: &'a str,
    query: &'a Value,
    dimensions: Vec<String>,
    indices: Vec<String>,
    value: String,
}

impl<'a> Asked<'a> {
    pub(crate) async fn new(ctx: &SessionContext, query: &'a Value) -> Result<Self> {
        let dataset = query["dataset"].as_str().expect("a document names its dataset");
        let names = columns(ctx, "stored", dataset).await?;
        let rank = (names.len() - 1) / 2;
        let quote = |names: &[String]| names.iter().map(|name| quoted(name)).collect();
        Ok(Self {
            dataset,
            query,
            dimensions: quote(&names[..rank]),
            indices: quote(&names[rank + 1..]),
            value: format!("{}::double", quoted(&names[rank])),
        })
    }

    pub(crate) fn operation(&self) -> &'a str {
        let about = ["dataset", "filter", "label_filter", "selection", "group_by", "window"];
        let mut keys = self.query.as_object().expect("an object").keys();
        keys.find(|key| !about.contains(&key.as_str())).expect("a document has an operation")
    }

    /// The argument of the operation.
    fn argument(&self) -> &'a Value {
        &self.query[self.operation()]
    }

    /// The table in which SQL gives the reference's answer.
    ///
    /// The reference aggregates all stored values, but its filters and some operations skip missing ones.
    /// Its extremes skip NaN. DataFusion's rolling sums keep a NaN that has left the window.
    pub(crate) fn table(&self) -> String {
        let schema = match self.operation() {
            _ if self.query.get("filter").is_some() => "present",
            "median" | "quantile" | "covariance" | "min" | "max" | "nan_mean" => "numbers",
            "null_count" => "filled",
            _ if self.query["window"]["mode"] == "rolling" => "numbers",
            _ => "stored",
        };
        format!("{schema}.{}", quoted(self.dataset))
    }

    fn aggregate(&self) -> String {
        let value = &self.value;
        let function = match self.operation() {
            "count" => return "count(*)".into(),
            "nan_count" => return format!("count(*) FILTER (WHERE isnan({value}))"),
            "null_count" => return format!("count(*) - count({value})"),
            "mean" | "nan_mean" => "avg",
            "var" => "var_pop",
            "std" => "stddev_pop",
            named => named,
        };
        format!("{function}({value})")
    }

    /// The position of an axis that is given by number or name.
    fn axis(&self, axis: &Value) -> Option<usize> {
        let text = axis.as_str().map_or_else(|| axis.to_string(), str::to_owned);
        let named = self.dimensions.iter().position(|name| *name == quoted(&text));
        named.or_else(|| text.parse().ok())
    }

    /// The axes that a reduction keeps: the axes of its keys, or the axes that it does not reduce.
    fn kept(&self) -> Vec<usize> {
        let list = |axes: &Value| match axes {
            Value::Array(axes) => axes.clone(),
            axis => vec![axis.clone()],
        };
        let all = 0..self.indices.len();
        let group = &self.query["group_by"];
        let group = group.get("axes").unwrap_or(group);
        if !group.is_null() {
            return list(group).iter().filter_map(|axis| self.axis(axis)).collect();
        }
        let reduced = match self.argument() {
            Value::Object(parameters) => parameters.get("axis").map(&list).unwrap_or_default(),
            axes => list(axes),
        };
        let reduced: Vec<_> = reduced.iter().filter_map(|axis| self.axis(axis)).collect();
        if reduced.is_empty() { vec![] } else { all.filter(|at| !reduced.contains(at)).collect() }
    }

    fn is_by_labels(&self) -> bool {
        self.query["group_by"]["by"] == "labels"
    }

    /// The `WHERE` clause, or an empty text.
    pub(crate) fn condition(&self) -> String {
        let mut terms = Vec::new();
        let slices = self.query["selection"].as_array().map_or(&[][..], Vec::as_slice);
        for (axis, slice) in slices.iter().enumerate() {
            let (label, index) = (&self.dimensions[axis], &self.indices[axis]);
            let text = |key: &str| slice[key].as_str();
            terms.extend(text("start_label").map(|start| format!("{label} >= '{start}'")));
            terms.extend(text("stop_label").map(|stop| format!("{label} < '{stop}'")));
            let start = slice["start"].as_u64().unwrap_or(0);
            terms.extend((start > 0).then(|| format!("{index} >= {start}")));
            terms.extend(slice["stop"].as_u64().map(|stop| format!("{index} < {stop}")));
            let step = slice["step"].as_u64();
            terms.extend(step.map(|step| format!("({index} - {start}) % {step} = 0")));
        }
        if let Some(filter) = self.query.get("label_filter") {
            let axis = self.axis(&filter["axis"]).expect("the axis of a filter");
            let label = filter["eq"].as_str().expect("a label");
            terms.push(format!("{} = '{label}'", self.dimensions[axis]));
        }
        let filter = self.query["filter"].as_object();
        terms.extend(filter.into_iter().flatten().map(|(key, to)| {
            let value = &self.value;
            match key.as_str() {
                "is_null" => format!("{value} IS NULL"),
                "is_not_null" => format!("{value} IS NOT NULL"),
                "ne" => format!("({value} IS DISTINCT FROM {to})"),
                "gt" => format!("{value} > {to}"),
                other => panic!("this test cannot translate the comparison {other}"),
            }
        }));
        if terms.is_empty() { String::new() } else { format!("WHERE {}", terms.join(" AND ")) }
    }

    /// The document as SQL. Its answer is the last column, in the reference's order.
    pub(crate) fn sql(&self) -> String {
        let (table, value, condition) = (self.table(), &self.value, self.condition());
        match self.operation() {
            "align" => self.aligned(),
            "quantile" => {
                let q = &self.argument()["q"];
                format!(
                    "SELECT sum(v * greatest(0, 1 - abs(n - 1 - {q} * (cells - 1))))
                     FROM (SELECT {value} AS v, row_number() OVER (ORDER BY {value}) AS n,
                           count({value}) OVER () AS cells FROM {table})"
                )
            }
            "histogram" => {
                let bins = &self.argument()["bins"];
                format!(
                    "SELECT least(floor(({value} - low) / ((high - low) / {bins})), {bins} - 1) AS bin,
                     count(*) FROM {table},
                     (SELECT min({value}) AS low, max({value}) AS high FROM {table})
                     GROUP BY bin ORDER BY bin"
                )
            }
            _ if self.query.get("window").is_some() => self.windows(),
            _ if self.is_by_labels() => {
                let axis = self.kept()[0];
                let (label, index) = (&self.dimensions[axis], &self.indices[axis]);
                let aggregate = self.aggregate();
                format!(
                    "SELECT {label}, {aggregate} FROM {table} {condition} GROUP BY {label} ORDER BY min({index})"
                )
            }
            _ => {
                let keys: Vec<_> = self.kept().into_iter().map(|at| &*self.indices[at]).collect();
                let aggregate = self.aggregate();
                let keys = keys.join(", ");
                if keys.is_empty() {
                    return format!("SELECT {aggregate} FROM {table} {condition}");
                }
                format!(
                    "SELECT {keys}, {aggregate} FROM {table} {condition} GROUP BY {keys} ORDER BY {keys}"
                )
            }
        }
    }

    /// The document as SQL, if it has windows along the first of two axes.
    fn windows(&self) -> String {
        let (table, aggregate, window) = (self.table(), self.aggregate(), &self.query["window"]);
        let size = window["size"].as_u64().expect("a window has a size");
        let along = self.axis(&window["axis"]).expect("a window has an axis");
        assert!(along == 0 && self.indices.len() == 2, "a window is along the first of two axes");
        let (along, other) = (&self.indices[0], &self.indices[1]);
        if window["mode"] == "bins" {
            return format!(
                "SELECT {along} / {size} AS bin, {other}, {aggregate} FROM {table}
                 GROUP BY bin, {other} ORDER BY bin, {other}"
            );
        }
        format!(
            "SELECT CASE WHEN numbers = {size} THEN answer END
             FROM (SELECT *, {aggregate} OVER w AS answer, count({value}) OVER w AS numbers,
                   row_number() OVER w AS n
                   FROM {table} WINDOW w AS (PARTITION BY {other} ORDER BY {along} ROWS {} PRECEDING))
             WHERE n >= {size} ORDER BY {along}, {other}",
            size - 1,
            value = self.value
        )
    }

    /// SQL for whether the labels of two datasets agree, index by index.
    fn aligned(&self) -> String {
        let with = self.argument()["with"].as_str().expect("the other dataset");
        let axes = self.argument()["axes"].as_array().expect("the axes to compare");
        let differ = axes.iter().map(|axis| {
            let axis = self.axis(axis).expect("a known axis");
            let labels = |dataset: &str| {
                let (index, label) = (&self.indices[axis], &self.dimensions[axis]);
                format!("(SELECT DISTINCT {index} AS i, {label} AS l FROM stored.{})", quoted(dataset))
            };
            format!(
                "(SELECT count(*) FROM {} a FULL JOIN {} b USING (i) WHERE a.l IS DISTINCT FROM b.l)",
                labels(self.dataset),
                labels(with)
            )
        });
        format!("SELECT {} = 0", differ.collect::<Vec<_>>().join(" + "))
    }

    /// Computes the answer from the cells, for documents that the reference refuses.
    pub(crate) async fn naive(&self, ctx: &SessionContext) -> Result<Vec<Number>> {
        let kept = self.kept();
        let keys: String = kept.iter().map(|at| format!("{}, ", self.indices[*at])).collect();
        let (table, condition) = (self.table(), self.condition());
        let sql = format!("SELECT {keys}{} FROM {table} {condition}", self.value);
        let mut groups = BTreeMap::<Vec<u64>, Vec<Number>>::new();
        if kept.is_empty() {
            groups.insert(vec![], vec![]);
        }
        for row in rows(ctx, &sql).await? {
            let (value, key) = row.split_last().expect("a value");
            let key = key.iter().map(|index| index.parse().expect("an index")).collect();
            groups.entry(key).or_default().push(value.parse().ok());
        }
        let q = self.argument()["q"].as_f64().unwrap_or(0.5);
        let answer = |cells: Vec<Number>| {
            let nulls = cells.iter().filter(|cell| cell.is_none()).count();
            let mut cells: Vec<f64> = cells.into_iter().flatten().collect();
            let (sum, count) = (cells.iter().sum::<f64>(), cells.len());
            match self.operation() {
                "null_count" => Some(nulls as f64),
                _ if count == 0 => self.operation().ends_with("count").then_some(0.0),
                "count" => Some(count as f64),
                "sum" => Some(sum),
                "mean" | "nan_mean" => Some(sum / count as f64),
                "min" => cells.into_iter().reduce(f64::min),
                "max" => cells.into_iter().reduce(f64::max),
                "median" | "quantile" => {
                    cells.sort_by(f64::total_cmp);
                    let place = q * (count - 1) as f64;
                    let (low, high) = (cells[place.floor() as usize], cells[place.ceil() as usize]);
                    Some(low + (high - low) * place.fract())
                }
                other => panic!("no oracle for {other}"),
            }
        };
        let is_number = |number: &f64| number.is_finite();
        Ok(groups.into_values().map(|cells| answer(cells).filter(is_number)).collect())
    }
}
