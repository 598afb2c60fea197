//! `doze dump-segment`: what stands in the files of a partition.

mod json;
mod ordered;
mod payload;
mod teller;
mod text;

use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::thread;

use clap::{Args, ValueHint};
use doze::storage::dump::{self, Dump, DumpError, FileType, Range, STRETCH};
use doze::storage::names::{self, FileKind, Stage};
use doze::sys::{Env, FileSystem};

use crate::cli;
use crate::exit::{self, Code, Failure};
use crate::format;
use crate::offline::JsonArgs;
use crate::output::Output;
use ordered::{Order, Stop};
use payload::Payload;
use teller::Teller;

/// Show what stands in segment files, past any damage
///
/// Decodes .log, .index, .timeindex, .txnindex, .snapshot and .checkpoint files, leader-epoch-checkpoint and
/// partition.metadata, doze's or Apache Kafka's, wherever they lie; a suffix .deleted, .cleaned or .swap does not matter. For
/// the folder of a partition its logs are shown one after the other.
///
/// What cannot be decoded is shown as an entry of its own, with its position, its size and the offsets that it may have held;
/// then it goes on behind it, and ends with exit code 1.
#[derive(Args, Debug)]
#[command(after_long_help = cli::help_of(&cli::sections("dump-segment")))]
pub struct DumpSegmentArgs {
    /// The files, or folders of partitions
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    /// The records of each batch as well, not only its header
    #[arg(long)]
    records: bool,

    /// Also the records of batches whose checksum is wrong, as far as they can be read
    #[arg(long, requires = "records")]
    damaged: bool,

    /// Of a folder every file that can be decoded, not only the logs that count
    #[arg(long)]
    all_files: bool,

    /// The first offset to show
    #[arg(long, value_name = "OFFSET")]
    from_offset: Option<i64>,

    /// The last offset to show
    #[arg(long, value_name = "OFFSET")]
    to_offset: Option<i64>,

    /// The earliest timestamp to show: milliseconds since the Unix epoch, or a date and time in UTC as in
    /// 2026-11-30T02:06:00.000Z, of which the end may be left out
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    from_time: Option<i64>,

    /// The latest timestamp to show
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    to_time: Option<i64>,

    /// How keys are shown
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Payload::Text)]
    key: Payload,

    /// How values are shown, those of headers too
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Payload::Text)]
    value: Payload,

    /// Stop after this many entries: records with --records, else batches or whatever else the file has
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,

    /// How many stretches of a log are decoded at once [default: one a core, at most 8]
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,

    #[command(flatten)]
    json: JsonArgs,
}

pub fn sections() -> Vec<(&'static str, String)> {
    let examples = "  doze dump-segment data/demo-0/00000000000000000000.log
  doze dump-segment --records --from-offset 1000 --limit 10 data/demo-0
  doze dump-segment --records --value json --json data/demo-0 | jq .value
  doze dump-segment --records --from-time 2026-11-30T02:00Z --key hex --value length data/demo-0
  doze dump-segment --all-files /var/lib/kafka/demo-0";
    vec![("Examples", examples.to_owned())]
}

fn time(text: &str) -> Result<i64, String> {
    format::parse_timestamp(text)
        .ok_or_else(|| "neither milliseconds nor a time like 2026-11-30T02:06:00.000Z".to_owned())
}

/// What was printed of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    batches: u64,
    records: u64,
    /// Whatever is no batch and no record.
    entries: u64,
    damage: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.batches += more.batches;
        self.records += more.records;
        self.entries += more.entries;
        self.damage += more.damage;
    }
}

impl DumpSegmentArgs {
    /// How many entries were shown of those that the limit is for.
    fn shown(&self, counts: &Counts) -> u64 {
        counts.entries + if self.records { counts.records } else { counts.batches }
    }
}

pub fn run(args: &DumpSegmentArgs) -> Result<(), Failure> {
    let env = Env::real();
    let range = Range {
        offsets: args.from_offset.unwrap_or(i64::MIN)..=args.to_offset.unwrap_or(i64::MAX),
        times: args.from_time.unwrap_or(i64::MIN)..=args.to_time.unwrap_or(i64::MAX),
    };
    let mut printer = Printer {
        args,
        range,
        jobs: args.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from).min(8), usize::from),
        left: args.limit.unwrap_or(u64::MAX),
        damage: 0,
        unreadable: Vec::new(),
    };
    let mut out = Output::new(args.json.json);
    for path in &args.files {
        // Held until the files were read, so that no broker writes to them meanwhile.
        let _lock = hold(&*env.fs, path)?;
        for file in files(&*env.fs, path, args.all_files)? {
            if printer.left > 0 {
                out = printer.file(&*env.fs, &file, out)?;
            }
        }
    }
    printer.end(out)
}

