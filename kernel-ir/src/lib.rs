//! Placeholder, replaced as the workspace fills.
