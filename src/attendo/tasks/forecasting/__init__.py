"""Time series: tables of numbers over time, forecasts of values or labels."""
