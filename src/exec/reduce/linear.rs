//! [`Linear`]: an argument that is a sum of products of a variable and functions of single dimensions, as
//! terms over the statistics of groups.
//!
//! ```text
//!   sum((value - 273.15) * cos(radians(lat)))
//!     = Σ  1 × cos(radians(lat)) × sum of value        per latitude and group
//!     + Σ -273.15 × cos(radians(lat)) × count of value
//! ```
//!
//! The functions are evaluated once per label, and applied to the sums and counts of groups that have one
//! value of each function ([`Refinement`](super::refinement::Refinement)). No cell is multiplied.
//!
//! A `CASE` with one condition is the difference of two such sums: that of the cells that meet the condition,
//! and that of the others, which is the sum of all without these.
//!
//! A sum of products may overflow before a small weight makes it small again. That differs from rows.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, CastExpr, NegativeExpr, lit};

use super::case_filter::is_null;
use super::condition::{Condition, Values};
use super::factors::{FactorId, Factors};
use super::number::{number, number_of};

use crate::array::ValueColumn;
use crate::exec::GridScanExec;
use crate::exec::matching::Over;
use crate::reduce::Number;

/// A statistic of a group of cells.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Quantity {
    /// The number of rows.
    Rows,
    /// The number of values.
    Count(Values),
    /// The sum of values.
    Sum(Values),
}

/// A product of a constant, functions of dimensions and a statistic.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term<Q = Quantity> {
    pub(super) constant: f64,
    /// The functions to multiply. The cells of a label for which one is NULL do not count.
    pub(super) factors: Vec<FactorId>,
    /// Functions and conditions that are not multiplied. The cells of a label for which one is NULL or false
    /// do not count.
    pub(super) masks: Vec<FactorId>,
    pub(super) quantity: Q,
}

/// The sum and the count of an argument.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Linear<Q = Quantity> {
    /// The terms whose sum is that of the argument.
    pub(super) sum: Vec<Term<Q>>,
    /// The terms whose sum is the number of rows in which the argument is not NULL.
    pub(super) count: Vec<Term<Q>>,
    /// The terms whose sum is that of the weights of a weighted average; empty for other functions.
    pub(super) weights: Vec<Term<Q>>,
}

/// The products that a sum may consist of. More would take longer than the cells.
const MAX_PRODUCTS: usize = 16;

/// A product of a constant, functions of single dimensions, and possibly the variable.
#[derive(Debug, Clone)]
struct Product {
    constant: f64,
    /// At most one function per axis.
    factors: Vec<(usize, PhysicalExprRef)>,
    has_value: bool,
}

/// A sum of products with at most one variable.
#[derive(Debug, Clone)]
struct Polynomial {
    value: Option<usize>,
    products: Vec<Product>,
}

/// A part of an argument: a sum of products that counts where a condition is met.
struct LinearTerm {
    /// 1, or -1 for cells that an earlier piece has counted too much.
    sign: f64,
    condition: Option<Condition>,
    polynomial: Polynomial,
}

/// Translates an argument of `sum`, `avg` or `count` over the cells that meet `base`. `None` if it is not a
/// sum of products in doubles.
pub(super) fn linear(
    expr: &PhysicalExprRef,
    base: &Condition,
    scan: &GridScanExec,
    factors: &mut Factors,
) -> Option<Linear> {
    let mut linear = Linear { sum: vec![], count: vec![], weights: vec![] };
    for piece in pieces(expr, scan)? {
        if !distributes(&piece.polynomial, scan) {
            return None;
        }
        piece.add_to(&mut linear, base, factors)?;
    }
    Some(linear)
}

/// Translates the arguments of `weighted_avg` over the cells that meet `base`.
pub(super) fn weighted(
    value: &PhysicalExprRef,
    weight: &PhysicalExprRef,
    base: &Condition,
    scan: &GridScanExec,
    factors: &mut Factors,
) -> Option<Linear> {
    let (value, weight) =
        (Polynomial::from_expr(value, scan)?, Polynomial::from_expr(weight, scan)?);
    // The weight counts where the product is not NULL: it becomes one more term of the same cells.
    let mut product = value.times(&weight)?;
    if weight.value.is_some() || !distributes(&product, scan) {
        return None;
    }
    let of_product = product.products.len();
    product.products.extend(weight.products);
    let piece = LinearTerm { sign: 1.0, condition: None, polynomial: product };
    let mut linear = Linear { sum: vec![], count: vec![], weights: vec![] };
    piece.add_to(&mut linear, base, factors)?;
    linear.weights = linear.sum.split_off(of_product);
    Some(linear)
}

