//! From "the model asked" to "here is the answer".
