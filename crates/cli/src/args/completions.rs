//! The text about `completions`.

pub(super) const COMPLETIONS: &str = "\
Print a completion script for a shell. Write it to a file that the shell reads, for example:

   toolcrib completions bash > ~/.local/share/bash-completion/completions/toolcrib
   toolcrib completions fish > ~/.config/fish/completions/toolcrib.fish
   toolcrib completions zsh > DIR/_toolcrib          for a DIR in $fpath";
