//! From a frame to its handler: the table of handlers, and the versions that are advertised because they are in it.

use std::fmt;
use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{self, Poll};

use bytes::Bytes;

use super::handlers;
use super::quotas::thread_time::{ThreadTime, timed};
use super::{Broker, ClientConnection};
use crate::protocol::frame::{self, RequestStart};
use crate::protocol::wire::{Chunk, DecodeError, Reader, Wire};
use crate::protocol::{ApiKey, Request};

/// What is to be done on the connection in answer to a request.
#[derive(Debug)]
pub enum Reply {
    /// A whole frame to write.
    Frame(Vec<Chunk>),
    /// No answer, as a produce with acks=0 wants it.
    Nothing,
    /// Close the connection.
    Close,
}

impl Reply {
    /// Of the frame with its length; 0 where there is none.
    pub fn size_in_bytes(&self) -> usize {
        match self {
            Reply::Frame(chunks) => chunks.iter().map(Chunk::len).sum(),
            Reply::Nothing | Reply::Close => 0,
        }
    }
}

/// A request that was taken in and whose answer will come.
#[derive(Debug)]
pub struct Pending {
    pub reply: PendingReply,
    /// The next request of the connection is only read after this one is answered.
    pub serial: bool,
}

/// A future of a reply that costs no allocation where the reply is there already.
pub enum PendingReply {
    Ready(Option<Reply>),
    Later(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

impl Future for PendingReply {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Reply> {
        match &mut *self {
            PendingReply::Ready(reply) => Poll::Ready(reply.take().expect("a reply is taken once")),
            PendingReply::Later(later) => later.as_mut().poll(cx),
        }
    }
}

impl fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PendingReply::Ready(_) => "Ready",
            PendingReply::Later(_) => "Later",
        })
    }
}

impl Pending {
    pub fn ready(reply: Reply) -> Self {
        Pending { reply: PendingReply::Ready(Some(reply)), serial: false }
    }

    /// Runs what is still to be done on the clock, if there is one.
    fn timed(mut self, time: Option<Arc<ThreadTime>>) -> Self {
        self.reply = match (self.reply, time) {
            (PendingReply::Later(later), Some(time)) => PendingReply::Later(timed(time, later)),
            (reply, _) => reply,
        };
        self
    }

    pub fn later(serial: bool, reply: impl Future<Output = Reply> + Send + 'static) -> Self {
        Pending { reply: PendingReply::Later(Box::pin(reply)), serial }
    }
}

/// What a handler knows of a request beside the message.
#[derive(Clone, Debug)]
pub struct Context {
    pub version: i16,
    pub correlation_id: i32,
    pub client_id: Option<String>,
    pub client: Arc<ClientConnection>,
    /// Of the frame that the request came in, without its length.
    pub size_in_bytes: usize,
    /// What the request takes of the threads, where a quota is set on that.
    time: Option<Arc<ThreadTime>>,
}

impl Context {
    /// The answer as a frame. The connection is held back for the time that the response says, or for longer where the
    /// client had more than its share of the threads.
    pub fn reply<R: Request>(&self, response: &R::Response) -> Reply {
        let said = response.throttle_time_ms();
        let throttle_ms = self.time.as_ref().map_or(0, |time| time.throttle_ms()).max(said);
        if throttle_ms > 0 {
            self.client.hold_back(throttle_ms);
        }
        if throttle_ms > said {
            let mut response = response.clone();
            response.set_throttle_time_ms(throttle_ms);
            return Reply::Frame(frame::encode_response::<R>(self.version, self.correlation_id, &response));
        }
        Reply::Frame(frame::encode_response::<R>(self.version, self.correlation_id, response))
    }
}

/// The first part of handling a request, after which the connection's next one may be read.
pub enum Start {
    Pending(Pending),
    /// Work that has to be done in the order of the requests, such as the append of a produce.
    First(Pin<Box<dyn Future<Output = Pending> + Send>>),
}

/// An API that is served.
pub struct Handler {
    pub api: ApiKey,
    pub start: fn(Arc<Broker>, Context, Reader) -> Result<Start, DecodeError>,
}

