//! The trees that were read last; a tree never changes, so there is nothing to invalidate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;

use super::Tree;

/// How many trees are kept. Clients ask for one tree again and again, once a file.
const KEPT: usize = 64;

/// A small cache of trees by their keys.
#[derive(Debug, Default)]
pub(super) struct TreeCache(Mutex<HashMap<String, Arc<Tree>>>);

impl TreeCache {
    /// The tree of `key`, read by `read` if it is not here.
    pub(super) fn get(&self, key: &str, read: impl FnOnce() -> Result<Tree>) -> Result<Arc<Tree>> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = lock().get(key) {
            return Ok(tree.clone());
        }
        let tree = Arc::new(read()?);
        let mut trees = lock();
        if trees.len() >= KEPT {
            trees.clear();
        }
        trees.insert(key.to_owned(), tree.clone());
        Ok(tree)
    }
}
