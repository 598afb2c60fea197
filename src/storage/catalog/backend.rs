//! The file under redb, on the seam to the outside world.
//!
//! redb stops working for good at the first I/O error that it is told of, and has to be opened anew. [`CatalogFile`]
//! outlives each [`redb::Database`] that is opened over it and knows what redb does not keep: whether an fsync ever failed, and what the
//! file's header was when the last one succeeded. redb never writes over a page of the state that its header points to,
//! so putting that header back undoes whatever a failed commit had written.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

use super::header::whole_pages;
use crate::sys::File;

/// The catalog's file and what is known of it. Shared between threads.
#[derive(Debug)]
pub struct CatalogFile {
    file: Arc<dyn File>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What was last written at position 0, where redb has its header, and nothing else.
    header: Option<Vec<u8>>,
    /// That, as of the last fsync that succeeded.
    durable_header: Option<Vec<u8>>,
    syncs: u64,
    failed_sync: Option<Arc<io::Error>>,
    /// The first error since the database was last opened, of any kind.
    error: Option<Arc<io::Error>>,
}

impl CatalogFile {
    pub fn new(file: Arc<dyn File>) -> Arc<Self> {
        Arc::new(CatalogFile { file, state: Mutex::default() })
    }

    /// How many fsyncs have succeeded.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// The fsync that failed. From then on the file is only read: the kernel may have dropped what it could not write.
    pub fn failed_sync(&self) -> Option<Arc<io::Error>> {
        self.state.lock().failed_sync.clone()
    }

    /// The first error since the last call.
    pub fn take_error(&self) -> Option<Arc<io::Error>> {
        self.state.lock().error.take()
    }

    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|e| {
            self.state.lock().error.get_or_insert_with(|| copy(e));
        })
    }

    /// Undoes what was written since the last fsync, on the medium too, where some of it may be already.
    pub fn undo(&self) -> io::Result<()> {
        {
            let state = self.state.lock();
            if state.durable_header.is_none() || state.header == state.durable_header {
                return Ok(());
            }
        }
        self.restore_header()?;
        self.file.sync().inspect_err(|e| self.state.lock().failed_sync = Some(copy(e)))
    }

    /// Undoes what was written since the last fsync.
    pub fn restore_header(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if let Some(durable) = state.durable_header.clone() {
            self.file.write_all_at(&[IoSlice::new(&durable)], 0)?;
            state.header = Some(durable);
        }
        Ok(())
    }
}

fn copy(error: &io::Error) -> Arc<io::Error> {
    Arc::new(match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    })
}

/// Reads and writes the file.
#[derive(Debug)]
pub struct Backend(pub Arc<CatalogFile>);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.noted(self.0.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.noted(self.0.file.read_exact_at(out, offset))
    }

    /// A file that grows is flushed at once. redb says in its header how long the file is, and takes one that is shorter
    /// for damaged; a power cut could keep the header that is written next and not the length.
    fn set_len(&self, len: u64) -> io::Result<()> {
        let grows = len > self.len()?;
        self.0.noted(self.0.file.set_len(len))?;
        if !grows {
            return Ok(());
        }
        // No commit ends with this flush, so the header that an undo goes back to stays what it was.
        let result = self.0.noted(self.0.file.sync());
        result.inspect_err(|e| self.0.state.lock().failed_sync = Some(copy(e)))
    }

    fn sync_data(&self) -> io::Result<()> {
        let header = self.0.state.lock().header.clone();
        let result = self.0.noted(self.0.file.sync());
        let mut state = self.0.state.lock();
        match &result {
            Ok(()) => {
                state.durable_header = header;
                state.syncs += 1;
            }
            Err(e) => state.failed_sync = Some(copy(e)),
        }
        result
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.noted(self.0.file.write_all_at(&[IoSlice::new(data)], offset))?;
        if offset == 0 {
            self.0.state.lock().header = Some(data.to_vec());
        }
        Ok(())
    }
}

const PAGE: u64 = 4096;

/// Shows the file as of the last fsync that succeeded and never writes to it: what redb writes when it opens a file
/// stays in memory.
#[derive(Debug)]
pub struct View {
    file: Arc<CatalogFile>,
    state: Mutex<ViewState>,
}

#[derive(Debug)]
struct ViewState {
    len: u64,
    /// Pages that differ from the file's, by number.
    pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
}

impl View {
    pub fn new(file: Arc<CatalogFile>) -> io::Result<Self> {
        let len = whole_pages(file.file.len()?);
        let header = file.state.lock().durable_header.clone();
        let view = View { file, state: Mutex::new(ViewState { len, pages: BTreeMap::new() }) };
        if let Some(header) = header {
            view.write(0, &header)?;
        }
        Ok(view)
    }

    fn page(&self, state: &ViewState, number: u64) -> io::Result<Box<[u8; PAGE as usize]>> {
        if let Some(page) = state.pages.get(&number) {
            return Ok(page.clone());
        }
        let mut page = Box::new([0; PAGE as usize]);
        let mut filled = 0;
        while filled < page.len() {
            match self.file.file.read_at(&mut page[filled..], number * PAGE + filled as u64)? {
                0 => break,
                n => filled += n,
            }
        }
        Ok(page)
    }
}

/// Calls `part` with (page number, range in the page, range in the buffer) for each page that `len` bytes at `offset` touch.
fn by_page(
    offset: u64,
    len: usize,
    mut part: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let position = offset + done as u64;
        let start = (position % PAGE) as usize;
        let n = (PAGE as usize - start).min(len - done);
        part(position / PAGE, start..start + n, done..done + n)?;
        done += n;
    }
    Ok(())
}

impl StorageBackend for View {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        by_page(offset, out.len(), |number, in_page, in_buffer| {
            out[in_buffer].copy_from_slice(&self.page(&state, number)?[in_page]);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.pages.split_off(&len.div_ceil(PAGE));
        state.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        by_page(offset, data.len(), |number, in_page, in_buffer| {
            let mut page = self.page(&state, number)?;
            page[in_page].copy_from_slice(&data[in_buffer]);
            state.pages.insert(number, page);
            Ok(())
        })
    }
}
