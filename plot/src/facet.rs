//! Panels: the rows of each value of a column.

use std::collections::HashMap;

use crate::column::{Column, Values};
use crate::error::{Result, refuse};

/// The most panels of a picture.
const MOST: usize = 30;

/// The rows of a panel.
#[derive(Debug)]
pub(crate) struct Panel {
    /// The value that they share; `None` if the picture has no column for panels.
    pub(crate) name: Option<String>,
    pub(crate) columns: Vec<Column>,
}

/// Returns a panel for each value of the column at `facet`, without that column. Text is in the order of the rows, and other
/// values ascend. Rows with NULL there are left out.
///
/// # Errors
/// `Usage` if there are more panels than fit, or none.
pub(crate) fn split(columns: &[Column], facet: Option<usize>) -> Result<Vec<Panel>> {
    let Some((facet, by)) = facet.and_then(|at| Some((at, columns.get(at)?))) else {
        return Ok(vec![Panel { name: None, columns: columns.to_vec() }]);
    };
    let mut values: Vec<f64> = vec![];
    let mut rows: HashMap<u64, Vec<usize>> = HashMap::new();
    for (row, value) in by.data.iter().enumerate().filter(|(_, value)| value.is_finite()) {
        let value = value + 0.0; // so that -0 is 0
        let of_value = rows.entry(value.to_bits()).or_insert_with(|| {
            values.push(value);
            vec![]
        });
        of_value.push(row);
        if values.len() > MOST {
            return refuse(format!(
                "\"{}\" has more than {MOST} values, and a picture has at most {MOST} panels; choose some with WHERE",
                by.title.name
            ));
        }
    }
    if values.is_empty() {
        return refuse(format!(
            "there is nothing to plot: \"{}\" is NULL in all rows",
            by.title.name
        ));
    }
    values.sort_by(f64::total_cmp);
    let others: Vec<&Column> =
        columns.iter().enumerate().filter(|(at, _)| *at != facet).map(|(_, it)| it).collect();
    let panel = |value: &f64| {
        let rows = rows.get(&value.to_bits()).map(Vec::as_slice).unwrap_or_default();
        let of_rows = |column: &&Column| Column {
            title: column.title.clone(),
            values: column.values.clone(),
            data: rows.iter().map(|row| column.data[*row]).collect(),
            bounds: column.bounds.clone(),
        };
        Panel { name: Some(name(by, *value)), columns: others.iter().map(of_rows).collect() }
    };
    Ok(values.iter().map(panel).collect())
}

/// Returns a value of a column as text.
fn name(column: &Column, value: f64) -> String {
    match &column.values {
        Values::Names(names) => names.get(value as usize).cloned().unwrap_or_default(),
        Values::Numbers => format!("{} = {value}", column.title.name),
        Values::Times(calendar) => calendar.text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Calendar;
    use crate::title::Title;

    fn column(values: Values, data: Vec<f64>) -> Column {
        Column::new(Title::new("c"), values, data)
    }

    #[test]
    fn each_value_has_a_panel() {
        let names = Values::Names(vec!["b".to_owned(), "a".to_owned()]);
        let by = column(names, vec![0.0, 1.0, f64::NAN, 0.0]);
        let x = column(Values::Numbers, vec![5.0, 6.0, 7.0, 8.0]);
        let panels = split(&[x.clone(), by], Some(1)).unwrap();
        let shown: Vec<_> = panels
            .iter()
            .map(|it| (it.name.as_deref().unwrap(), &it.columns[0].data[..]))
            .collect();
        assert_eq!(shown, [("b", &[5.0, 8.0][..]), ("a", &[6.0])]);
        let by = column(Values::Numbers, vec![2.0, 1.0, 2.0, 1.0]);
        let panels = split(&[by, x.clone()], Some(0)).unwrap();
        let shown: Vec<_> = panels
            .iter()
            .map(|it| (it.name.as_deref().unwrap(), &it.columns[0].data[..]))
            .collect();
        assert_eq!(shown, [("c = 1", &[6.0, 8.0][..]), ("c = 2", &[5.0, 7.0])]);
        let whole = split(&[x], None).unwrap();
        assert!(whole.len() == 1 && whole[0].name.is_none());
    }

    #[test]
    fn panels_are_named_by_dates() {
        let by = column(Values::Times(Calendar::Gregorian), vec![0.0, 86_400e6 * 1.25]);
        let names: Vec<_> =
            split(&[by], Some(0)).unwrap().into_iter().map(|it| it.name.unwrap()).collect();
        assert_eq!(names, ["1970-01-01", "1970-01-02 06:00"]);
    }

    #[test]
    fn too_many_panels_are_refused() {
        let by = column(Values::Numbers, (0..31).map(f64::from).collect());
        assert!(split(&[by], Some(0)).unwrap_err().to_string().contains("more than 30 values"));
        let nothing = column(Values::Numbers, vec![f64::NAN]);
        assert!(split(&[nothing], Some(0)).is_err());
    }
}
