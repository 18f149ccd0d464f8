//! The news of a cell, as long as they wait for a sample.

use super::guest::Gone;
use fairpace_sim::Promise;
use std::mem::{Discriminant, discriminant};
use std::net::SocketAddr;

/// Something that people are told of at once. Numbers are those of places.
#[derive(Clone, PartialEq, Debug)]
pub enum News {
    /// A client has come.
    Came(usize, SocketAddr),
    /// The flow of a client cannot be told a window, since its feedback is sealed.
    Sealed(usize),
    /// The flow of a client does not take windows.
    NoWindow(usize),
    /// A flow has a window, which is new; with the service that it may expect, or why nothing can be promised.
    Window(usize, u32, Result<Promise, String>),
    /// A client has gone.
    Left(usize, SocketAddr, Gone),
    /// A flow sends more than its window allows.
    Ignores(usize),
    /// Somebody has found no place.
    Refused(SocketAddr),
}

impl News {
    /// The kind of news, and the place.
    fn subject(&self) -> (Discriminant<News>, Option<usize>) {
        let place = match *self {
            News::Came(place, _) | News::Sealed(place) | News::NoWindow(place) => Some(place),
            News::Window(place, ..) | News::Left(place, ..) | News::Ignores(place) => Some(place),
            News::Refused(_) => None,
        };
        (discriminant(self), place)
    }
}

/// News that wait for a sample, in their order. Of each kind and place the last is there: a plan for all places at each of many arrivals
/// leaves one window each, and a client that changes its mind with each packet keeps nobody else's news out.
#[derive(Debug, Default)]
pub(super) struct Waiting(Vec<News>);

impl Waiting {
    pub(super) fn tell(&mut self, news: News) {
        self.0.retain(|earlier| earlier.subject() != news.subject());
        self.0.push(news);
    }

    /// All of them; none are left.
    pub(super) fn take(&mut self) -> Vec<News> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MOST_PLACES;
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn all_places_taken_in_one_interval_leave_the_arrival_and_the_last_window_of_each() {
        let mut waiting = Waiting::default();
        for come in 0..MOST_PLACES {
            waiting.tell(News::Came(come, address(come as u16)));
            for place in 0..=come {
                waiting.tell(News::Window(place, 200 / (come as u32 + 1), Err("too many".to_owned())));
            }
        }
        let news = waiting.take();
        for place in 0..MOST_PLACES {
            assert!(news.contains(&News::Came(place, address(place as u16))), "{place}");
            assert!(news.contains(&News::Window(place, 3, Err("too many".to_owned()))), "{place}");
        }
        assert_eq!(news.len(), 2 * MOST_PLACES);
        assert!(waiting.take().is_empty());
    }

    #[test]
    fn a_client_that_changes_its_mind_with_each_packet_keeps_nobodys_news_out() {
        let mut waiting = Waiting::default();
        for _ in 0..10_000 {
            waiting.tell(News::Sealed(3));
            waiting.tell(News::NoWindow(3));
        }
        waiting.tell(News::Left(4, address(4), Gone::Bye));
        waiting.tell(News::Refused(address(5)));
        waiting.tell(News::Refused(address(6)));
        let left = News::Left(4, address(4), Gone::Bye);
        assert_eq!(waiting.take(), [News::Sealed(3), News::NoWindow(3), left, News::Refused(address(6))]);
    }
}
