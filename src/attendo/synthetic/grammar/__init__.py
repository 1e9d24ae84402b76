"""The grammar of the embedded corpus: Korean and English from one choice of words.

Read it in this order: korean, english (morphology), lexicon, verbs (the words), phrases, clauses
(parts of a sentence), sentences, being, joined, colloquial (the kinds of sentence), kinds (how
often each comes).
"""
