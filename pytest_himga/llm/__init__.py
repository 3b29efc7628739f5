"""The one place that talks to an OpenAI-compatible server."""
