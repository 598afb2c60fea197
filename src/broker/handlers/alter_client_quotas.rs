//! AlterClientQuotas: quotas of users, client ids and addresses are set and removed (KIP-546, KIP-612).
//!
//! Each entity is answered by itself. A key that is asked for twice, and an entity that is, refuses the whole entity.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::quotas::Op;
use crate::broker::quotas::entity::Entity;
use crate::broker::topics::Refused;
use crate::protocol::ErrorCode;
use crate::protocol::messages::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, OpData, RequestEntityData, RequestEntryData,
    ResponseEntityData, ResponseEntryData,
};

pub(super) const HANDLER: Handler = serial!(AlterClientQuotasRequest, handle);

async fn handle(broker: Arc<Broker>, _: Context, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse {
    let mut changes: Vec<(Entity, Vec<Op>)> = vec![];
    let mut twice = BTreeSet::new();
    let mut entries = vec![];
    for RequestEntryData { entity: parts, ops } in request.entries {
        let named = parts.iter().map(|part| (part.entity_type.as_str(), part.entity_name.as_deref()));
        match Entity::new(named) {
            Err(why) => {
                let refused = Refused::new(ErrorCode::InvalidRequest, why);
                entries.push(entry(of_request(parts), Err(refused)));
            }
            Ok(entity) => {
                let keys: BTreeSet<&str> = ops.iter().map(|op| op.key.as_str()).collect();
                if keys.len() < ops.len() || changes.iter().any(|(other, _)| *other == entity) {
                    twice.insert(entity.clone());
                }
                changes.push((entity, ops.into_iter().map(op).collect()));
            }
        }
    }
    changes.retain(|(entity, _)| !twice.contains(entity));
    for entity in twice {
        let why = format!("Ignoring duplicate entity ClientQuotaEntity(entries={entity})");
        entries.push(entry(of_entity(&entity), Err(Refused::new(ErrorCode::InvalidRequest, why))));
    }
    let entities: Vec<Entity> = changes.iter().map(|(entity, _)| entity.clone()).collect();
    let results = match broker.alter_quotas(changes, request.validate_only).await {
        Ok(results) => results,
        Err(refused) => vec![Err(refused); entities.len()],
    };
    entries.extend(entities.iter().zip(results).map(|(entity, result)| entry(of_entity(entity), result)));
    AlterClientQuotasResponse { entries, ..Default::default() }
}

fn op(asked: OpData) -> Op {
    Op { key: asked.key, value: (!asked.remove).then_some(asked.value) }
}

fn entry(entity: Vec<ResponseEntityData>, result: Result<(), Refused>) -> ResponseEntryData {
    let (error_code, error_message) = super::config_changes::on_the_wire(result);
    ResponseEntryData { error_code, error_message, entity }
}

fn of_entity(entity: &Entity) -> Vec<ResponseEntityData> {
    let part = |(kind, entity_name): (&str, _)| ResponseEntityData { entity_type: kind.into(), entity_name };
    entity.parts().map(part).collect()
}

/// What makes no entity, as it was asked.
fn of_request(parts: Vec<RequestEntityData>) -> Vec<ResponseEntityData> {
    let by_type: BTreeMap<String, Option<String>> =
        parts.into_iter().map(|part| (part.entity_type, part.entity_name)).collect();
    let part = |(entity_type, entity_name)| ResponseEntityData { entity_type, entity_name };
    by_type.into_iter().map(part).collect()
}
