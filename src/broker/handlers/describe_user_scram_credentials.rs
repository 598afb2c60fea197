//! DescribeUserScramCredentials: which mechanisms users have credentials for, and with how many iterations. The secrets
//! stay here.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::scram::{Credential, Mechanism, Users};
use crate::protocol::ErrorCode;
use crate::protocol::messages::describe_user_scram_credentials::{
    CredentialInfo, DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
};

pub(super) const HANDLER: Handler = serial!(DescribeUserScramCredentialsRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    _: Context,
    request: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse {
    let users = match broker.scram_users().await {
        Ok(users) => users,
        Err(refused) => {
            return DescribeUserScramCredentialsResponse {
                error_code: refused.code.code(),
                error_message: refused.into_message(),
                ..Default::default()
            };
        }
    };
    let asked = request.users.unwrap_or_default();
    let results = if asked.is_empty() {
        users.iter().map(|(user, credentials)| described(user, credentials)).collect()
    } else {
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for user in &asked {
            *times.entry(&user.name).or_default() += 1;
        }
        times.into_iter().map(|(user, times)| one(&users, user, times)).collect()
    };
    DescribeUserScramCredentialsResponse { results, ..Default::default() }
}

fn one(users: &Users, user: &str, times: usize) -> DescribeUserScramCredentialsResult {
    let refuse = |code: ErrorCode, message: String| DescribeUserScramCredentialsResult {
        user: user.to_owned(),
        error_code: code.code(),
        error_message: Some(message),
        ..Default::default()
    };
    if times > 1 {
        let message = format!("Cannot describe SCRAM credentials for the same user twice in a single request: {user}");
        return refuse(ErrorCode::DuplicateResource, message);
    }
    match users.get(user) {
        Some(credentials) => described(user, credentials),
        None => {
            let message = format!("Attempt to describe a user credential that does not exist: {user}");
            refuse(ErrorCode::ResourceNotFound, message)
        }
    }
}

fn described(user: &str, credentials: &BTreeMap<Mechanism, Credential>) -> DescribeUserScramCredentialsResult {
    let info = |(mechanism, credential): (&Mechanism, &Credential)| CredentialInfo {
        mechanism: *mechanism as i8,
        iterations: credential.iterations,
    };
    DescribeUserScramCredentialsResult {
        user: user.to_owned(),
        credential_infos: credentials.iter().map(info).collect(),
        ..Default::default()
    }
}
