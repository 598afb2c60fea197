//! UnregisterBroker, AddRaftVoter and RemoveRaftVoter: the cluster is this node and stays so.
//!
//! Apache Kafka fails as well, but only once it could not reach the voter to be added; doze says so at once.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::topics::Refused;
use crate::protocol::messages::add_raft_voter::{AddRaftVoterRequest, AddRaftVoterResponse};
use crate::protocol::messages::remove_raft_voter::{RemoveRaftVoterRequest, RemoveRaftVoterResponse};
use crate::protocol::messages::unregister_broker::{UnregisterBrokerRequest, UnregisterBrokerResponse};
use crate::protocol::{ErrorCode, Uuid};

pub(super) const UNREGISTER: Handler = serial!(UnregisterBrokerRequest, unregister);
pub(super) const ADD_VOTER: Handler = serial!(AddRaftVoterRequest, add_voter);
pub(super) const REMOVE_VOTER: Handler = serial!(RemoveRaftVoterRequest, remove_voter);

async fn unregister(broker: Arc<Broker>, _: Context, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse {
    let (error, message) = if request.broker_id == broker.node_id() {
        (ErrorCode::InvalidRequest, format!("Broker ID {} is this node, the only one.", request.broker_id))
    } else {
        (ErrorCode::BrokerIdNotRegistered, format!("Broker ID {} is not currently registered", request.broker_id))
    };
    UnregisterBrokerResponse { error_code: error.code(), error_message: Some(message), ..Default::default() }
}

async fn add_voter(broker: Arc<Broker>, _: Context, request: AddRaftVoterRequest) -> AddRaftVoterResponse {
    let voter = key(request.voter_id, request.voter_directory_id);
    let refused = check(&broker, request.cluster_id.as_deref(), "Add", request.voter_id, request.voter_directory_id)
        .err()
        .unwrap_or_else(|| {
            if request.voter_id == broker.node_id() {
                let voters = key(broker.node_id(), Uuid::ZERO);
                let message = format!("The voter id for {voter} is already part of the set of voters [{voters}].");
                return Refused::new(ErrorCode::DuplicateVoter, message);
            }
            Refused::new(ErrorCode::InvalidRequest, format!("{voter} cannot be added: doze is a cluster of one node."))
        });
    AddRaftVoterResponse { error_code: refused.code.code(), error_message: Some(refused.message), ..Default::default() }
}

async fn remove_voter(broker: Arc<Broker>, _: Context, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse {
    let refused = check(&broker, request.cluster_id.as_deref(), "Remove", request.voter_id, request.voter_directory_id)
        .err()
        .unwrap_or_else(|| {
            let (voter, voters) =
                (key(request.voter_id, request.voter_directory_id), key(broker.node_id(), Uuid::ZERO));
            let message = format!("Cannot remove voter {voter} from the set of voters [{voters}]");
            Refused::new(ErrorCode::VoterNotFound, message)
        });
    RemoveRaftVoterResponse {
        error_code: refused.code.code(),
        error_message: Some(refused.message),
        ..Default::default()
    }
}

/// What is wrong with a request before the voters are looked at.
fn check(broker: &Broker, cluster: Option<&str>, doing: &str, voter: i32, directory: Uuid) -> Result<(), Refused> {
    let own = broker.cluster_id();
    if let Some(cluster) = cluster.filter(|cluster| *cluster != own) {
        let message = format!("The given id \"{cluster}\" doesn't match the cluster id \"{own}\"");
        return Err(Refused::new(ErrorCode::InconsistentClusterId, message));
    }
    if voter < 0 || directory.is_zero() {
        let message = format!("{doing} voter request didn't include a valid voter");
        return Err(Refused::new(ErrorCode::InvalidRequest, message));
    }
    Ok(())
}

fn key(id: i32, directory: Uuid) -> String {
    format!("ReplicaKey(id={id}, directoryId={directory})")
}