/// Whether the sum of a polynomial is the sum of its products. With infinite values it is only if the variable
/// is in one product: (1 + 0) × infinity is infinite, and 1 × infinity + 0 × infinity is NaN.
fn distributes(polynomial: &Polynomial, scan: &GridScanExec) -> bool {
    let with_value = polynomial.products.iter().filter(|product| product.has_value).count();
    let is_finite = |value: usize| {
        let is_integer = |column: &ValueColumn| {
            column.as_number().is_some_and(|number| number.element().is_integer())
        };
        scan.array().forms_of(value).all(is_integer)
    };
    with_value <= 1 || polynomial.value.is_some_and(is_finite)
}

/// Splits an argument into pieces.
fn pieces(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<Vec<LinearTerm>> {
    // DataFusion casts the integers of a CASE as a whole.
    let cast = expr.downcast_ref::<CastExpr>();
    let inner = cast.filter(|cast| *cast.cast_type() == DataType::Float64).map(CastExpr::expr);
    let case = inner.unwrap_or(expr).downcast_ref::<CaseExpr>();
    let Some(case) =
        case.filter(|case| Over::new(expr, scan) == Over::Variable && case.expr().is_none())
    else {
        let polynomial = Polynomial::from_expr(expr, scan)?;
        return Some(vec![LinearTerm { sign: 1.0, condition: None, polynomial }]);
    };
    let [(when, then)] = case.when_then_expr() else { return None };
    let is_cast = inner.is_some();
    let condition = Condition::try_new(when, scan)?;
    let mut pieces = Vec::new();
    if !is_null(then) {
        let polynomial = Polynomial::from_branch(then, is_cast, scan)?;
        pieces.push(LinearTerm { sign: 1.0, condition: Some(condition.clone()), polynomial });
    }
    if let Some(otherwise) = case.else_expr().filter(|otherwise| !is_null(otherwise)) {
        let polynomial = Polynomial::from_branch(otherwise, is_cast, scan)?;
        if polynomial.value.is_some() {
            return None; // a difference of two infinite sums would be NaN
        }
        pieces.push(LinearTerm { sign: 1.0, condition: None, polynomial: polynomial.clone() });
        pieces.push(LinearTerm { sign: -1.0, condition: Some(condition), polynomial });
    }
    Some(pieces)
}

impl LinearTerm {
    /// Adds the terms of the piece over the cells that meet `base`.
    fn add_to(self, linear: &mut Linear, base: &Condition, factors: &mut Factors) -> Option<()> {
        let condition = self.condition.unwrap_or_default();
        let mut masks = Vec::new();
        for (axis, expr) in base.labels.iter().chain(&condition.labels) {
            masks.push(factors.condition(*axis, expr));
        }
        let intervals = base.values.and(&condition.values)?;
        let values = match self.polynomial.value {
            Some(variable) => Some(intervals.values_of(variable)),
            None => intervals.cells(),
        };
        let count = values.clone().map_or(Quantity::Rows, Quantity::Count);
        let products: Vec<(Product, Vec<FactorId>)> = self
            .polynomial
            .products
            .into_iter()
            .map(|product| {
                let ids = product.factors.iter().map(|(axis, expr)| factors.weight(*axis, expr));
                let ids = ids.collect();
                (product, ids)
            })
            .collect();
        // The argument is NULL if any of its functions is.
        masks.extend(products.iter().flat_map(|(_, ids)| ids));
        masks.sort_unstable();
        masks.dedup();
        for (product, factors) in products {
            let quantity = match (product.has_value, &values) {
                (true, Some(values)) => Quantity::Sum(values.clone()),
                _ => count.clone(),
            };
            let constant = self.sign * product.constant;
            linear.sum.push(Term { constant, factors, masks: masks.clone(), quantity });
        }
        linear.count.push(Term { constant: self.sign, factors: vec![], masks, quantity: count });
        Some(())
    }
}

impl Polynomial {
    /// Translates a branch of a `CASE`, which may be an integer, or a single where the `CASE` is cast to doubles.
    fn from_branch(expr: &PhysicalExprRef, is_cast: bool, scan: &GridScanExec) -> Option<Self> {
        match number(expr) {
            // Larger ones would make sums inexact.
            Some(Number::Integer(number)) if number.unsigned_abs() < 1 << 20 => {
                Self::constant(number as f64)
            }
            Some(Number::Integer(_)) => None,
            Some(Number::Float(number)) => Self::constant(number),
            None if is_cast && number_of(expr, scan).is_some() => {
                let double = CastExpr::new(Arc::clone(expr), DataType::Float64, None);
                Self::from_expr(&(Arc::new(double) as PhysicalExprRef), scan)
            }
            None => Self::from_expr(expr, scan),
        }
    }

    /// Translates an expression in doubles; `None` if it is not a sum of products.
    fn from_expr(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<Self> {
        if expr.data_type(scan.schema_ref()).ok()? != DataType::Float64 {
            return None;
        }
        if let Some((value, DataType::Float64)) = number_of(expr, scan) {
            let product = Product { constant: 1.0, factors: vec![], has_value: true };
            return Some(Self { value: Some(value), products: vec![product] });
        }
        if let Some(doubles) = widened_product(expr, scan) {
            return Self::from_expr(&doubles, scan);
        }
        match Over::new(expr, scan) {
            Over::Nothing => match number(expr) {
                Some(Number::Float(number)) => Self::constant(number),
                _ => None,
            },
            Over::Axis(axis) => {
                let factors = vec![(axis, Arc::clone(expr))];
                let product = Product { constant: 1.0, factors, has_value: false };
                Some(Self { value: None, products: vec![product] })
            }
            Over::Axes | Over::Variable => Self::from_arithmetic(expr, scan),
        }
    }

    fn from_arithmetic(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<Self> {
        if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
            return Some(Self::from_expr(negative.arg(), scan)?.negated());
        }
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        let (left, right) =
            (Self::from_expr(binary.left(), scan)?, Self::from_expr(binary.right(), scan)?);
        match binary.op() {
            Operator::Plus => left.plus(right),
            Operator::Minus => left.plus(right.negated()),
            Operator::Multiply => left.times(&right),
            Operator::Divide => left.times(&right.reciprocal()?),
            _ => None,
        }
    }

    fn constant(constant: f64) -> Option<Self> {
        let product = Product { constant, factors: vec![], has_value: false };
        constant.is_finite().then(|| Self { value: None, products: vec![product] })
    }

    fn negated(mut self) -> Self {
        self.products.iter_mut().for_each(|product| product.constant = -product.constant);
        self
    }

    fn plus(mut self, other: Self) -> Option<Self> {
        self.value = one_variable(self.value, other.value)?;
        self.products.extend(other.products);
        (self.products.len() <= MAX_PRODUCTS).then_some(self)
    }

    /// Multiplies each product with each; `None` if the variable would be multiplied with itself.
    fn times(&self, other: &Self) -> Option<Self> {
        let value = one_variable(self.value, other.value)?;
        let mut products = Vec::new();
        for left in &self.products {
            for right in &other.products {
                if products.len() == MAX_PRODUCTS || (left.has_value && right.has_value) {
                    return None;
                }
                products.push(left.times(right)?);
            }
        }
        Some(Self { value, products })
    }

    /// Returns 1 divided by a single product of functions.
    fn reciprocal(&self) -> Option<Self> {
        let [Product { constant, factors, has_value: false }] = self.products.as_slice() else {
            return None;
        };
        let mut one = Self::constant(1.0 / constant)?;
        let over = |(axis, expr): &(usize, PhysicalExprRef)| {
            let over: PhysicalExprRef =
                Arc::new(BinaryExpr::new(lit(1.0), Operator::Divide, Arc::clone(expr)));
            (*axis, over)
        };
        one.products[0].factors = factors.iter().map(over).collect();
        Some(one)
    }
}

impl Product {
    fn times(&self, other: &Self) -> Option<Self> {
        let constant = self.constant * other.constant;
        let mut factors = self.factors.clone();
        for (axis, expr) in &other.factors {
            match factors.iter_mut().find(|(of, _)| of == axis) {
                Some((_, before)) => {
                    let (left, right) = (Arc::clone(before), Arc::clone(expr));
                    *before = Arc::new(BinaryExpr::new(left, Operator::Multiply, right));
                }
                None => factors.push((*axis, Arc::clone(expr))),
            }
        }
        let has_value = self.has_value || other.has_value;
        constant.is_finite().then_some(Self { constant, factors, has_value })
    }
}

/// Returns the product of doubles for a product of singles with a function of labels that is cast to a double, as in
/// `sum(value * cos(radians(lat)))`. Its sum is more exact than that of rounded products.
fn widened_product(expr: &PhysicalExprRef, scan: &GridScanExec) -> Option<PhysicalExprRef> {
    let singles = expr.downcast_ref::<CastExpr>()?.expr();
    let binary = singles.downcast_ref::<BinaryExpr>()?;
    let is_product = matches!(binary.op(), Operator::Multiply | Operator::Divide);
    let is_single = singles.data_type(scan.schema_ref()).ok()? == DataType::Float32;
    let sides = [binary.left(), binary.right()];
    let is_weighted = sides.iter().any(|side| matches!(Over::new(side, scan), Over::Axis(_)));
    if !is_product || !is_single || !is_weighted || Over::new(expr, scan) != Over::Variable {
        return None;
    }
    let wide = |side: &PhysicalExprRef| -> Option<PhysicalExprRef> {
        Some(match number(side) {
            Some(Number::Float(number)) => lit(number),
            Some(Number::Integer(_)) => return None,
            None => Arc::new(CastExpr::new(Arc::clone(side), DataType::Float64, None)),
        })
    };
    let (left, right) = (wide(binary.left())?, wide(binary.right())?);
    Some(Arc::new(BinaryExpr::new(left, *binary.op(), right)))
}

/// Returns the variable of an expression of two parts; `None` if they have different ones.
fn one_variable(a: Option<usize>, b: Option<usize>) -> Option<Option<usize>> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some(a.or(b)),
    }
}
