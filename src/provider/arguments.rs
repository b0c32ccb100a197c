//! The arguments of table functions.
//!
//! DataFusion passes a list of expressions. Since options come in pairs, the number of arguments shows
//! whether there is a dataset:
//!
//! ```text
//!   read_tet('x.tet', 'io', 'pread')                  3, odd    path, then pairs
//!   read_tet('x.tet', 'wind', 'io', 'pread')          4, even   path, dataset, then pairs
//! ```

use std::collections::HashMap;

use datafusion::common::{ScalarValue, plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;

/// The arguments of a table function: a path, a dataset if the function takes one, then option names and
/// values in turn. The module `named_arguments` turns named arguments into such pairs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arguments {
    /// Paths or URLs; at least one.
    pub(super) locations: Vec<String>,
    /// The argument between the path and the options.
    pub(super) dataset: Option<String>,
    /// Values as texts, by the option's name as it was written, such as `io` or `tet.io`.
    pub(super) options: HashMap<String, String>,
}

impl Arguments {
    /// Parses the arguments of the function `name`.
    ///
    /// Errors if an argument is not a constant, or an option is given twice.
    pub(super) fn new(name: &str, exprs: &[Expr], takes_dataset: bool) -> Result<Self> {
        let what = if takes_dataset { "a path, optionally a dataset" } else { "a path" };
        let is_in_pairs = exprs.len() % 2 == 1;
        let (Some((first, others)), true) = (exprs.split_first(), is_in_pairs || takes_dataset)
        else {
            return plan_err!(
                "{name} takes {what}, then option names and values in pairs, found {} arguments",
                exprs.len()
            );
        };
        let locations = texts(first).filter(|texts| !texts.is_empty()).ok_or_else(|| {
            let found = shown(first);
            plan_datafusion_err!("{name} takes a path as text, or a list of paths, found {found}")
        })?;
        let constant = |(at, expr): (usize, &Expr)| {
            // Names and values alternate, and a name comes first. After a dataset, values have even places.
            let is_value = at > 0 && at % 2 == usize::from(is_in_pairs);
            let option = at.checked_sub(1).filter(|_| is_value).and_then(|at| text(&others[at]));
            text(expr).ok_or_else(|| not_constant(name, option.as_deref(), expr))
        };
        let mut texts = others.iter().enumerate().map(constant).collect::<Result<Vec<_>>>()?;
        let dataset = (!is_in_pairs).then(|| texts.remove(0));
        Ok(Self { locations, dataset, options: in_pairs(name, &texts)? })
    }
}

/// Returns the options that names and values in turn give.
fn in_pairs(name: &str, texts: &[String]) -> Result<HashMap<String, String>> {
    let mut options = HashMap::new();
    for pair in texts.chunks_exact(2) {
        if options.insert(pair[0].clone(), pair[1].clone()).is_some() {
            return plan_err!("{name}: option '{}' is given twice", pair[0]);
        }
    }
    Ok(options)
}

/// Returns the options of the function `name`: names and values in turn.
pub(super) fn options(name: &str, exprs: &[Expr]) -> Result<HashMap<String, String>> {
    if !exprs.len().is_multiple_of(2) {
        return plan_err!("{name} takes option names and values in pairs");
    }
    let constant = |(at, expr): (usize, &Expr)| {
        let option = at.checked_sub(1).filter(|_| at % 2 == 1).and_then(|at| text(&exprs[at]));
        text(expr).ok_or_else(|| not_constant(name, option.as_deref(), expr))
    };
    let texts = exprs.iter().enumerate().map(constant).collect::<Result<Vec<_>>>()?;
    in_pairs(name, &texts)
}

/// Returns the error for an argument that is not a constant. If it is the value of an option, `option` is the
/// name.
fn not_constant(name: &str, option: Option<&str>, expr: &Expr) -> DataFusionError {
    let (found, expected) = (shown(expr), "expected text, a whole number, true or false");
    match option {
        Some(option) => plan_datafusion_err!("{name}: option '{option}' is {found}, {expected}"),
        None => plan_datafusion_err!("{name}: an argument is {found}, {expected}"),
    }
}

