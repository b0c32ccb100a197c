//! [`MergedTypesRule`]: the values that `MERGE` writes keep their types until they are checked.

use arrow::datatypes::DataType;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::dml::MergeIntoAction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, WriteOp,
};
use datafusion::optimizer::AnalyzerRule;

use super::inserts::is_of_array;

/// An analyzer rule, before the coercion of types, that marks the values that `MERGE` writes: DataFusion casts them to the types of the table,
/// which may round them. The writer refuses values that the array cannot hold.
#[derive(Debug)]
pub(super) struct MergedTypesRule;

impl AnalyzerRule for MergedTypesRule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let asked = ScalarUDF::from(AskedValue::default());
        let marked = plan.transform_down(|node| match node {
            LogicalPlan::Dml(mut dml) if is_of_array(&dml) => {
                let WriteOp::MergeInto(op) = &mut dml.op else {
                    return Ok(Transformed::no(LogicalPlan::Dml(dml)));
                };
                for clause in &mut op.clauses {
                    let values: Vec<&mut Expr> = match &mut clause.action {
                        MergeIntoAction::Update(values) => {
                            values.iter_mut().map(|(_, value)| value).collect()
                        }
                        MergeIntoAction::Insert { values, .. } => values.iter_mut().collect(),
                        MergeIntoAction::Delete => vec![],
                    };
                    for value in values {
                        *value = asked.call(vec![std::mem::take(value)]);
                    }
                }
                Ok(Transformed::yes(LogicalPlan::Dml(dml)))
            }
            node => Ok(Transformed::no(node)),
        })?;
        Ok(marked.data)
    }

    fn name(&self) -> &'static str {
        "gridfusion_merged_types"
    }
}

/// Returns a value as the statement has it, without the cast around it.
pub(super) fn as_asked(value: Expr) -> Result<Expr> {
    let asked = |expr: &Expr| match expr {
        Expr::ScalarFunction(it) if it.func.inner().is::<AskedValue>() => it.args.first().cloned(),
        _ => None,
    };
    let inner = |expr: Expr| {
        let found = match &expr {
            Expr::Cast(cast) => asked(&cast.expr),
            other => asked(other),
        };
        Ok(found.map_or_else(|| Transformed::no(expr), Transformed::yes))
    };
    Ok(value.transform_down(inner)?.data)
}

/// A function around a value that is written as it is. No plan has it in the end; it is volatile, so that no rule computes the cast around it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AskedValue(Signature);

impl Default for AskedValue {
    fn default() -> Self {
        Self(Signature::any(1, Volatility::Volatile))
    }
}

impl ScalarUDFImpl for AskedValue {
    fn name(&self) -> &str {
        "as_asked"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().map_or_else(|| internal_err!("no value"), Ok)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("a value of MERGE in another statement")
    }
}
