"""The pipeline: ingest -> retrieve -> answer -> judge, for the samples that run in this process."""
