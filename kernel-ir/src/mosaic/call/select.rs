//! Choosing the module that serves a call, and the backend config that hands it to XLA.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::error::CallError;
use super::expr::refusal;
use super::index::{Index, ModuleEntry, OpInterface};
use super::table::Table;
use crate::ir::dims::Dims;

impl Index {
    /// The operation called `name`.
    ///
    /// # Errors
    /// [`CallError::Arguments`], with the operations that there are.
    pub fn op(&self, name: &str) -> Result<&OpInterface, CallError> {
        self.ops.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.ops.names().collect();
            CallError::arguments(format!("there is no operation `{name}`; there is {}", known.join(", ")))
        })
    }

    /// The first module of operation `op` that serves a call with these dtypes and dims on this TPU generation.
    ///
    /// # Errors
    /// Those of [`Index::op`] and [`OpInterface::select`].
    pub fn select(
        &self,
        op: &str,
        dtypes: &Table<String>,
        dims: &Dims,
        generation: Option<&str>,
    ) -> Result<&ModuleEntry, CallError> {
        self.op(op)?.select(dtypes, dims, generation).map_err(|error| match error {
            CallError::NoModule { reasons, .. } => CallError::NoModule { op: op.to_owned(), reasons },
            other => other,
        })
    }
}

impl OpInterface {
    /// The first module that serves a call with these dtypes and dims; `None` for a generation asks for none.
    ///
    /// # Errors
    /// [`CallError::NoModule`] says of each module why it does not serve.
    pub fn select(
        &self,
        dtypes: &Table<String>,
        dims: &Dims,
        generation: Option<&str>,
    ) -> Result<&ModuleEntry, CallError> {
        let mut reasons = Vec::new();
        for module in &self.modules {
            match module.refusal(dtypes, dims, generation) {
                None => return Ok(module),
                Some(reason) => reasons.push(format!("{}: {reason}", module.file)),
            }
        }
        Err(CallError::NoModule { op: "the operation".to_owned(), reasons })
    }
}

impl ModuleEntry {
    /// Why this module does not serve a call with these dtypes and dims on this generation; `None` if it does.
    pub fn refusal(&self, dtypes: &Table<String>, dims: &Dims, generation: Option<&str>) -> Option<String> {
        for (variable, dtype) in self.dtypes.iter() {
            if dtypes.get(variable) != Some(dtype) {
                let given = dtypes.get(variable).map_or("not given", String::as_str);
                return Some(format!("{variable} is {given}, the module's is {dtype}"));
            }
        }
        if let Some(generation) = generation
            && !self.generations.iter().any(|known| known == generation)
        {
            return Some(format!("it compiles for {}, not for {generation}", self.generations.join(", ")));
        }
        self.demands.iter().find_map(|demand| refusal(demand, dims))
    }

    /// Checks that `body` is the file that the index describes.
    ///
    /// # Errors
    /// [`CallError::Body`]: another length or another SHA-256.
    pub fn check_body(&self, body: &[u8]) -> Result<(), CallError> {
        let mismatch = |problem| Err(CallError::Body { file: self.file.clone(), problem });
        if body.len() as u64 != self.bytes {
            return mismatch(format!("it has {} bytes, not {}", body.len(), self.bytes));
        }
        let digest = hex::encode(Sha256::digest(body));
        if digest != self.sha256 {
            return mismatch(format!("its SHA-256 is {digest}, not {}", self.sha256));
        }
        Ok(())
    }

    /// The custom call's backend config: `{"custom_call_config": {"body": base64, ..}, ..}`, on one line.
    ///
    /// # Errors
    /// Those of [`ModuleEntry::check_body`].
    pub fn backend_config(&self, body: &[u8]) -> Result<String, CallError> {
        self.check_body(body)?;
        Ok(backend_config(body, &self.custom_call_config, &self.backend_config))
    }
}

/// A backend config around any Mosaic body; `custom_call` and `beside` as in [`ModuleEntry`].
pub fn backend_config(body: &[u8], custom_call: &Table<Value>, beside: &Table<Value>) -> String {
    let object = |first: String, rest: &Table<Value>| {
        let rest = rest.iter().map(|(name, value)| format!(",{}:{value}", Value::from(name)));
        format!("{{{first}{}}}", rest.collect::<String>())
    };
    let inner = object(format!("\"body\":\"{}\"", STANDARD.encode(body)), custom_call);
    object(format!("\"custom_call_config\":{inner}"), beside)
}
