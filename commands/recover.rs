//! `doze recover`: looks at a stopped directory, shows what it would do, asks, keeps what it removes, and does it.

mod hanging;
mod report;

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::{Args, ValueHint};
use doze::broker::offline_log_config;
use doze::storage::offline::DataDir;
use doze::storage::recover::{self, Applied, Plan};
use doze::storage::verify::{self, Report};
use doze::sys::Env;

use crate::cli;
use crate::exit::{Code, Failure};
use crate::format;
use crate::offline::{self, DirArgs, JsonArgs};
use crate::output::Output;
use crate::progress::Progress;

/// How often it looks again after a repair: what was behind the damage is only seen when that is gone.
const ROUNDS: usize = 4;

/// Repair a stopped data directory, keeping what is removed
///
/// Looks at the directory as doze verify does, prints what it would do, and asks. Good batches stay at their offsets, damaged ones
/// are put right where their frame can be and taken out where it cannot, a torn tail is cut, and indexes, checkpoints and the
/// catalog are made anew from the logs. Every byte that is removed is first kept in a folder recovered-TIME with a manifest: in the
/// directory, or beside it for one of Apache Kafka's.
///
/// Steps that lose records which may have been acknowledged are only taken with --accept-loss.
#[derive(Args, Debug)]
#[command(after_long_help = cli::help_of(&cli::sections("recover")))]
pub struct RecoverArgs {
    #[command(flatten)]
    pub dir: DirArgs,

    /// Only show the plan; nothing is written
    #[arg(long, conflicts_with_all = ["yes", "to"])]
    pub dry_run: bool,

    /// Do it without asking
    #[arg(short, long)]
    pub yes: bool,

    /// Also take the steps that lose records which may have been acknowledged; the plan names their offsets
    #[arg(long)]
    pub accept_loss: bool,

    /// Repair a copy in this new or empty directory, and leave the original as it is
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub to: Option<PathBuf>,

    /// How many segments are looked at at once [default: one a core]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// A broker config as doze serve is given it, for the logs that are opened: log.index.interval.bytes=4096
    #[arg(long = "override", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,

    #[command(flatten)]
    pub json: JsonArgs,
}

pub fn sections() -> Vec<(&'static str, String)> {
    let examples = "  doze recover --dry-run /var/lib/doze
  doze recover /var/lib/doze
  doze recover --yes --accept-loss /var/lib/doze
  doze recover --yes --to /mnt/repaired /mnt/read-only/kafka-logs";
    vec![("Examples", examples.to_owned())]
}

pub fn run(args: &RecoverArgs) -> Result<(), Failure> {
    let env = Env::real();
    let mut output = Output::new(args.json.json);
    let result = recover_all(&env, args, &mut output);
    match result {
        // What was printed until then is of use.
        Err(failure) => output.finish().and(Err(failure)),
        Ok(ended) => {
            output.finish()?;
            ended.map_or(Ok(()), Err)
        }
    }
}

/// Answers how it ends, if not well.
fn recover_all(env: &Env, args: &RecoverArgs, output: &mut Output) -> Result<Option<Failure>, Failure> {
    let meta_db = args.dir.meta_db.meta_db.as_deref();
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    // Only one who is going to write holds it to write, which makes a lock file.
    let looks_only = args.dry_run || args.to.is_some() || (!args.yes && !can_ask);
    let open = |path: &Path, meta_db: Option<&Path>, looks_only: bool| {
        let open = if looks_only { DataDir::open } else { DataDir::open_to_write };
        open(env, path, meta_db).map_err(|error| offline::refused(&error))
    };
    let mut dir = open(&args.dir.dir, meta_db, looks_only)?;
    let (mut found, mut plan) = look(&dir, args)?;
    output_plan(output, &dir, &plan, args)?;
    if args.dry_run {
        return report::end(output, &dir, &plan, None, args);
    }
    if plan.is_empty() && args.to.is_none() {
        return report::end(output, &dir, &plan, None, args);
    }
    if !args.yes {
        if !can_ask {
            let why = "nothing was changed: there is no terminal to ask on; --yes does it without asking, --dry-run only shows it";
            return Ok(Some(Failure::could_not_run(why)));
        }
        if !ask(&plan, args)? {
            return Ok(Some(Failure::new(Code::Damage, "nothing was changed")));
        }
    }
    if let Some(to) = &args.to {
        copy(&dir, to)?;
        drop(dir);
        dir = open(to, None, false)?;
        (found, plan) = look(&dir, args)?;
    }
    let mut all = report::Done::default();
    for round in 1..=ROUNDS {
        let actionable = plan.steps.iter().any(|step| args.accept_loss || !step.loses);
        if !actionable {
            break;
        }
        let applied = apply(&dir, &plan, args)?;
        report::applied(output, &dir, &plan, &applied, round)?;
        all.add(&plan, &applied);
        let path = dir.path().to_owned();
        let catalog = (args.to.is_none()).then_some(meta_db).flatten().map(Path::to_owned);
        drop(dir);
        dir = open(&path, catalog.as_deref(), false)?;
        (found, plan) = look(&dir, args)?;
    }
    drop(found);
    report::end(output, &dir, &plan, Some(&all), args)
}

