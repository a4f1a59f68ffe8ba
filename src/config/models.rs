//! Which model the next request goes to, and how a name becomes one (`H-12`, `H-13`).

use super::clients::Client;
use super::paths::Paths;
use super::request_context::RequestContext;
use crate::client::{ModelFacts, ProviderConfig, WAYS_TO_GET_A_MODEL};
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::{Error, Result};

/// What the clients of local servers are called when these are found.
const LOCAL_CLIENTS: [&str; 2] = ["ollama", "local"];

/// A model of a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelRef {
    /// The client's name.
    pub client: String,
    /// The model's name at that client.
    pub model: String,
}

impl std::fmt::Display for ModelRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.client.is_empty() {
            return f.write_str(&self.model);
        }
        write!(f, "{}:{}", self.client, self.model)
    }
}

impl RequestContext {
    /// The model the next request goes to; `None` when nothing is set and no client lists one.
    pub fn model(&self) -> Option<ModelRef> {
        let set = self
            .layer_settings()
            .find_map(|settings| settings.model.clone())
            .or_else(|| self.app.model.clone());
        match set {
            // One that cannot be found stays visible as it was written; using it is the error.
            Some(text) => Some(
                self.find_model(&text)
                    .unwrap_or_else(|_| split_model(&text)),
            ),
            None => self.models().into_iter().next(),
        }
    }

    /// Every model that clients list, in their order.
    pub fn models(&self) -> Vec<ModelRef> {
        let of = |client: &Client| -> Vec<ModelRef> {
            let model = |facts: &ModelFacts| ModelRef {
                client: client.name.clone(),
                model: facts.name.clone(),
            };
            client.models.iter().map(model).collect()
        };
        self.app.clients.iter().flat_map(of).collect()
    }

    /// The configured and discovered clients.
    pub fn clients(&self) -> &[Client] {
        &self.app.clients
    }

    /// Whether a local server has to be looked for before something can be asked (`H-13`): no model is set and no
    /// client lists one, or the model set is one of a server that has not been looked for yet.
    pub fn needs_local_model(&self) -> bool {
        self.model()
            .is_none_or(|model| self.is_local(&model.client))
    }

    /// Whether a client's name is one that a local server would get and that nobody has yet.
    fn is_local(&self, client: &str) -> bool {
        LOCAL_CLIENTS.contains(&client) && self.app.clients.iter().all(|known| known.name != client)
    }

    /// Adds a provider that was found on this machine.
    pub fn add_provider(&mut self, provider: ProviderConfig) {
        self.app
            .clients
            .retain(|client| client.name != provider.name);
        self.app.clients.push(Client::discovered(provider));
    }

    /// Chooses the model, in the active layer: `client:model`, a client alone (its first model), or a model's name
    /// that only one client lists.
    ///
    /// # Errors
    /// There is no such model, with the nearest names.
    pub fn set_model(&mut self, text: &str) -> Result<ModelRef> {
        let model = self.find_model(text)?;
        let name = Some(model.to_string());
        let global = self.change_layer(|settings| settings.model.clone_from(&name));
        if global.is_some() {
            self.app.model.clone_from(&name);
        }
        Ok(model)
    }

    /// What is needed to talk to the model: the provider and what is known of the model.
    ///
    /// # Errors
    /// There is no model, with the three ways to get one (`H-13`); or its client cannot be used.
    pub fn client_config(&self) -> Result<(ProviderConfig, ModelFacts)> {
        let Some(model) = self.model() else {
            return Err(self.no_model());
        };
        let model = self.find_model(&model.to_string())?;
        let client = self.client(&model.client)?;
        let provider = client.provider()?.clone();
        let facts = provider.model(&model.model);
        Ok((provider, facts))
    }

