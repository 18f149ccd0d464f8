//! Tests of the repository as a whole, which belong to no crate of it: `tests/`. The library is empty.