/// Verifies the directory and makes the plan.
fn look(dir: &DataDir, args: &RecoverArgs) -> Result<(Report, Plan), Failure> {
    let jobs = args.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    let options = verify::Options { level: verify::Level::Default, jobs, wanted: None };
    let progress = verify::Progress::new();
    let found = thread::scope(|scope| {
        let looking = scope.spawn(|| verify::verify(dir, &options, &progress));
        let bar = Progress::bytes("checking", 0);
        let mut told = 0;
        while !looking.is_finished() {
            thread::sleep(Duration::from_millis(20));
            bar.set_total(progress.total());
            bar.add(progress.done().saturating_sub(told));
            told = progress.done();
        }
        bar.finish();
        looking.join()
    });
    let found = found.map_err(|_| Failure::could_not_run("the look at the directory panicked"))?;
    let plan = recover::plan(dir, &found, &mut |_| {});
    Ok((found, plan.map_err(|error| Failure::of(Code::CouldNotRun, &error))?))
}

fn output_plan(output: &mut Output, dir: &DataDir, plan: &Plan, args: &RecoverArgs) -> Result<(), Failure> {
    if args.dry_run || !output.is_json() {
        report::plan(output, dir, plan, args.accept_loss)?;
    }
    output.flush()
}

fn ask(plan: &Plan, args: &RecoverArgs) -> Result<bool, Failure> {
    let losing = plan.losing().count();
    let mut err = io::stderr().lock();
    let question = match (losing, args.accept_loss) {
        (0, _) => "Do this? [y/N] ".to_owned(),
        (1, true) => "Do this, and lose what the marked step loses? [y/N] ".to_owned(),
        (n, true) => format!("Do this, and lose what the {n} marked steps lose? [y/N] "),
        (1, false) => "Do this, but for the step that needs --accept-loss? [y/N] ".to_owned(),
        (n, false) => format!("Do this, but for the {n} steps that need --accept-loss? [y/N] "),
    };
    let mut answer = String::new();
    let asked =
        write!(err, "{question}").and_then(|()| err.flush()).and_then(|()| io::stdin().lock().read_line(&mut answer));
    asked.map_err(|error| Failure::could_not_run(format!("cannot ask: {error}")))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn copy(dir: &DataDir, to: &Path) -> Result<(), Failure> {
    let bar = Progress::bytes("copying", size_of(dir, dir.path()));
    let copied = recover::copy(dir, to, &mut |bytes| bar.add(bytes));
    bar.finish();
    copied.map_err(|error| Failure::of(Code::CouldNotRun, &error))
}

/// Bytes of all files below a directory, as far as they can be told.
fn size_of(dir: &DataDir, path: &Path) -> u64 {
    let fs = &dir.env().fs;
    let entries = fs.list(path).unwrap_or_default();
    let sizes = entries.iter().map(|entry| {
        let path = path.join(&entry.name);
        if entry.is_dir { size_of(dir, &path) } else { fs.metadata(&path).map_or(0, |metadata| metadata.len) }
    });
    sizes.sum()
}

fn apply(dir: &DataDir, plan: &Plan, args: &RecoverArgs) -> Result<Applied, Failure> {
    let config = offline::broker_config(&args.overrides)?;
    let options = recover::Options {
        accept_loss: args.accept_loss,
        label: label(dir.env()),
        log_config: offline_log_config(&config, dir.catalog()),
    };
    let bar = Progress::steps("repairing");
    let applied = recover::apply(dir, plan, &options, &mut |what| bar.now(what));
    bar.finish();
    applied.map_err(|error| Failure::of(Code::CouldNotRun, &error))
}

/// The time, as it stands in the name of the quarantine folder: it can be sorted, and needs no quotes in a shell.
fn label(env: &Env) -> String {
    format::timestamp(env.clock.now_ms()).replace([':', '-'], "").replace(".", "-")
}
