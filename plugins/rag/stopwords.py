"""Words of Spanish and English that carry no meaning of their own, accents folded: the lexical leg leaves them out."""

SPANISH = frozenset(
    """
    a al algo alguien algun alguna algunas alguno algunos ante antes aquel aquella aquellas aquello aquellos aqui asi aun aunque bajo
    bien cada casi como con contra cual cuales cualquier cuando cuanta cuantas cuanto cuantos cuya cuyas cuyo cuyos de del desde donde
    dos durante e el ella ellas ello ellos en entre era eran eras eres es esa esas ese eso esos esta estaba estaban estado estamos
    estan estar estas este esto estos estoy fue fueron fui fuese gran ha habia habian haber hace hacen hacer hacia hago han has hasta
    hay haya he hemos hubo la las le les lo los mas me mediante mi mia mias mientras mio mios mis misma mismas mismo mismos mucha
    muchas mucho muchos muy nada ni no nos nosotras nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para pero
    poco por porque pueda puede pueden puedes puedo pues que quien quienes se sea sean segun ser sera seran seria si sido siempre sin
    sino sobre sois solo somos son soy su sus suya suyas suyo suyos tal tambien tampoco tan tanta tantas tanto tantos te tendra
    tenemos tener tengo ti tiene tienen tienes toda todas todavia todo todos tras tu tus tuvo tuya tuyo u un una unas uno unos usted
    ustedes va vamos van vaya voy vosotras vosotros vuestra vuestras vuestro vuestros y ya yo
    """.split()  # noqa: SIM905
)

ENGLISH = frozenset(
    """
    a about above after again against all also am an and any are aren as at be because been before being below between both but by can
    cannot could couldn d did didn do does doesn doing don down during each either ever few for from further get gets got had hadn has
    hasn have haven having he her here hers herself him himself his how however i if in into is isn it its itself just ll m may me
    might mine more most much must my myself neither no nor not now of off on once one only or other our ours ourselves out over own
    re s same shall shan she should shouldn so some such t than that the their theirs them themselves then there these they this those
    through to too under until up upon us ve very was wasn we were weren what when where whether which while who whom whose why will
    with won would wouldn you your yours yourself yourselves
    """.split()  # noqa: SIM905
)

STOP_WORDS = SPANISH | ENGLISH


def language_of(words: list[str]) -> str | None:
    """`"es"` or `"en"` by which stop words there are more of, or None where neither leads clearly. `words` are folded."""
    spanish = sum(word in SPANISH for word in words)
    english = sum(word in ENGLISH for word in words)
    if max(spanish, english) < 2 or spanish == english:
        return None
    return "es" if spanish > english else "en"
