//! The images of a request, read when the request is made. One that is gone, too large or of no use to the model
//! becomes a sentence in its place, so that a conversation outlives its files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;

use crate::chat::{Image, ImageSource, Message, Part, Request};

/// The largest image file that is sent.
const MAX_IMAGE: u64 = 20 * 1024 * 1024;

/// The files of a request, read.
#[derive(Debug, Default)]
pub(super) struct Images {
    files: HashMap<PathBuf, Result<Arc<[u8]>, String>>,
    blind: bool,
}

/// An image in the form a wire can write.
#[derive(Debug, PartialEq)]
pub(super) enum Sent<'a> {
    /// Base64 of the bytes.
    Data { mime_type: &'a str, base64: String },
    /// For the provider to fetch.
    Url(&'a str),
    /// Instead of the image.
    Text(String),
}

impl Images {
    /// Reads what `request` refers to; nothing when the model does not see.
    pub(super) fn load(request: &Request, sees: bool) -> Self {
        let mut images = Self {
            files: HashMap::new(),
            blind: !sees,
        };
        if sees {
            for image in all(request) {
                if let ImageSource::File(path) = &image.source
                    && !images.files.contains_key(path)
                {
                    images.files.insert(path.clone(), read(path));
                }
            }
        }
        images
    }

    pub(super) fn get<'a>(&self, image: &'a Image) -> Sent<'a> {
        if self.blind {
            return Sent::Text(format!(
                "[an image ({}) is here, which this model cannot see]",
                image.mime_type
            ));
        }
        let data = |bytes: &[u8]| Sent::Data {
            mime_type: &image.mime_type,
            base64: base64::engine::general_purpose::STANDARD.encode(bytes),
        };
        match &image.source {
            ImageSource::Bytes(bytes) => data(bytes),
            ImageSource::Url(url) => Sent::Url(url),
            ImageSource::File(path) => match self.files.get(path) {
                Some(Ok(bytes)) => data(bytes),
                Some(Err(why)) => Sent::Text(format!(
                    "[the image `{}` is not available: {why}]",
                    path.display()
                )),
                None => Sent::Text(format!("[the image `{}` is not available]", path.display())),
            },
        }
    }

    /// Whether `request` refers to files at all.
    pub(super) fn needs_files(request: &Request) -> bool {
        all(request).any(|image| matches!(image.source, ImageSource::File(_)))
    }
}

fn all(request: &Request) -> impl Iterator<Item = &Image> {
    request.messages.iter().flat_map(|message| match message {
        Message::User(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Part::Image(image) => Some(image),
                Part::Text(_) => None,
            })
            .collect::<Vec<_>>(),
        Message::Tool(results) => results
            .iter()
            .flat_map(|result| &result.output.images)
            .collect(),
        Message::Assistant { .. } => Vec::new(),
    })
}

fn read(path: &Path) -> Result<Arc<[u8]>, String> {
    let facts = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("it is not a file".to_owned());
    }
    if facts.len() > MAX_IMAGE {
        return Err("it is over 20 MiB".to_owned());
    }
    std::fs::read(path)
        .map(Arc::from)
        .map_err(|error| error.to_string())
}
