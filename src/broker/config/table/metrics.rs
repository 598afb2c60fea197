//! Configs of a client metrics subscription.

use crate::broker::config::def::idle::NO_TELEMETRY;
use crate::broker::config::def::{Def, int, list};

#[rustfmt::skip]
pub(super) const TABLE: &[Def] = &[
    int("interval.ms").is("300000").idle(NO_TELEMETRY)
        .says("How often matching clients are asked to push their metrics, in milliseconds."),
    list("match").is("").idle(NO_TELEMETRY)
        .says("Which clients the subscription is for, as SELECTOR=PATTERN separated by commas; none is all."),
    list("metrics").is("").idle(NO_TELEMETRY)
        .says("The prefixes of the metrics that are asked for; none asks for nothing, * for all."),
];
