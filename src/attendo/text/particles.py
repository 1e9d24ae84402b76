"""What may stand behind a Korean noun in the same word: plural, particles, the copula.

사자를, 사자들에게서는 and 사자입니다 are about 사자; 사자자리 is another word. The list is closed
and short, so a rare or colloquial ending may be missed; a wrong match costs more than a missed one.
"""

from __future__ import annotations

import re

PARTICLES = (
    "은|는|이|가|을|를|의|에|도|만|와|과|로|으로|야|아|여|이여|랑|이랑|하고|나|이나|께|께서|에게|에게서|한테|한테서"
    "|에서|에서부터|으로서|로서|으로써|로써|으로부터|로부터|부터|까지|마저|조차|처럼|같이|보다|마다|밖에|대로|만큼|뿐"
    "|라도|이라도|든지|이든지|치고|더러|보고|이야|커녕|은커녕|는커녕|요|이요"
)
COPULA_FORMS = (
    "이다|다|입니다|이에요|예요|이야|이었다|였다|이었습니다|였습니다|이었어요|였어요|이고|고|이며|며|이지만|지만"
    "|이라는|라는|이라고|라고|인|이라서|라서|이니까|니까|이면|면|이어서|여서|인데|이지|지|일까|인가|입니까|이냐|냐"
    "|이었던|였던|이거나|거나|이므로|므로"
)
NOUN_SUFFIX = re.compile(rf"(?:들)?(?:{PARTICLES})*(?:{COPULA_FORMS})?")


def is_particle_suffix(ending: str) -> bool:
    """Tell whether Hangul right behind a noun leaves the noun what it is.

    >>> [follow_noun(ending) for ending in ("를", "들에게서는", "입니다", "", "자리", "일")]
    [True, True, True, True, False, False]
    """
    return NOUN_SUFFIX.fullmatch(ending) is not None
