//! Reading the body of an answer.

use bytes::Bytes;
use reqwest::Response;

/// The longest answer that is read, in bytes. A list of thousands of load balancers has a few MiB; what is longer does not come from
/// the service that was asked, or would need more memory than there is.
pub(crate) const MAX_ANSWER_SIZE: usize = 64 << 20;
/// Memory that is set aside because a server announces a body of that length, in bytes. More comes with the body.
const MAX_RESERVED_SIZE: usize = 16 << 20;

/// Why there is no body.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It is longer than [`MAX_ANSWER_SIZE`].
    TooLong,
    /// The connection broke, or it took too long.
    Network(reqwest::Error),
}

/// Reads a body piece by piece into one place. Pieces that are kept until they are complete need twice the memory of a
/// list of thousands.
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
