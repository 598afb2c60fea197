//! The content of one file: what reads see, what the medium has, and all that the medium may have.
//!
//! Between two flushes the kernel may write any page at any moment, so after a cut a page has what it had at the last flush
//! or any of its versions since, and the length is one of those since, each on its own; a page on its way to the medium may
//! be torn. Metadata are journaled in order: where a cut leaves a length, it leaves the truncations before it, with zeros
//! where they were grown over.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sys::sim::fault::SyncFailure;
use crate::sys::sim::prng::Prng;

/// What the kernel writes in one piece, unless it is torn.
pub(super) const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// `None` is a hole, or zeros.
type Page = Option<Arc<[u8; PAGE]>>;

/// How many versions of a page are remembered between two flushes; more say nothing new.
const MAX_VERSIONS: usize = 6;

static ZEROS: [u8; PAGE] = [0; PAGE];

fn bytes(page: &Page) -> &[u8; PAGE] {
    page.as_deref().unwrap_or(&ZEROS)
}

/// Bytes, page by page. Nothing but zeros stands behind the length.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    pages: Vec<Page>,
    pub len: u64,
}

impl Image {
    fn page(&self, index: usize) -> Page {
        self.pages.get(index).cloned().flatten()
    }

    fn put(&mut self, index: usize, page: Page) {
        if index >= self.pages.len() {
            if page.is_none() {
                return;
            }
            self.pages.resize(index + 1, None);
        }
        self.pages[index] = page;
    }

    /// The length is at most `len` from now on, with zeros behind it.
    fn cut(&mut self, len: u64) {
        if len >= self.len {
            return;
        }
        self.len = len;
        let whole = len as usize / PAGE;
        self.pages.truncate(whole + 1);
        if let Some(page) = self.pages.get_mut(whole) {
            *page = cut_page(page.take(), len as usize % PAGE);
        }
    }

    pub fn read(&self, buf: &mut [u8], position: u64) -> usize {
        let n = self.len.saturating_sub(position).min(buf.len() as u64) as usize;
        for (index, in_page, in_buf) in by_page(position, n) {
            match self.pages.get(index).and_then(Option::as_ref) {
                Some(page) => buf[in_buf].copy_from_slice(&page[in_page]),
                None => buf[in_buf].fill(0),
            }
        }
        n
    }

    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = vec![0; self.len as usize];
        self.read(&mut all, 0);
        all
    }

    /// Bytes of the medium that it takes up.
    pub fn allocated(&self) -> u64 {
        self.pages.iter().filter(|page| page.is_some()).count() as u64 * PAGE as u64
    }

    fn flip(&mut self, position: u64, bit: u8) {
        let index = position as usize / PAGE;
        if position < self.len {
            let mut page = *bytes(&self.page(index));
            page[position as usize % PAGE] ^= 1 << bit;
            self.put(index, Some(Arc::new(page)));
        }
    }
}

/// The page with zeros from `keep` on.
fn cut_page(page: Page, keep: usize) -> Page {
    if keep == 0 {
        return None;
    }
    page.map(|mut page| {
        Arc::make_mut(&mut page)[keep..].fill(0);
        page
    })
}

/// (Page number, range in the page, range in the buffer) for each page that `len` bytes at `position` touch.
fn by_page(position: u64, len: usize) -> impl Iterator<Item = (usize, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = position as usize + done;
        let start = at % PAGE;
        let n = (PAGE - start).min(len - done);
        done += n;
        Some((at / PAGE, start..start + n, done - n..done))
    })
}

#[derive(Clone, Debug)]
struct Version {
    /// The number of the operation that made it.
    number: u64,
    page: Page,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub live: Image,
    pub durable: Image,
    /// The pages that changed since the last flush, with what they were since, the latest last.
    dirty: BTreeMap<usize, Vec<Version>>,
    /// (Operation, length): the lengths since the last flush, the latest last.
    lens: Vec<(u64, u64)>,
}

/// What becomes of what was not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataCut {
    /// It is gone.
    Dropped,
    /// It is all there.
    Kept,
    /// The lengths are there, and zeros where the data were to go.
    Zeroed,
    /// What was written up to some moment is there, and the write of that moment in part, torn at any byte.
    Prefix,
    /// Any of the pages, each as it was at any moment or torn, and any of the lengths.
    Pages,
    /// One of these, for each file on its own.
    Any,
}

