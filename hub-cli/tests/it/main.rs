//! Tests of the hub from outside: one file a topic, over real HTTP.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod build;
mod bundle;
mod cache;
mod cli;
mod corpus;
mod fake_hub;
mod get;
mod guide;
mod hf_hub;
mod hostile_client;
mod hostile_hub;
mod hostile_publish;
mod import;
mod interface;
mod jax_modules;
mod lock;
mod looking;
mod proposal;
mod publish;
mod python;
mod raw;
mod resume;
#[cfg(feature = "emit")]
mod run;
mod server_accounts;
mod server_corpus;
mod server_crash;
mod server_hostile;
mod server_large;
mod server_pages;
mod server_pulls;
mod server_upkeep;
mod signing;
mod signing_sigstore;
mod support;
