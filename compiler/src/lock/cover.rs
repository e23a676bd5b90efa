//! What a lock lacks for a config.
