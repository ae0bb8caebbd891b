"""The command line, one file a verb. Modules here import at their top only what ``--help`` needs."""
