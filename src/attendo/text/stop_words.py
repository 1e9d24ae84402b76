"""The most frequent function words of languages that share a script, to tell them apart.

`attendo.text.language_guess` counts them. A word may belong to several languages; it then counts
less. The lists are short on purpose: a third of the words of ordinary text are in them.
"""

from __future__ import annotations

from types import MappingProxyType

STOP_WORDS: MappingProxyType[str, frozenset[str]] = MappingProxyType(
    {
        language: frozenset(words.split())
        for language, words in {
            "en": """the of and to a in is that it was for on are with as i his they be at one
            have this from or had by not but what all were we when your can there an which
            she do their if will about out many then them would like him into has more no my than
            been its who now did you he her don't it's i'm isn't how why where could should does
            just""",
            "de": """der die und in den von zu das mit sich des auf für ist im dem nicht ein eine
            als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie
            einem über einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde
            wenn ich du wir ihr mir mich dich kann können sehr mein dein diese dieser dieses keine
            kein was wo wer warum hier jetzt schon muss""",
            "fr": """de la le et les des en un du une que est pour qui dans par plus pas au sur ne
            se ce il sont avec son aux d'un cette d'une ont ses mais comme on tout nous sa fait
            été aussi leur bien peut ces y elle vous je tu me te très mon ton votre notre à où
            être avoir était c'est n'est j'ai qu'il ils elles si lui quand faire suis""",
            "es": """de la que el en y a los se del las un por con no una su para es al lo como
            más o pero sus le ha me si sin sobre este ya entre cuando todo esta ser son dos
            también fue había era muy años hasta desde está mi porque qué sólo han yo hay vez
            puede todos así nos ni ella él tu te eso usted""",
            "pt": """de a o que e do da em um para é com não uma os no se na por mais as dos como
            mas foi ao ele das tem à seu sua ou ser quando muito há nos já está eu também só pelo
            pela até isso ela entre era depois sem mesmo aos ter seus quem nas me esse eles estão
            você tinha foram essa num nem suas meu minha numa""",
            "it": """di e il la che è un a per in una non sono del si da con le dei nel alla come
            al più i o ha lo gli della ma anche delle mi se questo su ed ti ho sua suo ci perché
            nella cosa io quando questa molto tutto solo ne stato essere era lui lei mia mio hai
            c'è dell'un quello hanno degli alle fatto""",
            "nl": """de van een het en in is dat op te zijn met voor niet aan er die om ook als
            dan maar bij door naar uit nog wel wordt hij werd was over heeft ik je we ze haar hem
            mijn dit deze geen kan worden hebben had meer of tot wat moet hoe waar zal wij jij zou
            onder ons jullie""",
            "sv": """och i att det som en på är av för med den till inte har de ett om han men var
            jag sig från vi så kan när år säger hon under också efter eller nu sin där vid mot ska
            skulle kommer ut får finns vara hade alla andra mycket mig dig min du vad hur honom
            henne""",
            "da": """og i at det er en til af på for med den ikke der har de et som han var jeg
            men om vi sig fra kan så hun eller nu også hvad når havde efter ved mig dig min du
            skal vil ud blev være hans hendes meget noget hvor dem mere ville bliver denne dette""",
            "nb": """og i det er på til en av for at med har ikke den de som et jeg han var om fra
            vi så men seg kan hun eller nå også hva når hadde etter ved meg deg min du skal vil ut
            ble være hans hennes mye noe hvor dem mer ville blir denne dette bare fordi""",
            "fi": """ja on ei se että oli hän mutta joka myös kun ole tai niin kuin ovat voi minä
            sinä me te he mitä jos nyt sitä tämä vain mukaan hänen olen olisi jotka vielä siitä
            minun ollut sen jo koska sekä kaikki ette en emme eivät miksi missä tässä ne""",
            "pl": """i w nie na się z do to że jest o a jak ale po co tak za od jego już tylko był
            przez czy może przed być ma dla jej go mi mnie ich ten ta tego są było która który
            które gdy sobie bardzo jestem będzie ty ja pan kiedy też tym oraz jako""",
            "cs": """a se v na je že s z do to o k i jako ve za by ale jsem si od po jsou který
            která které pro tak jeho než ze už co bylo byl byla být při jen nebo mu má není také
            když aby jak tím ještě kde my vy ty já nás vás mě ji pokud""",
            "sk": """a sa v na je že s z do to o k aj ako vo za by ale som si od po sú ktorý ktorá
            ktoré pre tak jeho než zo už čo bolo bol bola byť pri len alebo mu má nie tiež keď aby
            ešte kde my vy ty ja nás vás ma ju ak""",
            "hu": """a az és hogy nem is egy ez azt ha meg volt csak de van én te ő mi ti ők ezt
            már még mint vagy itt ott ki be el fel le nekem neked lehet kell nagyon amely minden
            után miért hol mert így most""",
            "ro": """de și în a la nu să o cu pe este un din că mai ce se pentru care am ai au
            fost lui sunt ca dar sau dacă ei el ea eu tu noi voi acest această fi era doar foarte
            după când îmi îți cum fără prin unde acum până""",
            "hr": """i je u se na da za od su s a koji što kako o ne ili ali sam nije bi iz kao to
            te do ga biti bio bila koja koje samo još nego već mi ti vi ja on ona smo ste mu joj
            kada ako gdje zašto ovo taj""",
            "sl": """in je v se na da za so z s kot pa ki ne po bi ali sem ni tudi iz od do ga kar
            če bil bila bilo biti samo še že ta to mi ti vi jaz on ona smo ste mu ji kaj kako kje
            kdaj zakaj pri""",
            "tr": """ve bir bu da de için ile çok o ne daha gibi kadar ama en var olarak mi mı ben
            sen biz siz onlar olan sonra değil her şey ki ya hiç bana sana onu beni seni nasıl
            neden nerede şimdi iyi kendi""",
            "id": """yang dan di dengan untuk tidak ini dari dalam akan pada itu juga saya ke
            karena ada kita mereka bisa oleh atau sudah telah adalah dia kami anda aku kamu lebih
            apa saat sangat hanya seperti orang harus belum tapi bukan lagi banyak""",
            "vi": """và là của có không tôi một được cho các trong đã với những người này để anh
            cô ấy khi đó bạn như về đến từ ra nhưng thì ở làm rất chúng cũng phải sẽ nó mà nào bị
            đang lại gì sao hay vì""",
            "ca": """de la i a el que en els un les per amb és no una del al se més com va ho però
            són aquest aquesta ha si jo què hi molt també ser seu seva quan tot dels als han fer
            estar meu on hem nosaltres""",
            "et": """ja on ei et see ta oli ma kui ka mis aga oma nii või sa me te nad kes ning
            veel ole olen mida seda selle siis nagu kas juba ainult minu sinu tema väga pole kus
            miks praegu""",
            "lv": """un ir uz ka ar no par es tu viņš viņa mēs jūs to kas nav bet tas lai kā vai
            tā pie man tev bija tikai pēc vēl jau ļoti kur kad kāpēc šis šī arī pa līdz ja""",
            "lt": """ir yra kad į ne su iš tai jis ji aš tu mes jūs kaip bet ar buvo už tik po jau
            dar labai kur kada kodėl šis ši taip pat nuo iki jei man tau per apie kas""",
            "ru": """и в не на что я с он а как это по но они к у ты из мы за вы так же от его она
            для бы было был была было о меня мне только если уже или ещё еще нет до когда все всё
            может чтобы очень где здесь быть есть""",
            "uk": """і в не на що я з він а як це по але вони до у ти із ми за ви так же від його
            вона для би було був була про мене мені тільки якщо вже або ще ні коли все може щоб
            дуже де тут бути є та""",
            "bg": """и в не на че аз с той а как това по но те към ти от ние за вие така го тя да
            би беше ще се са съм си е при или още до когато всички може много къде тук бъде има
            който която което ли ме""",
            "sr": """и у не на да ја са он а како то по али они је ти из ми за ви тако се од његов
            она би било био била о мене ми само ако већ или још што до када све може врло где овде
            бити има који која које су сам""",
            "ar": """في من على إلى أن لا ما هذا هذه هو هي كان التي الذي عن مع كل أو لم قد ذلك بعد
            قبل هل أنا أنت نحن كانت يكون ليس لقد كما بين حتى إن عند""",
            "fa": """و در به از که این را با است برای آن یک خود تا می بر هم نیز شود شد او من تو ما
            شما آنها بود کرد باید های چه اگر یا نه دارد اما هر""",
            "ur": """کے میں کی ہے اور سے کا کو اس ہیں کہ نے پر یہ ایک نہیں وہ بھی تھا ہو کر گیا جو
            تھے لیے ہم آپ کیا تو تھی مجھے""",
        }.items()
    }
)
