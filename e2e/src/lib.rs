//! Tests against real components.
