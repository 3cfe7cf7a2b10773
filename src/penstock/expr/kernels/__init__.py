"""What expressions compute: exact evaluation over Arrow, casts, the calendar and time zones."""
