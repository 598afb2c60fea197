//! SCRAM credentials (KIP-554): stored for the day on which clients authenticate, and never shown.
//!
//! Of a password only what a server needs is kept (RFC 5802): from that nobody can log in elsewhere.
//!
//! ```text
//! state "scram"
//! key      mechanism: u8, then the user's name in UTF-8
//! value    version 1, iterations: i32, then salt, stored key and server key, each as bytes
//! ```

use std::collections::BTreeMap;

use hmac::digest::{Digest, KeyInit};
use hmac::{Hmac, Mac};
use sha2::{Sha256, Sha512};

use super::Broker;
use super::topics::Refused;
use crate::protocol::ErrorCode;
use crate::storage::catalog::{CatalogError, Decoder, Encoder, Malformed, Mutation};

const SPACE: &str = "scram";
const VERSION: u8 = 1;

/// How many iterations a client may have hashed its password with.
const ITERATIONS: std::ops::RangeInclusive<i32> = 4096..=16384;

/// With Kafka's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i8)]
pub enum Mechanism {
    Sha256 = 1,
    Sha512 = 2,
}

impl Mechanism {
    pub fn from_number(number: i8) -> Option<Self> {
        [Mechanism::Sha256, Mechanism::Sha512].into_iter().find(|mechanism| *mechanism as i8 == number)
    }
}

/// What a server has to know of a user. Its secrets are left out of what is printed of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub iterations: i32,
    salt: Vec<u8>,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

impl Credential {
    /// From what a client made of its password.
    pub fn new(mechanism: Mechanism, iterations: i32, salt: &[u8], salted_password: &[u8]) -> Self {
        let (stored_key, server_key) = match mechanism {
            Mechanism::Sha256 => {
                let client_key = hmac::<Hmac<Sha256>>(salted_password, b"Client Key");
                (Sha256::digest(client_key).to_vec(), hmac::<Hmac<Sha256>>(salted_password, b"Server Key"))
            }
            Mechanism::Sha512 => {
                let client_key = hmac::<Hmac<Sha512>>(salted_password, b"Client Key");
                (Sha512::digest(client_key).to_vec(), hmac::<Hmac<Sha512>>(salted_password, b"Server Key"))
            }
        };
        Credential { iterations, salt: salt.to_vec(), stored_key, server_key }
    }

    fn encode(&self) -> Vec<u8> {
        let encoder = Encoder::new(VERSION).i32(self.iterations);
        encoder.bytes(&self.salt).bytes(&self.stored_key).bytes(&self.server_key).finish()
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new("a SCRAM credential", bytes, VERSION)?;
        let credential = Credential {
            iterations: decoder.i32()?,
            salt: decoder.bytes()?.to_vec(),
            stored_key: decoder.bytes()?.to_vec(),
            server_key: decoder.bytes()?.to_vec(),
        };
        decoder.finish()?;
        Ok(credential)
    }
}

fn hmac<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = <M as Mac>::new_from_slice(key).expect("a key of any length will do");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

/// The credentials of users, by mechanism.
pub type Users = BTreeMap<String, BTreeMap<Mechanism, Credential>>;

/// A change of one user's credential.
#[derive(Clone, Debug)]
pub struct Change {
    pub user: String,
    pub mechanism: i8,
    pub new: New,
}

/// What is to be of a credential.
#[derive(Clone)]
pub enum New {
    Gone,
    Password { iterations: i32, salt: Vec<u8>, salted_password: Vec<u8> },
}

impl std::fmt::Debug for New {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, New::Gone) { "Gone" } else { "Password" })
    }
}

fn key(user: &str, mechanism: Mechanism) -> Vec<u8> {
    [&[mechanism as u8], user.as_bytes()].concat()
}

/// Whether a change can be made, and the mutation that makes it.
fn check(users: &Users, change: &Change) -> Result<Mutation, Refused> {
    let refuse = |code, message: &str| Err(Refused::new(code, message));
    if change.user.is_empty() {
        return refuse(ErrorCode::UnacceptableCredential, "Username must not be empty");
    }
    let Some(mechanism) = Mechanism::from_number(change.mechanism) else {
        return refuse(ErrorCode::UnsupportedSaslMechanism, "Unknown SCRAM mechanism");
    };
    let value = match &change.new {
        New::Gone if !users.get(&change.user).is_some_and(|user| user.contains_key(&mechanism)) => {
            let message = "Attempt to delete a user credential that does not exist";
            return refuse(ErrorCode::ResourceNotFound, message);
        }
        New::Gone => None,
        New::Password { iterations, .. } if iterations < ITERATIONS.start() => {
            return refuse(ErrorCode::UnacceptableCredential, "Too few iterations");
        }
        New::Password { iterations, .. } if iterations > ITERATIONS.end() => {
            return refuse(ErrorCode::UnacceptableCredential, "Too many iterations");
        }
        // Nothing can be derived from no password; Kafka has no other code for it either.
        New::Password { salted_password, .. } if salted_password.is_empty() => {
            return refuse(ErrorCode::UnknownServerError, "");
        }
        New::Password { iterations, salt, salted_password } => {
            Some(Credential::new(mechanism, *iterations, salt, salted_password).encode())
        }
    };
    Ok(Mutation::SetState { space: SPACE, key: key(&change.user, mechanism), value })
}

