//! Providers behind one façade: a request in, a stream of events out.
