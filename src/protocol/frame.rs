//! Frames: a length of four bytes, a header, a message.
//!
//! | request header | since | | response header | since |
//! |---|---|---|---|---|
//! | api key, i16 | 0 | | correlation id, i32 | 0 |
//! | api version, i16 | 0 | | tagged fields | 1 |
//! | correlation id, i32 | 0 | | | |
//! | client id, nullable string with an i16 length in every version | 1 | | | |
//! | tagged fields | 2 | | | |
//!
//! Flexible versions of an API have request header 2 and response header 1, the others 1 and 0. ApiVersions always has
//! response header 0, for a client that does not know yet which versions the broker has (KIP-511).

use bytes::Bytes;

use super::api::{ApiKey, Request};
use super::wire::{Chunk, DecodeError, Reader, Version, Wire, Writer};

/// The start of a request, up to where the forms of different APIs part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestStart {
    pub api_key: i16,
    pub api_version: i16,
    pub correlation_id: i32,
}

/// The part of a header that every version writes the same way.
const PLAIN: Version = Version { number: 0, flexible: false };

impl RequestStart {
    /// Reads it from the front of a frame.
    pub fn read(r: &mut Reader) -> Result<Self, DecodeError> {
        Ok(RequestStart {
            api_key: i16::read(r, PLAIN)?,
            api_version: i16::read(r, PLAIN)?,
            correlation_id: i32::read(r, PLAIN)?,
        })
    }

    /// Reads the rest of the header of a request of `api`: the client id.
    pub fn read_client_id(&self, api: ApiKey, r: &mut Reader) -> Result<Option<String>, DecodeError> {
        let client_id = String::read_nullable(r, PLAIN)?;
        r.tagged_fields(api.version(self.api_version), |_, _| Ok(false))?;
        Ok(client_id)
    }
}

/// Decodes the message of a request; all of its bytes must be used.
pub fn decode<M: Wire>(mut r: Reader, v: Version) -> Result<M, DecodeError> {
    let message = M::read(&mut r, v)?;
    r.finish()?;
    Ok(message)
}

fn response_header(api: ApiKey, version: i16, correlation_id: i32, w: &mut Writer) {
    correlation_id.write(w, PLAIN);
    if api != ApiKey::ApiVersions && api.version(version).flexible {
        w.uvarint(0);
    }
}

/// A response as a whole frame, its length in front.
pub fn encode_response<R: Request>(version: i16, correlation_id: i32, response: &R::Response) -> Vec<Chunk> {
    let mut w = Writer::new();
    w.put_slice(&[0; 4]);
    response_header(R::API, version, correlation_id, &mut w);
    response.write(&mut w, R::API.version(version));
    seal(w)
}

/// A request as a whole frame, its length in front.
pub fn encode_request<R: Request>(
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    request: &R,
) -> Vec<Chunk> {
    let v = R::API.version(version);
    let mut w = Writer::new();
    w.put_slice(&[0; 4]);
    R::API.key().write(&mut w, PLAIN);
    version.write(&mut w, PLAIN);
    correlation_id.write(&mut w, PLAIN);
    String::write_nullable(client_id.map(str::to_owned).as_ref(), &mut w, PLAIN);
    if v.flexible {
        w.uvarint(0);
    }
    request.write(&mut w, v);
    seal(w)
}

/// Decodes a response frame, without its length, to a request of version `version`. Answers the correlation id too.
pub fn decode_response<R: Request>(version: i16, frame: Bytes) -> Result<(i32, R::Response), DecodeError> {
    let v = R::API.version(version);
    let mut r = Reader::new(frame);
    let correlation_id = i32::read(&mut r, PLAIN)?;
    if R::API != ApiKey::ApiVersions {
        r.tagged_fields(v, |_, _| Ok(false))?;
    }
    Ok((correlation_id, decode(r, v)?))
}

/// Fills in the length that the frame begins with.
fn seal(w: Writer) -> Vec<Chunk> {
    let length = i32::try_from(w.len() - 4).expect("responses are held below 2^31 by the limits on what they carry");
    let mut chunks = w.into_chunks();
    if let Some(Chunk::Bytes(first)) = chunks.first_mut() {
        let mut bytes: bytes::BytesMut = std::mem::take(first).into();
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        *first = bytes.freeze();
    }
    chunks
}
