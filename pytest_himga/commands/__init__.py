"""What stands behind the words of the ``himga`` command: one module for each, and what they share."""