impl Content {
    /// A content that is on the medium.
    fn of(image: Image) -> Self {
        Content { live: image.clone(), durable: image, ..Content::default() }
    }

    /// Where in a write of `len` bytes at `position` each page starts that is still to be allocated.
    pub fn new_pages(&self, position: u64, len: usize) -> impl Iterator<Item = usize> + '_ {
        by_page(position, len)
            .filter(|(index, ..)| self.live.pages.get(*index).is_none_or(Option::is_none))
            .map(|(_, _, in_buf)| in_buf.start)
    }

    pub fn write(&mut self, data: &[u8], position: u64, number: u64) {
        for (index, in_page, in_buf) in by_page(position, data.len()) {
            let mut page = *bytes(&self.live.page(index));
            page[in_page].copy_from_slice(&data[in_buf]);
            let page = Some(Arc::new(page));
            self.live.put(index, page.clone());
            let versions = self.dirty.entry(index).or_default();
            if versions.len() == MAX_VERSIONS {
                versions.remove(0);
            }
            versions.push(Version { number, page });
        }
        let end = position + data.len() as u64;
        if !data.is_empty() && end > self.live.len {
            self.live.len = end;
            self.lens.push((number, end));
        }
    }

    pub fn set_len(&mut self, len: u64, number: u64) {
        if len != self.live.len {
            self.live.cut(len);
            self.live.len = len;
            self.lens.push((number, len));
        }
    }

    pub fn is_clean(&self) -> bool {
        self.dirty.is_empty() && self.lens.is_empty()
    }

    pub fn sync(&mut self) {
        self.sync_lengths();
        for index in std::mem::take(&mut self.dirty).into_keys() {
            self.durable.put(index, self.live.page(index));
        }
    }

    fn sync_lengths(&mut self) {
        if let Some(lowest) = self.lens.drain(..).map(|(_, len)| len).min() {
            self.durable.cut(lowest);
        }
        self.durable.len = self.live.len;
    }

    pub fn fail_sync(&mut self, how: SyncFailure) {
        if how == SyncFailure::Written {
            return self.sync();
        }
        for index in std::mem::take(&mut self.dirty).into_keys() {
            if how == SyncFailure::Dropped {
                // The inode keeps its length and truncations; its data are what the medium has.
                let mut durable = self.durable.clone();
                self.lens.iter().for_each(|(_, len)| durable.cut(*len));
                self.live.put(index, durable.page(index));
            }
        }
    }

    /// Flips a bit for good.
    pub fn flip(&mut self, position: u64, bit: u8) {
        for image in [&mut self.live, &mut self.durable] {
            image.flip(position, bit);
        }
        if let Some(versions) = self.dirty.get_mut(&(position as usize / PAGE)) {
            for version in versions {
                let mut page = *bytes(&version.page);
                page[position as usize % PAGE] ^= 1 << bit;
                version.page = Some(Arc::new(page));
            }
        }
    }

    /// What a power cut leaves.
    pub fn after_cut(&self, how: DataCut, prng: &mut Prng) -> Content {
        if self.is_clean() {
            return Content::of(self.durable.clone());
        }
        let how = match how {
            DataCut::Any => {
                *prng.pick(&[DataCut::Dropped, DataCut::Kept, DataCut::Zeroed, DataCut::Prefix, DataCut::Pages])
            }
            chosen => chosen,
        };
        Content::of(match how {
            DataCut::Dropped => self.durable.clone(),
            // Not the live image: it may have pages that a failed flush lost.
            DataCut::Kept => self.assemble(self.lens.len(), self.live.len, |_, _, latest| latest),
            DataCut::Zeroed => self.assemble(self.lens.len(), self.live.len, |_, before, _| before),
            DataCut::Prefix => self.prefix(prng),
            DataCut::Pages | DataCut::Any => self.any_pages(prng),
        })
    }

    /// The content with the first `lens` lengths journaled and then `len`. `choose` has the index of a dirty page, what
    /// stands there when none of its versions was written, and its latest version.
    fn assemble(&self, lens: usize, len: u64, mut choose: impl FnMut(usize, Page, Page) -> Page) -> Image {
        let mut image = self.durable.clone();
        self.lens[..lens].iter().for_each(|(_, len)| image.cut(*len));
        for (index, versions) in &self.dirty {
            let latest = versions.last().expect("a dirty page has a version");
            let chosen = choose(*index, image.page(*index), self.cut_back(*index, latest, lens));
            image.put(*index, chosen);
        }
        image.len = len.max((image.pages.len() * PAGE) as u64);
        image.cut(len);
        image
    }

    /// A version of a page without what the truncations after it took, of those among the first `lens` lengths.
    fn cut_back(&self, index: usize, version: &Version, lens: usize) -> Page {
        let later = self.lens[..lens].iter().filter(|(number, _)| *number > version.number);
        let kept = later.map(|(_, len)| *len).min().unwrap_or(u64::MAX);
        let start = (index * PAGE) as u64;
        if kept >= start + PAGE as u64 {
            version.page.clone()
        } else {
            cut_page(version.page.clone(), kept.saturating_sub(start) as usize)
        }
    }

    fn prefix(&self, prng: &mut Prng) -> Image {
        let mut numbers: Vec<u64> = self.lens.iter().map(|(number, _)| *number).collect();
        numbers.extend(self.dirty.values().flatten().map(|version| version.number));
        numbers.sort_unstable();
        numbers.dedup();
        let last = *prng.pick(&numbers);
        let lens = self.lens.partition_point(|(number, _)| *number <= last);
        let before = self.lens.partition_point(|(number, _)| *number < last);
        let len_of = |lens: usize| lens.checked_sub(1).map_or(self.durable.len, |at| self.lens[at].1);
        // Where in the file the last write is torn: somewhere in what it wrote.
        let written = self.dirty.iter().filter(|(_, versions)| versions.iter().any(|version| version.number == last));
        let written: Vec<usize> = written.map(|(index, _)| *index).collect();
        let torn = match (written.first(), written.last()) {
            (Some(first), Some(last)) => prng.between((first * PAGE) as u64, ((last + 1) * PAGE) as u64),
            _ => u64::MAX,
        };
        let (shorter, longer) = (len_of(before), len_of(lens));
        let len = if longer > shorter && prng.chance(1, 2) { torn.clamp(shorter, longer) } else { longer };
        self.assemble(lens, len, |index, base, _| {
            let versions = &self.dirty[&index];
            let old = versions.iter().rfind(|version| version.number < last);
            let old = old.map_or(base, |version| self.cut_back(index, version, lens));
            match versions.iter().rfind(|version| version.number == last) {
                Some(version) => {
                    let keep = torn.saturating_sub((index * PAGE) as u64).min(PAGE as u64) as usize;
                    torn_page(&self.cut_back(index, version, lens), &old, |at| at < keep)
                }
                None => old,
            }
        })
    }

    fn any_pages(&self, prng: &mut Prng) -> Image {
        let lens = prng.index(self.lens.len() + 1);
        let mut len = lens.checked_sub(1).map_or(self.durable.len, |at| self.lens[at].1);
        // A write that makes the file longer may be journaled in parts.
        if let Some((_, next)) = self.lens.get(lens)
            && *next > len
            && prng.chance(1, 3)
        {
            len = prng.between(len, *next);
        }
        self.assemble(lens, len, |index, base, _| {
            let versions = &self.dirty[&index];
            let mut states = vec![base];
            states.extend(versions.iter().map(|version| self.cut_back(index, version, lens)));
            let chosen = prng.index(states.len());
            let (new, old) = (&states[chosen], &states[chosen.saturating_sub(1)]);
            match prng.below(6) {
                0 => {
                    let keep = prng.index(PAGE);
                    torn_page(new, old, |at| at < keep)
                }
                1 => {
                    let sectors = prng.next_u64();
                    torn_page(new, old, |at| sectors >> (at / SECTOR) & 1 == 1)
                }
                _ => new.clone(),
            }
        })
    }
}

/// `new` where `is_new` says so of the byte, and `old` elsewhere.
fn torn_page(new: &Page, old: &Page, is_new: impl Fn(usize) -> bool) -> Page {
    if new.is_none() && old.is_none() {
        return None;
    }
    let (new, old) = (bytes(new), bytes(old));
    Some(Arc::new(std::array::from_fn(|at| if is_new(at) { new[at] } else { old[at] })))
}
