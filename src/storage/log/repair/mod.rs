//! Mending the files of one partition that nobody has open: what `crate::storage::recover` does to a log.
//!
//! [`survey`] looks at every batch of every segment and says which stretches are no good batches, [`stage`] writes
//! segments anew without them and swaps them in (as the cleaner does, so that a power cut leaves the old or the new), with
//! empty batches for the offsets that are lost ([`gap`]) and the end markers that there is proof of ([`markers`]), and
//! [`indexes`] makes anew what can be made from the log. Nothing here decides; nothing here keeps what it takes out.

mod gap;
mod indexes;
mod markers;
mod old_sets;
mod stage;
mod survey;

pub(in crate::storage) use gap::fits as gap_fits;
pub(in crate::storage) use indexes::{aborted_of, rebuild_epochs, rebuild_index, rebuild_txn_index, replay_all};
pub(in crate::storage) use markers::{Trust, lost_markers};
pub(in crate::storage) use stage::{Choices, cut, finish_rewrite, restage};
pub(in crate::storage) use survey::{Stretch, StretchKind, Surveyed, mend_epochs, survey};
