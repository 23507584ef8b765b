//! Reads what is there.

mod convert;
