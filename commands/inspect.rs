//! `doze inspect`: what there is in a data directory.

mod groups;
mod json;
mod model;
mod overview;
mod partition;
mod show;
mod topic;
mod transactions;

use clap::Args;
use doze::storage::inspect::Depth;
use doze::storage::names::{self, PartitionDir};
use doze::storage::offline::{CatalogState, DataDir};
use doze::sys::Env;

use crate::cli;
use crate::exit::Failure;
use crate::offline::{self, DirArgs, JsonArgs};
use crate::output::Output;
use model::{Scope, View};

/// Show what is in a data directory that no broker is running on
///
/// Without a topic: the directory, its topics, its groups and its transactional ids. With a topic: its partitions and the
/// groups that read it. With a partition: its segments, producers and open transactions.
///
/// Reads little, whatever the size of the logs: the indexes, and the first and last batches of each segment. Numbers of
/// batches and records, codecs and how well they compress are estimates then, marked with ~, unless --count has the header of
/// every batch read. Nothing is verified, which is what doze verify does, and nothing is written.
#[derive(Args, Debug)]
#[command(after_long_help = cli::help_of(&cli::sections("inspect")))]
pub struct InspectArgs {
    #[command(flatten)]
    dir: DirArgs,

    /// A topic, or one of its partitions as in demo-0
    #[arg(value_name = "TOPIC[-PARTITION]")]
    what: Option<String>,

    /// Read the header of every batch, so that numbers of batches and records are exact
    #[arg(long)]
    count: bool,

    #[command(flatten)]
    json: JsonArgs,
}

pub fn sections() -> Vec<(&'static str, String)> {
    let examples = "  doze inspect
  doze inspect ./data demo
  doze inspect --count ./data demo-0
  doze inspect --json ./data | jq 'select(.type == \"group\")'
  doze inspect /var/lib/kafka/data";
    vec![("Examples", examples.to_owned())]
}

pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let env = Env::real();
    let dir = DataDir::open(&env, &args.dir.dir, args.dir.meta_db.meta_db.as_deref())
        .map_err(|error| offline::refused(&error))?;
    let scope = scope(&dir, args.what.as_deref())?;
    let depth = if args.count { Depth::Count } else { Depth::Ends };
    let view = View::read(&dir, &scope, depth)?;
    let mut out = Output::new(args.json.json);
    match &scope {
        Scope::All => overview::print(&mut out, &view)?,
        Scope::Topic(_) => topic::print(&mut out, &view)?,
        Scope::Partition(..) => partition::print(&mut out, &view)?,
    }
    out.finish()?;
    verdict(&view)
}

/// What was asked for. A topic's name may end like a partition's.
fn scope(dir: &DataDir, what: Option<&str>) -> Result<Scope, Failure> {
    let Some(what) = what else {
        return Ok(match dir.only() {
            Some((topic, partition)) => Scope::Partition(topic.to_owned(), partition),
            None => Scope::All,
        });
    };
    let in_catalog = |topic: &str| dir.catalog().is_some_and(|catalog| catalog.topics().by_name(topic).is_some());
    if in_catalog(what) || dir.partitions().iter().any(|folder| folder.topic == what) {
        return Ok(Scope::Topic(what.to_owned()));
    }
    if let Some(PartitionDir::Live { topic, partition }) = names::parse_partition_dir(what.as_ref())
        && dir.partitions().iter().any(|folder| folder.topic == topic && folder.partition == partition)
    {
        return Ok(Scope::Partition(topic, partition));
    }
    let message = format!("there is no topic and no partition {what:?} in {}", crate::format::path(dir.path()));
    Err(Failure::could_not_run(message))
}

/// Damage that was come over. There may be more: nothing was verified.
fn verdict(view: &View<'_>) -> Result<(), Failure> {
    match view.dir.catalog_state() {
        CatalogState::Damaged { reason } => {
            return Err(Failure::damage(format!(
                "the catalog {} is damaged: {reason}; 'doze recover' makes it anew from the partitions",
                crate::format::path(view.dir.catalog_path())
            )));
        }
        CatalogState::Missing => {
            return Err(Failure::damage(format!(
                "the catalog {} is missing; say where it is with --meta-db, or have 'doze recover' make it anew",
                crate::format::path(view.dir.catalog_path())
            )));
        }
        CatalogState::Unreadable { reason } => {
            return Err(Failure::could_not_run(format!(
                "the catalog {} cannot be read: {reason}",
                crate::format::path(view.dir.catalog_path())
            )));
        }
        CatalogState::Open(_) | CatalogState::None => {}
    }
    match view.problems() {
        0 => Ok(()),
        n => Err(Failure::damage(format!(
            "{n} {} could not be read as {} to be; 'doze verify' says what is damaged",
            if n == 1 { "thing" } else { "things" },
            if n == 1 { "it has" } else { "they have" }
        ))),
    }
}