    fn client(&self, name: &str) -> Result<&Client> {
        let found = self.app.clients.iter().find(|client| client.name == name);
        found.ok_or_else(|| {
            let names = self.app.clients.iter().map(|client| client.name.as_str());
            let near = alternatives(&nearest(name, names, 3));
            let error = if name.is_empty() {
                Error::user("the model names no client; it is written `client:model`")
            } else {
                Error::user(format!("there is no client `{name}`"))
            };
            if self.app.clients.is_empty() || self.is_local(name) {
                return three_ways(error, &self.paths);
            }
            if near.is_empty() {
                error.hint(format!(
                    "edit `clients` in {}",
                    self.paths.config_file().display()
                ))
            } else {
                error.hint(format!("did you mean {near}?"))
            }
        })
    }

    fn find_model(&self, text: &str) -> Result<ModelRef> {
        let text = text.trim();
        if let Some((client, model)) = text.split_once(':') {
            let (client, model) = (client.trim(), model.trim());
            if let Ok(client) = self.client(client) {
                return self.model_of(client, model);
            }
            if self.is_local(client) && !model.is_empty() {
                return Ok(split_model(text));
            }
        }
        if let Some(client) = self.app.clients.iter().find(|client| client.name == text) {
            let first = client.models.first().ok_or_else(|| {
                Error::user(format!("client `{text}` lists no models"))
                    .hint(format!("name one: `{text}:MODEL`"))
            })?;
            return self.model_of(client, &first.name);
        }
        let models = self.models();
        let mut same = models.iter().filter(|model| model.model == text);
        match (same.next(), same.next()) {
            (Some(only), None) => Ok(only.clone()),
            (Some(one), Some(other)) => Err(Error::user(format!(
                "several clients have a model `{text}`"
            ))
            .hint(format!("say which: `{one}` or `{other}`"))),
            (None, _) => {
                if let Some((client, _)) = text.split_once(':') {
                    self.client(client.trim())?;
                }
                Err(self.unknown_model(text))
            }
        }
    }

    fn model_of(&self, client: &Client, model: &str) -> Result<ModelRef> {
        let listed = client.models.iter().any(|facts| facts.name == model);
        if model.is_empty() || !(listed || client.accepts_any_model()) {
            return Err(self.unknown_model(&format!("{}:{model}", client.name)));
        }
        Ok(ModelRef {
            client: client.name.clone(),
            model: model.to_owned(),
        })
    }

    fn unknown_model(&self, text: &str) -> Error {
        let error = Error::user(format!("there is no model `{text}`"));
        if self.app.clients.is_empty() {
            return three_ways(error, &self.paths);
        }
        let names: Vec<String> = self.models().iter().map(ToString::to_string).collect();
        let near = alternatives(&nearest(text, names.iter().map(String::as_str), 3));
        let error = if near.is_empty() {
            error
        } else {
            error.hint(format!("did you mean {near}?"))
        };
        error.hint(format!(
            "`coyote --list-models` shows them; a new one goes to its client's `models` in {}",
            self.paths.config_file().display()
        ))
    }

    fn no_model(&self) -> Error {
        let error = Error::config("there is no model to ask");
        if let Some(client) = self
            .app
            .clients
            .iter()
            .find(|client| client.models.is_empty())
        {
            let name = &client.name;
            return three_ways(
                error.hint(format!(
                    "name a model of client `{name}`: `-m {name}:MODEL`"
                )),
                &self.paths,
            );
        }
        three_ways(error, &self.paths)
    }
}

fn split_model(text: &str) -> ModelRef {
    let (client, model) = text.split_once(':').unwrap_or(("", text));
    ModelRef {
        client: client.trim().to_owned(),
        model: model.trim().to_owned(),
    }
}

/// The three ways to get a model (`H-13`).
fn three_ways(error: Error, paths: &Paths) -> Error {
    let file = paths.config_file();
    let [hosted, local, _] = WAYS_TO_GET_A_MODEL;
    error.hint(hosted).hint(local).hint(format!(
        "{}: add an entry to `clients:` for anything else",
        file.display()
    ))
}

#[cfg(test)]
#[path = "models_tests.rs"]
mod tests;
