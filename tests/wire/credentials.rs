//! SCRAM credentials: stored, described without their secrets, and refused as Apache Kafka 4.3.1 refuses them.

use doze::protocol::ErrorCode;
use doze::protocol::messages::alter_user_scram_credentials::{
    AlterUserScramCredentialsRequest, ScramCredentialDeletion, ScramCredentialUpsertion,
};
use doze::protocol::messages::describe_user_scram_credentials::{DescribeUserScramCredentialsRequest, UserName};

use super::harness::{Broker, Client};

const SHA_256: i8 = 1;
const SHA_512: i8 = 2;

/// What each user got, sorted by user.
fn alter(client: &mut Client, gone: &[(&str, i8)], new: &[(&str, i8, i32)]) -> Vec<(String, ErrorCode)> {
    let deletion =
        |(name, mechanism): &(&str, i8)| ScramCredentialDeletion { name: (*name).into(), mechanism: *mechanism };
    let upsertion = |(name, mechanism, iterations): &(&str, i8, i32)| ScramCredentialUpsertion {
        name: (*name).into(),
        mechanism: *mechanism,
        iterations: *iterations,
        salt: b"salt"[..].into(),
        salted_password: b"very secret"[..].into(),
    };
    let request = AlterUserScramCredentialsRequest {
        deletions: gone.iter().map(deletion).collect(),
        upsertions: new.iter().map(upsertion).collect(),
    };
    let results = client.call(0, &request).results.into_iter();
    let mut results: Vec<_> =
        results.map(|result| (result.user, ErrorCode::from_code(result.error_code).unwrap())).collect();
    results.sort_by(|a, b| a.0.cmp(&b.0));
    results
}

/// Each user with its mechanisms and iterations, or with the error.
fn describe(client: &mut Client, users: Option<&[&str]>) -> Vec<String> {
    let names = users.map(|users| users.iter().map(|name| UserName { name: (*name).into() }).collect());
    let response = client.call(0, &DescribeUserScramCredentialsRequest { users: names });
    assert_eq!(response.error_code, 0);
    let shown = response.results.into_iter().map(|result| match result.error_code {
        0 => {
            let infos = result.credential_infos.iter();
            let infos = infos.map(|info| format!(" {}:{}", info.mechanism, info.iterations)).collect::<String>();
            format!("{}{infos}", result.user)
        }
        _ => format!("{} {}", result.user, result.error_message.unwrap()),
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort();
    shown
}

fn results(results: &[(&str, ErrorCode)]) -> Vec<(String, ErrorCode)> {
    results.iter().map(|(user, code)| ((*user).to_owned(), *code)).collect()
}

#[test]
fn credentials_are_stored_and_described_without_secrets() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let fine = ErrorCode::None;
    assert!(describe(&mut client, None).is_empty());
    let new = [("a", SHA_256, 4096), ("c", SHA_512, 8192)];
    assert_eq!(alter(&mut client, &[], &new), results(&[("a", fine), ("c", fine)]));
    assert_eq!(alter(&mut client, &[], &[("a", SHA_512, 16384)]), results(&[("a", fine)]));
    // One user at a time; what is wrong of one does not touch the others.
    let new =
        [("a", SHA_256, 8000), ("a", SHA_512, 8000), ("b", SHA_256, 5000), ("low", SHA_256, 4095), ("x", 3, 5000)];
    let expected = [
        ("", ErrorCode::UnacceptableCredential),
        ("a", ErrorCode::DuplicateResource),
        ("b", fine),
        ("low", ErrorCode::UnacceptableCredential),
        ("x", ErrorCode::UnsupportedSaslMechanism),
        ("zz", ErrorCode::ResourceNotFound),
    ];
    assert_eq!(alter(&mut client, &[("zz", SHA_256), ("", SHA_256)], &new), results(&expected));
    let broker = broker.kill().start();
    let mut client = broker.connect();
    let all = ["a 1:4096 2:16384", "b 1:5000", "c 2:8192"];
    assert_eq!(describe(&mut client, None), all);
    assert_eq!(describe(&mut client, Some(&[])), all);
    let missing = "zz Attempt to describe a user credential that does not exist: zz";
    assert_eq!(describe(&mut client, Some(&["zz", "c"])), ["c 2:8192", missing]);
    let twice = "a Cannot describe SCRAM credentials for the same user twice in a single request: a";
    assert_eq!(describe(&mut client, Some(&["a", "a"])), [twice]);
    assert_eq!(alter(&mut client, &[("a", SHA_256)], &[]), results(&[("a", fine)]));
    assert_eq!(
        alter(&mut client, &[("c", SHA_512), ("c", SHA_256)], &[]),
        results(&[("c", ErrorCode::DuplicateResource)])
    );
    let broker = broker.stop().start();
    assert_eq!(describe(&mut broker.connect(), None), ["a 2:16384", "b 1:5000", "c 2:8192"]);
    // What was sent is nowhere in the catalog.
    let catalog = std::fs::read(broker.stop().data_dir().join("meta.db")).unwrap();
    assert!(!catalog.windows(11).any(|bytes| bytes == b"very secret"));
}
