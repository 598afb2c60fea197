//! CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken: tokens are only for who
//! has authenticated over a secured channel, which nobody has here.

use std::sync::Arc;

use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::{ANONYMOUS, Broker};
use crate::protocol::ErrorCode;
use crate::protocol::messages::create_delegation_token::{CreateDelegationTokenRequest, CreateDelegationTokenResponse};
use crate::protocol::messages::describe_delegation_token::{
    DescribeDelegationTokenRequest, DescribeDelegationTokenResponse,
};
use crate::protocol::messages::expire_delegation_token::{ExpireDelegationTokenRequest, ExpireDelegationTokenResponse};
use crate::protocol::messages::renew_delegation_token::{RenewDelegationTokenRequest, RenewDelegationTokenResponse};

pub(super) const CREATE: Handler = serial!(CreateDelegationTokenRequest, create);
pub(super) const RENEW: Handler = serial!(RenewDelegationTokenRequest, renew);
pub(super) const EXPIRE: Handler = serial!(ExpireDelegationTokenRequest, expire);
pub(super) const DESCRIBE: Handler = serial!(DescribeDelegationTokenRequest, describe);

const REFUSED: i16 = ErrorCode::DelegationTokenRequestNotAllowed as i16;
/// The type of every principal that Kafka knows without a plugin.
const USER: &str = "User";

async fn create(
    _: Arc<Broker>,
    context: Context,
    request: CreateDelegationTokenRequest,
) -> CreateDelegationTokenResponse {
    let given = |name: Option<String>| name.filter(|name| context.version >= 3 && !name.is_empty());
    let owner = given(request.owner_principal_name).unwrap_or_else(|| ANONYMOUS.into());
    let owner_type = given(request.owner_principal_type).unwrap_or_else(|| USER.into());
    CreateDelegationTokenResponse {
        error_code: REFUSED,
        principal_type: owner_type,
        principal_name: owner,
        token_requester_principal_type: USER.into(),
        token_requester_principal_name: ANONYMOUS.into(),
        issue_timestamp_ms: -1,
        expiry_timestamp_ms: -1,
        max_timestamp_ms: -1,
        ..Default::default()
    }
}

async fn renew(_: Arc<Broker>, _: Context, _: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse {
    RenewDelegationTokenResponse { error_code: REFUSED, expiry_timestamp_ms: -1, ..Default::default() }
}

async fn expire(_: Arc<Broker>, _: Context, _: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse {
    ExpireDelegationTokenResponse { error_code: REFUSED, expiry_timestamp_ms: -1, ..Default::default() }
}

async fn describe(_: Arc<Broker>, _: Context, _: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse {
    DescribeDelegationTokenResponse { error_code: REFUSED, ..Default::default() }
}
