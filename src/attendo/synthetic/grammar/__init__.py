"""The grammar of the everyday corpus: Korean and English sentences from the same choice of words.

Reading order: korean, english (morphology), lexicon, verbs (the words), phrases, clauses (parts of
a sentence), sentences, copula, complex_sentences, colloquial (the types of sentence),
sentence_types (their frequencies).
"""