/// Formats an argument as SQL.
pub(super) fn shown(expr: &Expr) -> String {
    match expr {
        Expr::Literal(value, _) => value.to_string(),
        _ => expr.to_string(),
    }
}

/// Returns the constants of a list, or a single constant, as texts; `None` for anything else.
pub(super) fn texts(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        // The parser makes a call of `['a.tet', 'b.tet']`; an evaluated call is a constant.
        Expr::ScalarFunction(function) if function.name() == "make_array" => {
            function.args.iter().map(text).collect()
        }
        Expr::Literal(ScalarValue::List(list), _) => {
            // A constant list is an array with one row, which holds the items.
            let items = list.iter().flatten().next()?;
            let items = (0..items.len()).map(|at| ScalarValue::try_from_array(&items, at).ok());
            items.map(|item| text(&Expr::Literal(item?, None))).collect()
        }
        _ => Some(vec![text(expr)?]),
    }
}

impl Arguments {
    /// Returns the only location, for the function `name`, which takes just one.
    pub(super) fn location(&self, name: &str) -> Result<&str> {
        match self.locations.as_slice() {
            [location] => Ok(location),
            _ => plan_err!("{name} takes one path, not a list"),
        }
    }
}

/// Returns a constant text, whole number or Boolean as text; `None` for anything else.
fn text(expr: &Expr) -> Option<String> {
    let Expr::Literal(value, _) = expr else { return None };
    match value {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => Some(text.clone()),
        ScalarValue::Int64(Some(number)) => Some(number.to_string()),
        ScalarValue::UInt64(Some(number)) => Some(number.to_string()),
        ScalarValue::Boolean(Some(truth)) => Some(truth.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::lit;

    use super::*;

    #[test]
    fn calls_are_taken_apart() {
        let call = |takes_dataset: bool, texts: &[&str]| {
            let exprs: Vec<Expr> = texts.iter().map(|text| lit(*text)).collect();
            let arguments = Arguments::new("f", &exprs, takes_dataset).ok()?;
            let mut options: Vec<_> = arguments.options.into_iter().collect();
            options.sort();
            let options: Vec<String> =
                options.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
            Some((arguments.locations.join(";"), arguments.dataset, options.join(",")))
        };
        let parts = |dataset: Option<&str>, options: &str| {
            Some(("x".to_owned(), dataset.map(str::to_owned), options.to_owned()))
        };
        for takes_dataset in [false, true] {
            assert_eq!(call(takes_dataset, &[]), None);
            assert_eq!(call(takes_dataset, &["x"]), parts(None, ""));
            assert_eq!(call(takes_dataset, &["x", "a", "1", "b", "2"]), parts(None, "a=1,b=2"));
        }
        assert_eq!(call(true, &["x", "t"]), parts(Some("t"), ""));
        assert_eq!(call(true, &["x", "t", "a", "1"]), parts(Some("t"), "a=1"));
        assert_eq!(call(false, &["x", "t"]), None);
        assert_eq!(call(false, &["x", "a", "1", "a", "1"]), None);
        let error = |takes_dataset, exprs: &[Expr]| {
            Arguments::new("f", exprs, takes_dataset).unwrap_err().to_string()
        };
        assert!(
            error(false, &[lit(1.5)])
                .contains("takes a path as text, or a list of paths, found 1.5")
        );
        for exprs in
            [vec![lit("x"), lit("a"), lit(1.5)], vec![lit("x"), lit("t"), lit("a"), lit(1.5)]]
        {
            let found = error(true, &exprs);
            assert!(
                found.contains("option 'a' is 1.5, expected text, a whole number, true"),
                "{found}"
            );
        }
        assert!(error(true, &[lit("x"), lit(1.5)]).contains("an argument is 1.5, expected text"));
        let arguments = Arguments::new("f", &[lit("x"), lit("a"), lit(3_i64)], false).unwrap();
        assert_eq!(arguments.options["a"], "3");
    }
}
