//! What the group coordinator keeps of each group, in its own bytes.

use redb::ReadableTable;

use super::Catalog;
use super::error::CatalogError;
use super::tables::GROUPS;

impl Catalog {
    /// The bytes of one group.
    pub fn group(&self, group: &str) -> Result<Option<Vec<u8>>, CatalogError> {
        self.read(|transaction| Ok(transaction.open_table(GROUPS)?.get(group)?.map(|value| value.value().to_vec())))
    }

    /// All groups with their bytes, sorted by name.
    pub fn groups(&self) -> Result<Vec<(String, Vec<u8>)>, CatalogError> {
        self.read(|transaction| {
            let mut groups = Vec::new();
            for entry in transaction.open_table(GROUPS)?.iter()? {
                let (group, value) = entry?;
                groups.push((group.value().to_owned(), value.value().to_vec()));
            }
            Ok(groups)
        })
    }
}
