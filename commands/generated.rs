//! The man pages and completions that are committed are those that the commands make.

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{self, Cli};
use crate::completions;

const REFRESH: &str = "DOZE_REFRESH=1 cargo test --bin doze generated";

/// Every generated file and what belongs in it.
fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<(PathBuf, Vec<u8>)> = [
        (Shell::Bash, "doze.bash"),
        (Shell::Zsh, "_doze"),
        (Shell::Fish, "doze.fish"),
        (Shell::PowerShell, "_doze.ps1"),
        (Shell::Elvish, "doze.elv"),
    ]
    .into_iter()
    .map(|(shell, name)| (root.join("completions").join(name), completions::script(shell)))
    .collect();
    let doze = Cli::command();
    files.push((root.join("man/doze.1"), man_page(&doze, "doze", "")));
    for command in doze.get_subcommands() {
        let title = format!("doze-{}", command.get_name());
        let page = man_page(command, &title, command.get_name());
        files.push((root.join(format!("man/{title}.1")), page));
    }
    files
}

fn man_page(command: &clap::Command, title: &str, name: &str) -> Vec<u8> {
    let shown = title.replacen('-', " ", 1);
    let command = command
        .clone()
        .name(&*title.to_owned().leak())
        .bin_name(shown)
        .disable_version_flag(!name.is_empty())
        .disable_help_flag(true)
        .after_long_help(None);
    let man = clap_mangen::Man::new(command)
        .title(title.to_uppercase())
        .manual("doze")
        .source(concat!("doze ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    let rendered = (|| {
        man.render_title(&mut page)?;
        man.render_name_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        if name.is_empty() { man.render_subcommands_section(&mut page) } else { man.render_options_section(&mut page) }
    })();
    rendered.unwrap();
    for (heading, text) in cli::sections(name) {
        page.extend(format!(".SH {}\n.nf\n", heading.to_uppercase()).bytes());
        for line in text.lines() {
            let escaped = line.replace('\\', "\\e").replace('-', "\\-");
            // A dot or a quote at the start of a line would be a command.
            let guard = if escaped.starts_with(['.', '\'']) { "\\&" } else { "" };
            page.extend(format!("{guard}{escaped}\n").bytes());
        }
        page.extend(b".fi\n");
    }
    page
}

#[test]
fn generated_files_are_up_to_date() {
    let refresh = std::env::var_os("DOZE_REFRESH").is_some();
    let mut stale = Vec::new();
    for (path, wanted) in files() {
        if refresh {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, wanted).unwrap();
        } else if std::fs::read(&path).ok().as_ref() != Some(&wanted) {
            stale.push(path);
        }
    }
    assert!(stale.is_empty(), "not what the commands make: {stale:?}\nRefresh them with: {REFRESH}");
}

/// What is left over from a command that is no more would still be installed.
#[test]
fn nothing_else_is_generated() {
    let wanted: Vec<PathBuf> = files().into_iter().map(|(path, _)| path).collect();
    for folder in ["completions", "man"] {
        for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
            let path = entry.unwrap().path();
            assert!(wanted.contains(&path), "{} belongs to no command; remove it", path.display());
        }
    }
}

#[test]
fn the_definitions_hold_together() {
    Cli::command().debug_assert();
}
