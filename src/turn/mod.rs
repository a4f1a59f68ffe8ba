//! One turn, for one-shot, REPL and delegates alike: what the person said goes to the model, what the model calls is
//! run, what came of it goes back, until the model is done (`H-40`).

pub mod state;
