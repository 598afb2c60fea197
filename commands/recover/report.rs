//! What is printed of a recovery.

use doze::storage::offline::DataDir;
use doze::storage::recover::{Action, Applied, Left, Plan, Step};
use serde_json::{Value, json};

use super::RecoverArgs;
use super::hanging::{self, Hanging};
use crate::exit::{Code, Failure};
use crate::format;
use crate::output::{Output, Rows, number, text};

/// What was done in all rounds.
#[derive(Debug, Default)]
pub struct Done {
    steps: usize,
    lost: usize,
    is_clean: bool,
}

impl Done {
    pub fn add(&mut self, plan: &Plan, applied: &Applied) {
        let done = |at: &usize| !applied.left_out.contains(at);
        self.steps += (0..plan.steps.len()).filter(done).count();
        self.lost += (0..plan.steps.len()).filter(done).filter(|at| plan.steps[*at].loses).count();
        self.is_clean = applied.marked_clean && applied.unchecked.is_empty();
    }
}

fn place(step: &Step) -> String {
    match (&step.topic, step.partition) {
        (Some(topic), Some(partition)) => format!("{topic}-{partition}"),
        _ => "-".into(),
    }
}

fn offsets(offsets: Option<(i64, i64)>) -> String {
    match offsets {
        None => "-".into(),
        Some((from, to)) if to - from <= 1 => from.to_string(),
        Some((from, to)) => format!("{from}..{}", to - 1),
    }
}

fn step_json(step: &Step, round: usize, done: Option<bool>) -> Value {
    json!({
        "type": "step",
        "round": round,
        "topic": step.topic,
        "partition": step.partition,
        "action": step.action.name(),
        "file": step.file.to_string_lossy(),
        "position": step.position,
        "bytes": step.bytes,
        "offsets": step.offsets.map(|(from, to)| [from, to]),
        "loses": step.loses,
        "done": done,
        "detail": step.detail,
    })
}

/// The plan, before anything is done.
pub fn plan(output: &mut Output, dir: &DataDir, plan: &Plan, accept_loss: bool) -> Result<(), Failure> {
    if output.is_json() {
        return plan.steps.iter().try_for_each(|step| output.object(&step_json(step, 1, None)));
    }
    if plan.is_empty() {
        return Ok(());
    }
    output.line(&format!("What is to be done in {}:", format::path(dir.path())))?;
    let columns = [text("step"), text("where"), number("offsets"), text("loss"), text("why")];
    let mut rows = Rows::new(&columns);
    let is_check = |step: &&Step| step.action == Action::Check;
    let checks = plan.steps.iter().filter(is_check).count();
    let listed = plan.steps.iter().filter(|step| checks < 10 || !is_check(step));
    for step in listed {
        let mut stretch = format::path(&step.file);
        if let Some(position) = step.position {
            stretch += &format!(" at {position}");
        }
        if let Some(bytes) = step.bytes {
            stretch += &format!(", {bytes} bytes");
        }
        let loss = if step.loses { "yes" } else { "no" };
        rows.push(vec![step.action.name().into(), stretch, offsets(step.offsets), loss.into(), step.detail.clone()]);
    }
    if !rows.is_empty() {
        output.rows(&rows)?;
    }
    if checks >= 10 {
        let first = plan.steps.iter().find(is_check).map_or("", |step| &step.detail);
        output.line(&format!("{checks} partitions are checked: {first}"))?;
    }
    for step in plan.losing() {
        let what = match step.offsets {
            Some(_) => format!("offsets {} of {}", offsets(step.offsets), place(step)),
            None if step.topic.is_some() => format!("{} in {}", step.detail, place(step)),
            None => format!("what cannot be made anew of {}", format::path(&step.file)),
        };
        let how = if accept_loss { "will be lost" } else { "would be lost: this step needs --accept-loss" };
        output.line(&format!("{what} {how}"))?;
    }
    Ok(())
}

