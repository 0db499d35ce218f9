//! Values that the host passes to its own tools.

use std::any::{Any, TypeId};
use std::collections::HashMap;

/// Values by type, one of each.
#[derive(Default)]
pub(crate) struct TypeMap {
    by_type: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl TypeMap {
    pub(crate) fn put<T: Send + Sync + 'static>(&mut self, value: T) {
        self.by_type.insert(TypeId::of::<T>(), Box::new(value));
    }

    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        self.by_type.get(&TypeId::of::<T>())?.downcast_ref()
    }
}
