"""Tables: what files there are, and what is known of each."""
