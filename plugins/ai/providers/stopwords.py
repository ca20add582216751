"""Words that say nothing about what a question is about, accents aside: Spanish, then English."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP = _set(
    """
    a al algo algun alguna algunas alguno algunos ante antes aqui asi aun aunque bien cada como con contra cosa cosas cual cuales
    cualquier cuando cuanta cuantas cuanto cuantos de debe deben debo decir dejar del desde despues di dice dime donde dos e el ella
    ellas ello ellos en entonces entre era eran eres es esa esas ese eso esos esta estaba estan estar estas este esto estos estoy
    explica explicame fue fueron ha haber habla hablame hace hacen hacer haces hacia hago han has hasta hay he la las le les lo los
    mas me mi mia mio mis mismo mucha muchas mucho muchos muy nada ni ningun ninguna no nos nosotros nuestra nuestro o otra otras
    otro otros para pero pasa poco podemos poder podria por porque pudo puede pueden puedes puedo pues que quien quienes quiere
    quiero saber sabes se sea segun ser si sido siempre sin sirve sobre sois somos son soy su sus tal tambien tanto te tendria tener
    tengo ti tiene tienen tienes toda todas todavia todo todos tras tu tus u un una unas uno unos usted ustedes va vamos vaya ver
    vez voy y ya yo
    about above after again all also am an and any are as at be because been before being below between both but by can could did do
    does doing down during each explain few find for from further get give had has have having he her here hers him his how i if in
    into is it its itself just know let like make many may me means might more most much must my no nor not of off on once one only
    or other our out over own please same say she should so some such tell than that the their them then there these they thing
    things this those through to too under until up us use used very want was way we were what when where which while who whom whose
    why will with work works would you your
    """
)
