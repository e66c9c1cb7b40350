"""The second part of the demonstration: workers are killed while the bank answers, and a sweeper finds out."""
