//! The declarations of a node to DataFusion: schema, orders, partitions, statistics, dynamic filters, and its text in `EXPLAIN`.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Statistics;
use datafusion::error::Result;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExprRef};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, ExecutionPlanProperties};
use datafusion_proto::physical_plan::from_proto::parse_protobuf_partitioning;
use datafusion_proto::physical_plan::to_proto::serialize_partitioning;
use datafusion_proto::protobuf;
use datafusion_proto_common::protobuf_common;

use super::converters::{Decoder, Encoder};
use super::messages;
use crate::error::Error;
use crate::exec::operator::{Frame, declared};

/// The declarations of a node.
#[derive(Debug, Clone)]
pub(super) struct Declarations {
    pub(super) name: String,
    /// Its line in `EXPLAIN`.
    pub(super) line: String,
    /// Its text in a drawn tree.
    pub(super) tree: String,
    /// Its properties and dynamic filters.
    pub(super) frame: Frame,
    pub(super) statistics: Arc<Statistics>,
    /// Statistics of the rows of each partition.
    pub(super) of_partitions: Vec<Arc<Statistics>>,
    /// The rows that suffice.
    pub(super) fetch: Option<usize>,
}

impl Declarations {
    /// Returns what a node declares that has these dynamic filters over its output.
    pub(super) fn try_new(
        plan: &Arc<dyn ExecutionPlan>,
        filters: Vec<PhysicalExprRef>,
    ) -> Result<Self> {
        let partitions = plan.output_partitioning().partition_count();
        let statistics = |partition| {
            let arguments = StatisticsArgs::new().with_partition(partition);
            StatisticsContext::new().compute(plan.as_ref(), &arguments)
        };
        Ok(Self {
            name: plan.name().to_owned(),
            line: text(plan.as_ref(), DisplayFormatType::Default),
            tree: text(plan.as_ref(), DisplayFormatType::TreeRender),
            frame: Frame::new(Arc::clone(plan.properties())).with_filters(filters),
            statistics: statistics(None)?,
            of_partitions: (0..partitions).map(|it| statistics(Some(it))).collect::<Result<_>>()?,
            fetch: plan.fetch(),
        })
    }

    pub(super) fn message(&self, encoder: Encoder<'_>) -> Result<messages::NodeDeclarations> {
        let properties = self.frame.properties();
        let known = properties.equivalence_properties();
        let ordering = |keys: &[_]| Ok(messages::Ordering { keys: encoder.sort_keys(keys)? });
        let statistics = |it: &Arc<Statistics>| protobuf_common::Statistics::from(it.as_ref());
        Ok(messages::NodeDeclarations {
            name: self.name.clone(),
            line: self.line.clone(),
            tree: self.tree.clone(),
            schema: Some(schema_message(known.schema())?),
            orderings: known.oeq_class().iter().map(|it| ordering(it)).collect::<Result<_>>()?,
            partitioning: Some(serialize_partitioning(
                properties.output_partitioning(),
                encoder.codec,
                encoder.converter,
            )?),
            statistics: Some(statistics(&self.statistics)),
            of_partitions: self.of_partitions.iter().map(statistics).collect(),
            is_final: properties.emission_type == EmissionType::Final,
            fetch: self.fetch.map(|rows| rows as u64),
            filters: encoder.exprs(self.frame.filters())?,
        })
    }

    /// Returns what a message declares.
    ///
    /// # Errors
    /// `Corrupt` if a part is missing.
    pub(super) fn from_message(
        message: &messages::NodeDeclarations,
        decoder: Decoder<'_>,
    ) -> Result<Self> {
        let missing = |what: &str| Error::corrupt_region("plan", format!("no {what}"));
        let schema = schema_of(message.schema.as_ref())?;
        let partitioning = parse_protobuf_partitioning(
            message.partitioning.as_ref(),
            &decoder.decode_context(),
            &schema,
            decoder.converter,
        )?
        .ok_or_else(|| missing("partitions"))?;
        let statistics = |it: &protobuf_common::Statistics| -> Result<Arc<Statistics>> {
            Ok(Arc::new(Statistics::try_from(it)?))
        };
        let all = message.statistics.as_ref().ok_or_else(|| missing("statistics"))?;
        let mut equivalences = EquivalenceProperties::new(Arc::clone(&schema));
        for ordering in &message.orderings {
            equivalences.add_ordering(decoder.sort_keys(&ordering.keys, &schema)?);
        }
        let of_partitions: Vec<_> =
            message.of_partitions.iter().map(statistics).collect::<Result<_>>()?;
        if of_partitions.len() != partitioning.partition_count() {
            return Err(missing("statistics of each partition").into());
        }
        let filters = decoder.exprs(&message.filters, &schema)?;
        let emission =
            if message.is_final { EmissionType::Final } else { EmissionType::Incremental };
        let properties = declared(equivalences, partitioning, emission);
        Ok(Self {
            name: message.name.clone(),
            line: message.line.clone(),
            tree: message.tree.clone(),
            frame: Frame::new(properties).with_filters(filters),
            statistics: statistics(all)?,
            of_partitions,
            fetch: message.fetch.map(|rows| rows as usize),
        })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        self.frame.properties().equivalence_properties().schema()
    }
}

/// Returns the text of a node alone.
fn text(plan: &dyn ExecutionPlan, format: DisplayFormatType) -> String {
    struct Text<'a>(&'a dyn ExecutionPlan, DisplayFormatType);
    impl fmt::Display for Text<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt_as(self.1, f)
        }
    }
    Text(plan, format).to_string()
}

/// Returns a schema as a message.
pub(super) fn schema_message(schema: &Schema) -> Result<protobuf::Schema> {
    Ok(protobuf::Schema::try_from(schema)?)
}

/// Returns the schema of a message.
///
/// # Errors
/// `Corrupt` if there is none.
pub(super) fn schema_of(message: Option<&protobuf::Schema>) -> Result<SchemaRef> {
    let message = message.ok_or_else(|| Error::corrupt_region("plan", "no schema"))?;
    Ok(Arc::new(Schema::try_from(message)?))
}
