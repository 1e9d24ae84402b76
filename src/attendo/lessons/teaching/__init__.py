"""The page for teachers: lessons in sessions of 90 minutes, exercises, questions and answers."""
