//! Reads the body of an answer.

use bytes::Bytes;
use reqwest::Response;

/// The longest body that is read, in bytes. A list of thousands of load balancers has a few MiB; a longer body is not from the
/// right service, or would need more memory than is available.
pub(crate) const MAX_ANSWER_SIZE: usize = 64 << 20;
/// The most memory reserved for the announced length of a body, in bytes; more is allocated as the body arrives.
const MAX_RESERVED_SIZE: usize = 16 << 20;

/// Why a body cannot be read.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The body is longer than [`MAX_ANSWER_SIZE`].
    TooLong,
    /// The connection broke, or the body took too long.
    Network(reqwest::Error),
}

/// Reads a body piece by piece into one buffer. Keeping the pieces until they are complete would need twice the memory of a list
/// of thousands.
pub(crate) async fn whole_body(mut response: Response) -> Result<Bytes, BodyError> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    let announced = announced.unwrap_or_default();
    if announced > MAX_ANSWER_SIZE {
        return Err(BodyError::TooLong);
    }
    let mut body = Vec::with_capacity(announced.min(MAX_RESERVED_SIZE));
    while let Some(piece) = response.chunk().await.map_err(BodyError::Network)? {
        if body.len() + piece.len() > MAX_ANSWER_SIZE {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.into())
}
