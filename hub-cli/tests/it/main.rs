//! Tests of the hub from outside: one file a topic, over real HTTP.

mod build;
mod cli;
mod get;
mod hostile_client;
mod hostile_hub;
mod publish;
mod python;
mod support;
