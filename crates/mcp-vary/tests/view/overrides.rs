//! Overrides of tools and prompts.
