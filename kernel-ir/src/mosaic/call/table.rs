//! A JSON object that keeps its order and refuses a name given twice.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Names and values in the order of the file. Tables are short, so a look-up walks them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table<V>(Vec<(String, V)>);

/// Entries that a table of an index may hold.
const MAX_ENTRIES: usize = 1024;

impl<V> Table<V> {
    /// A table without entries.
    pub fn new() -> Table<V> {
        Table(Vec::new())
    }

    /// The value named `name`.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Sets `name` to `value`, in place if it is there, else at the end.
    pub fn set(&mut self, name: impl Into<String>, value: V) {
        let name = name.into();
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// The entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Table::new()
    }
}

impl<K: Into<String>, V> FromIterator<(K, V)> for Table<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut table = Table::new();
        for (name, value) in entries {
            table.set(name, value);
        }
        table
    }
}

impl<V: Serialize> Serialize for Table<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Table<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor(PhantomData))
    }
}

struct TableVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for TableVisitor<V> {
    type Value = Table<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table<V>, A::Error> {
        let mut table = Table::new();
        while let Some(name) = map.next_key::<String>()? {
            if table.get(&name).is_some() {
                return Err(A::Error::custom(format!("`{name}` is given twice")));
            }
            if table.len() == MAX_ENTRIES {
                return Err(A::Error::custom(format!("more than {MAX_ENTRIES} entries")));
            }
            let value = map.next_value()?;
            table.0.push((name, value));
        }
        Ok(table)
    }
}
