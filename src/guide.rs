//! The guide: how the whole works, how a class uses it, and how to change it.
//!
//! | page | for whom |
//! |---|---|
//! | [tour] | you want to understand the stack before you change it |
//! | [class] | you teach, and run a league among many students' agents |
//! | [jobs] | you run leagues on a cluster or in containers, or have more than a hundred players |
//! | [models] | you let a language model play, or call the agents' tools |
//! | [configuration] | you look for an option, a key of a file, or "How do I…" |
//! | [windows] | you have Windows or macOS, and want to know what is different there |
//! | [practice] | you want to know whether a strategy is better than a coin, or than another one |
//! | [labs] | you want to build what keeps a league alive: twelve faults, and a suite that says when it holds |
//! | [simulation] | you want to know how thousands of leagues are played in virtual time, and what they find |
//! | [exercises] | you want to learn by changing something that a test then checks |

#[doc = include_str!("guide/class.md")]
pub mod class {}
#[doc = include_str!("guide/configuration.md")]
pub mod configuration {}
#[doc = include_str!("guide/exercises.md")]
pub mod exercises {}
#[doc = include_str!("guide/jobs.md")]
pub mod jobs {}
#[doc = include_str!("guide/labs.md")]
pub mod labs {}
#[doc = include_str!("guide/models.md")]
pub mod models {}
#[doc = include_str!("guide/practice.md")]
pub mod practice {}
#[doc = include_str!("guide/simulation.md")]
pub mod simulation {}
#[doc = include_str!("guide/tour.md")]
pub mod tour {}
#[doc = include_str!("guide/windows.md")]
pub mod windows {}
