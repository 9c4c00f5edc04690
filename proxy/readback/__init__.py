"""The proxy's own tool, called inside a live answer: a client that knows nothing of it sees the answer alone."""
