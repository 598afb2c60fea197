//! SaslHandshake and SaslAuthenticate: the listener is a plaintext one, on which a client has nothing to authenticate.
//! The connection stays open.

use std::sync::Arc;

use crate::broker::Broker;
use crate::broker::dispatch::{Context, Handler, serial};
use crate::protocol::ErrorCode;
use crate::protocol::messages::sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse};
use crate::protocol::messages::sasl_handshake::{SaslHandshakeRequest, SaslHandshakeResponse};

pub(super) const HANDSHAKE: Handler = serial!(SaslHandshakeRequest, handshake);
pub(super) const AUTHENTICATE: Handler = serial!(SaslAuthenticateRequest, authenticate);

async fn handshake(_: Arc<Broker>, _: Context, _: SaslHandshakeRequest) -> SaslHandshakeResponse {
    SaslHandshakeResponse { error_code: ErrorCode::IllegalSaslState.code(), mechanisms: vec![] }
}

async fn authenticate(_: Arc<Broker>, _: Context, _: SaslAuthenticateRequest) -> SaslAuthenticateResponse {
    SaslAuthenticateResponse {
        error_code: ErrorCode::IllegalSaslState.code(),
        error_message: Some("SaslAuthenticate request received after successful authentication".into()),
        ..Default::default()
    }
}
