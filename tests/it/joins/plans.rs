//! The plans of aggregations over joins.
