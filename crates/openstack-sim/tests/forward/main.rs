//! Forwarding as clients and members see it, over real sockets on loopback.

mod backend;
mod client;
mod health;
mod http_listener;
mod lifetime;
mod proxy_header;
mod tcp_listener;
mod wanted;
