//! The frame of the page.
use super::Page;
pub(super) fn page(page: &Page) -> String {
    format!("<!DOCTYPE html><title>{}</title>{}", page.title.len(), super::json::data(page))
}
