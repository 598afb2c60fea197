//! The whole broker below its sockets, simulated: many clients, virtual time, a disk that fails and loses power, processes
//! that are killed, and a model of what was promised. One seed is one history.
//!
//! - `outside`: time, and workers whose jobs run when the seed says so.
//! - `world`: what all parts of a history share; `life`: one process, from its start to its end; `plan`: what the seed has
//!   in store for it.
//! - `net`: requests and answers, with delays, and with answers that get lost.
//! - `clients`: one file a kind of client. A new kind implements [`clients::Client`] and is drawn in `clients::draw`.
//! - `model`, `log_model`, `share_model`, `register`: what was promised, apart from doze; `audit` looks at everything there is.
//! - `run`: histories one by one and by the thousand; `canaries`: the harness finds what it is there to find.

#![allow(clippy::unwrap_used)]

mod audit;
mod canaries;
mod clients;
mod fetched;
mod history;
mod life;
mod log_model;
mod model;
mod net;
mod outside;
mod plan;
mod register;
mod run;
mod share_model;
mod world;
