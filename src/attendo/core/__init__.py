"""The lowest package: configs, protocols, errors, messages, files, seeding, logs."""