/// The files that an argument stands for.
fn files(fs: &dyn FileSystem, path: &Path, all: bool) -> Result<Vec<PathBuf>, Failure> {
    if !fs.metadata(path).is_ok_and(|metadata| metadata.is_dir) {
        return Ok(vec![path.to_owned()]);
    }
    let of_error = |error: DumpError| Failure::of(Code::CouldNotRun, &error);
    let found = dump::partition_files(fs, path).map_err(of_error)?;
    let counts = |file_type: FileType| {
        all || matches!(file_type, FileType::Segment { kind: FileKind::Log, stage: Stage::Live, base: Some(_) })
    };
    let files: Vec<PathBuf> =
        found.into_iter().filter(|(_, file_type)| counts(*file_type)).map(|(path, _)| path).collect();
    if files.is_empty() {
        let message = format!("{} is not the folder of a partition: there is no log in it", format::path(path));
        return Err(Failure::new(Code::NotADataDirectory, message));
    }
    Ok(files)
}

/// Holds the data directory that `path`, a file or a folder of a partition, lies in; so that a broker's active segment is not
/// taken for one with a torn tail. Nothing where it lies in none.
fn hold(fs: &dyn FileSystem, path: &Path) -> Result<Option<Box<dyn doze::sys::LockGuard>>, Failure> {
    let Ok(path) = path.canonicalize() else { return Ok(None) };
    let is_partition = |path: &&Path| path.file_name().is_some_and(|name| names::parse_partition_dir(name).is_some());
    let folder = [Some(path.as_path()), path.parent()].into_iter().flatten().find(is_partition);
    let Some(data_dir) = folder.and_then(Path::parent) else { return Ok(None) };
    match fs.lock_to_read(&data_dir.join(names::LOCK)) {
        Ok(guard) => Ok(guard),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Err(Failure::new(
            Code::InUse,
            format!("{} is in use by another process; stop the broker first, or copy the file", format::path(data_dir)),
        )),
        // Whoever may not even look at the lock may still be allowed to read the file.
        Err(_) => Ok(None),
    }
}

struct Printer<'a> {
    args: &'a DumpSegmentArgs,
    range: Range,
    /// The most threads for a file.
    jobs: usize,
    /// How many entries may still be shown.
    left: u64,
    damage: u64,
    /// What was said of files that could not be read.
    unreadable: Vec<String>,
}

impl Printer<'_> {
    /// Shows a file. One that cannot be read is told of, and does not keep the next from being shown.
    fn file(&mut self, fs: &dyn FileSystem, path: &Path, mut out: Output) -> Result<Output, Failure> {
        let dump = match Dump::open(fs, path, self.range.clone()) {
            Ok(dump) => dump,
            Err(error) => {
                self.unreadable.push(exit::with_causes(&error));
                return Ok(out);
            }
        };
        let is_json = out.is_json();
        match is_json {
            true => out.object(&json::file(path, dump.file_type(), dump.size()))?,
            false => out.line(&text::file(path, dump.file_type(), dump.size()))?,
        }
        let teller = Teller { args: self.args, range: &self.range, left: self.left, is_json };
        let order = Order::new(out, dump.place());
        // With a dump each, whoever cannot open one leaves the work to the others.
        let helpers = (self.jobs - 1).min(usize::try_from(dump.size() / STRETCH).unwrap_or(usize::MAX));
        let dumps = (0..helpers).filter_map(|_| Dump::open(fs, path, self.range.clone()).ok());
        thread::scope(|scope| {
            for dump in dumps {
                scope.spawn(|| teller.tell(&order, dump));
            }
            teller.tell(&order, dump);
        });
        let (mut out, counts, stop) = order.end();
        self.left -= self.args.shown(&counts);
        self.damage += counts.damage;
        match stop {
            Some(Stop::Stdout(error)) => return Err(Failure::stdout(&error)),
            Some(Stop::Unreadable(error)) => {
                self.unreadable.push(exit::with_causes(&error));
                return Ok(out);
            }
            Some(Stop::Limit) | None => {}
        }
        let is_cut = stop.is_some();
        match is_json {
            true => out.object(&json::end(&counts, is_cut))?,
            false => out.line(&text::end(&counts, is_cut))?,
        }
        Ok(out)
    }

    fn end(self, out: Output) -> Result<(), Failure> {
        out.finish()?;
        if let Some((last, others)) = self.unreadable.split_last() {
            others.iter().for_each(|message| eprintln!("doze: {message}"));
            return Err(Failure::could_not_run(last.clone()));
        }
        match self.damage {
            0 => Ok(()),
            1 => Err(Failure::damage(
                "damage was found in one place; 'doze verify' says what it means for the directory",
            )),
            n => Err(Failure::damage(format!(
                "damage was found in {n} places; 'doze verify' says what it means for the directory"
            ))),
        }
    }
}
