//! The transactional ids in the catalog.

use doze::coordinator::transactions::Metadata;
use doze::storage::catalog::Catalog;

/// A transactional id.
#[derive(Debug)]
pub struct TransactionView {
    pub id: String,
    pub metadata: Metadata,
}

/// All transactional ids, sorted; and what could not be read.
pub fn read(catalog: &Catalog) -> (Vec<TransactionView>, Vec<String>) {
    let stored = match catalog.transactional_ids() {
        Ok(stored) => stored,
        Err(error) => return (Vec::new(), vec![format!("the transactional ids: {error}")]),
    };
    let (mut read, mut unreadable) = (Vec::new(), Vec::new());
    for (id, bytes) in stored {
        match Metadata::from_bytes(&bytes) {
            Ok(metadata) => read.push(TransactionView { id, metadata }),
            Err(error) => unreadable.push(format!("the transactional id {id:?}: {error}")),
        }
    }
    (read, unreadable)
}
