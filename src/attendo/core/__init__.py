"""The lowest room: configs, the model contract, errors, seeding, logs. Imports nothing of ours."""
