//! The book is whole: no dead link, no missing picture, no page left out; drawings are fresh; sources are listed.
//!
//! Pages are all Markdown files of the repository. `make book` makes a site of those that `docs/SUMMARY.md` lists.

mod browser;
mod drawings;
mod links;
mod pages;
mod sources;
