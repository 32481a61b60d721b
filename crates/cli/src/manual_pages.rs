//! Manual pages and completions of shells, from the definitions of the command lines. For
//! installations: the folders are those of PREFIX/share.

use crate::command_line::{Fompi, Fompirun};
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The folder of each shell's completions.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

/// Writes all pages and completions below a folder.
pub fn write_below(folder: &Path) -> io::Result<()> {
    let pages = folder.join("man/man1");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(Fompi::command(), &pages)?;
    Man::new(Fompirun::command()).render(&mut File::create(pages.join("fompirun.1"))?)?;
    for (shell, place) in COMPLETIONS {
        let place = folder.join(place);
        fs::create_dir_all(&place)?;
        for mut command in [Fompi::command(), Fompirun::command()] {
            let name = command.get_name().to_owned();
            let file = match shell {
                Shell::Bash => name.clone(), // which loads a file by the name of the command
                _ => shell_file(shell, &name),
            };
            clap_complete::generate(
                shell,
                &mut command,
                name,
                &mut File::create(place.join(file))?,
            );
        }
    }
    Ok(())
}

fn shell_file(shell: Shell, name: &str) -> String {
    if shell == Shell::Zsh { format!("_{name}") } else { format!("{name}.fish") }
}
