//! DescribeClientQuotas: the quotas of the entities that a filter lets through (KIP-546).
//!
//! A component of the filter asks one part of the entity for a name, for the default, or for being there at all. A strict
//! filter lets an entity through only if it has no other part.

use std::collections::HashSet;
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::quotas::entity::{CLIENT_ID, Entity, IP, Part, TYPES, USER, Values};
use crate::broker::topics::Refused;
use crate::protocol::ErrorCode;
use crate::protocol::messages::describe_client_quotas::{
    ComponentData, DescribeClientQuotasRequest, DescribeClientQuotasResponse, EntityData, EntryData, ValueData,
};

pub(super) const HANDLER: Handler = serial!(DescribeClientQuotasRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse {
    let filters = match filters(&request.components) {
        Ok(filters) => filters,
        Err(refused) => {
            return DescribeClientQuotasResponse {
                error_code: refused.code.code(),
                error_message: Some(refused.message),
                entries: None,
                ..Default::default()
            };
        }
    };
    let passes = |entity: &Entity| {
        let others = TYPES.iter().filter(|kind| !filters.iter().any(|filter| filter.kind == **kind));
        filters.iter().all(|filter| filter.passes(entity))
            && (!request.strict || others.into_iter().all(|kind| entity.part(kind).is_absent()))
    };
    let quotas = broker.quotas().all();
    let entries = quotas.iter().filter(|(entity, _)| passes(entity)).map(|(entity, values)| entry(entity, values));
    DescribeClientQuotasResponse { entries: Some(entries.collect()), ..Default::default() }
}

struct Filter<'a> {
    kind: &'static str,
    wanted: Wanted<'a>,
}

enum Wanted<'a> {
    Named(&'a str),
    Default,
    Any,
}

impl Filter<'_> {
    fn passes(&self, entity: &Entity) -> bool {
        match (&self.wanted, entity.part(self.kind)) {
            (_, Part::Absent) => false,
            (Wanted::Any, _) | (Wanted::Default, Part::Default) => true,
            (Wanted::Named(wanted), Part::Named(name)) => wanted == name,
            _ => false,
        }
    }
}

fn filters(components: &[ComponentData]) -> Result<Vec<Filter<'_>>, Refused> {
    let invalid = |why: String| Err(Refused::new(ErrorCode::InvalidRequest, why));
    let mut seen = HashSet::new();
    let mut filters = vec![];
    for component in components {
        let kind = component.entity_type.as_str();
        if kind.is_empty() {
            return invalid("Invalid empty entity type.".into());
        }
        if !seen.insert(kind) {
            return invalid(format!("Entity type {kind} cannot appear more than once in the filter."));
        }
        let Some(kind) = TYPES.into_iter().find(|known| *known == kind) else {
            return Err(Refused::new(ErrorCode::UnsupportedVersion, format!("Unsupported entity type {kind}")));
        };
        let wanted = match (component.match_type, component.r#match.as_deref()) {
            (0, Some(name)) => Wanted::Named(name),
            (0, None) => return invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.".into()),
            (1, None) => Wanted::Default,
            (2, None) => Wanted::Any,
            (1 | 2, Some(_)) => {
                let name = if component.match_type == 1 { "DEFAULT" } else { "SPECIFIED" };
                return invalid(format!("Request specified MATCH_TYPE_{name}, but also specified a match string."));
            }
            (other, _) => return invalid(format!("Unknown match type {other}")),
        };
        filters.push(Filter { kind, wanted });
    }
    if seen.contains(IP) && (seen.contains(USER) || seen.contains(CLIENT_ID)) {
        return invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId \
             filter component."
                .into(),
        );
    }
    Ok(filters)
}

fn entry(entity: &Entity, values: &Values) -> EntryData {
    let part = |(kind, entity_name): (&str, _)| EntityData { entity_type: kind.into(), entity_name };
    let value = |(key, value): (&String, &f64)| ValueData { key: key.clone(), value: *value };
    EntryData { entity: entity.parts().map(part).collect(), values: values.iter().map(value).collect() }
}
