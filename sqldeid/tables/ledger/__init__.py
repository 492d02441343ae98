"""What a table release enters in the ledger, and what the ledger holds back from it."""
