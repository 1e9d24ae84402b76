"""The chapters: one folder per lesson, its code and its text in two languages."""
