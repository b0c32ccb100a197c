//! Everything that users do with an array of a store: open it, describe it, query it, verify it.

use datafusion::prelude::SessionContext;
use gridfusion::source::Detail;
use gridfusion::verify::{Depth, Report};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};

use crate::support::open::{open, verify};
use crate::support::{query, rows_of};

/// An operation on one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Opens the array as the table `t`. The result is the schema.
    Open,
    /// Describes the array, as `gridfusion info` does, with all chunks and metadata.
    Describe,
    /// Opens the array as the table `t`, and runs this query. The result is the rows.
    Query(&'static str),
    /// Verifies the array with all its cells. The result is the report.
    Verify,
}

/// The result of an operation as text, or its error.
pub(super) type Outcome = Result<String, String>;

impl Operation {
    /// Runs the operation on the array at a location. Leaves the location out of results, but not of errors.
    pub(super) async fn run(self, ctx: &SessionContext, location: &str) -> Outcome {
        let found = match self {
            Self::Open => schema(ctx, location).await,
            Self::Describe => description(ctx, location).await,
            Self::Query(sql) => rows(ctx, location, sql).await,
            Self::Verify => {
                let report = verify(location, &ArrayOptions::default(), Depth::Cells, ctx).await;
                if report.is_ok() { Ok(text_of(&report)) } else { Err(text_of(&report)) }
            }
        };
        found.map(|text| text.replace(location, "LOCATION"))
    }
}

async fn table(ctx: &SessionContext, location: &str) -> Result<(), String> {
    let opened = ctx.register_array("t", location, ArrayOptions::default()).await;
    opened.map(drop).map_err(|error| error.to_string())
}

async fn schema(ctx: &SessionContext, location: &str) -> Outcome {
    table(ctx, location).await?;
    let table = ctx.table("t").await.map_err(|error| error.to_string())?;
    Ok(format!("{:?}", table.schema()))
}

async fn description(ctx: &SessionContext, location: &str) -> Outcome {
    let group = open(location, &ArrayOptions::default(), ctx).await;
    let detail = Detail::default().with_listed(Some(1000)).with_metadata(true);
    let described = group.map_err(|error| error.to_string())?.describe(&detail).await;
    described.map(|it| format!("{:?}", it.document)).map_err(|error| error.to_string())
}

async fn rows(ctx: &SessionContext, location: &str, sql: &str) -> Outcome {
    table(ctx, location).await?;
    let rows = query(ctx, sql).await.map_err(|error| error.to_string())?;
    Ok(format!("{:?}", rows_of(&rows)))
}

/// Returns a line per check of a report, and a line per finding.
fn text_of(report: &Report) -> String {
    let line = |check: &gridfusion::verify::Check| {
        let findings: String = check.findings().iter().map(|it| format!("\n  {it}")).collect();
        format!("{}: {}{findings}\n", check.name(), check.detail())
    };
    report.checks().iter().map(line).collect()
}
