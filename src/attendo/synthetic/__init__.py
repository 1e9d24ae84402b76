"""Generated corpora: everyday Korean-English sentences, dates, numbers, a sea temperature series."""
