//! Configs that were set at run time. What they mean is the broker's business.

use std::sync::Arc;

use redb::{ReadTransaction, ReadableTable};

use super::Catalog;
use super::error::Failure;
use super::image::{Configs, ResourceType};
use super::tables::CONFIGS;

pub(super) fn load(transaction: &ReadTransaction) -> Result<Configs, Failure> {
    let mut configs = Configs::default();
    for entry in transaction.open_table(CONFIGS)?.iter()? {
        let (key, value) = entry?;
        let (number, name, key) = key.value();
        let resource_type = ResourceType::from_number(number)
            .ok_or_else(|| Failure::Damage(format!("a config belongs to a resource of unknown type {number}")))?;
        configs.set(resource_type, name, key, Some(value.value()));
    }
    Ok(configs)
}

impl Catalog {
    /// All configs, as of the last durable commit. Costs a reference count.
    pub fn configs(&self) -> Arc<Configs> {
        self.shared.image.read().configs.clone()
    }
}
