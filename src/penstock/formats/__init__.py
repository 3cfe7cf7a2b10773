"""What files hold: the formats of data files, and the record in manifest entries."""
