"""What is released in place of keys and dates: pseudonyms, new numbers, shifted dates."""
