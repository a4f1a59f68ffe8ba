//! Text → what the human sees: the one owner of the terminal.
