//! The broker, as the command sees it.

use std::net::SocketAddr;
use std::sync::Arc;

use doze::broker::settings::Settings;
use doze::broker::{Broker, OpenBrokerError};
use doze::net::{self, Listening};
use doze::storage::catalog::OpenCatalogError;
use doze::storage::store::OpenStoreError;
use doze::sys::{Env, raise_open_file_limit};

use crate::exit::{Code, Failure};

/// A broker that has its port, and answers on it.
pub trait Server: Sized {
    /// The address with the port that was picked.
    fn local_addr(&self) -> SocketAddr;

    /// Writes its state to the log.
    fn tell_state(&self);

    /// Takes in nothing more, answers what it has read, and flushes everything to the disk.
    async fn stop(self) -> Result<(), Failure>;
}

/// The real one.
#[derive(Debug)]
pub struct BrokerServer {
    broker: Arc<Broker>,
    listening: Listening,
}

/// Opens the data directory, and takes the port when everything behind it works.
pub async fn start(settings: Settings, address: SocketAddr) -> Result<BrokerServer, Failure> {
    let limit = raise_open_file_limit();
    tracing::debug!(?limit, "open files");
    let broker = Broker::open(Env::real(), settings).map_err(|error| not_opened(&error))?;
    match net::listen(broker.clone(), address) {
        Ok(listening) => Ok(BrokerServer { broker, listening }),
        Err(error) => {
            // Nothing was served, but the mark of a clean stop is off the directory.
            if let Err(unclean) = broker.close().await {
                tracing::warn!("{unclean}");
            }
            Err(Failure::could_not_run(error.to_string()))
        }
    }
}

fn not_opened(error: &OpenBrokerError) -> Failure {
    let code = match error {
        OpenBrokerError::Store(OpenStoreError::InUse { .. }) => Code::InUse,
        OpenBrokerError::Store(
            OpenStoreError::NotADataDirectory { .. }
            | OpenStoreError::KafkaLogDirectory { .. }
            | OpenStoreError::Catalog(OpenCatalogError::NewerFormat { .. } | OpenCatalogError::NotACatalog { .. }),
        ) => Code::NotADataDirectory,
        _ => Code::CouldNotRun,
    };
    Failure::of(code, error)
}

impl Server for BrokerServer {
    fn local_addr(&self) -> SocketAddr {
        self.listening.local_addr()
    }

    fn tell_state(&self) {
        self.broker.tell_state();
    }

    async fn stop(self) -> Result<(), Failure> {
        self.listening.drain().await;
        match self.broker.close().await {
            Err(error) if error.is_flushed() => {
                tracing::warn!(
                    "{error}. Nothing is lost: everything is flushed, and the next start looks at the logs as after a crash"
                );
                Ok(())
            }
            closed => closed.map_err(|error| Failure::could_not_run(error.to_string())),
        }
    }
}