impl Broker {
    /// All users that have credentials.
    pub(super) async fn scram_users(&self) -> Result<Users, Refused> {
        let store = self.store.clone();
        let read = self.blocking(move || -> Result<Users, CatalogError> {
            let mut users = Users::new();
            for (key, value) in store.catalog().states(SPACE)? {
                let name = key.split_first().and_then(|(mechanism, name)| {
                    Some((Mechanism::from_number(*mechanism as i8)?, String::from_utf8(name.to_vec()).ok()?))
                });
                match (name, Credential::decode(&value)) {
                    (Some((mechanism, name)), Ok(credential)) => {
                        users.entry(name).or_default().insert(mechanism, credential);
                    }
                    (name, decoded) => {
                        let (user, error) = (name.map(|(_, name)| name), decoded.err());
                        tracing::error!(?user, ?error, "a SCRAM credential in the catalog does not read");
                    }
                }
            }
            Ok(users)
        });
        match read.await {
            Ok(Ok(users)) => Ok(users),
            Ok(Err(error)) => {
                tracing::error!("SCRAM credentials could not be read: {error}");
                Err(Refused::new(ErrorCode::KafkaStorageError, error.to_string()))
            }
            Err(code) => Err(Refused::new(code, "")),
        }
    }

    /// Changes credentials, one of a user, durably. The answer has what became of each change, in order.
    pub(super) async fn alter_scram(&self, changes: &[Change]) -> Vec<Result<(), Refused>> {
        let _one_at_a_time = self.altering.lock().await;
        let users = match self.scram_users().await {
            Ok(users) => users,
            Err(refused) => return vec![Err(refused); changes.len()],
        };
        let mut mutations = vec![];
        let mut results: Vec<Result<(), Refused>> = vec![];
        for change in changes {
            results.push(check(&users, change).map(|mutation| mutations.push(mutation)));
        }
        if !mutations.is_empty()
            && let Err(refused) = self.commit(mutations).await
        {
            for result in results.iter_mut().filter(|result| result.is_ok()) {
                *result = Err(refused.clone());
            }
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    }

    /// The example of RFC 7677: user `user`, password `pencil`, 4096 iterations. The server's signature there is made with
    /// the server key, and the client's proof checks against the stored key.
    #[test]
    fn keys_are_those_of_the_rfc() {
        // PBKDF2-HMAC-SHA-256 of the password with the salt W22ZaJ0SNY7soEsUEjb6gQ==.
        let salted = unhex("c4a49510323ab4f952cac1fa99441939e78ea74d6be81ddf7096e87513dc615d");
        let credential = Credential::new(Mechanism::Sha256, 4096, b"salt", &salted);
        let auth = b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                     s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        // v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=
        let signature = unhex("eabae24d1062db75a9451ff0b6ea7e98c8546549ff741e672d3251b2397de46e");
        assert_eq!(hmac::<Hmac<Sha256>>(&credential.server_key, auth), signature);
        // p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=
        let proof = unhex("747cdb65aa56224e2352137e52d7bdcad6a0f738df30782caa69a2cfb0277554");
        let client_signature = hmac::<Hmac<Sha256>>(&credential.stored_key, auth);
        let client_key: Vec<u8> = proof.iter().zip(client_signature).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha256::digest(client_key).to_vec(), credential.stored_key);
    }

    #[test]
    fn what_is_stored_reads_as_it_was_and_is_not_printed() {
        for mechanism in [Mechanism::Sha256, Mechanism::Sha512] {
            let credential = Credential::new(mechanism, 8192, b"pepper", b"secret");
            assert_eq!(Credential::decode(&credential.encode()).unwrap(), credential);
            assert_eq!(format!("{credential:?}"), "Credential { iterations: 8192, .. }");
        }
    }

    /// What Apache Kafka 4.3.1 answers to AlterUserScramCredentials.
    #[test]
    fn changes_are_refused_in_kafkas_words() {
        let password = |iterations| New::Password { iterations, salt: b"s".to_vec(), salted_password: b"p".to_vec() };
        let check = |user: &str, mechanism, new| {
            let refused = check(&Users::new(), &Change { user: user.into(), mechanism, new }).err();
            refused.map(|refused| (refused.code, refused.message))
        };
        let unacceptable = |why: &str| Some((ErrorCode::UnacceptableCredential, why.to_owned()));
        assert_eq!(check("a", 1, password(4095)), unacceptable("Too few iterations"));
        assert_eq!(check("a", 1, password(16385)), unacceptable("Too many iterations"));
        assert_eq!(check("", 1, password(4096)), unacceptable("Username must not be empty"));
        assert_eq!(check("", 1, New::Gone), unacceptable("Username must not be empty"));
        for mechanism in [-1, 0, 3] {
            let unknown = Some((ErrorCode::UnsupportedSaslMechanism, "Unknown SCRAM mechanism".to_owned()));
            assert_eq!(check("a", mechanism, password(4096)), unknown);
            assert_eq!(check("a", mechanism, New::Gone), unknown);
        }
        let missing = "Attempt to delete a user credential that does not exist";
        assert_eq!(check("a", 1, New::Gone), Some((ErrorCode::ResourceNotFound, missing.to_owned())));
        for (mechanism, iterations) in [(1, 4096), (2, 16384)] {
            assert_eq!(check("a", mechanism, password(iterations)), None);
        }
    }
}
