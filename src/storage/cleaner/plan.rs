//! What of a log is to be cleaned now, if anything is.

use std::ops::Range;
use std::sync::Arc;

use super::checkpoint::Checkpoint;
use crate::storage::log::{LogConfig, PartitionLog, Rewritable, RewriteError, Segment};

/// What a pass is to do. It holds for the moment at which it was made: the pass finds out what has changed since.
#[derive(Debug)]
pub(super) struct Plan {
    /// The segments that may be rewritten, from the log's first, and for each the base offset of the next.
    pub segments: Vec<(Arc<Segment>, i64)>,
    /// Where what was never cleaned starts.
    pub dirty_from: i64,
    /// The share of the bytes that was never cleaned.
    pub ratio: f64,
    pub config: LogConfig,
}

impl Plan {
    /// What is to be cleaned of a log. `None` if nothing is, or it is not time.
    pub fn of(log: &PartitionLog, checkpoint: &Checkpoint, now_ms: i64) -> Result<Option<Plan>, RewriteError> {
        Plan::of_segments(log, log.rewritable()?, checkpoint, now_ms)
    }

    /// The same of what lies below `most` alone.
    pub fn up_to(
        log: &PartitionLog,
        most: i64,
        checkpoint: &Checkpoint,
        now_ms: i64,
    ) -> Result<Option<Plan>, RewriteError> {
        let mut rewritable = log.rewritable()?;
        rewritable.last_stable = rewritable.last_stable.min(most);
        Plan::of_segments(log, rewritable, checkpoint, now_ms)
    }

    /// The same as if the active segment had been sealed, for a pass that only counts.
    pub fn as_if_sealed(
        log: &PartitionLog,
        checkpoint: &Checkpoint,
        now_ms: i64,
    ) -> Result<Option<Plan>, RewriteError> {
        let mut rewritable = log.rewritable()?;
        rewritable.segments.extend(log.active_as_sealed());
        Plan::of_segments(log, rewritable, checkpoint, now_ms)
    }

    fn of_segments(
        log: &PartitionLog,
        rewritable: Rewritable,
        checkpoint: &Checkpoint,
        now_ms: i64,
    ) -> Result<Option<Plan>, RewriteError> {
        if !rewritable.config.compact {
            return Ok(None);
        }
        let (config, last_stable) = (rewritable.config, rewritable.last_stable);
        let end = rewritable.segments.last().map_or(rewritable.start, |(_, next)| *next);
        // A log that ends before its checkpoint lost its end in a crash, and that was written anew.
        let cleaned = if checkpoint.cleaned > end { 0 } else { checkpoint.cleaned };
        let dirty_from = cleaned.max(rewritable.start);
        let mut segments = Vec::new();
        for (segment, next) in rewritable.segments {
            let is_dirty = next > dirty_from;
            let is_stable = next <= last_stable;
            if !is_stable || (is_dirty && is_too_young(log, &segment, &config, now_ms)?) {
                break;
            }
            segments.push((segment, next));
        }
        let size = |segments: &[(Arc<Segment>, i64)]| segments.iter().map(|(segment, _)| segment.size()).sum::<u64>();
        let clean_count = segments.partition_point(|(_, next)| *next <= dirty_from);
        let (all, dirty) = (size(&segments), size(&segments[clean_count..]));
        let ratio = if all == 0 { 0.0 } else { dirty as f64 / all as f64 };
        let is_due = match dirty {
            0 => checkpoint.horizon_ms.is_some_and(|horizon| horizon <= now_ms),
            _ => {
                ratio > config.min_cleanable_dirty_ratio
                    || is_overdue(log, &segments[clean_count..], config.max_compaction_lag_ms, now_ms)?
            }
        };
        if dirty == 0 {
            segments.truncate(clean_count);
        }
        Ok((is_due && !segments.is_empty()).then_some(Plan { segments, dirty_from, ratio, config }))
    }

    /// The end of what may be rewritten.
    pub fn end(&self) -> i64 {
        self.segments.last().map_or(self.dirty_from, |(_, next)| *next)
    }

    /// The segments that have something at `offset` or after it.
    pub fn from(&self, offset: i64) -> usize {
        self.segments.partition_point(|(_, next)| *next <= offset)
    }

    /// The segments that have something below `offset`, in groups that become one segment each: neighbours that are no
    /// larger together than a segment may be.
    pub fn groups(&self, offset: i64) -> Vec<Range<usize>> {
        let count = self.segments.partition_point(|(segment, _)| segment.base < offset);
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut size = 0;
        for (at, (segment, next)) in self.segments[..count].iter().enumerate() {
            size += segment.size();
            let fits = groups.last().is_some_and(|group| {
                let base = self.segments[group.start].0.base;
                size <= u64::from(self.config.segment_bytes) && next - 1 - base <= i64::from(i32::MAX)
            });
            match groups.last_mut() {
                Some(group) if fits => group.end = at + 1,
                _ => {
                    groups.push(at..at + 1);
                    size = segment.size();
                }
            }
        }
        groups
    }
}

fn is_too_young(log: &PartitionLog, segment: &Segment, config: &LogConfig, now_ms: i64) -> Result<bool, RewriteError> {
    if config.min_compaction_lag_ms <= 0 {
        return Ok(false);
    }
    Ok(log.age_of(segment, now_ms)? > now_ms.saturating_sub(config.min_compaction_lag_ms))
}

/// Whether something of the dirty segments is older than `max.compaction.lag.ms`, as their first batches tell.
fn is_overdue(
    log: &PartitionLog,
    dirty: &[(Arc<Segment>, i64)],
    max_lag_ms: i64,
    now_ms: i64,
) -> Result<bool, RewriteError> {
    let oldest = now_ms.saturating_sub(max_lag_ms.max(0));
    if oldest <= 0 {
        return Ok(false);
    }
    for (segment, _) in dirty {
        let first = segment.walk_to(&*log.env().fs, 0, |_| true)?;
        if first.is_some_and(|first| (1..oldest).contains(&first.max_timestamp)) {
            return Ok(true);
        }
    }
    Ok(false)
}
