"""Series: tables of numbers over time, cut into windows. What corpora are to text."""
