"""VERDICTS->NUMBERS: records, metrics, summaries, thresholds and gates."""
