//! The completion menu: one press of `Tab` is one generation of answers (`P-45`), and an empty answer is silence
//! (`P-41`).
//!
//! reedline asks its completer when the menu opens, on every key while it is open, and again when an answer has
//! arrived; only the menu knows which of these was a press of `Tab`. So it is wrapped, and tells the completer.

use std::sync::Arc;

use reedline::{
    ColumnarMenu, Completer, Editor, Menu, MenuBuilder as _, MenuEvent, MenuSettings, Painter,
    Suggestion,
};

use super::completer::Shared;

/// What the key binding calls the menu.
pub(super) const NAME: &str = "completion";

/// reedline's columnar menu, which lists descriptions, with generations.
pub(super) struct CompletionMenu {
    inner: ColumnarMenu,
    shared: Arc<Shared>,
}

impl CompletionMenu {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let inner = ColumnarMenu::default()
            .with_name(NAME)
            .with_marker("")
            .with_columns(4);
        Self { inner, shared }
    }

    /// Whether the answer is final and there is nothing in it.
    fn is_fruitless(&self) -> bool {
        self.inner.is_active()
            && self.inner.get_values().is_empty()
            && !self.inner.results_are_provisional()
    }

    /// A menu without entries closes: it would only say so, and would keep the next `Tab` from asking anew.
    fn close_if_fruitless(&mut self) {
        if self.is_fruitless() {
            self.menu_event(MenuEvent::Deactivate);
        }
    }
}

impl Menu for CompletionMenu {
    fn settings(&self) -> &MenuSettings {
        self.inner.settings()
    }

    fn is_active(&self) -> bool {
        self.inner.is_active()
    }

    fn set_active(&mut self, active: bool) {
        self.inner.set_active(active);
    }

    fn clear_input(&mut self) {
        self.inner.clear_input();
    }

    fn menu_event(&mut self, event: MenuEvent) {
        match event {
            MenuEvent::Activate(_) => self.shared.pressed(),
            MenuEvent::Deactivate => self.shared.close(),
            MenuEvent::Edit(_)
            | MenuEvent::NextElement
            | MenuEvent::PreviousElement
            | MenuEvent::MoveUp
            | MenuEvent::MoveDown
            | MenuEvent::MoveLeft
            | MenuEvent::MoveRight
            | MenuEvent::NextPage
            | MenuEvent::PreviousPage => {}
        }
        self.inner.menu_event(event);
    }

    fn can_quick_complete(&self) -> bool {
        self.inner.can_quick_complete()
    }

    fn can_partially_complete(
        &mut self,
        values_updated: bool,
        editor: &mut Editor,
        completer: &mut dyn Completer,
    ) -> bool {
        let done = (self.inner).can_partially_complete(values_updated, editor, completer);
        self.close_if_fruitless();
        done
    }

    fn update_values(&mut self, editor: &mut Editor, completer: &mut dyn Completer) {
        self.inner.update_values(editor, completer);
        self.close_if_fruitless();
    }

    fn reset_position(&mut self) {
        self.inner.reset_position();
    }

    fn update_working_details(
        &mut self,
        editor: &mut Editor,
        completer: &mut dyn Completer,
        painter: &Painter,
    ) {
        (self.inner).update_working_details(editor, completer, painter);
        self.close_if_fruitless();
    }

    fn replace_in_buffer(&self, editor: &mut Editor) {
        self.inner.replace_in_buffer(editor);
    }

    fn menu_required_lines(&self, terminal_columns: u16) -> u16 {
        if self.inner.get_values().is_empty() {
            return 0;
        }
        self.inner.menu_required_lines(terminal_columns)
    }

    fn menu_string(&self, available_lines: u16, use_ansi_coloring: bool) -> String {
        if self.inner.get_values().is_empty() {
            return String::new();
        }
        (self.inner).menu_string(available_lines, use_ansi_coloring)
    }

    fn min_rows(&self) -> u16 {
        if self.inner.get_values().is_empty() {
            return 0;
        }
        self.inner.min_rows()
    }

    fn get_values(&self) -> &[Suggestion] {
        self.inner.get_values()
    }

    fn results_are_provisional(&self) -> bool {
        self.inner.results_are_provisional()
    }

    fn is_awaiting_first_answer(&self) -> bool {
        self.inner.is_awaiting_first_answer()
    }
}