/// What was done in a round.
pub fn applied(
    output: &mut Output,
    dir: &DataDir,
    plan: &Plan,
    applied: &Applied,
    round: usize,
) -> Result<(), Failure> {
    if output.is_json() {
        for (at, step) in plan.steps.iter().enumerate() {
            output.object(&step_json(step, round, Some(!applied.left_out.contains(&at))))?;
        }
    } else if round > 1 {
        output.line(&format!("What came to light behind that, and was done in {}:", format::path(dir.path())))?;
        for step in &plan.steps {
            output.line(&format!("  {} {} {}: {}", place(step), step.action, format::path(&step.file), step.detail))?;
        }
    }
    if let Some(kept) = &applied.kept {
        if output.is_json() {
            output.object(&json!({
                "type": "kept",
                "path": kept.path.to_string_lossy(),
                "pieces": kept.pieces,
                "bytes": kept.bytes,
            }))?;
        } else {
            let (path, bytes) = (format::path(&kept.path), format::bytes(kept.bytes));
            output.line(&format!(
                "kept what was removed, {} with {bytes}, in {path}",
                format::count(kept.pieces, "piece", "pieces")
            ))?;
        }
    }
    if let Some(rebuilt) = &applied.rebuilt {
        if output.is_json() {
            let topics: Vec<Value> = rebuilt
                .topics
                .iter()
                .map(|(name, id, partitions)| json!({"topic": name, "id": id.to_string(), "partitions": partitions}))
                .collect();
            let left_out: Vec<Value> =
                rebuilt.left_out.iter().map(|(folder, why)| json!({"folder": folder, "why": why})).collect();
            let open: Vec<Value> = rebuilt
                .open_transactions
                .iter()
                .map(|(topic, partition, producer, start)| {
                    json!({"topic": topic, "partition": partition, "producer_id": producer, "first_offset": start})
                })
                .collect();
            output.object(&json!({
                "type": "rebuilt-catalog",
                "topics": topics,
                "next_producer_id": rebuilt.next_producer_id,
                "left_out": left_out,
                "open_transactions": open,
                "taken_over": rebuilt.taken_over.iter().map(|(what, entries)| json!({"what": what, "entries": entries})).collect::<Vec<_>>(),
                "not_taken_over": rebuilt.not_taken_over,
                "not_rebuilt": rebuilt.missing,
            }))?;
        } else {
            let topics: Vec<String> = rebuilt
                .topics
                .iter()
                .map(|(name, _, count)| format!("{name} ({})", format::count(*count, "partition", "partitions")))
                .collect();
            output.line(&format!("the catalog was made anew with {}", topics.join(", ")))?;
            let taken: Vec<String> =
                rebuilt.taken_over.iter().map(|(what, entries)| format!("{entries} {what}")).collect();
            if !taken.is_empty() {
                output.line(&format!("taken over from the damaged one: {}", taken.join(", ")))?;
            }
            for refused in &rebuilt.not_taken_over {
                output.line(&format!("not taken over: {}", format::printable(refused)))?;
            }
            if let Some(missing) = &rebuilt.missing {
                output.line(&format!("it has none of: {missing}"))?;
            }
            for (folder, why) in &rebuilt.left_out {
                output.line(&format!("left out {}: {why}", format::printable(folder)))?;
            }
        }
    }
    Ok(())
}

fn left_json(left: &Left) -> Value {
    let finding = &left.finding;
    json!({
        "type": "left",
        "topic": finding.topic,
        "partition": finding.partition,
        "file": finding.file.to_string_lossy(),
        "position": finding.position,
        "bytes": finding.bytes,
        "offsets": finding.offsets.map(|(from, to)| [from, to]),
        "kind": finding.kind.name(),
        "consequence": finding.consequence.name(),
        "history": left.is_history,
        "detail": finding.detail,
    })
}

/// What is left, and how it ends. `left` is the plan of the last look.
pub fn end(
    output: &mut Output,
    dir: &DataDir,
    left: &Plan,
    done: Option<&Done>,
    args: &RecoverArgs,
) -> Result<Option<Failure>, Failure> {
    let is_left = |left: &&Left| !left.is_history;
    for entry in &left.left {
        if output.is_json() {
            output.object(&left_json(entry))?;
        } else {
            let file = format::path(&entry.finding.file);
            let what = if entry.is_history { "gone for good" } else { "left as it is" };
            output.line(&format!("{what}: {file}: {}", entry.finding.detail))?;
        }
    }
    let hanging = hanging::find(dir)?;
    for transaction in &hanging {
        let Hanging { topic, partition, producer_id, first_offset } = transaction;
        if output.is_json() {
            output.object(&json!({
                "type": "hanging-transaction",
                "topic": topic,
                "partition": partition,
                "producer_id": producer_id,
                "first_offset": first_offset,
                "command": transaction.command(),
            }))?;
        } else {
            output.line(&format!(
                "a transaction of producer {producer_id} is open in {topic}-{partition} since offset {first_offset}, and nobody \
                 is left to end it: readers of committed records wait there until the broker runs and it is ended with '{}'",
                transaction.command()
            ))?;
        }
    }
    let open = left.left.iter().filter(is_left).count();
    let refused = if done.is_some() { left.steps.len() } else { 0 };
    if output.is_json() {
        output.object(&json!({
            "type": "recover-summary",
            "dir": dir.path().to_string_lossy(),
            "origin": dir.origin().name(),
            "dry_run": args.dry_run,
            "planned": if done.is_none() { left.steps.len() } else { 0 },
            "done": done.map_or(0, |done| done.steps),
            "done_with_loss": done.map_or(0, |done| done.lost),
            "needs_accept_loss": left.losing().count(),
            "left": open,
            "hanging_transactions": hanging.len(),
            "stopped_clean": done.map(|done| done.is_clean),
        }))?;
    }
    let shown = format::path(dir.path());
    if done.is_none() && left.is_empty() && open == 0 {
        if !output.is_json() {
            output.line(&format!("{shown}: there is nothing to do"))?;
        }
        return Ok(None);
    }
    if done.is_none() && !left.is_empty() {
        let why =
            format!("{shown}: {} to be done, and none was", format::count(left.steps.len(), "step is", "steps are"));
        return Ok(Some(Failure::new(Code::Damage, why)));
    }
    if refused > 0 {
        let why = match left.losing().count() {
            0 => format!("{shown}: {} left; run it again", format::count(refused, "step is", "steps are")),
            1 => format!("{shown}: 1 step loses records and was not taken; --accept-loss takes it"),
            n => format!("{shown}: {n} steps lose records and were not taken; --accept-loss takes them"),
        };
        return Ok(Some(Failure::new(Code::Damage, why)));
    }
    if open > 0 {
        return Ok(Some(Failure::new(Code::Damage, format!("{shown}: {open} findings are left as they are"))));
    }
    if !output.is_json() {
        output.line(&format!("{shown} is repaired"))?;
    }
    Ok(None)
}