/// A handler that is an async function of (broker, context, request) to response. The connection's next request is read
/// once it has answered, as Apache Kafka does it.
macro_rules! serial {
    ($request:ty, $handle:path) => {
        $crate::broker::dispatch::Handler {
            api: <$request as $crate::protocol::Request>::API,
            start: |broker, context, body| {
                $crate::broker::dispatch::start_serial::<$request, _, _>(broker, context, body, $handle)
            },
        }
    };
}
pub(super) use serial;

pub(super) fn start_serial<R, F, Fut>(
    broker: Arc<Broker>,
    context: Context,
    body: Reader,
    handle: F,
) -> Result<Start, DecodeError>
where
    R: Request + 'static,
    F: FnOnce(Arc<Broker>, Context, R) -> Fut,
    Fut: Future<Output = R::Response> + Send + 'static,
{
    let request: R = frame::decode(body, R::API.version(context.version))?;
    let response = handle(broker, context.clone(), request);
    Ok(Start::Pending(Pending::later(true, async move { context.reply::<R>(&response.await) })))
}

/// Handlers by their API's key.
static BY_KEY: LazyLock<Vec<Option<&'static Handler>>> = LazyLock::new(|| {
    let mut table = vec![];
    for handler in handlers::ALL {
        let key = handler.api.key() as usize;
        table.resize(table.len().max(key + 1), None);
        let before = table[key].replace(handler);
        assert!(before.is_none(), "{} has two handlers", handler.api.name());
    }
    table
});

/// The handler of an API. `None` for one that is not served.
pub fn handler(api: ApiKey) -> Option<&'static Handler> {
    BY_KEY.get(api.key() as usize).copied().flatten()
}

/// The versions that are handled. All that are advertised, but for the Produce of old, which is named to clients that give
/// up without it and that no client sends.
fn handled_versions(broker: &Broker, api: ApiKey) -> RangeInclusive<i16> {
    match api {
        ApiKey::Produce => 3..=*api.versions().end(),
        ApiKey::InitProducerId => broker.versions(api),
        _ => api.versions(),
    }
}

/// Takes in one frame. `None` means that the connection is to be closed: what came was no request.
pub(super) async fn receive(broker: &Arc<Broker>, client: &Arc<ClientConnection>, frame: Bytes) -> Option<Pending> {
    let size_in_bytes = frame.len();
    let mut r = Reader::new(frame);
    let start = match RequestStart::read(&mut r) {
        Ok(start) => start,
        Err(error) => return refuse(client, &format!("a request header: {error}")),
    };
    let api = ApiKey::from_key(start.api_key).filter(|api| handler(*api).is_some());
    let Some((api, handler)) = api.and_then(|api| Some((api, handler(api)?))) else {
        let name = ApiKey::from_key(start.api_key).map_or("unknown", ApiKey::name);
        return refuse(client, &format!("API key {} ({name}) is not served", start.api_key));
    };
    let versions = handled_versions(broker, api);
    if !versions.contains(&start.api_version) {
        if api == ApiKey::ApiVersions {
            // KIP-511: a client that is newer than the broker learns here which version to ask with.
            return Some(Pending::ready(handlers::api_versions::unsupported_version(start.correlation_id)));
        }
        let (first, last) = (versions.start(), versions.end());
        let why = format!("{} version {}; served are {first} to {last}", api.name(), start.api_version);
        return refuse(client, &why);
    }
    let client_id = match start.read_client_id(api, &mut r) {
        Ok(client_id) => client_id,
        Err(error) => return refuse(client, &format!("the header of {}: {error}", api.name())),
    };
    let time = ThreadTime::begin(broker.quotas(), client_id.as_deref());
    let context = Context {
        version: start.api_version,
        correlation_id: start.correlation_id,
        client_id,
        client: client.clone(),
        size_in_bytes,
        time: time.clone(),
    };
    let started = (handler.start)(broker.clone(), context, r);
    if let Some(time) = &time {
        time.pause();
    }
    match started {
        Ok(Start::Pending(pending)) => Some(pending.timed(time)),
        Ok(Start::First(first)) => {
            let first = match time.clone() {
                Some(time) => timed(time, first),
                None => first,
            };
            Some(first.await.timed(time))
        }
        Err(error) => refuse(client, &format!("{} version {}: {error}", api.name(), start.api_version)),
    }
}

fn refuse(client: &ClientConnection, why: &str) -> Option<Pending> {
    tracing::warn!(client = %client.peer, software = %client.software(), "closing the connection: cannot read {why}");
    None
}
