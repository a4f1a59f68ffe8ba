//! What a server offers, as one list of one type (`M-40`..`M-42`).
