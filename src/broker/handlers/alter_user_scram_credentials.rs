//! AlterUserScramCredentials: credentials are set and removed (KIP-554). Each user is answered by itself, and can be named
//! once in a request.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::broker::scram::{Change, New};
use crate::broker::topics::Refused;
use crate::protocol::ErrorCode;
use crate::protocol::messages::alter_user_scram_credentials::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, AlterUserScramCredentialsResult,
};

pub(super) const HANDLER: Handler = serial!(AlterUserScramCredentialsRequest, handle);

async fn handle(
    broker: Arc<Broker>,
    _: Context,
    request: AlterUserScramCredentialsRequest,
) -> AlterUserScramCredentialsResponse {
    let deletions = request.deletions.into_iter().map(|deletion| Change {
        user: deletion.name,
        mechanism: deletion.mechanism,
        new: New::Gone,
    });
    let upsertions = request.upsertions.into_iter().map(|upsertion| Change {
        user: upsertion.name,
        mechanism: upsertion.mechanism,
        new: New::Password {
            iterations: upsertion.iterations,
            salt: upsertion.salt.to_vec(),
            salted_password: upsertion.salted_password.to_vec(),
        },
    });
    let mut changes: Vec<Change> = deletions.chain(upsertions).collect();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for change in &changes {
        *times.entry(change.user.clone()).or_default() += 1;
    }
    changes.retain(|change| times[&change.user] == 1);
    let results = broker.alter_scram(&changes).await;
    let mut results: Vec<_> = changes.into_iter().map(|change| change.user).zip(results).collect();
    for (user, _) in times.into_iter().filter(|(_, times)| *times > 1) {
        let message = "A user credential cannot be altered twice in the same request";
        results.push((user, Err(Refused::new(ErrorCode::DuplicateResource, message))));
    }
    let result = |(user, result): (String, Result<(), Refused>)| match result {
        Ok(()) => AlterUserScramCredentialsResult { user, error_code: ErrorCode::None.code(), error_message: None },
        Err(refused) => AlterUserScramCredentialsResult {
            user,
            error_code: refused.code.code(),
            error_message: refused.into_message(),
        },
    };
    AlterUserScramCredentialsResponse { results: results.into_iter().map(result).collect(), ..Default::default() }
}
