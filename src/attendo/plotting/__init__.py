"""The style of all plots: colors, figures, matrices (`style`) and fonts with Korean (`fonts`)."""
