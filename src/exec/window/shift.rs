//! The positions from which `lag`, `lead`, `first_value`, `last_value` and `nth_value` take their values.

use std::ops::Range;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_plan::windows::WindowUDFExpr;

use super::frames::KnownFrames;
use super::picks::Picks;
use super::window_axis::WindowAxis;

/// Returns the position whose value each position has, by the function `udf`, which is known as `name`. `None` if the function is another one, or an argument is none of
/// those that DataFusion accepts.
pub(super) fn picks(
    expr: &StandardWindowExpr,
    (name, udf): (&str, &WindowUDFExpr),
    data_type: &DataType,
    axis: &WindowAxis,
    frames: &mut KnownFrames<'_>,
) -> Result<Option<Picks>> {
    let number = |at: usize| match literal(udf.args(), at) {
        None => Some(None),
        Some(value) => match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(number) => Some(Some(number?)),
            _ => None,
        },
    };
    let Some(argument) = number(1) else { return Ok(None) };
    let shift = match name {
        "lag" => Some(argument.unwrap_or(1).checked_neg()),
        "lead" => Some(argument.or(Some(1))),
        _ => None,
    };
    if let Some(shift) = shift {
        let Some(shift) = shift else { return Ok(None) };
        let default = match literal(udf.args(), 2) {
            Some(default) => default.cast_to(data_type)?,
            None => ScalarValue::try_from(data_type)?,
        };
        return Ok(Picks::new(shifted(axis, shift), default));
    }
    let frames = frames.get(expr.get_window_frame())?;
    let nth = match (name, argument) {
        ("first_value", _) => 1,
        ("last_value", _) => -1,
        ("nth_value", Some(nth)) if nth != 0 => nth,
        _ => return Ok(None),
    };
    // Positions count in the order of the window, which may go backwards.
    let nth = if axis.backwards { -nth } else { nth };
    let picks = frames.all().iter().map(|frame| nth_of(frame, nth)).collect();
    Ok(Picks::new(picks, ScalarValue::try_from(data_type)?))
}

fn literal(args: &[PhysicalExprRef], at: usize) -> Option<&ScalarValue> {
    Some(args.get(at)?.downcast_ref::<Literal>()?.value())
}

/// Returns the position that lies `shift` rows behind each one in the order of the window; `None` outside its partition.
fn shifted(axis: &WindowAxis, shift: i64) -> Vec<Option<usize>> {
    let shift = if axis.backwards { -i128::from(shift) } else { i128::from(shift) };
    let of_partition = |partition: &Range<usize>| {
        let partition = partition.clone();
        partition.clone().map(move |at| {
            let picked = usize::try_from(at as i128 + shift).ok()?;
            partition.contains(&picked).then_some(picked)
        })
    };
    axis.partitions.iter().flat_map(of_partition).collect()
}

/// Returns the position of a number in a frame: 1 is the first, and -1 the last.
fn nth_of(frame: &Range<usize>, nth: i64) -> Option<usize> {
    let distance = usize::try_from(nth.unsigned_abs() - 1).ok()?;
    if distance >= frame.len() {
        return None;
    }
    Some(if nth > 0 { frame.start + distance } else { frame.end - 1 - distance })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(backwards: bool) -> WindowAxis {
        let partitions = vec![0..3, 3..5];
        WindowAxis {
            axis: 0,
            partitions,
            backwards,
            key: None,
            is_tied: vec![false; 5],
            nulls: None,
        }
    }

    #[test]
    fn shifts_stay_in_their_partition() {
        let lag = shifted(&axis(false), -1);
        assert_eq!(lag, [None, Some(0), Some(1), None, Some(3)]);
        // The row before lies behind in a window that goes backwards.
        assert_eq!(shifted(&axis(true), -1), [Some(1), Some(2), None, Some(4), None]);
        assert_eq!(shifted(&axis(false), 0), (0..5).map(Some).collect::<Vec<_>>());
        for far in [i64::MIN, i64::MAX] {
            assert_eq!(shifted(&axis(false), far), [None; 5]);
            assert_eq!(shifted(&axis(true), far), [None; 5]);
        }
    }

    #[test]
    fn numbers_count_from_both_ends_of_a_frame() {
        let frame = 4..7;
        let found = [1, 3, 4, -1, -3, -4, i64::MIN].map(|nth| nth_of(&frame, nth));
        assert_eq!(found, [Some(4), Some(6), None, Some(6), Some(4), None, None]);
        assert_eq!(nth_of(&(4..4), 1), None);
    }
}
