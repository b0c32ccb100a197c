//! The reason why an aggregation over an array is none that a reduction computes.

use datafusion::physical_plan::aggregates::AggregateExec;

use super::keys::Keys;
use super::plane::is_over_plane;
use super::query::Query;
use super::strategy::ReduceStrategy;
use crate::exec::config::GridfusionConfig;
use crate::exec::matching::Over;

/// Names the key of `aggregate` that cannot be numbered.
pub(super) fn of_keys(query: &Query, aggregate: &AggregateExec) -> String {
    let names = aggregate.group_expr().expr().iter().map(|(_, name)| name);
    for (key, name) in query.keys.iter().zip(names) {
        match Over::new(key, &query.scan) {
            Over::Variable if !is_over_plane(key, &query.scan) => {
                return format!("the key {name} depends on a variable");
            }
            Over::Axes => return format!("the key {name} depends on several dimensions"),
            _ => {}
        }
    }
    "the keys have too many groups, or fail on a label".to_owned()
}

/// Names the aggregate for which there is no reduction.
pub(super) fn of_aggregates(query: &Query, keys: &Keys, config: &GridfusionConfig) -> String {
    let is_reduced = |query: &Query| {
        let strategy = ReduceStrategy::try_new(query, &query.scan, keys, config, false);
        strategy.is_ok_and(|found| found.is_some())
    };
    let odd = query.aggregates.iter().find(|aggregate| {
        let alone = Query { aggregates: vec![(*aggregate).clone()], ..query.clone() };
        !is_reduced(&alone)
    });
    match odd {
        Some(odd) => format!("no reduction computes {} by these keys", odd.function.name()),
        None => "no reduction computes these aggregates together".to_owned(),
    }
}
