//! Reads git repositories: directories, objects, refs and the paths in a configuration. It runs no git and writes
//! nothing.

pub(crate) mod commit_tree;
pub(crate) mod directory;
pub(crate) mod find_in_history;
pub(crate) mod index;
pub(crate) mod objects;
pub(crate) mod paths_in_config;
pub(crate) mod refs;
