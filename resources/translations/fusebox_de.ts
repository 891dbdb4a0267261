<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de">
<context>
    <name>Advice</name>
    <message>
        <source>dimension {} of {}</source>
        <translation>Dimension {} von {}</translation>
    </message>
    <message>
        <source>Mark also what changed with it, or that makes the function compile again: {}.</source>
        <translation>Auch zu markieren, weil es sich mit ihr änderte und sonst neu kompiliert wird: {}.</translation>
    </message>
    <message>
        <source>Leave it, or call what needs it outside</source>
        <translation>Belassen, oder den Aufruf nach außen ziehen</translation>
    </message>
    <message>
        <source>A library asks for the break, with torch._dynamo.graph_break() in what this line calls: there is nothing to remove in the program. What the library calls next is compiled by itself.</source>
        <translation>Eine Bibliothek verlangt den Bruch, mit torch._dynamo.graph_break() in dem, was diese Zeile aufruft: Im Programm ist nichts zu entfernen. Was die Bibliothek danach aufruft, wird für sich kompiliert.</translation>
    </message>
    <message>
        <source>What to do</source>
        <translation>Was hilft</translation>
    </message>
    <message>
        <source>Remove the call</source>
        <translation>Den Aufruf entfernen</translation>
    </message>
    <message>
        <source>The break was asked for by torch._dynamo.graph_break().</source>
        <translation>Der Graphbruch wurde mit torch._dynamo.graph_break() verlangt.</translation>
    </message>
    <message>
        <source>Keep the value in a tensor</source>
        <translation>Den Wert in einem Tensor lassen</translation>
    </message>
    <message>
        <source>A Python number needs the tensor&apos;s data, so the graph must run up to here. As a tensor of no dimensions the value stays in the graph; read it with .item() outside, where it is logged.</source>
        <translation>Eine Python-Zahl braucht die Daten des Tensors, also muss der Graph bis hierher laufen. Als Tensor ohne Dimensionen bleibt der Wert im Graphen; mit .item() außerhalb lesen, dort, wo er protokolliert wird.</translation>
    </message>
    <message>
        <source>Let scalars be captured</source>
        <translation>Skalare erfassen lassen</translation>
    </message>
    <message>
        <source>PyTorch can carry the number as an unbacked symbol. Conditions on it break all the same.</source>
        <translation>PyTorch kann die Zahl als ungebundenes Symbol mitführen. Bedingungen darauf brechen den Graphen trotzdem.</translation>
    </message>
    <message>
        <source>Compute both sides and choose</source>
        <translation>Beide Seiten berechnen und auswählen</translation>
    </message>
    <message>
        <source>The condition is tensor data, which is not known while compiling. torch.where evaluates both sides and keeps one graph; torch.cond traces both and runs one.</source>
        <translation>Die Bedingung sind Daten eines Tensors, und die sind beim Kompilieren nicht bekannt. torch.where wertet beide Seiten aus und lässt einen Graphen; torch.cond verfolgt beide und führt eine aus.</translation>
    </message>
    <message>
        <source>Check on the device</source>
        <translation>Auf dem Gerät prüfen</translation>
    </message>
    <message>
        <source>assert looks at tensor data. torch._assert_async checks it as part of the graph.</source>
        <translation>assert betrachtet Daten eines Tensors. torch._assert_async prüft sie als Teil des Graphen.</translation>
    </message>
    <message>
        <source>Leave the decision in tensors</source>
        <translation>Die Entscheidung in Tensoren lassen</translation>
    </message>
    <message>
        <source>Something turns tensor data into a Python value here (bool, int, tolist, formatting, comparing). Use tensor operations, or do it after the compiled function.</source>
        <translation>Hier macht etwas aus Daten eines Tensors einen Python-Wert (bool, int, tolist, Formatieren, Vergleichen). Operationen auf Tensoren verwenden, oder es nach der kompilierten Funktion tun.</translation>
    </message>
    <message>
        <source>Print only outside of compiled code</source>
        <translation>Nur außerhalb des kompilierten Codes ausgeben</translation>
    </message>
    <message>
        <source>Output that needs a computed value ends the graph. Under is_compiling() the line stays for eager runs.</source>
        <translation>Eine Ausgabe, die einen berechneten Wert braucht, beendet den Graphen. Unter is_compiling() bleibt die Zeile für Läufe ohne Compiler.</translation>
    </message>
    <message>
        <source>Let it run after the graph</source>
        <translation>Nach dem Graphen ausführen lassen</translation>
    </message>
    <message>
        <source>{} before the first call: functions that this setting holds are called when the graph has run, in order.</source>
        <translation>{} vor dem ersten Aufruf: Funktionen, die in dieser Einstellung stehen, werden aufgerufen, wenn der Graph gelaufen ist, der Reihe nach.</translation>
    </message>
    <message>
        <source>Keep the shape independent of data</source>
        <translation>Die Form von Daten unabhängig halten</translation>
    </message>
    <message>
        <source>nonzero, unique, masked indexing and repeat_interleave make a size out of data. torch.where(mask, x, 0), a sum over a mask, or an upper bound with padding keep one shape.</source>
        <translation>nonzero, unique, Indizieren mit Masken und repeat_interleave machen aus Daten eine Größe. torch.where(mask, x, 0), eine Summe über eine Maske oder eine obere Grenze mit Auffüllen behalten eine Form.</translation>
    </message>
    <message>
        <source>Let such operators be captured</source>
        <translation>Solche Operatoren erfassen lassen</translation>
    </message>
    <message>
        <source>The result gets an unbacked size.</source>
        <translation>Das Ergebnis bekommt eine ungebundene Größe.</translation>
    </message>
    <message>
        <source>Convert after the compiled function</source>
        <translation>Nach der kompilierten Funktion umwandeln</translation>
    </message>
    <message>
        <source>numpy(), data_ptr(), tolist() and pickling need memory that a traced tensor does not have. Return the tensor and convert outside, or write it with tensor operations.</source>
        <translation>numpy(), data_ptr(), tolist() und Pickle brauchen Speicher, den ein erfasster Tensor nicht hat. Den Tensor zurückgeben und außerhalb umwandeln, oder es mit Operationen auf Tensoren schreiben.</translation>
    </message>
    <message>
        <source>Import at the top of the file</source>
        <translation>Am Anfang der Datei importieren</translation>
    </message>
    <message>
        <source>The first import of a module runs its code, which cannot be traced; the second only reads a name.</source>
        <translation>Der erste Import eines Moduls führt dessen Code aus, der nicht erfasst werden kann; der zweite liest nur einen Namen.</translation>
    </message>
    <message>
        <source>Take the mark away, or call it outside</source>
        <translation>Die Markierung wegnehmen, oder außerhalb aufrufen</translation>
    </message>
    <message>
        <source>The function is marked torch.compiler.disable, so it always runs in Python, between two graphs.</source>
        <translation>Die Funktion ist mit torch.compiler.disable markiert und läuft deshalb immer in Python, zwischen zwei Graphen.</translation>
    </message>
    <message>
        <source>Call backward() outside of the compiled function</source>
        <translation>backward() außerhalb der kompilierten Funktion aufrufen</translation>
    </message>
    <message>
        <source>Return the loss. Its backward is compiled with the forward; only the walk over gradients belongs to Python.</source>
        <translation>Den Loss zurückgeben. Sein Rückwärtsgang wird mit dem Vorwärtsgang kompiliert; nur der Gang durch die Gradienten gehört Python.</translation>
    </message>
    <message>
        <source>Return the new value</source>
        <translation>Den neuen Wert zurückgeben</translation>
    </message>
    <message>
        <source>The line changes an object that existed before in a way that cannot be put off until after the graph. Return the value and store it outside.</source>
        <translation>Die Zeile ändert ein Objekt, das es vorher schon gab, so, dass es nicht bis nach dem Graphen aufgeschoben werden kann. Den Wert zurückgeben und außerhalb ablegen.</translation>
    </message>
    <message>
        <source>Call it before or after</source>
        <translation>Vorher oder nachher aufrufen</translation>
    </message>
    <message>
        <source>Its code is not Python or cannot be followed. If its result does not depend on tensors, compute it before and pass it in.</source>
        <translation>Sein Code ist kein Python oder kann nicht verfolgt werden. Hängt sein Ergebnis nicht von Tensoren ab, vorher berechnen und übergeben.</translation>
    </message>
    <message>
        <source>Make it an operator</source>
        <translation>Einen Operator daraus machen</translation>
    </message>
    <message>
        <source>torch.library.custom_op with register_fake tells the compiler its shapes; the call then stays in the graph.</source>
        <translation>torch.library.custom_op mit register_fake sagt dem Compiler die Formen; der Aufruf bleibt dann im Graphen.</translation>
    </message>
    <message>
        <source>Unwrap the tensor</source>
        <translation>Den Tensor auspacken</translation>
    </message>
    <message>
        <source>Tensor subclasses with their own __torch_function__ and named tensors run Python for every operator. Pass the plain tensor, and wrap the result outside.</source>
        <translation>Unterklassen von Tensoren mit eigenem __torch_function__ und benannte Tensoren führen für jeden Operator Python aus. Den einfachen Tensor übergeben und das Ergebnis außerhalb einpacken.</translation>
    </message>
    <message>
        <source>Pass a list</source>
        <translation>Eine Liste übergeben</translation>
    </message>
    <message>
        <source>Build a list</source>
        <translation>Eine Liste bauen</translation>
    </message>
    <message>
        <source>A generator that lives across a break would have to be frozen in the middle. A list comprehension has no such state.</source>
        <translation>Ein Generator, der über einen Graphbruch hinweg lebt, müsste mittendrin eingefroren werden. Eine Listen-Abstraktion hat keinen solchen Zustand.</translation>
    </message>
    <message>
        <source>Work on a copy</source>
        <translation>An einer Kopie arbeiten</translation>
    </message>
    <message>
        <source>Inputs that share memory, or that are resized or given other storage, cannot be written back. clone() the input, or do the change outside.</source>
        <translation>Eingaben, die sich Speicher teilen, die ihre Größe ändern oder anderen Speicher bekommen, können nicht zurückgeschrieben werden. Die Eingabe mit clone() kopieren, oder die Änderung außerhalb vornehmen.</translation>
    </message>
    <message>
        <source>Raise outside of the compiled function</source>
        <translation>Außerhalb der kompilierten Funktion auslösen</translation>
    </message>
    <message>
        <source>The frame ends in an exception, so there is no graph to return from. Check what can fail before the call.</source>
        <translation>Die Funktion endet mit einer Ausnahme, es gibt also keinen Graphen, aus dem sie zurückkehrt. Vor dem Aufruf prüfen, was fehlschlagen kann.</translation>
    </message>
    <message>
        <source>Compile less at once</source>
        <translation>Weniger auf einmal kompilieren</translation>
    </message>
    <message>
        <source>Very long loops and deep recursion are unrolled into one graph. Compile the loop&apos;s body instead of the loop.</source>
        <translation>Sehr lange Schleifen und tiefe Rekursion werden in einen Graphen ausgerollt. Den Körper der Schleife statt der Schleife kompilieren.</translation>
    </message>
    <message>
        <source>Compare with `is`</source>
        <translation>Mit `is` vergleichen</translation>
    </message>
    <message>
        <source>id() and text that contains an address differ from object to object, so nothing can be compiled for them.</source>
        <translation>id() und Text, der eine Adresse enthält, sind von Objekt zu Objekt verschieden; dafür kann nichts kompiliert werden.</translation>
    </message>
    <message>
        <source>Write it in another way</source>
        <translation>Anders schreiben</translation>
    </message>
    <message>
        <source>The instruction is not followed: async code, generators as compiled functions and exception groups run in Python. Compile the function that is called from there.</source>
        <translation>Der Befehl wird nicht verfolgt: asynchroner Code, Generatoren als kompilierte Funktionen und Gruppen von Ausnahmen laufen in Python. Die Funktion kompilieren, die von dort aufgerufen wird.</translation>
    </message>
    <message>
        <source>What the compiler says</source>
        <translation>Was der Compiler sagt</translation>
    </message>
    <message>
        <source>Move the line out of the compiled function</source>
        <translation>Die Zeile aus der kompilierten Funktion herausnehmen</translation>
    </message>
    <message>
        <source>Nothing more is known about this reason. Before or after the call it costs no break; torch.compiler.disable on a function of its own makes the break a deliberate one.</source>
        <translation>Mehr ist über diesen Grund nicht bekannt. Vor oder nach dem Aufruf kostet sie keinen Graphbruch; torch.compiler.disable auf einer eigenen Funktion macht den Bruch zu einem gewollten.</translation>
    </message>
    <message>
        <source>something else</source>
        <translation>etwas anderes</translation>
    </message>
    <message>
        <source>the tensor</source>
        <translation>der Tensor</translation>
    </message>
    <message>
        <source>Mark the dimension dynamic</source>
        <translation>Die Dimension als dynamisch markieren</translation>
    </message>
    <message>
        <source>One entry then serves every size of dimension {} of {} (0 and 1 stay entries of their own). Call it on the tensor before the compiled function sees it.</source>
        <translation>Ein Eintrag dient dann jeder Größe der Dimension {} von {} (0 und 1 bleiben eigene Einträge). Auf den Tensor anwenden, bevor die kompilierte Funktion ihn sieht.</translation>
    </message>
    <message>
        <source>Compile with dynamic shapes from the start</source>
        <translation>Von Anfang an mit dynamischen Formen kompilieren</translation>
    </message>
    <message>
        <source>dynamic=True makes every size symbolic at the first compile, so no second one is needed to find out what varies. Kernels for symbolic sizes can be a little slower.</source>
        <translation>dynamic=True macht jede Größe beim ersten Kompilieren symbolisch, sodass kein zweites nötig ist, um herauszufinden, was sich ändert. Kernel für symbolische Größen können etwas langsamer sein.</translation>
    </message>
    <message>
        <source>Drop the last, smaller batch</source>
        <translation>Den letzten, kleineren Batch weglassen</translation>
    </message>
    <message>
        <source>If the odd size is the end of an epoch, every batch has the same size without it.</source>
        <translation>Ist die abweichende Größe das Ende einer Epoche, hat ohne ihn jeder Batch dieselbe.</translation>
    </message>
    <message>
        <source>Pad to a few sizes</source>
        <translation>Auf wenige Größen auffüllen</translation>
    </message>
    <message>
        <source>Where the size must stay a number (see the shapes of the entry): dimension {} of {} was {}, now {}. Padding it to the next of a few fixed sizes ({}, {}, {}, …) bounds the number of entries; mask what was added.</source>
        <translation>Wo die Größe eine Zahl bleiben muss (siehe die Formen des Eintrags): Dimension {} von {} war {}, jetzt {}. Auf die nächste von wenigen festen Größen ({}, {}, {}, …) aufgefüllt, ist die Zahl der Einträge begrenzt; was dazukam, ausmaskieren.</translation>
    </message>
    <message>
        <source>Give the tensor the same number of dimensions</source>
        <translation>Dem Tensor immer gleich viele Dimensionen geben</translation>
    </message>
    <message>
        <source>{} had {} dimensions, now {}. Each number is a program of its own: add the missing dimension with unsqueeze(0) or view(), or compile one function for each.</source>
        <translation>{} hatte {} Dimensionen, jetzt {}. Jede Zahl ist ein eigenes Programm: die fehlende Dimension mit unsqueeze(0) oder view() hinzufügen, oder für jede eine Funktion kompilieren.</translation>
    </message>
    <message>
        <source>Cast where the function is called</source>
        <translation>Dort umwandeln, wo die Funktion aufgerufen wird</translation>
    </message>
    <message>
        <source>{} was {}, now {}. If both mean the same to the model, a cast outside keeps one entry.</source>
        <translation>{} war {}, jetzt {}. Bedeuten beide für das Modell dasselbe, bleibt es mit einer Umwandlung außerhalb bei einem Eintrag.</translation>
    </message>
    <message>
        <source>Move the tensor where the function is called</source>
        <translation>Den Tensor dort verschieben, wo die Funktion aufgerufen wird</translation>
    </message>
    <message>
        <source>{} was on {}, now on {}. Code is made for one device.</source>
        <translation>{} war auf {}, jetzt auf {}. Code wird für ein Gerät gemacht.</translation>
    </message>
    <message>
        <source>Make the tensor contiguous where the function is called</source>
        <translation>Den Tensor dort zusammenhängend machen, wo die Funktion aufgerufen wird</translation>
    </message>
    <message>
        <source>Its elements lay with strides {}, now {}: a view, a transpose or a slice came in. contiguous() copies only if it has to.</source>
        <translation>Seine Elemente lagen mit Strides {}, jetzt {}: eine View, eine Transposition oder ein Ausschnitt kam herein. contiguous() kopiert nur, wenn es muss.</translation>
    </message>
    <message>
        <source>Keep requires_grad as it is</source>
        <translation>requires_grad lassen, wie es ist</translation>
    </message>
    <message>
        <source>requires_grad of {} was {}, now {}: with and without a backward are two programs. Call detach() where no gradient is wanted, or use one compiled function for training and one for evaluation.</source>
        <translation>requires_grad von {} war {}, jetzt {}: mit und ohne Rückwärtsgang sind zwei Programme. detach() aufrufen, wo kein Gradient gewünscht ist, oder eine kompilierte Funktion zum Trainieren und eine zum Auswerten verwenden.</translation>
    </message>
    <message>
        <source>Pass the same kind of tensor</source>
        <translation>Dieselbe Art von Tensor übergeben</translation>
    </message>
    <message>
        <source>{}: expected {}, found {}. Subclasses, inference tensors, and tensors inside functorch transforms are different programs.</source>
        <translation>{}: erwartet {}, gefunden {}. Unterklassen, Inferenz-Tensoren und Tensoren in functorch-Transformationen sind verschiedene Programme.</translation>
    </message>
    <message>
        <source>Train and evaluate with an entry each</source>
        <translation>Trainieren und Auswerten mit je einem Eintrag</translation>
    </message>
    <message>
        <source>train() and eval() are two programs and need one entry each; that is two compiles in all, not one for every switch. Nothing to change unless the module is switched inside of a step.</source>
        <translation>train() und eval() sind zwei Programme und brauchen je einen Eintrag; das sind zwei Kompilierungen insgesamt, nicht eine bei jedem Wechsel. Nichts zu ändern, außer wenn das Modul innerhalb eines Schritts umgeschaltet wird.</translation>
    </message>
    <message>
        <source>Make {} a buffer</source>
        <translation>Aus {} einen Buffer machen</translation>
    </message>
    <message>
        <source>A Python number is burned into the code: {} was {}, now {}. As a tensor it is an input, and one entry serves all values. Assign with self.{}.fill_(value), and do not use it in Python conditions.</source>
        <translation>Eine Python-Zahl ist fest im Code: {} war {}, jetzt {}. Als Tensor ist sie eine Eingabe, und ein Eintrag dient allen Werten. Mit self.{}.fill_(value) zuweisen, und nicht in Python-Bedingungen verwenden.</translation>
    </message>
    <message>
        <source>Pass the number as a tensor</source>
        <translation>Die Zahl als Tensor übergeben</translation>
    </message>
    <message>
        <source>{} was {}, now {}: every value is compiled anew. A tensor of no dimensions is an input like any other. Inside, it can take part in arithmetic, not in `if`, `range` or as a size.</source>
        <translation>{} war {}, jetzt {}: jeder Wert wird neu kompiliert. Ein Tensor ohne Dimensionen ist eine Eingabe wie andere. Innen kann er an Rechnungen teilnehmen, nicht an `if`, `range` oder als Größe.</translation>
    </message>
    <message>
        <source>Let the integer be dynamic</source>
        <translation>Die ganze Zahl dynamisch sein lassen</translation>
    </message>
    <message>
        <source>With dynamic=True (or after the second value, by itself) integers become symbols; floats never do.</source>
        <translation>Mit dynamic=True (oder nach dem zweiten Wert von selbst) werden ganze Zahlen Symbole; Gleitkommazahlen nie.</translation>
    </message>
    <message>
        <source>Hand the number in as a tensor argument</source>
        <translation>Die Zahl als Tensor-Argument übergeben</translation>
    </message>
    <message>
        <source>{} was {}, now {}. What changes between calls belongs into the arguments, as a tensor.</source>
        <translation>{} war {}, jetzt {}. Was sich zwischen Aufrufen ändert, gehört in die Argumente, als Tensor.</translation>
    </message>
    <message>
        <source>Decide outside of the compiled function</source>
        <translation>Außerhalb der kompilierten Funktion entscheiden</translation>
    </message>
    <message>
        <source>{} was {}, now {}. Each value of a string, flag or None that is read, not only handed on, is a program of its own: fine for a few, else make the choice before the call and compile what is chosen.</source>
        <translation>{} war {}, jetzt {}. Jeder Wert einer Zeichenkette, eines Schalters oder von None, der gelesen und nicht nur weitergereicht wird, ist ein eigenes Programm: für wenige in Ordnung, sonst vor dem Aufruf wählen und kompilieren, was gewählt ist.</translation>
    </message>
    <message>
        <source>Call it in one mode</source>
        <translation>In einem Modus aufrufen</translation>
    </message>
    <message>
        <source>{}. Grad mode, autocast, default dtype and deterministic mode are part of the program: enter the context outside in the same way each time, or compile one function for training and one for evaluation.</source>
        <translation>{}. Grad-Modus, Autocast, Standard-dtype und deterministischer Modus sind Teil des Programms: den Kontext außerhalb immer gleich betreten, oder eine Funktion zum Trainieren und eine zum Auswerten kompilieren.</translation>
    </message>
    <message>
        <source>{}, now {}</source>
        <translation>{}, jetzt {}</translation>
    </message>
    <message>
        <source>Make the object once</source>
        <translation>Das Objekt einmal machen</translation>
    </message>
    <message>
        <source>{} is another object than when it was compiled. Functions, lambdas, partials and modules that are made anew for each call never match: make them at module level or in __init__ and pass the same one.</source>
        <translation>{} ist ein anderes Objekt als beim Kompilieren. Funktionen, Lambdas, partials und Module, die für jeden Aufruf neu gemacht werden, passen nie: auf Modulebene oder in __init__ machen und dasselbe übergeben.</translation>
    </message>
    <message>
        <source>Pass one type</source>
        <translation>Einen Typ übergeben</translation>
    </message>
    <message>
        <source>{}: expected {}, found {}. Convert before the call, or give each type its own compiled function.</source>
        <translation>{}: erwartet {}, gefunden {}. Vor dem Aufruf umwandeln, oder jedem Typ seine eigene kompilierte Funktion geben.</translation>
    </message>
    <message>
        <source>Keep the number of items</source>
        <translation>Die Zahl der Elemente beibehalten</translation>
    </message>
    <message>
        <source>{}: {}, now {}. Loops over Python containers are unrolled, so each length is a program. Stack the items into one tensor, or pad the container to a fixed length.</source>
        <translation>{}: {}, jetzt {}. Schleifen über Python-Container werden ausgerollt, jede Länge ist also ein Programm. Die Elemente in einen Tensor stapeln, oder den Container auf eine feste Länge auffüllen.</translation>
    </message>
    <message>
        <source>Create the keys and attributes beforehand</source>
        <translation>Schlüssel und Attribute vorher anlegen</translation>
    </message>
    <message>
        <source>{}: {}, now {}. State that appears at the first call (caches, hooks, optimizer state) makes the second call another program: create it in __init__, or run one step before compiling.</source>
        <translation>{}: {}, jetzt {}. Zustand, der beim ersten Aufruf entsteht (Caches, Hooks, Zustand des Optimierers), macht den zweiten zu einem anderen Programm: in __init__ anlegen, oder vor dem Kompilieren einen Schritt ausführen.</translation>
    </message>
    <message>
        <source>Do not pass one tensor twice</source>
        <translation>Nicht denselben Tensor zweimal übergeben</translation>
    </message>
    <message>
        <source>Two arguments that are the same tensor are a program of their own, since writes through one are seen through the other.</source>
        <translation>Zwei Argumente, die derselbe Tensor sind, sind ein eigenes Programm, denn was durch das eine geschrieben wird, sieht man durch das andere.</translation>
    </message>
    <message>
        <source>Finish the class before the first call</source>
        <translation>Die Klasse vor dem ersten Aufruf fertigstellen</translation>
    </message>
    <message>
        <source>An attribute of the class behind {} was set after the compile. Patch classes before the compiled function runs.</source>
        <translation>Ein Attribut der Klasse hinter {} wurde nach dem Kompilieren gesetzt. Klassen ändern, bevor die kompilierte Funktion läuft.</translation>
    </message>
    <message>
        <source>Say the range beforehand</source>
        <translation>Den Bereich vorher sagen</translation>
    </message>
    <message>
        <source>{}: a symbolic size left the range that it was compiled for (0 and 1 always do). torch._dynamo.mark_dynamic(x, dim, min=…, max=…) before the first call fixes the range; a size of 1 needs an entry of its own.</source>
        <translation>{}: eine symbolische Größe verließ den Bereich, für den sie kompiliert wurde (0 und 1 tun das immer). torch._dynamo.mark_dynamic(x, dim, min=…, max=…) vor dem ersten Aufruf legt den Bereich fest; die Größe 1 braucht einen eigenen Eintrag.</translation>
    </message>
    <message>
        <source>dynamic=True makes every size symbolic at the first compile.</source>
        <translation>dynamic=True macht jede Größe beim ersten Kompilieren symbolisch.</translation>
    </message>
    <message>
        <source>as captured</source>
        <translation>wie erfasst</translation>
    </message>
    <message>
        <source>Raise the limit</source>
        <translation>Die Grenze anheben</translation>
    </message>
    <message>
        <source>The frame runs in eager from here on. A higher limit allows more entries; it does not make their number finite, and every entry is checked before a miss.</source>
        <translation>Die Funktion läuft von hier an ohne Compiler. Eine höhere Grenze erlaubt mehr Einträge; endlich wird ihre Zahl davon nicht, und jeder Eintrag wird geprüft, ehe keiner passt.</translation>
    </message>
    <message>
        <source>Keep it as it was</source>
        <translation>Lassen, wie es war</translation>
    </message>
    <message>
        <source>{}: expected {}, found {}. What changes between calls is best passed as a tensor argument; what does not change is best made once, before the first call.</source>
        <translation>{}: erwartet {}, gefunden {}. Was sich zwischen Aufrufen ändert, wird am besten als Tensor-Argument übergeben; was sich nicht ändert, am besten einmal gemacht, vor dem ersten Aufruf.</translation>
    </message>
    <message>
        <source>Replace the loop over a size by an operator</source>
        <translation>Die Schleife über eine Größe durch einen Operator ersetzen</translation>
    </message>
    <message>
        <source>A loop over range() is unrolled into the graph, so every length is a graph of its own. An operator over the whole dimension (or torch.vmap) leaves the size symbolic; a loop that must stay can be left outside of the compiled function.</source>
        <translation>Eine Schleife über range() wird in den Graphen ausgerollt, jede Länge ist also ein eigener Graph. Ein Operator über die ganze Dimension (oder torch.vmap) lässt die Größe symbolisch; eine Schleife, die bleiben muss, kann außerhalb der kompilierten Funktion stehen.</translation>
    </message>
    <message>
        <source>Look the value up before the call</source>
        <translation>Den Wert vor dem Aufruf nachschlagen</translation>
    </message>
    <message>
        <source>A dict or set needs the number itself. Do the look-up outside of the compiled function and pass what it gave.</source>
        <translation>Ein dict oder set braucht die Zahl selbst. Außerhalb der kompilierten Funktion nachschlagen und übergeben, was es ergab.</translation>
    </message>
    <message>
        <source>Make the text outside of the compiled function</source>
        <translation>Den Text außerhalb der kompilierten Funktion machen</translation>
    </message>
    <message>
        <source>A text that contains the number holds for that number only. Make it before or after the call.</source>
        <translation>Ein Text, der die Zahl enthält, gilt nur für diese Zahl. Vor oder nach dem Aufruf machen.</translation>
    </message>
    <message>
        <source>Pick the element before the call</source>
        <translation>Das Element vor dem Aufruf wählen</translation>
    </message>
    <message>
        <source>Indexing a Python list needs the number itself. Pick the element outside and pass it, or stack the elements into a tensor.</source>
        <translation>Der Index einer Python-Liste braucht die Zahl selbst. Das Element außerhalb wählen und übergeben, oder die Elemente in einen Tensor stapeln.</translation>
    </message>
    <message>
        <source>Move what needs the number out of the compiled function</source>
        <translation>Was die Zahl braucht, aus der kompilierten Funktion herausnehmen</translation>
    </message>
    <message>
        <source>This line needs the number, not a symbol for it. Compute its result before the call and pass it, or make it an operator on tensors.</source>
        <translation>Diese Zeile braucht die Zahl, nicht ein Symbol dafür. Ihr Ergebnis vor dem Aufruf berechnen und übergeben, oder einen Operator auf Tensoren daraus machen.</translation>
    </message>
    <message>
        <source>Decide before the call</source>
        <translation>Vor dem Aufruf entscheiden</translation>
    </message>
    <message>
        <source>The branch holds for this one value. Decide outside of the compiled function, compare with &lt; or &gt;= where that is meant, or put both sides into one graph with torch.where or torch.cond.</source>
        <translation>Der Zweig gilt für diesen einen Wert. Außerhalb entscheiden, mit &lt; oder &gt;= vergleichen, wo das gemeint ist, oder beide Seiten mit torch.where oder torch.cond in einen Graphen bringen.</translation>
    </message>
    <message>
        <source>Give the operator a fixed size</source>
        <translation>Dem Operator eine feste Größe geben</translation>
    </message>
    <message>
        <source>There is no rule for symbolic sizes of this operator, so it is captured for one size. Pad its input to a few sizes, or call it outside of the compiled function.</source>
        <translation>Für symbolische Größen dieses Operators gibt es keine Regel, er wird also für eine Größe erfasst. Seine Eingabe auf wenige Größen auffüllen, oder ihn außerhalb der kompilierten Funktion aufrufen.</translation>
    </message>
    <message>
        <source>Keep sizes 0 and 1 apart, or pad them</source>
        <translation>Größen 0 und 1 getrennt halten, oder auffüllen</translation>
    </message>
    <message>
        <source>0 and 1 mean something else to broadcasting and empty tensors, so they have entries of their own: one more compile, once. Where they are frequent and costly, pad to 2, or mark the dimension unbacked (torch._dynamo.decorators.mark_unbacked).</source>
        <translation>0 und 1 bedeuten für Broadcasting und leere Tensoren etwas anderes, sie haben also eigene Einträge: eine Kompilierung mehr, einmal. Wo sie häufig und teuer sind, auf 2 auffüllen, oder die Dimension als ungebunden markieren (torch._dynamo.decorators.mark_unbacked).</translation>
    </message>
    <message>
        <source>Let the size vary</source>
        <translation>Die Größe sich ändern lassen</translation>
    </message>
    <message>
        <source>A setting or a mark keeps it a constant: dynamic=False, mark_static, assume_static_by_default or automatic_dynamic_shapes. Take it away, or mark this dimension with torch._dynamo.mark_dynamic.</source>
        <translation>Eine Einstellung oder Markierung lässt sie eine Konstante sein: dynamic=False, mark_static, assume_static_by_default oder automatic_dynamic_shapes. Sie wegnehmen, oder diese Dimension mit torch._dynamo.mark_dynamic markieren.</translation>
    </message>
    <message>
        <source>Say how large the size becomes</source>
        <translation>Sagen, wie groß die Größe wird</translation>
    </message>
    <message>
        <source>The fastest kernel was chosen for this size. torch._dynamo.mark_dynamic(tensor, dim, min=…, max=…) says which sizes come, so that the choice fits all of them.</source>
        <translation>Für diese Größe wurde der schnellste Kernel gewählt. torch._dynamo.mark_dynamic(tensor, dim, min=…, max=…) sagt, welche Größen kommen, damit die Wahl für alle passt.</translation>
    </message>
    <message>
        <source>See why symbols were given up</source>
        <translation>Nachsehen, warum Symbole aufgegeben wurden</translation>
    </message>
    <message>
        <source>Compiling with symbols failed, so this entry has constants. The reason names what failed; without it the sizes vary freely.</source>
        <translation>Mit Symbolen misslang das Kompilieren, deshalb hat dieser Eintrag Konstanten. Der Grund nennt, was misslang; ohne das ändern sich die Größen frei.</translation>
    </message>
    <message>
        <source>Two sizes that were equal are not any more</source>
        <translation>Zwei Größen, die gleich waren, sind es nicht mehr</translation>
    </message>
    <message>
        <source>Equal sizes share one symbol until they differ: one recompile, none later. Where they are known to differ, call the function with different sizes first, or mark both dimensions.</source>
        <translation>Gleiche Größen teilen sich ein Symbol, bis sie sich unterscheiden: eine erneute Kompilierung, später keine. Wo bekannt ist, dass sie sich unterscheiden, die Funktion zuerst mit verschiedenen Größen aufrufen, oder beide Dimensionen markieren.</translation>
    </message>
    <message>
        <source>Kernels were made for sizes within this bound (index widths, vector lengths, tiles). torch._dynamo.mark_dynamic(tensor, dim, max=…) makes the choice fit all sizes at once.</source>
        <translation>Kernel wurden für Größen innerhalb dieser Grenze gemacht (Breiten von Indizes, Längen von Vektoren, Kacheln). Mit torch._dynamo.mark_dynamic(tensor, dim, max=…) passt die Wahl von Anfang an für alle Größen.</translation>
    </message>
    <message>
        <source>Decide before the call, or put both sides into the graph</source>
        <translation>Vor dem Aufruf entscheiden, oder beide Seiten in den Graphen bringen</translation>
    </message>
    <message>
        <source>The branch depends on a size, so each side is an entry of its own. That is two compiles, once. Where it is one too many, decide outside of the compiled function, or use torch.where or torch.cond.</source>
        <translation>Der Zweig hängt von einer Größe ab, jede Seite ist also ein eigener Eintrag. Das sind zwei Kompilierungen, einmal. Wo das eine zu viel ist, außerhalb der kompilierten Funktion entscheiden, oder torch.where oder torch.cond verwenden.</translation>
    </message>
    <message>
        <source>Say what holds of the size</source>
        <translation>Sagen, was für die Größe gilt</translation>
    </message>
    <message>
        <source>An operator is made differently where this relation does not hold. If it always does, torch._check(…) before this line says so; else it is one more entry, once.</source>
        <translation>Wo diese Beziehung nicht gilt, wird ein Operator anders gemacht. Gilt sie immer, sagt das torch._check(…) vor dieser Zeile; sonst ist es ein Eintrag mehr, einmal.</translation>
    </message>
    <message>
        <source>Register a fake implementation of the operator</source>
        <translation>Eine Fake-Implementierung des Operators anmelden</translation>
    </message>
    <message>
        <source>Compiling needs to know the shape and type of the operator&apos;s result without running it. A function under @my_operator.register_fake says so: it returns an empty tensor of that shape.</source>
        <translation>Das Kompilieren muss Form und Typ des Ergebnisses kennen, ohne den Operator auszuführen. Eine Funktion unter @my_operator.register_fake sagt das: sie gibt einen leeren Tensor dieser Form zurück.</translation>
    </message>
    <message>
        <source>Make the function run without data</source>
        <translation>Die Funktion ohne Daten lauffähig machen</translation>
    </message>
    <message>
        <source>The function was tried on tensors without data and raised. See whether it raises in eager too; an operator of your own needs a fake implementation (register_fake).</source>
        <translation>Die Funktion wurde an Tensoren ohne Daten versucht und löste eine Ausnahme aus. Nachsehen, ob sie es auch ohne Compiler tut; ein eigener Operator braucht eine Fake-Implementierung (register_fake).</translation>
    </message>
    <message>
        <source>Try another backend to find the part that fails</source>
        <translation>Ein anderes Backend versuchen, um den Teil zu finden, der versagt</translation>
    </message>
    <message>
        <source>Capture went well and the backend raised. With backend=&quot;eager&quot; the captured graph runs as it is, with backend=&quot;aot_eager&quot; after autograd: what still fails says whose error it is.</source>
        <translation>Das Erfassen gelang, und das Backend löste eine Ausnahme aus. Mit backend=&quot;eager&quot; läuft der erfasste Graph, wie er ist, mit backend=&quot;aot_eager&quot; nach Autograd: was dann noch versagt, sagt, wessen Fehler es ist.</translation>
    </message>
    <message>
        <source>Keep the operator out of the generated code</source>
        <translation>Den Operator aus dem erzeugten Code heraushalten</translation>
    </message>
    <message>
        <source>The backend has no way to generate code for this operator. An operator made with torch.library.custom_op is called as it is; else leave its call outside of the compiled function.</source>
        <translation>Das Backend kann für diesen Operator keinen Code erzeugen. Ein mit torch.library.custom_op gemachter Operator wird aufgerufen, wie er ist; sonst seinen Aufruf außerhalb der kompilierten Funktion lassen.</translation>
    </message>
    <message>
        <source>Find out what changes in every call</source>
        <translation>Herausfinden, was sich in jedem Aufruf ändert</translation>
    </message>
    <message>
        <source>The function was compiled for as many different inputs as the limit allows, and runs in Python for others. Recompiles says which guard failed each time and how to avoid it; torch._dynamo.config.recompile_limit raises the limit.</source>
        <translation>Die Funktion wurde für so viele verschiedene Eingaben kompiliert, wie die Grenze erlaubt, und läuft für andere in Python. „Neukompilierungen“ sagt, welcher Guard jedes Mal fehlschlug und wie es zu vermeiden ist; torch._dynamo.config.recompile_limit hebt die Grenze an.</translation>
    </message>
    <message>
        <source>Allow a graph break, or move the line out</source>
        <translation>Einen Graphbruch erlauben, oder die Zeile herausnehmen</translation>
    </message>
    <message>
        <source>With fullgraph=True a line that cannot be captured is an error. Without it the function is compiled in two pieces around the line; better still, the line moves out of the compiled function.</source>
        <translation>Mit fullgraph=True ist eine Zeile, die nicht erfasst werden kann, ein Fehler. Ohne es wird die Funktion in zwei Teilen um die Zeile herum kompiliert; besser noch, die Zeile kommt aus der kompilierten Funktion heraus.</translation>
    </message>
    <message>
        <source>See whether the function raises in eager</source>
        <translation>Nachsehen, ob die Funktion auch ohne Compiler eine Ausnahme auslöst</translation>
    </message>
    <message>
        <source>The compiled graph raised an error, so the program&apos;s own code ran instead, to raise it at its line.</source>
        <translation>Der kompilierte Graph löste einen Fehler aus, also lief stattdessen der Code des Programms selbst, damit der Fehler in seiner Zeile entsteht.</translation>
    </message>
    <message>
        <source>What PyTorch suggests</source>
        <translation>Was PyTorch vorschlägt</translation>
    </message>
    <message>
        <source>Compile a smaller part</source>
        <translation>Einen kleineren Teil kompilieren</translation>
    </message>
    <message>
        <source>The function runs as plain Python: right, and no faster than eager. Compile the functions that it calls, one by one, to find the line; the message names what could not be compiled.</source>
        <translation>Die Funktion läuft als reines Python: richtig, und nicht schneller als ohne Compiler. Die Funktionen, die sie aufruft, eine nach der anderen kompilieren, um die Zeile zu finden; die Meldung nennt, was nicht kompiliert werden konnte.</translation>
    </message>
    <message>
        <source>The iterator was made before this part of the function: outside of it, or before an earlier break (mend that one first). How far it has come is hidden. A list can be followed: list(iterator) before the call, or [x for x in y].</source>
        <translation>Der Iterator wurde vor diesem Teil der Funktion gemacht: außerhalb von ihr oder vor einem früheren Bruch (dann ist zuerst dieser zu beheben). Wie weit er gekommen ist, ist verborgen. Einer Liste kann gefolgt werden: list(iterator) vor dem Aufruf oder [x for x in y].</translation>
    </message>
    <message>
        <source>Expect an entry of its own for size {}</source>
        <translation>Mit einem eigenen Eintrag für Größe {} rechnen</translation>
    </message>
    <message>
        <source>0 or 1</source>
        <translation>0 oder 1</translation>
    </message>
    <message>
        <source>Dimension {} of {} was {}, now {}. Sizes 0 and 1 are compiled apart whatever is marked dynamic: what has one element broadcasts. It is one entry more; call the function with both sizes before it has to be quick, or pad to 2.</source>
        <translation>Dimension {} von {} war {}, jetzt {}. Größen 0 und 1 werden für sich kompiliert, was immer als dynamisch markiert ist: Was ein Element hat, wird ausgedehnt. Das ist ein Eintrag mehr; die Funktion mit beiden Größen aufrufen, bevor es schnell gehen muss, oder auf 2 auffüllen.</translation>
    </message>
    <message>
        <source>Move the line out of its block</source>
        <translation>Die Zeile aus ihrem Block herausnehmen</translation>
    </message>
    <message>
        <source>Capture stopped at a line where it cannot be taken up again, as in a try, a with or some loops, so the whole function runs in Python. Behind or before the block, or in a function that is called from there, the line costs a graph break only.</source>
        <translation>Die Erfassung hielt an einer Zeile, hinter der sie nicht weitergehen kann, wie in einem try, einem with oder manchen Schleifen; darum läuft die ganze Funktion in Python. Vor oder hinter dem Block, oder in einer Funktion, die von dort aufgerufen wird, kostet die Zeile nur einen Graphbruch.</translation>
    </message>
</context>
<context>
    <name>Breaks</name>
    <message>
        <source>not compiled: {}</source>
        <translation>nicht kompiliert: {}</translation>
    </message>
</context>
<context>
    <name>CUDA graphs</name>
    <message>
        <source>recording {}</source>
        <translation>Aufzeichnung {}</translation>
    </message>
    <message>
        <source>ran plainly first</source>
        <translation>lief zuerst ohne Graph</translation>
    </message>
    <message>
        <source>results moved (recording {})</source>
        <translation>Ergebnisse sind umgezogen (Aufzeichnung {})</translation>
    </message>
    <message>
        <source>ran plainly, another thread replayed</source>
        <translation>lief ohne Graph, ein anderer Thread wiederholte</translation>
    </message>
    <message>
        <source>refused</source>
        <translation>abgelehnt</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>beendet</translation>
    </message>
    <message>
        <source>{} (backward)</source>
        <translation>{} (rückwärts)</translation>
    </message>
    <message>
        <source>runs plainly: {}</source>
        <translation>läuft ohne Graph: {}</translation>
    </message>
    <message>
        <source>no event of a device was tied to this node</source>
        <translation>zu diesem Knoten gehört kein Ereignis eines Geräts</translation>
    </message>
</context>
<context>
    <name>Compare</name>
    <message>
        <source>graphs of backward passes</source>
        <translation>Graphen von Rückwärtsläufen</translation>
    </message>
    <message>
        <source>only in B</source>
        <translation>nur in B</translation>
    </message>
    <message>
        <source>only in A</source>
        <translation>nur in A</translation>
    </message>
    <message>
        <source>changed</source>
        <translation>geändert</translation>
    </message>
    <message>
        <source>Nothing differs beyond noise.</source>
        <translation>Nichts unterscheidet sich über das Rauschen hinaus.</translation>
    </message>
    <message>
        <source>The same was compiled, and its times differ by no more than noise.</source>
        <translation>Dasselbe wurde kompiliert, und seine Zeiten unterscheiden sich um nicht mehr als das Rauschen.</translation>
    </message>
    <message>
        <source>What can be compared is {}.</source>
        <translation>Was verglichen werden kann, ist {}.</translation>
    </message>
    <message>
        <source>No function was compiled in both sessions: these are different programs, or different parts of one.</source>
        <translation>Keine Funktion wurde in beiden Sitzungen kompiliert: Es sind verschiedene Programme oder verschiedene Teile eines Programms.</translation>
    </message>
    <message>
        <source>{} of {}</source>
        <translation>{} von {}</translation>
    </message>
    <message>
        <source>graph break only in A, {}</source>
        <translation>Graphbruch nur in A, {}</translation>
    </message>
    <message>
        <source>graph break only in B, {}</source>
        <translation>Graphbruch nur in B, {}</translation>
    </message>
    <message>
        <source>{} is not compiled in A, {}</source>
        <translation>{} ist in A nicht kompiliert, {}</translation>
    </message>
    <message>
        <source>{} is not compiled in B, {}</source>
        <translation>{} ist in B nicht kompiliert, {}</translation>
    </message>
    <message>
        <source>guard only in A: {}</source>
        <translation>Guard nur in A: {}</translation>
    </message>
    <message>
        <source>guard only in B: {}</source>
        <translation>Guard nur in B: {}</translation>
    </message>
    <message>
        <source>{} is {} only in A</source>
        <translation>{} ist nur in A {}</translation>
    </message>
    <message>
        <source>{} is {} only in B</source>
        <translation>{} ist nur in B {}</translation>
    </message>
    <message>
        <source>node only in A: {}</source>
        <translation>Knoten nur in A: {}</translation>
    </message>
    <message>
        <source>node only in B: {}</source>
        <translation>Knoten nur in B: {}</translation>
    </message>
    <message>
        <source>kernel {} only in A: {}</source>
        <translation>Kernel {} nur in A: {}</translation>
    </message>
    <message>
        <source>kernel {} only in B: {}</source>
        <translation>Kernel {} nur in B: {}</translation>
    </message>
    <message>
        <source>recompile</source>
        <translation>Neukompilierung</translation>
    </message>
    <message>
        <source>{} only in A: {}</source>
        <translation>{} nur in A: {}</translation>
    </message>
    <message>
        <source>{} only in B: {}</source>
        <translation>{} nur in B: {}</translation>
    </message>
    <message>
        <source>option {}: {}</source>
        <translation>Option {}: {}</translation>
    </message>
    <message>
        <source>engine: {}</source>
        <translation>Engine: {}</translation>
    </message>
    <message>
        <source>the script&apos;s arguments: {}</source>
        <translation>die Argumente des Skripts: {}</translation>
    </message>
    <message>
        <source>the program changed, {}: {}</source>
        <translation>das Programm wurde geändert, {}: {}</translation>
    </message>
    <message>
        <source>{} was compiled only in B ({})</source>
        <translation>{} wurde nur in B kompiliert ({})</translation>
    </message>
    <message>
        <source>{} was compiled only in A ({})</source>
        <translation>{} wurde nur in A kompiliert ({})</translation>
    </message>
    <message>
        <source>graph break: {}</source>
        <translation>Graphbruch: {}</translation>
    </message>
    <message>
        <source>not compiled: {}</source>
        <translation>nicht kompiliert: {}</translation>
    </message>
    <message>
        <source>recompiles</source>
        <translation>Neukompilierungen</translation>
    </message>
    <message>
        <source>guard {}: {}</source>
        <translation>Guard {}: {}</translation>
    </message>
    <message>
        <source>node {}: {}</source>
        <translation>Knoten {}: {}</translation>
    </message>
    <message>
        <source>kernel {}: {}</source>
        <translation>Kernel {}: {}</translation>
    </message>
    <message>
        <source>Two engines: {} and {}. What they do differently first: {}.</source>
        <translation>Zwei Engines: {} und {}. Was sie zuerst verschieden tun: {}.</translation>
    </message>
    <message>
        <source>{}. What was compiled is the same and nothing recorded before it differs: look at the machine&apos;s load and clocks.</source>
        <translation>{}. Kompiliert wurde dasselbe, und nichts, was davor aufgezeichnet ist, unterscheidet sich: Last und Takt der Maschine ansehen.</translation>
    </message>
    <message>
        <source>{}. Nothing recorded before it differs: the inputs did.</source>
        <translation>{}. Nichts, was davor aufgezeichnet ist, unterscheidet sich: Es waren die Eingaben.</translation>
    </message>
    <message>
        <source>{} (and {} more at this stage)</source>
        <translation>{} (und {} weitere auf dieser Stufe)</translation>
    </message>
    <message>
        <source>a step of the program: {}</source>
        <translation>ein Schritt des Programms: {}</translation>
    </message>
    <message>
        <source>a graph</source>
        <translation>ein Graph</translation>
    </message>
    <message>
        <source>{}: {} more nodes differ and are not listed</source>
        <translation>{}: {} weitere Knoten unterscheiden sich und sind nicht aufgeführt</translation>
    </message>
    <message>
        <source>{}: the graphs are too different to be aligned node by node</source>
        <translation>{}: Die Graphen sind zu verschieden, um Knoten für Knoten zugeordnet zu werden</translation>
    </message>
    <message>
        <source>{} refused to fuse it with {}: {}</source>
        <translation>{} lehnte es ab, ihn mit {} zu fusionieren: {}</translation>
    </message>
    <message>
        <source>{}, 1 node</source>
        <translation>{}, 1 Knoten</translation>
    </message>
    <message>
        <source>{}, {} nodes</source>
        <translation>{}, {} Knoten</translation>
    </message>
    <message>
        <source>{} computes this in {}</source>
        <translation>{} berechnet dies in {}</translation>
    </message>
    <message>
        <source>backward graph</source>
        <translation>Rückwärtsgraph</translation>
    </message>
    <message>
        <source>graph</source>
        <translation>Graph</translation>
    </message>
    <message>
        <source>kernels and calls</source>
        <translation>Kernel und Aufrufe</translation>
    </message>
    <message>
        <source>bytes moved by a call</source>
        <translation>von einem Aufruf bewegte Bytes</translation>
    </message>
    <message>
        <source>what kernels and calls read and write</source>
        <translation>was Kernel und Aufrufe lesen und schreiben</translation>
    </message>
    <message>
        <source>memory at its peak</source>
        <translation>Speicher am Höhepunkt</translation>
    </message>
    <message>
        <source>buffers alive at one time, as planned</source>
        <translation>gleichzeitig lebende Puffer, wie geplant</translation>
    </message>
    <message>
        <source>backward call</source>
        <translation>Rückwärtsaufruf</translation>
    </message>
    <message>
        <source>call</source>
        <translation>Aufruf</translation>
    </message>
    <message>
        <source>guards</source>
        <translation>Guards</translation>
    </message>
    <message>
        <source>engines word guards differently: only their number is compared</source>
        <translation>Engines schreiben Guards verschieden: Nur ihre Zahl wird verglichen</translation>
    </message>
    <message>
        <source>graphs</source>
        <translation>Graphen</translation>
    </message>
    <message>
        <source>{}: {} and {} graphs are paired by their order</source>
        <translation>{}: {} und {} Graphen sind nach ihrer Reihenfolge zugeordnet</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>ja</translation>
    </message>
    <message>
        <source>no</source>
        <translation>nein</translation>
    </message>
    <message>
        <source>entries compiled</source>
        <translation>kompilierte Einträge</translation>
    </message>
    <message>
        <source>guard check</source>
        <translation>Prüfung der Guards</translation>
    </message>
    <message>
        <source>of the entry that was called most</source>
        <translation>des Eintrags, der am häufigsten aufgerufen wurde</translation>
    </message>
    <message>
        <source>compile time</source>
        <translation>Kompilierzeit</translation>
    </message>
    <message>
        <source>measured once on each side</source>
        <translation>auf jeder Seite einmal gemessen</translation>
    </message>
    <message>
        <source>section</source>
        <translation>Abschnitt</translation>
    </message>
    <message>
        <source>environment</source>
        <translation>Umgebung</translation>
    </message>
    <message>
        <source>option</source>
        <translation>Option</translation>
    </message>
    <message>
        <source>program</source>
        <translation>Programm</translation>
    </message>
    <message>
        <source>engine</source>
        <translation>Engine</translation>
    </message>
    <message>
        <source>function</source>
        <translation>Funktion</translation>
    </message>
    <message>
        <source>graph break</source>
        <translation>Graphbruch</translation>
    </message>
    <message>
        <source>guard</source>
        <translation>Guard</translation>
    </message>
    <message>
        <source>node</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>count</source>
        <translation>Anzahl</translation>
    </message>
    <message>
        <source>symbolic size</source>
        <translation>symbolische Größe</translation>
    </message>
    <message>
        <source>not compiled</source>
        <translation>nicht kompiliert</translation>
    </message>
    <message>
        <source>unknown engine</source>
        <translation>unbekannte Engine</translation>
    </message>
    <message>
        <source>{} holds no compiled functions: they are not compared</source>
        <translation>{} enthält keine kompilierten Funktionen: Sie werden nicht verglichen</translation>
    </message>
    <message>
        <source>{} holds no run times of kernels: they are not compared</source>
        <translation>{} enthält keine Laufzeiten von Kerneln: Sie werden nicht verglichen</translation>
    </message>
    <message>
        <source>{} holds no texts of the program: they are not compared</source>
        <translation>{} enthält keine Texte des Programms: Sie werden nicht verglichen</translation>
    </message>
    <message>
        <source>kernels of one session belong to graphs, those of the other do not: compare them by line</source>
        <translation>Kernel der einen Sitzung gehören zu Graphen, die der anderen nicht: nach Zeilen vergleichen</translation>
    </message>
    <message>
        <source>Kernels and calls outside graphs</source>
        <translation>Kernel und Aufrufe außerhalb von Graphen</translation>
    </message>
    <message>
        <source>Kernel time by line</source>
        <translation>Kernelzeit nach Zeilen</translation>
    </message>
    <message>
        <source>{}, {} launches</source>
        <translation>{}, {} Starts</translation>
    </message>
    <message>
        <source>Whole session</source>
        <translation>Ganze Sitzung</translation>
    </message>
    <message>
        <source>functions</source>
        <translation>Funktionen</translation>
    </message>
    <message>
        <source>compiles</source>
        <translation>Kompilierungen</translation>
    </message>
    <message>
        <source>launches</source>
        <translation>Starts</translation>
    </message>
    <message>
        <source>step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>one turn of the program&apos;s loop, with all that happens between its calls</source>
        <translation>ein Durchlauf der Schleife des Programms, mit allem, was zwischen ihren Aufrufen geschieht</translation>
    </message>
    <message>
        <source>kernel time</source>
        <translation>Kernelzeit</translation>
    </message>
    <message>
        <source>of all launches: it grows with the number of steps</source>
        <translation>aller Starts: Es wächst mit der Zahl der Schritte</translation>
    </message>
    <message>
        <source>symbolic, {}</source>
        <translation>symbolisch, {}</translation>
    </message>
    <message>
        <source>specialised to {}</source>
        <translation>auf {} festgelegt</translation>
    </message>
    <message>
        <source>{} (noise)</source>
        <translation>{} (Rauschen)</translation>
    </message>
    <message>
        <source>Program</source>
        <translation>Programm</translation>
    </message>
    <message>
        <source>(none)</source>
        <translation>(keine)</translation>
    </message>
    <message>
        <source>arguments</source>
        <translation>Argumente</translation>
    </message>
    <message>
        <source>{} removed, {} added; the first difference is shown</source>
        <translation>{} entfernt, {} hinzugefügt; der erste Unterschied ist gezeigt</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>Engine</translation>
    </message>
    <message>
        <source>Options</source>
        <translation>Optionen</translation>
    </message>
    <message>
        <source>Environment</source>
        <translation>Umgebung</translation>
    </message>
    <message>
        <source>operators outside compiled functions are recorded in one session only: their kernels are not compared</source>
        <translation>Operatoren außerhalb kompilierter Funktionen sind nur in einer Sitzung aufgezeichnet: ihre Kernel werden nicht verglichen</translation>
    </message>
    <message>
        <source>1 node of another shape</source>
        <translation>1 Knoten anderer Form</translation>
    </message>
    <message>
        <source>{} nodes of other shapes</source>
        <translation>{} Knoten anderer Formen</translation>
    </message>
    <message>
        <source>1 node of another type</source>
        <translation>1 Knoten anderen Typs</translation>
    </message>
    <message>
        <source>{} nodes of other types</source>
        <translation>{} Knoten anderer Typen</translation>
    </message>
    <message>
        <source>1 node of another operator</source>
        <translation>1 Knoten mit anderem Operator</translation>
    </message>
    <message>
        <source>{} nodes of other operators</source>
        <translation>{} Knoten mit anderen Operatoren</translation>
    </message>
    <message>
        <source>1 node only in A</source>
        <translation>1 Knoten nur in A</translation>
    </message>
    <message>
        <source>{} nodes only in A</source>
        <translation>{} Knoten nur in A</translation>
    </message>
    <message>
        <source>1 node only in B</source>
        <translation>1 Knoten nur in B</translation>
    </message>
    <message>
        <source>{} nodes only in B</source>
        <translation>{} Knoten nur in B</translation>
    </message>
    <message>
        <source>it computes {} in A only, {} in B only</source>
        <translation>er berechnet {} nur in A, {} nur in B</translation>
    </message>
    <message>
        <source>it computes {} in A only</source>
        <translation>er berechnet {} nur in A</translation>
    </message>
    <message>
        <source>it computes {} in B only</source>
        <translation>er berechnet {} nur in B</translation>
    </message>
    <message>
        <source>it moves {} instead of {}</source>
        <translation>er bewegt {} statt {}</translation>
    </message>
    <message>
        <source>1 launch each</source>
        <translation>je 1 Start</translation>
    </message>
    <message>
        <source>once each</source>
        <translation>je einmal</translation>
    </message>
    <message>
        <source>1 launch in {}</source>
        <translation>1 Start in {}</translation>
    </message>
    <message>
        <source>once in {}</source>
        <translation>einmal in {}</translation>
    </message>
    <message>
        <source>1 node</source>
        <translation>1 Knoten</translation>
    </message>
    <message>
        <source>{} nodes</source>
        <translation>{} Knoten</translation>
    </message>
    <message>
        <source>1 kernel or call</source>
        <translation>1 Kernel oder Aufruf</translation>
    </message>
    <message>
        <source>{} kernels and calls</source>
        <translation>{} Kernel und Aufrufe</translation>
    </message>
    <message>
        <source>{} ({})</source>
        <translation>{} ({})</translation>
    </message>
    <message>
        <source>{}, {} ({})</source>
        <translation>{}, {} ({})</translation>
    </message>
    <message>
        <source>{} times</source>
        <translation>{} Mal</translation>
    </message>
    <message>
        <source>{} ({} times)</source>
        <translation>{} ({} Mal)</translation>
    </message>
    <message>
        <source>turns of different loops</source>
        <translation>Durchläufe verschiedener Schleifen</translation>
    </message>
    <message>
        <source>from line {}</source>
        <translation>ab Zeile {}</translation>
    </message>
    <message>
        <source>entry {}</source>
        <translation>Eintrag {}</translation>
    </message>
</context>
<context>
    <name>Coverage</name>
    <message>
        <source>see the graph break</source>
        <translation>siehe Graphbruch</translation>
    </message>
    <message>
        <source>A later attempt was compiled.</source>
        <translation>Ein späterer Versuch wurde kompiliert.</translation>
    </message>
    <message>
        <source>graph break: {}</source>
        <translation>Graphbruch: {}</translation>
    </message>
    <message>
        <source>compiled</source>
        <translation>kompiliert</translation>
    </message>
    <message>
        <source>partly compiled</source>
        <translation>teilweise kompiliert</translation>
    </message>
    <message>
        <source>not compiled</source>
        <translation>nicht kompiliert</translation>
    </message>
    <message>
        <source>{} function: {}</source>
        <translation>{} Funktion: {}</translation>
    </message>
    <message>
        <source>{} functions: {}</source>
        <translation>{} Funktionen: {}</translation>
    </message>
    <message>
        <source>library</source>
        <translation>Bibliothek</translation>
    </message>
    <message>
        <source>{} function of libraries: {}</source>
        <translation>{} Funktion von Bibliotheken: {}</translation>
    </message>
    <message>
        <source>{} functions of libraries: {}</source>
        <translation>{} Funktionen von Bibliotheken: {}</translation>
    </message>
    <message>
        <source>saved, not compiled here</source>
        <translation>gespeichert, hier nicht kompiliert</translation>
    </message>
    <message>
        <source>compiled at least in part</source>
        <translation>mindestens teilweise kompiliert</translation>
    </message>
</context>
<context>
    <name>DebugPanel</name>
    <message>
        <source>{} has no function {}: it stops only if another file has one</source>
        <translation>{} hat keine Funktion {}: es wird nur gehalten, wenn eine andere Datei eine hat</translation>
    </message>
    <message>
        <source>{} has no function {} (nearest: {}): it stops only if another file has one</source>
        <translation>{} hat keine Funktion {} (am nächsten: {}): es wird nur gehalten, wenn eine andere Datei eine hat</translation>
    </message>
</context>
<context>
    <name>FileChange</name>
    <message>
        <source>line {} is not what it was</source>
        <translation>Zeile {} ist nicht mehr, was sie war</translation>
    </message>
</context>
<context>
    <name>Find</name>
    <message>
        <source>{} of compile {}</source>
        <translation>{} von Kompilierung {}</translation>
    </message>
    <message>
        <source>damaged: {}</source>
        <translation>beschädigt: {}</translation>
    </message>
</context>
<context>
    <name>Fusion</name>
    <message>
        <source>{} elements differ in kind</source>
        <translation>{} Elemente unterscheiden sich in der Art</translation>
    </message>
    <message>
        <source>divergent</source>
        <translation>weicht ab</translation>
    </message>
    <message>
        <source>too much</source>
        <translation>zu viel</translation>
    </message>
    <message>
        <source>change</source>
        <translation>Änderung</translation>
    </message>
    <message>
        <source>{:.1f} % slower ({:.1f} to {:.1f} %)</source>
        <translation>{:.1f} % langsamer ({:.1f} bis {:.1f} %)</translation>
    </message>
    <message>
        <source>{:.1f} % faster ({:.1f} to {:.1f} %)</source>
        <translation>{:.1f} % schneller ({:.1f} bis {:.1f} %)</translation>
    </message>
    <message>
        <source>as fast within noise ({} to {} %)</source>
        <translation>im Rahmen des Rauschens gleich schnell ({} bis {} %)</translation>
    </message>
    <message>
        <source>the same memory traffic</source>
        <translation>gleicher Speicherverkehr</translation>
    </message>
    <message>
        <source>{} more memory traffic</source>
        <translation>{} mehr Speicherverkehr</translation>
    </message>
    <message>
        <source>{} less memory traffic</source>
        <translation>{} weniger Speicherverkehr</translation>
    </message>
    <message>
        <source>left out: {}</source>
        <translation>ausgelassen: {}</translation>
    </message>
    <message>
        <source>{} sizes: from {} ({}) to {} ({})</source>
        <translation>{} Größen: von {} ({}) bis {} ({})</translation>
    </message>
    <message>
        <source>{} with {}: {}</source>
        <translation>{} mit {}: {}</translation>
    </message>
    <message>
        <source>{} a run</source>
        <translation>{} je Lauf</translation>
    </message>
    <message>
        <source>first divergence: {} ({})</source>
        <translation>erste Abweichung: {} ({})</translation>
    </message>
    <message>
        <source>; cause: {}: {}</source>
        <translation>; Ursache: {}: {}</translation>
    </message>
    <message>
        <source>{} values compared with float64: compiled is as exact as eager</source>
        <translation>{} Werte mit float64 verglichen: kompiliert ist so genau wie eager</translation>
    </message>
    <message>
        <source>, part {} of {}</source>
        <translation>, Teil {} von {}</translation>
    </message>
    <message>
        <source>{}, graph {}</source>
        <translation>{}, Graph {}</translation>
    </message>
</context>
<context>
    <name>GPU counters</name>
    <message>
        <source>DRAM read</source>
        <translation>DRAM gelesen</translation>
    </message>
    <message>
        <source>Bytes that a launch read from the device&apos;s memory</source>
        <translation>Bytes, die ein Start aus dem Speicher des Geräts las</translation>
    </message>
    <message>
        <source>DRAM written</source>
        <translation>DRAM geschrieben</translation>
    </message>
    <message>
        <source>Bytes that a launch wrote to the device&apos;s memory; what stays in the cache is written later</source>
        <translation>Bytes, die ein Start in den Speicher des Geräts schrieb; was im Cache bleibt, wird später geschrieben</translation>
    </message>
    <message>
        <source>DRAM rate</source>
        <translation>DRAM-Rate</translation>
    </message>
    <message>
        <source>Share of the memory rate that the device can sustain</source>
        <translation>Anteil an der Speicherrate, die das Gerät auf Dauer schafft</translation>
    </message>
    <message>
        <source>SM active</source>
        <translation>SM aktiv</translation>
    </message>
    <message>
        <source>Share of the time in which a multiprocessor had at least one warp</source>
        <translation>Anteil der Zeit, in der ein Multiprozessor mindestens einen Warp hatte</translation>
    </message>
    <message>
        <source>Occupancy achieved</source>
        <translation>Erreichte Belegung</translation>
    </message>
    <message>
        <source>Warps at work, of those that a multiprocessor can hold</source>
        <translation>Arbeitende Warps, von denen, die ein Multiprozessor halten kann</translation>
    </message>
    <message>
        <source>L1 hits</source>
        <translation>L1-Treffer</translation>
    </message>
    <message>
        <source>Sectors that were found in a multiprocessor&apos;s own cache</source>
        <translation>Sektoren, die im eigenen Cache eines Multiprozessors lagen</translation>
    </message>
    <message>
        <source>Tensor cores</source>
        <translation>Tensorkerne</translation>
    </message>
    <message>
        <source>Instructions of the tensor cores, of those that they can take</source>
        <translation>Befehle der Tensorkerne, von denen, die sie annehmen können</translation>
    </message>
    <message>
        <source>L2 hits</source>
        <translation>L2-Treffer</translation>
    </message>
    <message>
        <source>Sectors that were found in the cache that all multiprocessors share</source>
        <translation>Sektoren, die im gemeinsamen Cache aller Multiprozessoren lagen</translation>
    </message>
    <message>
        <source>L2 rate</source>
        <translation>L2-Rate</translation>
    </message>
    <message>
        <source>Sectors that the shared cache looked up, of those that it can</source>
        <translation>Sektoren, die der gemeinsame Cache nachschlug, von denen, die er kann</translation>
    </message>
    <message>
        <source>DRAM read rate</source>
        <translation>DRAM-Leserate</translation>
    </message>
    <message>
        <source>Reading of the device&apos;s memory, of the rate that it can sustain</source>
        <translation>Lesen aus dem Speicher des Geräts, von der Rate, die er auf Dauer schafft</translation>
    </message>
    <message>
        <source>DRAM write rate</source>
        <translation>DRAM-Schreibrate</translation>
    </message>
    <message>
        <source>Writing to the device&apos;s memory, of the rate that it can sustain</source>
        <translation>Schreiben in den Speicher des Geräts, von der Rate, die er auf Dauer schafft</translation>
    </message>
    <message>
        <source>Tensor active</source>
        <translation>Tensorkerne aktiv</translation>
    </message>
    <message>
        <source>Share of the time in which the tensor cores worked</source>
        <translation>Anteil der Zeit, in der die Tensorkerne arbeiteten</translation>
    </message>
</context>
<context>
    <name>GPU gaps</name>
    <message>
        <source>compiling</source>
        <translation>Kompilieren</translation>
    </message>
    <message>
        <source>The host compiled before it could go on. Warm up outside of what is measured; if a guard failed, mark what varies as dynamic.</source>
        <translation>Der Host kompilierte, bevor er weitermachen konnte. Außerhalb der Messung aufwärmen; wenn ein Guard fehlschlug, als dynamisch markieren, was sich ändert.</translation>
    </message>
    <message>
        <source>synchronisation</source>
        <translation>Synchronisation</translation>
    </message>
    <message>
        <source>The host waited for the device and only then asked for more: .item(), print of a tensor, a copy to the CPU, or an explicit wait. Read results later, or every few steps.</source>
        <translation>Der Host wartete auf das Gerät und verlangte erst dann mehr: .item(), print eines Tensors, eine Kopie zur CPU oder ausdrückliches Warten. Ergebnisse später lesen oder nur alle paar Schritte.</translation>
    </message>
    <message>
        <source>copy</source>
        <translation>Kopie</translation>
    </message>
    <message>
        <source>The host copied. Pinned memory and non_blocking=True let copies run beside the work.</source>
        <translation>Der Host kopierte. Mit gepinntem Speicher und non_blocking=True laufen Kopien neben der Arbeit.</translation>
    </message>
    <message>
        <source>memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>The allocator asked the driver for memory, which waits for the device. It ends once the pool has grown.</source>
        <translation>Der Allokator verlangte Speicher vom Treiber, und das wartet auf das Gerät. Es hört auf, sobald der Vorrat groß genug ist.</translation>
    </message>
    <message>
        <source>launch-bound</source>
        <translation>durch Starts begrenzt</translation>
    </message>
    <message>
        <source>The host issues work more slowly than the device does it. Larger kernels, or CUDA graphs (mode=&quot;reduce-overhead&quot;), help.</source>
        <translation>Der Host erteilt Arbeit langsamer, als das Gerät sie erledigt. Größere Kernel oder CUDA-Graphen (mode=&quot;reduce-overhead&quot;) helfen.</translation>
    </message>
    <message>
        <source>host</source>
        <translation>Host</translation>
    </message>
    <message>
        <source>The host did something else: Python between operators, data loading, other threads holding the GIL.</source>
        <translation>Der Host tat etwas anderes: Python zwischen Operatoren, Laden von Daten, andere Threads, die das GIL halten.</translation>
    </message>
    <message>
        <source>dependency</source>
        <translation>Abhängigkeit</translation>
    </message>
    <message>
        <source>The work had been asked for, and waited for another stream or a copy.</source>
        <translation>Die Arbeit war verlangt und wartete auf einen anderen Stream oder eine Kopie.</translation>
    </message>
    <message>
        <source>latency</source>
        <translation>Latenz</translation>
    </message>
    <message>
        <source>The device&apos;s own time between two kernels; a CUDA graph shortens it, fewer kernels avoid it.</source>
        <translation>Die Zeit, die das Gerät selbst zwischen zwei Kerneln braucht; ein CUDA-Graph verkürzt sie, weniger Kernel vermeiden sie.</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>unbekannt</translation>
    </message>
    <message>
        <source>The recording does not say who asked for the work after the gap.</source>
        <translation>Die Aufzeichnung sagt nicht, wer die Arbeit nach der Lücke verlangte.</translation>
    </message>
    <message>
        <source>launches</source>
        <translation>Starts</translation>
    </message>
    <message>
        <source>{} was compiled</source>
        <translation>{} wurde kompiliert</translation>
    </message>
    <message>
        <source>{} was compiled again: {} was {}, not {}</source>
        <translation>{} wurde noch einmal kompiliert: {} war {}, nicht {}</translation>
    </message>
    <message>
        <source>{} on {} ended just before</source>
        <translation>{} auf {} endete gerade davor</translation>
    </message>
    <message>
        <source>{} waited until the device had nothing left to do</source>
        <translation>{} wartete, bis das Gerät nichts mehr zu tun hatte</translation>
    </message>
</context>
<context>
    <name>Graph</name>
    <message>
        <source>input</source>
        <translation>Eingabe</translation>
    </message>
    <message>
        <source>output</source>
        <translation>Ausgabe</translation>
    </message>
    <message>
        <source>matrix product</source>
        <translation>Matrixprodukt</translation>
    </message>
    <message>
        <source>convolution</source>
        <translation>Faltung</translation>
    </message>
    <message>
        <source>pointwise</source>
        <translation>punktweise</translation>
    </message>
    <message>
        <source>reduction</source>
        <translation>Reduktion</translation>
    </message>
    <message>
        <source>view</source>
        <translation>Sicht</translation>
    </message>
    <message>
        <source>normalisation</source>
        <translation>Normalisierung</translation>
    </message>
    <message>
        <source>memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>other</source>
        <translation>andere</translation>
    </message>
    <message>
        <source>node</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>nodes</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Captured</source>
        <translation>Erfasst</translation>
    </message>
    <message>
        <source>Joint</source>
        <translation>Gemeinsam</translation>
    </message>
    <message>
        <source>Forward</source>
        <translation>Vorwärts</translation>
    </message>
    <message>
        <source>Backward</source>
        <translation>Rückwärts</translation>
    </message>
    <message>
        <source>Post-grad</source>
        <translation>Nach Autograd</translation>
    </message>
    <message>
        <source>Post-fusion</source>
        <translation>Nach Fusion</translation>
    </message>
</context>
<context>
    <name>Guards</name>
    <message>
        <source>size {}: {}, now {}</source>
        <translation>Größe {}: {}, jetzt {}</translation>
    </message>
    <message>
        <source>{} dimensions, now {}</source>
        <translation>{} Dimensionen, jetzt {}</translation>
    </message>
    <message>
        <source>dtype {}, now {}</source>
        <translation>dtype {}, jetzt {}</translation>
    </message>
    <message>
        <source>device {}, now {}</source>
        <translation>Gerät {}, jetzt {}</translation>
    </message>
    <message>
        <source>strides {}, now {}</source>
        <translation>Strides {}, jetzt {}</translation>
    </message>
    <message>
        <source>requires_grad {}, now {}</source>
        <translation>requires_grad {}, jetzt {}</translation>
    </message>
    <message>
        <source>what is left of the loop</source>
        <translation>was von der Schleife noch kommt</translation>
    </message>
    <message>
        <source>found {}</source>
        <translation>gefunden {}</translation>
    </message>
    <message>
        <source>expected {}, found {}</source>
        <translation>erwartet {}, gefunden {}</translation>
    </message>
    <message>
        <source>otherwise</source>
        <translation>anderes</translation>
    </message>
    <message>
        <source>{}: {}</source>
        <translation>{}: {}</translation>
    </message>
</context>
<context>
    <name>Kernels</name>
    <message>
        <source>occupancy is limited by {}</source>
        <translation>die Belegung ist begrenzt durch {}</translation>
    </message>
    <message>
        <source>around each launch</source>
        <translation>um jeden Start</translation>
    </message>
    <message>
        <source>sampled</source>
        <translation>abgetastet</translation>
    </message>
    <message>
        <source>{} samples of the whole device inside of launches of at least {} intervals: what ran beside them is in it</source>
        <translation>{} Abtastungen des ganzen Geräts innerhalb von Starts, die mindestens {} Abstände dauern: was daneben lief, ist darin enthalten</translation>
    </message>
</context>
<context>
    <name>Memory</name>
    <message>
        <source>at byte {} of the pool</source>
        <translation>ab Byte {} des Pools</translation>
    </message>
    <message>
        <source>input or parameter</source>
        <translation>Eingabe oder Parameter</translation>
    </message>
    <message>
        <source>saved</source>
        <translation>aufgehoben</translation>
    </message>
    <message>
        <source>{} (backward)</source>
        <translation>{} (rückwärts)</translation>
    </message>
    <message>
        <source>{}, entry {}</source>
        <translation>{}, Eintrag {}</translation>
    </message>
    <message>
        <source>{}, part {} of {}</source>
        <translation>{}, Teil {} von {}</translation>
    </message>
    <message>
        <source>{}, from line {}</source>
        <translation>{}, ab Zeile {}</translation>
    </message>
    <message>
        <source>the process held {} at most, {} when recording began</source>
        <translation>der Prozess belegte höchstens {}, zu Beginn der Aufzeichnung {}</translation>
    </message>
    <message>
        <source>the process held {} at most</source>
        <translation>der Prozess belegte höchstens {}</translation>
    </message>
    <message>
        <source>{} {} in use at most, {} taken from the device</source>
        <translation>{} höchstens {} in Gebrauch, {} dem Gerät abgenommen</translation>
    </message>
    <message>
        <source>Measured: this session does not hold it.</source>
        <translation>Gemessen: Diese Sitzung enthält es nicht.</translation>
    </message>
    <message>
        <source>Measured: {}.</source>
        <translation>Gemessen: {}.</translation>
    </message>
</context>
<context>
    <name>Overview</name>
    <message>
        <source>{} kinds of sizes</source>
        <translation>{} Arten von Größen</translation>
    </message>
    <message>
        <source>{} and {} more</source>
        <translation>{} und {} weitere</translation>
    </message>
</context>
<context>
    <name>PaletteSources</name>
    <message>
        <source>Node</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>Pass</source>
        <translation>Pass</translation>
    </message>
    <message>
        <source>File</source>
        <translation>Datei</translation>
    </message>
    <message>
        <source>Guard</source>
        <translation>Guard</translation>
    </message>
    <message>
        <source>Function</source>
        <translation>Funktion</translation>
    </message>
    <message>
        <source>Setting</source>
        <translation>Einstellung</translation>
    </message>
    <message>
        <source>chosen</source>
        <translation>gewählt</translation>
    </message>
</context>
<context>
    <name>QObject</name>
    <message>
        <source>writing stopped early</source>
        <translation>das Schreiben brach vorzeitig ab</translation>
    </message>
    <message>
        <source>there is nothing to draw yet</source>
        <translation>es gibt noch nichts zu zeichnen</translation>
    </message>
    <message>
        <source>unknown ending .%1; use .svg, .png or .pdf</source>
        <translation>unbekannte Endung .%1; möglich sind .svg, .png oder .pdf</translation>
    </message>
    <message>
        <source>Written to %1</source>
        <translation>Geschrieben nach %1</translation>
    </message>
    <message>
        <source>Export picture</source>
        <translation>Bild exportieren</translation>
    </message>
    <message>
        <source>SVG picture (*.svg);;PNG image (*.png);;PDF page (*.pdf)</source>
        <translation>SVG-Bild (*.svg);;PNG-Bild (*.png);;PDF-Seite (*.pdf)</translation>
    </message>
    <message>
        <source>%1 was not written: %2</source>
        <translation>%1 wurde nicht geschrieben: %2</translation>
    </message>
</context>
<context>
    <name>Recompiles</name>
    <message>
        <source>limit</source>
        <translation>Grenze</translation>
    </message>
    <message>
        <source>{}, from line {}</source>
        <translation>{}, ab Zeile {}</translation>
    </message>
    <message>
        <source>{}, from line {}, part {}</source>
        <translation>{}, ab Zeile {}, Teil {}</translation>
    </message>
</context>
<context>
    <name>Shapes</name>
    <message>
        <source>limit</source>
        <translation>Grenze</translation>
    </message>
    <message>
        <source>{} recompile, {}</source>
        <translation>{} erneute Kompilierung, {}</translation>
    </message>
    <message>
        <source>{} recompiles, {}</source>
        <translation>{} erneute Kompilierungen, {}</translation>
    </message>
    <message>
        <source>relation</source>
        <translation>Beziehung</translation>
    </message>
    <message>
        <source>equal sizes</source>
        <translation>gleiche Größen</translation>
    </message>
    <message>
        <source>of a plan</source>
        <translation>eines Plans</translation>
    </message>
    <message>
        <source>asserted</source>
        <translation>zugesichert</translation>
    </message>
    <message>
        <source>assumed</source>
        <translation>angenommen</translation>
    </message>
    <message>
        <source>, {} at capture</source>
        <translation>, {} beim Erfassen</translation>
    </message>
    <message>
        <source>: it was {}, now {}</source>
        <translation>: es war {}, jetzt {}</translation>
    </message>
    <message>
        <source>constant</source>
        <translation>Konstante</translation>
    </message>
    <message>
        <source>Symbolic sizes</source>
        <translation>Symbolische Größen</translation>
    </message>
    <message>
        <source>automatic_dynamic_shapes was off</source>
        <translation>automatic_dynamic_shapes war aus</translation>
    </message>
    <message>
        <source>the frame&apos;s limit of entries was reached</source>
        <translation>die Höchstzahl an Einträgen der Funktion war erreicht</translation>
    </message>
    <message>
        <source>a size is a constant until a second value of it is seen</source>
        <translation>eine Größe ist eine Konstante, bis ein zweiter Wert gesehen wird</translation>
    </message>
    <message>
        <source>each value was compiled for itself; the session holds no reason</source>
        <translation>jeder Wert wurde für sich kompiliert; die Sitzung enthält keinen Grund</translation>
    </message>
    <message>
        <source>at least {}</source>
        <translation>mindestens {}</translation>
    </message>
    <message>
        <source>at most {}</source>
        <translation>höchstens {}</translation>
    </message>
    <message>
        <source>any number</source>
        <translation>jede Zahl</translation>
    </message>
    <message>
        <source>, known when the graph runs</source>
        <translation>, bekannt, wenn der Graph läuft</translation>
    </message>
    <message>
        <source>{} was specialised to {} at {}:{}</source>
        <translation>{} wurde auf {} festgelegt, bei {}:{}</translation>
    </message>
    <message>
        <source>{} was specialised to {}</source>
        <translation>{} wurde auf {} festgelegt</translation>
    </message>
    <message>
        <source>{} became symbolic ({})</source>
        <translation>{} wurde symbolisch ({})</translation>
    </message>
    <message>
        <source>{} became symbolic ({}): it was {}, now {}</source>
        <translation>{} wurde symbolisch ({}): es war {}, jetzt {}</translation>
    </message>
</context>
<context>
    <name>Slowness</name>
    <message>
        <source>Between kernels and operators</source>
        <translation>Zwischen Kernels und Operatoren</translation>
    </message>
    <message>
        <source>{} function reached the recompile limit, and runs in Python where no entry fits: {}</source>
        <translation>{} Funktion erreichte das Limit an Neukompilierungen und läuft in Python, wo kein Eintrag passt: {}</translation>
    </message>
    <message>
        <source>{} functions reached the recompile limit, and run in Python where no entry fits: {}</source>
        <translation>{} Funktionen erreichten das Limit an Neukompilierungen und laufen in Python, wo kein Eintrag passt: {}</translation>
    </message>
    <message>
        <source>{} function reached the recompile limit, and runs in Python where no entry fits: {}; a step found here may be a part of such a call</source>
        <translation>{} Funktion erreichte das Limit an Neukompilierungen und läuft in Python, wo kein Eintrag passt: {}; ein hier gefundener Schritt kann ein Teil eines solchen Aufrufs sein</translation>
    </message>
    <message>
        <source>{} functions reached the recompile limit, and run in Python where no entry fits: {}; a step found here may be a part of such a call</source>
        <translation>{} Funktionen erreichten das Limit an Neukompilierungen und laufen in Python, wo kein Eintrag passt: {}; ein hier gefundener Schritt kann ein Teil eines solchen Aufrufs sein</translation>
    </message>
    <message>
        <source>{} (estimated)</source>
        <translation>{} (geschätzt)</translation>
    </message>
    <message>
        <source>{}, in the whole recording</source>
        <translation>{}, in der ganzen Aufzeichnung</translation>
    </message>
    <message>
        <source>(unnamed)</source>
        <translation>(ohne Namen)</translation>
    </message>
    <message>
        <source>The recording takes {}</source>
        <translation>Die Aufzeichnung dauert {}</translation>
    </message>
    <message>
        <source>A step takes {}</source>
        <translation>Ein Schritt dauert {}</translation>
    </message>
    <message>
        <source>{}; median of {}, which take {} to {}. Split here: the {} nearest to the median, on average {}</source>
        <translation>{}; Median von {}, die {} bis {} dauern. Hier aufgeteilt: die {}, die ihm am nächsten liegen, im Mittel {}</translation>
    </message>
    <message>
        <source>. {} step in which something was compiled is kept apart</source>
        <translation>. {} Schritt, in dem kompiliert wurde, steht für sich</translation>
    </message>
    <message>
        <source>. {} steps in which something was compiled are kept apart</source>
        <translation>. {} Schritte, in denen kompiliert wurde, stehen für sich</translation>
    </message>
    <message>
        <source>Kernels on the device</source>
        <translation>Kernel auf dem Gerät</translation>
    </message>
    <message>
        <source>A kernel runs on the device.</source>
        <translation>Auf dem Gerät läuft ein Kernel.</translation>
    </message>
    <message>
        <source>Copies on the device</source>
        <translation>Kopien auf dem Gerät</translation>
    </message>
    <message>
        <source>The device copies or fills memory and computes nothing.</source>
        <translation>Das Gerät kopiert oder füllt Speicher und rechnet nicht.</translation>
    </message>
    <message>
        <source>Copies</source>
        <translation>Kopien</translation>
    </message>
    <message>
        <source>A tensor is copied on the processor.</source>
        <translation>Ein Tensor wird auf dem Prozessor kopiert.</translation>
    </message>
    <message>
        <source>Kernels and operators on the processor</source>
        <translation>Kernel und Operatoren auf dem Prozessor</translation>
    </message>
    <message>
        <source>A generated kernel or a library&apos;s operator runs on the processor.</source>
        <translation>Auf dem Prozessor läuft ein erzeugter Kernel oder ein Operator einer Bibliothek.</translation>
    </message>
    <message>
        <source>Recompiles</source>
        <translation>Neukompilierungen</translation>
    </message>
    <message>
        <source>A guard failed and the function was compiled again.</source>
        <translation>Ein Guard schlug fehl, und die Funktion wurde noch einmal kompiliert.</translation>
    </message>
    <message>
        <source>Compiling</source>
        <translation>Kompilieren</translation>
    </message>
    <message>
        <source>A function was compiled for the first time.</source>
        <translation>Eine Funktion wurde zum ersten Mal kompiliert.</translation>
    </message>
    <message>
        <source>Waiting for the device</source>
        <translation>Warten auf das Gerät</translation>
    </message>
    <message>
        <source>The program waits for a device that is idle already or runs something unknown.</source>
        <translation>Das Programm wartet auf ein Gerät, das schon untätig ist oder etwas Unbekanntes ausführt.</translation>
    </message>
    <message>
        <source>Guards</source>
        <translation>Guards</translation>
    </message>
    <message>
        <source>The assumptions of compiled functions are checked before each call; estimated from the mean check of each entry.</source>
        <translation>Die Annahmen kompilierter Funktionen werden vor jedem Aufruf geprüft; geschätzt aus der mittleren Prüfung jedes Eintrags.</translation>
    </message>
    <message>
        <source>Launch gaps</source>
        <translation>Startlücken</translation>
    </message>
    <message>
        <source>Inside a compiled call, and no kernel runs: arguments are bound, memory is taken, kernels are launched.</source>
        <translation>In einem kompilierten Aufruf, während kein Kernel läuft: Argumente werden gebunden, Speicher genommen, Kernel gestartet.</translation>
    </message>
    <message>
        <source>Graph breaks</source>
        <translation>Graphbrüche</translation>
    </message>
    <message>
        <source>Python runs between the pieces that a graph break made of a function.</source>
        <translation>Python läuft zwischen den Stücken, in die ein Graphbruch eine Funktion teilt.</translation>
    </message>
    <message>
        <source>Outside compiled code</source>
        <translation>Außerhalb von kompiliertem Code</translation>
    </message>
    <message>
        <source>{}: compiled again</source>
        <translation>{}: noch einmal kompiliert</translation>
    </message>
    <message>
        <source>{} (backward)</source>
        <translation>{} (rückwärts)</translation>
    </message>
    <message>
        <source> in {:.0f} steps, whose average this is,</source>
        <translation> in {:.0f} Schritten, deren Mittel dies ist</translation>
    </message>
    <message>
        <source>{} kernel on the device</source>
        <translation>{} Kernel auf dem Gerät</translation>
    </message>
    <message>
        <source>{} kernels on the device</source>
        <translation>{} Kernel auf dem Gerät</translation>
    </message>
    <message>
        <source>{} launch or call</source>
        <translation>{} Start oder Aufruf</translation>
    </message>
    <message>
        <source>{} launches and calls</source>
        <translation>{} Starts und Aufrufe</translation>
    </message>
    <message>
        <source>{} copy</source>
        <translation>{} Kopie</translation>
    </message>
    <message>
        <source>{} copies</source>
        <translation>{} Kopien</translation>
    </message>
    <message>
        <source>{} compilation{} because a guard failed: {}</source>
        <translation>{} Kompilierung{}, weil ein Guard fehlschlug: {}</translation>
    </message>
    <message>
        <source>{} compilations{} because a guard failed: {}</source>
        <translation>{} Kompilierungen{}, weil ein Guard fehlschlug: {}</translation>
    </message>
    <message>
        <source>{} compilation{} of functions seen for the first time</source>
        <translation>{} Kompilierung{}, alle von neu gesehenen Funktionen</translation>
    </message>
    <message>
        <source>{} compilations{} of functions seen for the first time</source>
        <translation>{} Kompilierungen{}, alle von neu gesehenen Funktionen</translation>
    </message>
    <message>
        <source>{} synchronisation that waited for an idle device</source>
        <translation>{} Synchronisation, die auf ein untätiges Gerät wartete</translation>
    </message>
    <message>
        <source>{} synchronisations that waited for an idle device</source>
        <translation>{} Synchronisationen, die auf ein untätiges Gerät warteten</translation>
    </message>
    <message>
        <source>Assumptions checked before {} call; estimated</source>
        <translation>Annahmen, die vor {} Aufruf geprüft wurden; geschätzt</translation>
    </message>
    <message>
        <source>Assumptions checked before {} calls; estimated</source>
        <translation>Annahmen, die vor {} Aufrufen geprüft wurden; geschätzt</translation>
    </message>
    <message>
        <source>{} compiled call; which kernels ran in it, and for how long, this recording does not tell</source>
        <translation>{} kompilierter Aufruf; welche Kernel darin liefen und wie lange, sagt diese Aufzeichnung nicht</translation>
    </message>
    <message>
        <source>{} compiled calls; which kernels ran in them, and for how long, this recording does not tell</source>
        <translation>{} kompilierte Aufrufe; welche Kernel darin liefen und wie lange, sagt diese Aufzeichnung nicht</translation>
    </message>
    <message>
        <source>What {} compiled call does while none of its kernels runs: binding arguments, taking memory, launching</source>
        <translation>Was {} kompilierter Aufruf tut, während keiner seiner Kernel läuft: Argumente binden, Speicher nehmen, starten</translation>
    </message>
    <message>
        <source>What {} compiled calls do while none of their kernels runs: binding arguments, taking memory, launching</source>
        <translation>Was {} kompilierte Aufrufe tun, während keiner ihrer Kernel läuft: Argumente binden, Speicher nehmen, starten</translation>
    </message>
    <message>
        <source>Python ran once between pieces of functions that broke</source>
        <translation>Python lief einmal zwischen Stücken von Funktionen, deren Graph brach</translation>
    </message>
    <message>
        <source>Python ran {} times between pieces of functions that broke</source>
        <translation>Python lief {} Mal zwischen Stücken von Funktionen, deren Graph brach</translation>
    </message>
    <message>
        <source>Inside compiled calls</source>
        <translation>In kompilierten Aufrufen</translation>
    </message>
    <message>
        <source>{} function is not compiled and runs in Python, outside compiled code: {}</source>
        <translation>{} Funktion ist nicht kompiliert und läuft in Python, außerhalb von kompiliertem Code: {}</translation>
    </message>
    <message>
        <source>{} functions are not compiled and run in Python, outside compiled code: {}</source>
        <translation>{} Funktionen sind nicht kompiliert und laufen in Python, außerhalb von kompiliertem Code: {}</translation>
    </message>
    <message>
        <source>the whole recording</source>
        <translation>die ganze Aufzeichnung</translation>
    </message>
    <message>
        <source>nothing repeats, so this is the whole recording</source>
        <translation>nichts wiederholt sich, also ist dies die ganze Aufzeichnung</translation>
    </message>
    <message>
        <source>kernels ran on a device, and for how long is not recorded: their time is in launch gaps and outside</source>
        <translation>Kernel liefen auf einem Gerät, und wie lange, ist nicht aufgezeichnet: ihre Zeit steckt in den Startlücken und außerhalb</translation>
    </message>
    <message>
        <source>marked by the profiler (ProfilerStep)</source>
        <translation>vom Profiler markiert (ProfilerStep)</translation>
    </message>
    <message>
        <source>from one optimizer step to the next</source>
        <translation>von einem Schritt des Optimierers zum nächsten</translation>
    </message>
    <message>
        <source>found by {} calls of compiled functions that repeat</source>
        <translation>gefunden durch {} Aufrufe kompilierter Funktionen, die sich wiederholen</translation>
    </message>
    <message>
        <source>found by {} launches that repeat</source>
        <translation>gefunden durch {} Starts, die sich wiederholen</translation>
    </message>
    <message>
        <source>, among the last {}</source>
        <translation>, unter den letzten {}</translation>
    </message>
    <message>
        <source>{}; one such step was found</source>
        <translation>{}; ein solcher Schritt wurde gefunden</translation>
    </message>
    <message>
        <source>Python and what else runs between the operators that were recorded</source>
        <translation>Python und was sonst zwischen den aufgezeichneten Operatoren läuft</translation>
    </message>
    <message>
        <source>marked by the program ({} … {})</source>
        <translation>vom Programm markiert ({} … {})</translation>
    </message>
    <message>
        <source>{}: {}</source>
        <translation>{}: {}</translation>
    </message>
    <message>
        <source>Python, data loading, the optimizer, operators outside compiled functions: what happens here is recorded only where somebody asks for it (run --operators).</source>
        <translation>Python, das Laden von Daten, der Optimierer, Operatoren außerhalb kompilierter Funktionen: Was hier geschieht, wird nur aufgezeichnet, wenn jemand es verlangt (run --operators).</translation>
    </message>
    <message>
        <source>; most time takes {} (less than 1 % of the time)</source>
        <translation>; am meisten Zeit braucht {} (weniger als 1 % der Zeit)</translation>
    </message>
    <message>
        <source>; most time takes {} ({:.0f} % of the time)</source>
        <translation>; am meisten Zeit braucht {} ({:.0f} % der Zeit)</translation>
    </message>
    <message>
        <source>What happens here is not recorded: Python, data loading, the optimizer, operators outside compiled functions (fusebox run --operators records these)</source>
        <translation>Was hier geschieht, ist nicht aufgezeichnet: Python, das Laden von Daten, der Optimierer, Operatoren außerhalb kompilierter Funktionen (diese zeichnet fusebox run --operators auf)</translation>
    </message>
    <message>
        <source>{} call of functions that Python runs since they are not compiled; what else happens here is not recorded</source>
        <translation>{} Aufruf von Funktionen, die Python ausführt, weil sie nicht kompiliert sind; was hier sonst geschieht, ist nicht aufgezeichnet</translation>
    </message>
    <message>
        <source>{} calls of functions that Python runs since they are not compiled; what else happens here is not recorded</source>
        <translation>{} Aufrufe von Funktionen, die Python ausführt, weil sie nicht kompiliert sind; was hier sonst geschieht, ist nicht aufgezeichnet</translation>
    </message>
    <message>
        <source>found by {} call of a compiled function that repeats</source>
        <translation>gefunden durch {} Aufruf einer kompilierten Funktion, der sich wiederholt</translation>
    </message>
    <message>
        <source>found by {} launch that repeats</source>
        <translation>gefunden durch {} Start, der sich wiederholt</translation>
    </message>
</context>
<context>
    <name>Timeline</name>
    <message>
        <source>{}, %</source>
        <translation>{}, %</translation>
    </message>
    <message>
        <source>spans</source>
        <translation>Spannen</translation>
    </message>
    <message>
        <source>host</source>
        <translation>Host</translation>
    </message>
    <message>
        <source>compiler</source>
        <translation>Compiler</translation>
    </message>
    <message>
        <source>thread {}</source>
        <translation>Thread {}</translation>
    </message>
    <message>
        <source>{} (the longest {} of {})</source>
        <translation>{} (die längsten {} von {})</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>calls</source>
        <translation>Aufrufe</translation>
    </message>
    <message>
        <source>launches</source>
        <translation>Starts</translation>
    </message>
    <message>
        <source>{} (backward)</source>
        <translation>{} (rückwärts)</translation>
    </message>
    <message>
        <source>program</source>
        <translation>Programm</translation>
    </message>
</context>
<context>
    <name>fusebox::views::Absence</name>
    <message>
        <source>This kind of file does not hold graph breaks</source>
        <translation>Diese Art von Datei enthält keine Graphbrüche</translation>
    </message>
    <message>
        <source>This kind of file does not hold recompiles</source>
        <translation>Diese Art von Datei enthält keine Neukompilierungen</translation>
    </message>
    <message>
        <source>This kind of file does not hold guards</source>
        <translation>Diese Art von Datei enthält keine Guards</translation>
    </message>
    <message>
        <source>This kind of file does not hold graphs</source>
        <translation>Diese Art von Datei enthält keine Graphen</translation>
    </message>
    <message>
        <source>This kind of file does not hold fusion decisions</source>
        <translation>Diese Art von Datei enthält keine Fusionsentscheidungen</translation>
    </message>
    <message>
        <source>This kind of file does not hold memory plans</source>
        <translation>Diese Art von Datei enthält keine Speicherpläne</translation>
    </message>
    <message>
        <source>This kind of file does not hold the compiler&apos;s stages</source>
        <translation>Diese Art von Datei enthält keine Stufen des Compilers</translation>
    </message>
    <message>
        <source>This kind of file does not hold run times</source>
        <translation>Diese Art von Datei enthält keine Laufzeiten</translation>
    </message>
    <message>
        <source>It was recorded without a compiler; “fusebox run script.py” records the program with one.</source>
        <translation>Sie wurde ohne Compiler aufgezeichnet; „fusebox run script.py“ zeichnet das Programm mit einem auf.</translation>
    </message>
    <message>
        <source>It was recorded under PyTorch&apos;s own compiler, which does not tell; “fusebox run script.py” records what Fusebox&apos;s engine does.</source>
        <translation>Sie wurde mit PyTorchs eigenem Compiler aufgezeichnet, der das nicht sagt; „fusebox run script.py“ zeichnet auf, was der von Fusebox tut.</translation>
    </message>
    <message>
        <source>It is of the format “%1”; “fusebox run script.py” records the program with all that the compiler does.</source>
        <translation>Sie hat das Format „%1“; „fusebox run script.py“ zeichnet das Programm mit allem auf, was der Compiler tut.</translation>
    </message>
    <message>
        <source>This recording does not hold the kernels that ran</source>
        <translation>Diese Aufzeichnung enthält die Kernel nicht, die liefen</translation>
    </message>
    <message>
        <source>This recording does not hold the calls of compiled code</source>
        <translation>Diese Aufzeichnung enthält die Aufrufe kompilierten Codes nicht</translation>
    </message>
    <message>
        <source>This kind of file does not hold generated kernels</source>
        <translation>Diese Art von Datei enthält keine erzeugten Kernel</translation>
    </message>
</context>
<context>
    <name>fusebox::views::ArtifactsView</name>
    <message>
        <source>Filter records by compile, kind or name</source>
        <translation>Einträge nach Kompilierung, Art oder Name filtern</translation>
    </message>
    <message>
        <source>#</source>
        <translation>#</translation>
    </message>
    <message>
        <source>Order in the file</source>
        <translation>Reihenfolge in der Datei</translation>
    </message>
    <message>
        <source>Compile</source>
        <translation>Kompilierung</translation>
    </message>
    <message>
        <source>Compilation that the record belongs to, [frame/compile_attempt] as PyTorch counts them, and its function; – for none</source>
        <translation>Kompilierung, zu der der Eintrag gehört, [Frame/Kompilierung_Versuch], wie PyTorch sie zählt, und ihre Funktion; – für keine</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>The record&apos;s key in the file</source>
        <translation>Der Schlüssel des Eintrags in der Datei</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Of its payload</source>
        <translation>Seines Inhalts</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>Since the start of the recording</source>
        <translation>Seit dem Beginn der Aufzeichnung</translation>
    </message>
    <message>
        <source>Damage</source>
        <translation>Schaden</translation>
    </message>
    <message>
        <source>What is wrong with the record; it is shown as far as it could be read</source>
        <translation>Was mit dem Eintrag nicht stimmt; er wird gezeigt, soweit er lesbar war</translation>
    </message>
    <message>
        <source>Text of the record</source>
        <translation>Text des Eintrags</translation>
    </message>
    <message>
        <source>Fields of the record</source>
        <translation>Felder des Eintrags</translation>
    </message>
    <message>
        <source>Parts of the record</source>
        <translation>Teile des Eintrags</translation>
    </message>
    <message>
        <source>Payload</source>
        <translation>Inhalt</translation>
    </message>
    <message>
        <source>Fields</source>
        <translation>Felder</translation>
    </message>
    <message>
        <source>Save record…</source>
        <translation>Eintrag speichern…</translation>
    </message>
    <message>
        <source>No records of another program</source>
        <translation>Keine Einträge eines anderen Programms</translation>
    </message>
    <message>
        <source>A TORCH_TRACE log or folder keeps what PyTorch wrote about each compile: graphs, guards, generated code, metrics. Open one, and every record is listed here.</source>
        <translation>Ein TORCH_TRACE-Protokoll oder -Ordner bewahrt auf, was PyTorch über jede Kompilierung schrieb: Graphen, Guards, erzeugten Code, Messwerte. Öffnen Sie eines, und jeder Eintrag steht hier.</translation>
    </message>
    <message>
        <source>The records cannot be read</source>
        <translation>Die Einträge sind nicht lesbar</translation>
    </message>
    <message>
        <source>damaged: %1</source>
        <translation>beschädigt: %1</translation>
    </message>
    <message>
        <source>only its beginning is shown</source>
        <translation>nur sein Anfang wird gezeigt</translation>
    </message>
    <message>
        <source>Save record</source>
        <translation>Eintrag speichern</translation>
    </message>
    <message>
        <source>%1 was not written: %2</source>
        <translation>%1 wurde nicht geschrieben: %2</translation>
    </message>
    <message>
        <source>Artifacts</source>
        <translation>Artefakte</translation>
    </message>
    <message>
        <source>This record has fields only</source>
        <translation>Dieser Eintrag hat nur Felder</translation>
    </message>
</context>
<context>
    <name>fusebox::views::BreaksView</name>
    <message>
        <source>Filter breaks by reason, kind or line</source>
        <translation>Brüche nach Grund, Art oder Zeile filtern</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>What kind of thing capture could not follow</source>
        <translation>Welcher Art das ist, dem die Erfassung nicht folgen konnte</translation>
    </message>
    <message>
        <source>Reason</source>
        <translation>Grund</translation>
    </message>
    <message>
        <source>Compiles</source>
        <translation>Kompilierungen</translation>
    </message>
    <message>
        <source>Compilations that stopped here</source>
        <translation>Kompilierungen, die hier endeten</translation>
    </message>
    <message>
        <source>Passed</source>
        <translation>Durchlaufen</translation>
    </message>
    <message>
        <source>How often running code went through the break; – where not recorded</source>
        <translation>Wie oft laufender Code durch den Bruch ging; – wo es nicht aufgezeichnet ist</translation>
    </message>
    <message>
        <source>Between</source>
        <translation>Dazwischen</translation>
    </message>
    <message>
        <source>Time between the end of the graph before and the start of the one after: the Python in between, guards and launching again</source>
        <translation>Zeit vom Ende des Graphen davor bis zum Beginn des Graphen danach: das Python dazwischen, Guards und erneutes Starten</translation>
    </message>
    <message>
        <source>Each</source>
        <translation>Je Mal</translation>
    </message>
    <message>
        <source>The same for one passage</source>
        <translation>Dasselbe für einen Durchlauf</translation>
    </message>
    <message>
        <source>Compiling</source>
        <translation>Kompilieren</translation>
    </message>
    <message>
        <source>Time of compiling what resumes after the break</source>
        <translation>Zeit, um zu kompilieren, was nach dem Bruch weiterläuft</translation>
    </message>
    <message>
        <source>No graph break</source>
        <translation>Kein Graphbruch</translation>
    </message>
    <message>
        <source>Where capture stops in the middle of a function, the place and the reason are listed here.</source>
        <translation>Wo die Erfassung mitten in einer Funktion endet, stehen hier Stelle und Grund.</translation>
    </message>
    <message>
        <source>Why the graph broke, and what to do</source>
        <translation>Warum der Graph brach, und was hilft</translation>
    </message>
    <message>
        <source>Before: the function&apos;s bytecode</source>
        <translation>Vorher: der Bytecode der Funktion</translation>
    </message>
    <message>
        <source>After: as it runs</source>
        <translation>Nachher: wie er läuft</translation>
    </message>
    <message>
        <source>About the break</source>
        <translation>Zum Bruch</translation>
    </message>
    <message>
        <source>Explanation</source>
        <translation>Erklärung</translation>
    </message>
    <message>
        <source>Bytecode</source>
        <translation>Bytecode</translation>
    </message>
    <message>
        <source>No bytecode</source>
        <translation>Kein Bytecode</translation>
    </message>
    <message>
        <source>The instructions around a break are recorded by Fusebox&apos;s engine; imported traces do not hold them.</source>
        <translation>Die Befehle um einen Bruch zeichnet die Engine von Fusebox auf; importierte Aufzeichnungen enthalten sie nicht.</translation>
    </message>
    <message>
        <source>Select a break to read why it happened.</source>
        <translation>Wählen Sie einen Bruch, um zu lesen, warum er entstand.</translation>
    </message>
    <message>
        <source>Everything was compiled, and capture followed it so far. Where it stops in the middle of a function, the place, the reason, the cost and a remedy are listed here.</source>
        <translation>Alles wurde kompiliert, und die Erfassung konnte bisher folgen. Wo sie mitten in einer Funktion endet, stehen hier Stelle, Grund, Kosten und Abhilfe.</translation>
    </message>
    <message>
        <source>The graph breaks cannot be read</source>
        <translation>Die Graphbrüche sind nicht lesbar</translation>
    </message>
    <message>
        <source>The instructions around a break are recorded by Fusebox&apos;s engine; this session does not hold them.</source>
        <translation>Die Befehle um einen Bruch zeichnet die Engine von Fusebox auf; diese Sitzung enthält sie nicht.</translation>
    </message>
    <message>
        <source>line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>instruction</source>
        <translation>Befehl</translation>
    </message>
    <message>
        <source>%1 at %2</source>
        <translation>%1 bei %2</translation>
    </message>
    <message>
        <source>attempts</source>
        <translation>Versuche</translation>
    </message>
    <message>
        <source>compiles that stopped here</source>
        <translation>Kompilierungen, die hier endeten</translation>
    </message>
    <message>
        <source>passed</source>
        <translation>durchlaufen</translation>
    </message>
    <message>
        <source>%1 times</source>
        <translation>%1 Mal</translation>
    </message>
    <message>
        <source>between the graphs</source>
        <translation>zwischen den Graphen</translation>
    </message>
    <message>
        <source>%1 in all, %2 each</source>
        <translation>%1 insgesamt, je %2</translation>
    </message>
    <message>
        <source>compiling what resumes</source>
        <translation>Kompilieren des Rests</translation>
    </message>
    <message>
        <source>Called by</source>
        <translation>Aufgerufen von</translation>
    </message>
    <message>
        <source>The whole message</source>
        <translation>Die ganze Meldung</translation>
    </message>
    <message>
        <source>Graph breaks</source>
        <translation>Graphbrüche</translation>
    </message>
    <message>
        <source>once</source>
        <translation>einmal</translation>
    </message>
    <message>
        <source>Nothing was compiled in this recording.</source>
        <translation>In dieser Aufzeichnung wurde nichts kompiliert.</translation>
    </message>
    <message>
        <source>Nothing was compiled so far.</source>
        <translation>Bisher wurde nichts kompiliert.</translation>
    </message>
    <message>
        <source>inside %1</source>
        <translation>in %1</translation>
    </message>
</context>
<context>
    <name>fusebox::views::CodeColumns</name>
    <message>
        <source>Code side by side</source>
        <translation>Code nebeneinander</translation>
    </message>
    <message>
        <source>Loop IR</source>
        <translation>Schleifen-IR</translation>
    </message>
    <message>
        <source>Assembly</source>
        <translation>Assembler</translation>
    </message>
    <message>
        <source>SASS</source>
        <translation>SASS</translation>
    </message>
    <message>
        <source>nvdisasm took more than %1 seconds and was stopped.</source>
        <translation>nvdisasm brauchte mehr als %1 Sekunden und wurde beendet.</translation>
    </message>
    <message>
        <source>Select a kernel.</source>
        <translation>Wählen Sie einen Kernel.</translation>
    </message>
    <message>
        <source>No machine code</source>
        <translation>Kein Maschinencode</translation>
    </message>
    <message>
        <source>No loop IR</source>
        <translation>Keine Schleifen-IR</translation>
    </message>
    <message>
        <source>The recording holds none for this kernel.</source>
        <translation>Die Aufzeichnung enthält keinen für diesen Kernel.</translation>
    </message>
    <message>
        <source>No assembly</source>
        <translation>Kein Assembler</translation>
    </message>
    <message>
        <source>nvdisasm is not found: it comes with the CUDA toolkit and with the packages nvidia-cuda-nvdisasm and triton. Put it on PATH, or name it in FUSEBOX_NVDISASM.</source>
        <translation>nvdisasm fehlt: Es gehört zum CUDA-Toolkit und zu den Paketen nvidia-cuda-nvdisasm und triton. In PATH legen oder in FUSEBOX_NVDISASM nennen.</translation>
    </message>
    <message>
        <source>A temporary file cannot be written: %1</source>
        <translation>Eine temporäre Datei kann nicht geschrieben werden: %1</translation>
    </message>
    <message>
        <source>nvdisasm failed: %1</source>
        <translation>nvdisasm scheiterte: %1</translation>
    </message>
    <message>
        <source>nvdisasm cannot be started: %1</source>
        <translation>nvdisasm kann nicht gestartet werden: %1</translation>
    </message>
    <message>
        <source>Disassembling…</source>
        <translation>Wird disassembliert …</translation>
    </message>
    <message>
        <source>nvdisasm printed nothing.</source>
        <translation>nvdisasm gab nichts aus.</translation>
    </message>
</context>
<context>
    <name>fusebox::views::CommandPalette</name>
    <message>
        <source>Command palette</source>
        <translation>Befehlspalette</translation>
    </message>
    <message>
        <source>Type a command</source>
        <translation>Befehl eingeben</translation>
    </message>
    <message>
        <source>Type a command, or a letter and a space: %1</source>
        <translation>Befehl eingeben, oder einen Buchstaben und ein Leerzeichen: %1</translation>
    </message>
    <message>
        <source>Command to search</source>
        <translation>Gesuchter Befehl</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>Befehle</translation>
    </message>
</context>
<context>
    <name>fusebox::views::CompareView</name>
    <message>
        <source>Options</source>
        <translation>Optionen</translation>
    </message>
    <message>
        <source>Program</source>
        <translation>Programm</translation>
    </message>
    <message>
        <source>Environment</source>
        <translation>Umgebung</translation>
    </message>
    <message>
        <source>Graph breaks</source>
        <translation>Graphbrüche</translation>
    </message>
    <message>
        <source>Recompiles</source>
        <translation>Neukompilierungen</translation>
    </message>
    <message>
        <source>Guards</source>
        <translation>Guards</translation>
    </message>
    <message>
        <source>Symbolic sizes</source>
        <translation>Symbolische Größen</translation>
    </message>
    <message>
        <source>Graphs</source>
        <translation>Graphen</translation>
    </message>
    <message>
        <source>Nodes</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Kernels</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Lines</source>
        <translation>Zeilen</translation>
    </message>
    <message>
        <source>Times</source>
        <translation>Anzahl</translation>
    </message>
    <message>
        <source>These sessions cannot be compared</source>
        <translation>Diese Sitzungen lassen sich nicht vergleichen</translation>
    </message>
    <message>
        <source>The first difference that explains the rest</source>
        <translation>Der erste Unterschied, der die übrigen erklärt</translation>
    </message>
    <message>
        <source>Changed</source>
        <translation>Geändert</translation>
    </message>
    <message>
        <source>Both sessions have it, and it differs beyond noise</source>
        <translation>Beide Sitzungen haben es, und es unterscheidet sich über das Rauschen hinaus</translation>
    </message>
    <message>
        <source>Only in A</source>
        <translation>Nur in A</translation>
    </message>
    <message>
        <source>Only in B</source>
        <translation>Nur in B</translation>
    </message>
    <message>
        <source>The same</source>
        <translation>Gleich</translation>
    </message>
    <message>
        <source>Equal in both; times within noise</source>
        <translation>In beiden gleich; Zeiten im Rahmen des Rauschens</translation>
    </message>
    <message>
        <source>What to show</source>
        <translation>Was gezeigt wird</translation>
    </message>
    <message>
        <source>Everything</source>
        <translation>Alles</translation>
    </message>
    <message>
        <source>How far the comparison is</source>
        <translation>Wie weit der Vergleich ist</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Cancel comparing</source>
        <translation>Vergleich abbrechen</translation>
    </message>
    <message>
        <source>Esc</source>
        <translation>Esc</translation>
    </message>
    <message>
        <source>Cancelled</source>
        <translation>Abgebrochen</translation>
    </message>
    <message>
        <source>Nothing is compared. “Compare again” in the menu File starts anew.</source>
        <translation>Nichts wird verglichen. „Erneut vergleichen“ im Menü Datei beginnt von vorn.</translation>
    </message>
    <message>
        <source>Filter differences</source>
        <translation>Unterschiede filtern</translation>
    </message>
    <message>
        <source>What</source>
        <translation>Was</translation>
    </message>
    <message>
        <source>A</source>
        <translation>A</translation>
    </message>
    <message>
        <source>B</source>
        <translation>B</translation>
    </message>
    <message>
        <source>Change</source>
        <translation>Änderung</translation>
    </message>
    <message>
        <source>Of medians; (noise): no more than runs of one program differ by</source>
        <translation>Der Mediane; (Rauschen): nicht mehr, als sich Läufe eines Programms unterscheiden</translation>
    </message>
    <message>
        <source>Why</source>
        <translation>Warum</translation>
    </message>
    <message>
        <source>Nothing to show</source>
        <translation>Nichts zu zeigen</translation>
    </message>
    <message>
        <source>Tick another kind of difference above, or “The same”.</source>
        <translation>Oben eine andere Art von Unterschied ankreuzen, oder „Gleich“.</translation>
    </message>
    <message>
        <source>Session A</source>
        <translation>Sitzung A</translation>
    </message>
    <message>
        <source>Session B</source>
        <translation>Sitzung B</translation>
    </message>
    <message>
        <source>Comparing…</source>
        <translation>Wird verglichen …</translation>
    </message>
    <message>
        <source>%1
%2</source>
        <translation>%1
%2</translation>
    </message>
    <message>
        <source>Reading %1</source>
        <translation>%1 wird gelesen</translation>
    </message>
    <message>
        <source>Comparing</source>
        <translation>Vergleich läuft</translation>
    </message>
    <message>
        <source>The sessions cannot be compared</source>
        <translation>Die Sitzungen lassen sich nicht vergleichen</translation>
    </message>
    <message>
        <source>Changed (%1)</source>
        <translation>Geändert (%1)</translation>
    </message>
    <message>
        <source>Only in A (%1)</source>
        <translation>Nur in A (%1)</translation>
    </message>
    <message>
        <source>Only in B (%1)</source>
        <translation>Nur in B (%1)</translation>
    </message>
    <message>
        <source>The same (%1)</source>
        <translation>Gleich (%1)</translation>
    </message>
    <message>
        <source>the first difference that explains the rest</source>
        <translation>der erste Unterschied, der die übrigen erklärt</translation>
    </message>
    <message>
        <source>%1 of %2 differences in what was compiled and run lie behind it.</source>
        <translation>%1 von %2 Unterschieden in dem, was kompiliert wurde und lief, folgen daraus.</translation>
    </message>
    <message>
        <source>Export comparison</source>
        <translation>Vergleich exportieren</translation>
    </message>
    <message>
        <source>Page (*.html)</source>
        <translation>Seite (*.html)</translation>
    </message>
    <message>
        <source>%1 was not written. Check the folder&apos;s permissions and the disk.</source>
        <translation>%1 wurde nicht geschrieben. Prüfen Sie die Rechte des Ordners und den Datenträger.</translation>
    </message>
</context>
<context>
    <name>fusebox::views::CudaGraphsView</name>
    <message>
        <source>Function</source>
        <translation>Funktion</translation>
    </message>
    <message>
        <source>What</source>
        <translation>Was</translation>
    </message>
    <message>
        <source>A recording, numbered within its compiled graph, or what else became of a call</source>
        <translation>Eine Aufzeichnung, nummeriert innerhalb ihres kompilierten Graphen, oder was sonst aus einem Aufruf wurde</translation>
    </message>
    <message>
        <source>Reason</source>
        <translation>Grund</translation>
    </message>
    <message>
        <source>What made the recording necessary, or why there is none</source>
        <translation>Was die Aufzeichnung nötig machte, oder warum es keine gibt</translation>
    </message>
    <message>
        <source>Replays</source>
        <translation>Wiederholungen</translation>
    </message>
    <message>
        <source>On device</source>
        <translation>Auf dem Gerät</translation>
    </message>
    <message>
        <source>What the nodes of a replay take on the device, on average</source>
        <translation>Was die Knoten einer Wiederholung auf dem Gerät im Mittel brauchen</translation>
    </message>
    <message>
        <source>Call</source>
        <translation>Aufruf</translation>
    </message>
    <message>
        <source>Time of the call that replays: checks, copies of inputs, the launch of the graph</source>
        <translation>Zeit des Aufrufs, der wiederholt: Prüfungen, Kopien der Eingaben, Start des Graphen</translation>
    </message>
    <message>
        <source>Nodes</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Kernels, copies and memsets of the graph</source>
        <translation>Kernel, Kopien und Memsets des Graphen</translation>
    </message>
    <message>
        <source>Pieces</source>
        <translation>Stücke</translation>
    </message>
    <message>
        <source>Captured stretches, each a graph of its own: what cannot be captured runs between them</source>
        <translation>Erfasste Strecken, jede ein eigener Graph: was sich nicht erfassen lässt, läuft dazwischen</translation>
    </message>
    <message>
        <source>Plain steps</source>
        <translation>Schritte ohne Graph</translation>
    </message>
    <message>
        <source>Steps that run outside of the graph</source>
        <translation>Schritte, die außerhalb des Graphen laufen</translation>
    </message>
    <message>
        <source>Static inputs</source>
        <translation>Feste Eingaben</translation>
    </message>
    <message>
        <source>Inputs that are read where they lie, since they do not move</source>
        <translation>Eingaben, die gelesen werden, wo sie liegen, weil sie nicht umziehen</translation>
    </message>
    <message>
        <source>Copied inputs</source>
        <translation>Kopierte Eingaben</translation>
    </message>
    <message>
        <source>Inputs that are copied to a fixed place before every replay</source>
        <translation>Eingaben, die vor jeder Wiederholung an einen festen Ort kopiert werden</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>Bytes of these copies</source>
        <translation>Bytes dieser Kopien</translation>
    </message>
    <message>
        <source>Kept</source>
        <translation>Behalten</translation>
    </message>
    <message>
        <source>Memory of the recording&apos;s results, which nothing else uses</source>
        <translation>Speicher der Ergebnisse der Aufzeichnung, den nichts anderes benutzt</translation>
    </message>
    <message>
        <source>Pool</source>
        <translation>Pool</translation>
    </message>
    <message>
        <source>What the pool of torch&apos;s allocator that all recordings of the device share held when this one was made</source>
        <translation>Was der Pool von torchs Speicherverwaltung, den alle Aufzeichnungen des Geräts teilen, hielt, als diese entstand</translation>
    </message>
    <message>
        <source>Recorded in</source>
        <translation>Aufgezeichnet in</translation>
    </message>
    <message>
        <source>Time of capturing and instantiating</source>
        <translation>Zeit des Erfassens und Instanziierens</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Filter recordings by function, reason or line</source>
        <translation>Aufzeichnungen nach Funktion, Grund oder Zeile filtern</translation>
    </message>
    <message>
        <source>About the recording</source>
        <translation>Über die Aufzeichnung</translation>
    </message>
    <message>
        <source>Filter nodes by kernel, kind or line</source>
        <translation>Knoten nach Kernel, Art oder Zeile filtern</translation>
    </message>
    <message>
        <source>Piece</source>
        <translation>Stück</translation>
    </message>
    <message>
        <source>Captured stretch</source>
        <translation>Erfasste Strecke</translation>
    </message>
    <message>
        <source>Node</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>In order of creation, within the piece; several where one kernel made them</source>
        <translation>In der Reihenfolge der Entstehung, innerhalb des Stücks; mehrere, wo ein Kernel sie machte</translation>
    </message>
    <message>
        <source>Kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>What made these nodes: a generated kernel, a call of a library, or a copy</source>
        <translation>Was diese Knoten machte: ein erzeugter Kernel, ein Aufruf einer Bibliothek oder eine Kopie</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>A replay</source>
        <translation>Je Wiederholung</translation>
    </message>
    <message>
        <source>What they take on the device in one replay, on average</source>
        <translation>Was sie in einer Wiederholung im Mittel auf dem Gerät brauchen</translation>
    </message>
    <message>
        <source>Share</source>
        <translation>Anteil</translation>
    </message>
    <message>
        <source>Share of the recording&apos;s time on the device</source>
        <translation>Anteil an der Zeit der Aufzeichnung auf dem Gerät</translation>
    </message>
    <message>
        <source>Device function</source>
        <translation>Gerätefunktion</translation>
    </message>
    <message>
        <source>Of what took most of the kernel&apos;s time</source>
        <translation>Dessen, was die meiste Zeit des Kernels brauchte</translation>
    </message>
    <message>
        <source>No nodes</source>
        <translation>Keine Knoten</translation>
    </message>
    <message>
        <source>Select a recording above. What runs plainly has no nodes.</source>
        <translation>Oben eine Aufzeichnung wählen. Was ohne Graph läuft, hat keine Knoten.</translation>
    </message>
    <message>
        <source>Filter replays</source>
        <translation>Wiederholungen filtern</translation>
    </message>
    <message>
        <source>Replay</source>
        <translation>Wiederholung</translation>
    </message>
    <message>
        <source>At</source>
        <translation>Bei</translation>
    </message>
    <message>
        <source>After the first replay</source>
        <translation>Nach der ersten Wiederholung</translation>
    </message>
    <message>
        <source>Time on the CPU</source>
        <translation>Zeit auf der CPU</translation>
    </message>
    <message>
        <source>Waited</source>
        <translation>Gewartet</translation>
    </message>
    <message>
        <source>From the call to the start of the first node on the device</source>
        <translation>Vom Aufruf bis zum Beginn des ersten Knotens auf dem Gerät</translation>
    </message>
    <message>
        <source>Took</source>
        <translation>Dauer</translation>
    </message>
    <message>
        <source>From the start of the first node to the end of the last</source>
        <translation>Vom Beginn des ersten Knotens bis zum Ende des letzten</translation>
    </message>
    <message>
        <source>Sum of what its nodes took</source>
        <translation>Summe dessen, was ihre Knoten brauchten</translation>
    </message>
    <message>
        <source>Busy</source>
        <translation>Ausgelastet</translation>
    </message>
    <message>
        <source>Sum of the nodes as a share of what the replay took: the rest is between nodes</source>
        <translation>Summe der Knoten als Anteil an der Dauer der Wiederholung: der Rest liegt zwischen Knoten</translation>
    </message>
    <message>
        <source>No replays</source>
        <translation>Keine Wiederholungen</translation>
    </message>
    <message>
        <source>Select a recording above. Times on the device need a recording of GPU times.</source>
        <translation>Oben eine Aufzeichnung wählen. Zeiten auf dem Gerät brauchen eine Aufzeichnung von GPU-Zeiten.</translation>
    </message>
    <message>
        <source>Summary</source>
        <translation>Zusammenfassung</translation>
    </message>
    <message>
        <source>Export table of CUDA graphs…</source>
        <translation>Tabelle der CUDA-Graphen exportieren …</translation>
    </message>
    <message>
        <source>Select a recording to see why it was made and what it holds.</source>
        <translation>Eine Aufzeichnung wählen, um zu sehen, warum sie entstand und was sie enthält.</translation>
    </message>
    <message>
        <source>No CUDA graphs</source>
        <translation>Keine CUDA-Graphen</translation>
    </message>
    <message>
        <source>Functions compiled with mode=&quot;reduce-overhead&quot; (or backend=&quot;cudagraphs&quot;) on a GPU are recorded once and replayed from then on. Their recordings, and why there was none, are listed here.</source>
        <translation>Funktionen, die mit mode=&quot;reduce-overhead&quot; (oder backend=&quot;cudagraphs&quot;) für eine GPU kompiliert sind, werden einmal aufgezeichnet und von da an wiederholt. Ihre Aufzeichnungen, und warum es keine gab, stehen hier.</translation>
    </message>
    <message>
        <source>The CUDA graphs cannot be read</source>
        <translation>Die CUDA-Graphen lassen sich nicht lesen</translation>
    </message>
    <message>
        <source>pass</source>
        <translation>Durchlauf</translation>
    </message>
    <message>
        <source>device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>took the place of</source>
        <translation>ersetzt</translation>
    </message>
    <message>
        <source>recording %1</source>
        <translation>Aufzeichnung %1</translation>
    </message>
    <message>
        <source>nodes</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>%1 in %2</source>
        <translation>%1 in %2</translation>
    </message>
    <message>
        <source>piece</source>
        <translation>Stück</translation>
    </message>
    <message>
        <source>pieces</source>
        <translation>Stücke</translation>
    </message>
    <message>
        <source>runs plainly</source>
        <translation>läuft ohne Graph</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
    <message>
        <source>step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>steps</source>
        <translation>Schritte</translation>
    </message>
    <message>
        <source>inputs</source>
        <translation>Eingaben</translation>
    </message>
    <message>
        <source>%1 read where they lie, %2 copied before every replay%3</source>
        <translation>%1 werden gelesen, wo sie liegen, %2 vor jeder Wiederholung kopiert%3</translation>
    </message>
    <message>
        <source> (%1)</source>
        <translation> (%1)</translation>
    </message>
    <message>
        <source>results</source>
        <translation>Ergebnisse</translation>
    </message>
    <message>
        <source>%1 of memory that nothing else uses</source>
        <translation>%1 Speicher, den nichts anderes benutzt</translation>
    </message>
    <message>
        <source>shared pool</source>
        <translation>gemeinsamer Pool</translation>
    </message>
    <message>
        <source>%1 held for intermediates of all recordings of the device by then</source>
        <translation>%1 bis dahin für Zwischenwerte aller Aufzeichnungen des Geräts gehalten</translation>
    </message>
    <message>
        <source>recorded in</source>
        <translation>aufgezeichnet in</translation>
    </message>
    <message>
        <source>replays</source>
        <translation>Wiederholungen</translation>
    </message>
    <message>
        <source>a call took</source>
        <translation>ein Aufruf dauerte</translation>
    </message>
    <message>
        <source>on the device</source>
        <translation>auf dem Gerät</translation>
    </message>
    <message>
        <source>%1 on average, of %2 replays that it timed</source>
        <translation>%1 im Mittel von %2 Wiederholungen, die es gemessen hat</translation>
    </message>
    <message>
        <source>kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>show in Kernels</source>
        <translation>in Kernel zeigen</translation>
    </message>
    <message>
        <source>CUDA graphs</source>
        <translation>CUDA-Graphen</translation>
    </message>
</context>
<context>
    <name>fusebox::views::DataTable</name>
    <message>
        <source>Copy rows</source>
        <translation>Zeilen kopieren</translation>
    </message>
    <message>
        <source>Export as CSV…</source>
        <translation>Als CSV exportieren…</translation>
    </message>
    <message>
        <source>the first %1 of %2 in this order; the filter looks in all</source>
        <translation>die ersten %1 von %2 in dieser Reihenfolge; der Filter sucht in allen</translation>
    </message>
    <message>
        <source>Export table</source>
        <translation>Tabelle exportieren</translation>
    </message>
    <message>
        <source>Comma-separated values (*.csv)</source>
        <translation>Kommagetrennte Werte (*.csv)</translation>
    </message>
    <message>
        <source>%1 was not written: %2</source>
        <translation>%1 wurde nicht geschrieben: %2</translation>
    </message>
    <message>
        <source>the first %1 of %2 are listed</source>
        <translation>die ersten %1 von %2 sind aufgeführt</translation>
    </message>
    <message>
        <source>%1; %2 of them</source>
        <translation>%1; davon %2</translation>
    </message>
</context>
<context>
    <name>fusebox::views::DetailsPanel</name>
    <message>
        <source>Details</source>
        <translation>Einzelheiten</translation>
    </message>
    <message>
        <source>… and %1 characters more</source>
        <translation>… und %1 weitere Zeichen</translation>
    </message>
    <message>
        <source>Change %1 so…</source>
        <translation>%1 so ändern…</translation>
    </message>
</context>
<context>
    <name>fusebox::views::EmptyState</name>
    <message>
        <source>Reading the session…</source>
        <translation>Die Sitzung wird gelesen…</translation>
    </message>
    <message>
        <source>No session yet</source>
        <translation>Noch keine Sitzung</translation>
    </message>
    <message>
        <source>That of a program that starts is shown as soon as it compiles something. Else run a script, or open a session or a trace.</source>
        <translation>Die eines Programms, das startet, erscheint, sobald es etwas kompiliert. Sonst ein Skript ausführen, oder eine Sitzung oder einen Trace öffnen.</translation>
    </message>
</context>
<context>
    <name>fusebox::views::FileChange</name>
    <message>
        <source>%1 is not on this machine.</source>
        <translation>%1 ist nicht auf dieser Maschine.</translation>
    </message>
    <message>
        <source>%1 cannot be read: %2</source>
        <translation>%1 kann nicht gelesen werden: %2</translation>
    </message>
    <message>
        <source>%1 is no longer the file that was recorded: %2. Record it again.</source>
        <translation>%1 ist nicht mehr die Datei, die aufgezeichnet wurde: %2. Bitte neu aufzeichnen.</translation>
    </message>
    <message>
        <source>Change a file</source>
        <translation>Eine Datei ändern</translation>
    </message>
    <message>
        <source>%1 was not written: %2</source>
        <translation>%1 wurde nicht geschrieben: %2</translation>
    </message>
    <message>
        <source>Change %1 like this? The next run shows what it gains.</source>
        <translation>%1 so ändern? Der nächste Lauf zeigt, was es bringt.</translation>
    </message>
    <message>
        <source>&amp;Change it</source>
        <translation>Ä&amp;ndern</translation>
    </message>
</context>
<context>
    <name>fusebox::views::FilterBox</name>
    <message>
        <source>Words that must occur; a word with a minus sign before it must not. Esc clears.</source>
        <translation>Wörter, die vorkommen müssen; ein Wort mit Minuszeichen davor darf nicht vorkommen. Esc leert das Feld.</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 von %2</translation>
    </message>
</context>
<context>
    <name>fusebox::views::FindBar</name>
    <message>
        <source>Find</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>Text to find</source>
        <translation>Gesuchter Text</translation>
    </message>
    <message>
        <source>Previous hit (Shift+F3)</source>
        <translation>Voriger Treffer (Umschalt+F3)</translation>
    </message>
    <message>
        <source>Next hit (F3)</source>
        <translation>Nächster Treffer (F3)</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Not found</source>
        <translation>Nicht gefunden</translation>
    </message>
</context>
<context>
    <name>fusebox::views::FindView</name>
    <message>
        <source>Text to find in the whole session</source>
        <translation>In der ganzen Sitzung zu suchender Text</translation>
    </message>
    <message>
        <source>Find in functions, breaks, guards, graphs, kernels, passes, source lines and records</source>
        <translation>In Funktionen, Brüchen, Guards, Graphen, Kerneln, Durchgängen, Quellzeilen und Aufzeichnungen suchen</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Stop searching</source>
        <translation>Suche anhalten</translation>
    </message>
    <message>
        <source>Stop searching; what was found stays</source>
        <translation>Suche anhalten; was gefunden wurde, bleibt</translation>
    </message>
    <message>
        <source>Filter what was found</source>
        <translation>Gefundenes filtern</translation>
    </message>
    <message>
        <source>In</source>
        <translation>In</translation>
    </message>
    <message>
        <source>What kind of thing it is</source>
        <translation>Was für eine Sache es ist</translation>
    </message>
    <message>
        <source>What</source>
        <translation>Was</translation>
    </message>
    <message>
        <source>Detail</source>
        <translation>Einzelheit</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Find in the whole session</source>
        <translation>In der ganzen Sitzung suchen</translation>
    </message>
    <message>
        <source>Type a part of a name, an operator, a guard, a value or a line of the program above. Letters match in both cases.</source>
        <translation>Oben einen Teil eines Namens, eines Operators, eines Guards, eines Werts oder einer Zeile des Programms eingeben. Groß- und Kleinschreibung ist gleich.</translation>
    </message>
    <message>
        <source>Searching…</source>
        <translation>Suche läuft …</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>Nichts gefunden</translation>
    </message>
    <message>
        <source>No name, operator, guard, value or line of the program has this text.</source>
        <translation>Kein Name, Operator, Guard, Wert und keine Zeile des Programms enthält diesen Text.</translation>
    </message>
    <message>
        <source>Files</source>
        <translation>Dateien</translation>
    </message>
    <message>
        <source>Functions</source>
        <translation>Funktionen</translation>
    </message>
    <message>
        <source>Graph breaks</source>
        <translation>Graphbrüche</translation>
    </message>
    <message>
        <source>Failed guards</source>
        <translation>Fehlgeschlagene Guards</translation>
    </message>
    <message>
        <source>Guards</source>
        <translation>Guards</translation>
    </message>
    <message>
        <source>Kernels</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>Fusion groups</source>
        <translation>Fusionsgruppen</translation>
    </message>
    <message>
        <source>Nodes</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Passes</source>
        <translation>Durchgänge</translation>
    </message>
    <message>
        <source>Source lines</source>
        <translation>Quellzeilen</translation>
    </message>
    <message>
        <source>Records</source>
        <translation>Aufzeichnungen</translation>
    </message>
    <message>
        <source>Losses</source>
        <translation>Verluste</translation>
    </message>
    <message>
        <source>searching…</source>
        <translation>sucht …</translation>
    </message>
    <message numerus="yes">
        <source>the first %n of each kind</source>
        <translation>
            <numerusform>die erste jeder Art</numerusform>
            <numerusform>die ersten %n jeder Art</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n found</source>
        <translation>
            <numerusform>%n gefunden</numerusform>
            <numerusform>%n gefunden</numerusform>
        </translation>
    </message>
    <message>
        <source>Find</source>
        <translation>Suchen</translation>
    </message>
</context>
<context>
    <name>fusebox::views::FusionView</name>
    <message>
        <source>Reading the session…</source>
        <translation>Die Sitzung wird gelesen…</translation>
    </message>
    <message>
        <source>Decision</source>
        <translation>Entscheidung</translation>
    </message>
    <message>
        <source>Whether the two became one kernel</source>
        <translation>Ob aus den beiden ein Kernel wurde</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>vertical: the second reads what the first writes; horizontal: both read the same; epilogue and prologue: pointwise work after or before a reduction</source>
        <translation>vertical: der zweite liest, was der erste schreibt; horizontal: beide lesen dasselbe; epilogue und prologue: elementweise Arbeit nach oder vor einer Reduktion</translation>
    </message>
    <message>
        <source>First</source>
        <translation>Erste</translation>
    </message>
    <message>
        <source>Second</source>
        <translation>Zweite</translation>
    </message>
    <message>
        <source>Saves</source>
        <translation>Spart</translation>
    </message>
    <message>
        <source>Bytes of memory traffic that fusing saves</source>
        <translation>Bytes an Speicherverkehr, die die Fusion spart</translation>
    </message>
    <message>
        <source>Reason</source>
        <translation>Grund</translation>
    </message>
    <message>
        <source>Your wish</source>
        <translation>Ihr Wunsch</translation>
    </message>
    <message>
        <source>Used when the graph is compiled again</source>
        <translation>Gilt, wenn der Graph erneut kompiliert wird</translation>
    </message>
    <message>
        <source>Kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>What the nodes of the group became: a generated kernel, or a call of an operator</source>
        <translation>Was aus den Knoten der Gruppe wurde: ein erzeugter Kernel oder ein Aufruf eines Operators</translation>
    </message>
    <message>
        <source>Nodes</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Reads</source>
        <translation>Liest</translation>
    </message>
    <message>
        <source>Bytes that one launch reads</source>
        <translation>Bytes, die ein Start liest</translation>
    </message>
    <message>
        <source>Writes</source>
        <translation>Schreibt</translation>
    </message>
    <message>
        <source>Bytes that one launch writes</source>
        <translation>Bytes, die ein Start schreibt</translation>
    </message>
    <message>
        <source>Saved</source>
        <translation>Aufgehoben</translation>
    </message>
    <message>
        <source>Bytes of memory traffic that fusing saved</source>
        <translation>Bytes an Speicherverkehr, die die Fusion gespart hat</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>Of all launches</source>
        <translation>Aller Starts</translation>
    </message>
    <message>
        <source>Why no kernel was generated</source>
        <translation>Warum kein Kernel erzeugt wurde</translation>
    </message>
    <message>
        <source>Buffer</source>
        <translation>Puffer</translation>
    </message>
    <message>
        <source>planned: a place in the graph&apos;s pool; owned: memory of its own, as results have</source>
        <translation>planned: ein Platz im Pool des Graphen; owned: eigener Speicher, wie ihn Ergebnisse haben</translation>
    </message>
    <message>
        <source>Type</source>
        <translation>Typ</translation>
    </message>
    <message>
        <source>Shape</source>
        <translation>Form</translation>
    </message>
    <message>
        <source>Bytes</source>
        <translation>Bytes</translation>
    </message>
    <message>
        <source>Lives</source>
        <translation>Lebt</translation>
    </message>
    <message>
        <source>First and last group that touches it</source>
        <translation>Erste und letzte Gruppe, die ihn berührt</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Node</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Operator</source>
        <translation>Operator</translation>
    </message>
    <message>
        <source>Compiled</source>
        <translation>Kompiliert</translation>
    </message>
    <message>
        <source>Largest error of the compiled graph against float64, relative to the largest value</source>
        <translation>Größter Fehler des kompilierten Graphen gegenüber float64, bezogen auf den größten Wert</translation>
    </message>
    <message>
        <source>Eager</source>
        <translation>Eager</translation>
    </message>
    <message>
        <source>The same of eager PyTorch</source>
        <translation>Dasselbe für PyTorch im Eager-Modus</translation>
    </message>
    <message>
        <source>Alone</source>
        <translation>Allein</translation>
    </message>
    <message>
        <source>The node&apos;s own part: its compiled error when it starts from eager&apos;s inputs. Measured for the least exact nodes</source>
        <translation>Der Anteil des Knotens selbst: sein kompilierter Fehler, wenn er mit den Eingaben von eager beginnt. Für die ungenauesten Knoten gemessen</translation>
    </message>
    <message>
        <source>ULP</source>
        <translation>ULP</translation>
    </message>
    <message>
        <source>Compiled against eager in units in the last place, over values that are not almost cancelled</source>
        <translation>Kompiliert gegenüber eager in Einheiten der letzten Stelle, über Werte, die sich nicht fast auslöschen</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>Anmerkung</translation>
    </message>
    <message>
        <source>Compiled as</source>
        <translation>Kompiliert als</translation>
    </message>
    <message>
        <source>Median</source>
        <translation>Median</translation>
    </message>
    <message>
        <source>Of 20 runs, taken in turns</source>
        <translation>Von 20 Läufen, abwechselnd gemessen</translation>
    </message>
    <message>
        <source>Fastest</source>
        <translation>Schnellster</translation>
    </message>
    <message>
        <source>Launches</source>
        <translation>Starts</translation>
    </message>
    <message>
        <source>Generated kernels launched in one run</source>
        <translation>Erzeugte Kernel, die ein Lauf startet</translation>
    </message>
    <message>
        <source>Extern calls</source>
        <translation>Externe Aufrufe</translation>
    </message>
    <message>
        <source>Traffic</source>
        <translation>Verkehr</translation>
    </message>
    <message>
        <source>Bytes that all kernels and calls read and write in one run</source>
        <translation>Bytes, die alle Kernel und Aufrufe in einem Lauf lesen und schreiben</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Largest difference from eager&apos;s results, relative to the largest value</source>
        <translation>Größter Unterschied zu den Ergebnissen von eager, bezogen auf den größten Wert</translation>
    </message>
    <message>
        <source>Filter decisions by name, kind or reason</source>
        <translation>Entscheidungen nach Name, Art oder Grund filtern</translation>
    </message>
    <message>
        <source>Filter kernels</source>
        <translation>Kernel filtern</translation>
    </message>
    <message>
        <source>Filter buffers</source>
        <translation>Puffer filtern</translation>
    </message>
    <message>
        <source>Filter nodes</source>
        <translation>Knoten filtern</translation>
    </message>
    <message>
        <source>No buffers recorded</source>
        <translation>Keine Puffer aufgezeichnet</translation>
    </message>
    <message>
        <source>They appear with the memory plan of a compiled graph.</source>
        <translation>Sie erscheinen mit dem Speicherplan eines kompilierten Graphen.</translation>
    </message>
    <message>
        <source>What is known of the graph</source>
        <translation>Was über den Graphen bekannt ist</translation>
    </message>
    <message>
        <source>Decisions</source>
        <translation>Entscheidungen</translation>
    </message>
    <message>
        <source>Kernels</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>Buffers</source>
        <translation>Puffer</translation>
    </message>
    <message>
        <source>Numerics</source>
        <translation>Genauigkeit</translation>
    </message>
    <message>
        <source>Graph</source>
        <translation>Graph</translation>
    </message>
    <message>
        <source>Compiled graph</source>
        <translation>Kompilierter Graph</translation>
    </message>
    <message>
        <source>Forbid</source>
        <translation>Verbieten</translation>
    </message>
    <message>
        <source>When compiled again, the two of the selected decision stay apart</source>
        <translation>Beim nächsten Kompilieren bleiben die beiden der gewählten Entscheidung getrennt</translation>
    </message>
    <message>
        <source>Force</source>
        <translation>Erzwingen</translation>
    </message>
    <message>
        <source>When compiled again, the two of the selected decision become one kernel if that is possible, whatever it saves</source>
        <translation>Beim nächsten Kompilieren werden die beiden der gewählten Entscheidung ein Kernel, wenn das möglich ist, was immer es spart</translation>
    </message>
    <message>
        <source>Clear wishes</source>
        <translation>Wünsche zurücknehmen</translation>
    </message>
    <message>
        <source>What was forbidden or forced when the graph was recorded holds again, and nothing else</source>
        <translation>Es gilt wieder, was bei der Aufzeichnung des Graphen verboten oder erzwungen war, und sonst nichts</translation>
    </message>
    <message>
        <source>Sizes to compile this graph for</source>
        <translation>Größen, für die dieser Graph kompiliert wird</translation>
    </message>
    <message>
        <source>sizes: s0=1:512:x2</source>
        <translation>Größen: s0=1:512:x2</translation>
    </message>
    <message>
        <source>Compile this graph</source>
        <translation>Diesen Graphen kompilieren</translation>
    </message>
    <message>
        <source>Compiles the graph alone, with random inputs of its recorded shapes; with wishes, both ways by turns</source>
        <translation>Kompiliert den Graphen allein, mit zufälligen Eingaben seiner aufgezeichneten Formen; mit Wünschen abwechselnd auf beide Arten</translation>
    </message>
    <message>
        <source>Measure errors</source>
        <translation>Fehler messen</translation>
    </message>
    <message>
        <source>Compares every value with the same graph in float64, and looks for what makes the first divergence</source>
        <translation>Vergleicht jeden Wert mit demselben Graphen in float64 und sucht, was die erste Abweichung verursacht</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Ends the compilation</source>
        <translation>Beendet das Kompilieren</translation>
    </message>
    <message>
        <source>The engine is working</source>
        <translation>Die Engine arbeitet</translation>
    </message>
    <message>
        <source>Filter</source>
        <translation>Filtern</translation>
    </message>
    <message>
        <source>Open its session</source>
        <translation>Dessen Sitzung öffnen</translation>
    </message>
    <message>
        <source>Open the session of the graph that was compiled again</source>
        <translation>Die Sitzung des erneut kompilierten Graphen öffnen</translation>
    </message>
    <message>
        <source>Export fusion decisions…</source>
        <translation>Fusionsentscheidungen exportieren …</translation>
    </message>
    <message>
        <source>The fusions cannot be read</source>
        <translation>Die Fusionen lassen sich nicht lesen</translation>
    </message>
    <message>
        <source>Reading…</source>
        <translation>Wird gelesen …</translation>
    </message>
    <message>
        <source>No compiled graph yet</source>
        <translation>Noch kein kompilierter Graph</translation>
    </message>
    <message>
        <source>Fusion decisions appear when a graph has been compiled.</source>
        <translation>Fusionsentscheidungen erscheinen, wenn ein Graph kompiliert wurde.</translation>
    </message>
    <message>
        <source>No fusion was decided</source>
        <translation>Über keine Fusion wurde entschieden</translation>
    </message>
    <message>
        <source>Compile this graph to see what the engine makes of it.</source>
        <translation>Kompilieren Sie diesen Graphen, um zu sehen, was die Engine daraus macht.</translation>
    </message>
    <message>
        <source>This graph was not compiled.</source>
        <translation>Dieser Graph wurde nicht kompiliert.</translation>
    </message>
    <message>
        <source>No two kernels of this graph could have been one. Chains of pointwise operators are one operation from the start; the tab Kernels shows what each computes.</source>
        <translation>Keine zwei Kernel dieses Graphen hätten einer sein können. Ketten elementweiser Operatoren sind von Anfang an eine Operation; der Reiter Kernel zeigt, was jeder berechnet.</translation>
    </message>
    <message>
        <source>kernel or call</source>
        <translation>Kernel oder Aufruf</translation>
    </message>
    <message>
        <source>kernels and calls</source>
        <translation>Kernel und Aufrufe</translation>
    </message>
    <message>
        <source>%1 of memory traffic</source>
        <translation>%1 Speicherverkehr</translation>
    </message>
    <message>
        <source>%1 saved by fusing</source>
        <translation>%1 durch Fusion gespart</translation>
    </message>
    <message>
        <source>Cannot be compiled from here: %1</source>
        <translation>Kann von hier aus nicht kompiliert werden: %1</translation>
    </message>
    <message>
        <source>No errors measured</source>
        <translation>Keine Fehler gemessen</translation>
    </message>
    <message>
        <source>“Measure errors” compares every value of this graph with float64.</source>
        <translation>„Fehler messen“ vergleicht jeden Wert dieses Graphen mit float64.</translation>
    </message>
    <message>
        <source>Compile and compare</source>
        <translation>Kompilieren und vergleichen</translation>
    </message>
    <message>
        <source>Sizes that are symbols in this graph: one value (s0=37), several (s0=8,37) or a range (s0=8:64:8, s0=1:512:x2); empty: those at capture</source>
        <translation>Größen, die in diesem Graphen Symbole sind: ein Wert (s0=37), mehrere (s0=8,37) oder ein Bereich (s0=8:64:8, s0=1:512:x2); leer: die bei der Erfassung</translation>
    </message>
    <message>
        <source>Load this program?</source>
        <translation>Dieses Programm laden?</translation>
    </message>
    <message>
        <source>&amp;Load it</source>
        <translation>&amp;Laden</translation>
    </message>
    <message>
        <source>Compiling…</source>
        <translation>Wird kompiliert …</translation>
    </message>
    <message>
        <source>Running the graph in eager, compiled and float64…</source>
        <translation>Der Graph läuft in eager, kompiliert und in float64 …</translation>
    </message>
    <message>
        <source>Fusion</source>
        <translation>Fusion</translation>
    </message>
    <message>
        <source>No graph was compiled</source>
        <translation>Kein Graph wurde kompiliert</translation>
    </message>
    <message>
        <source>The program ran no function that torch.compile was given.</source>
        <translation>Das Programm führte keine Funktion aus, die torch.compile übergeben wurde.</translation>
    </message>
    <message>
        <source>%1 of memory traffic in %2 of them, of the others it is not known</source>
        <translation>%1 Speicherverkehr in %2 davon, bei den übrigen ist er nicht bekannt</translation>
    </message>
    <message>
        <source>memory traffic not known</source>
        <translation>Speicherverkehr nicht bekannt</translation>
    </message>
    <message>
        <source>PyTorch will load %1 to compile it, and that can run code which the file holds. Looking at its graphs, as until now, runs nothing.</source>
        <translation>PyTorch lädt %1, um es zu kompilieren, und das kann Code ausführen, der in der Datei steht. Die Graphen nur anzusehen, wie bisher, führt nichts aus.</translation>
    </message>
    <message>
        <source>%1 was recorded elsewhere. To compile its graph runs the operators that the file names, with the constants that it holds. Looking at it, as until now, runs nothing.</source>
        <translation>%1 wurde anderswo aufgezeichnet. Beim Kompilieren ihres Graphen laufen die Operatoren, die in der Datei stehen, mit den Konstanten aus der Datei. Sie nur anzusehen, wie bisher, führt nichts aus.</translation>
    </message>
    <message>
        <source>Run this graph?</source>
        <translation>Diesen Graphen ausführen?</translation>
    </message>
    <message>
        <source>Go on only if you trust where it comes from.</source>
        <translation>Nur fortfahren, wenn Sie der Herkunft vertrauen.</translation>
    </message>
    <message>
        <source>&amp;Run it</source>
        <translation>&amp;Ausführen</translation>
    </message>
</context>
<context>
    <name>fusebox::views::GraphCanvas</name>
    <message>
        <source>Graph</source>
        <translation>Graph</translation>
    </message>
    <message>
        <source>No graph</source>
        <translation>Kein Graph</translation>
    </message>
    <message>
        <source>%1 nodes</source>
        <translation>%1 Knoten</translation>
    </message>
</context>
<context>
    <name>fusebox::views::GraphCompiler</name>
    <message>
        <source>Cancelled.</source>
        <translation>Abgebrochen.</translation>
    </message>
    <message>
        <source>The engine ended with exit code %1.</source>
        <translation>Die Engine endete mit Exit-Code %1.</translation>
    </message>
    <message>
        <source>%1 cannot be started: %2</source>
        <translation>%1 kann nicht gestartet werden: %2</translation>
    </message>
</context>
<context>
    <name>fusebox::views::GraphView</name>
    <message>
        <source>No graph yet</source>
        <translation>Noch kein Graph</translation>
    </message>
    <message>
        <source>Graphs appear when a compiled function runs for the first time: captured, then after each stage.</source>
        <translation>Graphen erscheinen, wenn eine kompilierte Funktion zum ersten Mal läuft: erfasst, dann nach jeder Stufe.</translation>
    </message>
    <message>
        <source>Select a node to see its operator, arguments, shapes, origins and line.</source>
        <translation>Wählen Sie einen Knoten, um Operator, Argumente, Formen, Herkunft und Zeile zu sehen.</translation>
    </message>
    <message>
        <source>The graph cannot be shown</source>
        <translation>Der Graph kann nicht gezeigt werden</translation>
    </message>
    <message>
        <source>This graph has no nodes</source>
        <translation>Dieser Graph hat keine Knoten</translation>
    </message>
    <message>
        <source>%1 node</source>
        <translation>Knoten %1</translation>
    </message>
    <message>
        <source>operator</source>
        <translation>Operator</translation>
    </message>
    <message>
        <source>type</source>
        <translation>Typ</translation>
    </message>
    <message>
        <source>shape</source>
        <translation>Form</translation>
    </message>
    <message>
        <source>stride</source>
        <translation>Schrittweite</translation>
    </message>
    <message>
        <source>device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>Bytes</translation>
    </message>
    <message>
        <source>module</source>
        <translation>Modul</translation>
    </message>
    <message>
        <source>line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>function</source>
        <translation>Funktion</translation>
    </message>
    <message>
        <source>error</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>%1 of the largest value%2</source>
        <translation>%1 des größten Werts%2</translation>
    </message>
    <message>
        <source>, divergent</source>
        <translation>, abweichend</translation>
    </message>
    <message>
        <source>time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>Kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>launches</source>
        <translation>Starts</translation>
    </message>
    <message>
        <source>total</source>
        <translation>gesamt</translation>
    </message>
    <message>
        <source>reason</source>
        <translation>Grund</translation>
    </message>
    <message>
        <source>Arguments</source>
        <translation>Argumente</translation>
    </message>
    <message>
        <source>Inputs</source>
        <translation>Eingaben</translation>
    </message>
    <message>
        <source>Users</source>
        <translation>Benutzer</translation>
    </message>
    <message>
        <source>Made from</source>
        <translation>Entstanden aus</translation>
    </message>
    <message>
        <source>Became</source>
        <translation>Wurde zu</translation>
    </message>
    <message>
        <source>Fusion decisions</source>
        <translation>Fusionsentscheidungen</translation>
    </message>
    <message>
        <source>Python stack</source>
        <translation>Python-Stapel</translation>
    </message>
    <message>
        <source>group</source>
        <translation>Gruppe</translation>
    </message>
    <message>
        <source>path</source>
        <translation>Pfad</translation>
    </message>
    <message>
        <source>nodes</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Double click or Return opens and closes a group.</source>
        <translation>Doppelklick oder Eingabe öffnet und schließt eine Gruppe.</translation>
    </message>
    <message>
        <source>graph</source>
        <translation>Graph</translation>
    </message>
    <message>
        <source>frame</source>
        <translation>Frame</translation>
    </message>
    <message>
        <source>direction</source>
        <translation>Richtung</translation>
    </message>
    <message>
        <source>edges</source>
        <translation>Kanten</translation>
    </message>
    <message>
        <source>kernels</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>Operators</source>
        <translation>Operatoren</translation>
    </message>
    <message>
        <source>Graph</source>
        <translation>Graph</translation>
    </message>
    <message>
        <source>Compilation</source>
        <translation>Kompilierung</translation>
    </message>
    <message>
        <source>Stage of the pipeline</source>
        <translation>Stufe der Verarbeitung</translation>
    </message>
    <message>
        <source>Fold nodes into groups by</source>
        <translation>Knoten in Gruppen falten nach</translation>
    </message>
    <message>
        <source>Flat</source>
        <translation>Flach</translation>
    </message>
    <message>
        <source>By module</source>
        <translation>Nach Modul</translation>
    </message>
    <message>
        <source>By kernel</source>
        <translation>Nach Kernel</translation>
    </message>
    <message>
        <source>Colour by</source>
        <translation>Färben nach</translation>
    </message>
    <message>
        <source>Operator</source>
        <translation>Operator</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Error of the compiled values against float64, relative to the largest; measured by “Measure errors” of the fusion view</source>
        <translation>Fehler der kompilierten Werte gegen float64, im Verhältnis zum größten; gemessen mit „Fehler messen“ der Ansicht Fusion</translation>
    </message>
    <message>
        <source>Draw inputs, parameters and constants as nodes; otherwise each reader carries their number</source>
        <translation>Eingaben, Parameter und Konstanten als Knoten zeichnen; sonst trägt jeder Leser ihre Zahl</translation>
    </message>
    <message>
        <source>Find nodes by name, operator, shape, module</source>
        <translation>Knoten nach Name, Operator, Form, Modul suchen</translation>
    </message>
    <message>
        <source>Laying out</source>
        <translation>Wird angeordnet</translation>
    </message>
    <message>
        <source>Open all groups</source>
        <translation>Alle Gruppen öffnen</translation>
    </message>
    <message>
        <source>Close all groups</source>
        <translation>Alle Gruppen schließen</translation>
    </message>
    <message>
        <source>Zoom in (+)</source>
        <translation>Vergrößern (+)</translation>
    </message>
    <message>
        <source>Zoom out (−)</source>
        <translation>Verkleinern (−)</translation>
    </message>
    <message>
        <source>Fit (F)</source>
        <translation>Einpassen (F)</translation>
    </message>
    <message>
        <source>Compile this graph…</source>
        <translation>Diesen Graphen kompilieren…</translation>
    </message>
    <message>
        <source>Compile this graph alone: its fusions, what if they were others, and its errors</source>
        <translation>Nur diesen Graphen kompilieren: seine Fusionen, was wäre, wenn sie andere wären, und seine Fehler</translation>
    </message>
    <message>
        <source>Copy picture</source>
        <translation>Bild kopieren</translation>
    </message>
    <message>
        <source>Export picture…</source>
        <translation>Bild exportieren…</translation>
    </message>
    <message>
        <source>compile %1</source>
        <translation>Kompilierung %1</translation>
    </message>
    <message>
        <source> (backward)</source>
        <translation> (rückwärts)</translation>
    </message>
    <message>
        <source>, from line %1</source>
        <translation>, ab Zeile %1</translation>
    </message>
    <message>
        <source>, entry %1</source>
        <translation>, Eintrag %1</translation>
    </message>
    <message>
        <source>, compile %1</source>
        <translation>, Kompilierung %1</translation>
    </message>
    <message>
        <source>, part %1 of %2</source>
        <translation>, Teil %1 von %2</translation>
    </message>
    <message>
        <source>No graph was captured</source>
        <translation>Kein Graph wurde erfasst</translation>
    </message>
    <message>
        <source>The program ran no function that torch.compile was given.</source>
        <translation>Das Programm führte keine Funktion aus, die torch.compile übergeben wurde.</translation>
    </message>
    <message>
        <source>in logs</source>
        <translation>in Protokollen</translation>
    </message>
</context>
<context>
    <name>fusebox::views::GuardsView</name>
    <message>
        <source>Filter frames</source>
        <translation>Frames filtern</translation>
    </message>
    <message>
        <source>Frames and their compiled entries</source>
        <translation>Frames und ihre kompilierten Einträge</translation>
    </message>
    <message>
        <source>Frame / entry</source>
        <translation>Frame / Eintrag</translation>
    </message>
    <message>
        <source>Guards</source>
        <translation>Guards</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>Fehlschläge</translation>
    </message>
    <message>
        <source>Compile</source>
        <translation>Kompilieren</translation>
    </message>
    <message>
        <source>Filter guards</source>
        <translation>Guards filtern</translation>
    </message>
    <message>
        <source>#</source>
        <translation>#</translation>
    </message>
    <message>
        <source>Order of checking</source>
        <translation>Reihenfolge der Prüfung</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>What is checked</source>
        <translation>Was geprüft wird</translation>
    </message>
    <message>
        <source>On</source>
        <translation>Worauf</translation>
    </message>
    <message>
        <source>Where the value is read from: L is a local of the frame, G its globals</source>
        <translation>Woher der Wert gelesen wird: L ist eine Lokale des Frames, G sind seine Globalen</translation>
    </message>
    <message>
        <source>Expected</source>
        <translation>Erwartet</translation>
    </message>
    <message>
        <source>What the compiled code was made for</source>
        <translation>Wofür der kompilierte Code gemacht wurde</translation>
    </message>
    <message>
        <source>Times that this guard failed</source>
        <translation>Wie oft dieser Guard fehlschlug</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Filter failures</source>
        <translation>Fehlschläge filtern</translation>
    </message>
    <message>
        <source>Frame</source>
        <translation>Frame</translation>
    </message>
    <message>
        <source>Guard that failed</source>
        <translation>Guard, der nicht galt</translation>
    </message>
    <message>
        <source>Found</source>
        <translation>Gefunden</translation>
    </message>
    <message>
        <source>Outcome</source>
        <translation>Ergebnis</translation>
    </message>
    <message>
        <source>Filter symbols and relations</source>
        <translation>Symbole und Beziehungen filtern</translation>
    </message>
    <message>
        <source>Symbolic</source>
        <translation>Symbolisch</translation>
    </message>
    <message>
        <source>A symbol, what was taken as true of symbols, or a number that became a constant</source>
        <translation>Ein Symbol, eine Annahme über Symbole oder eine Zahl, die zur Konstanten wurde</translation>
    </message>
    <message>
        <source>Read from, or asked by</source>
        <translation>Gelesen von, oder verlangt von</translation>
    </message>
    <message>
        <source>Where a call&apos;s value of the symbol is read, with the values that it may take; or what needed the relation or the number</source>
        <translation>Woher der Wert des Symbols bei einem Aufruf gelesen wird, mit den erlaubten Werten; oder was die Beziehung oder die Zahl brauchte</translation>
    </message>
    <message>
        <source>Cost</source>
        <translation>Kosten</translation>
    </message>
    <message>
        <source>Recompiles because of it, and their time</source>
        <translation>Neukompilierungen deswegen, und ihre Zeit</translation>
    </message>
    <message>
        <source>The line that asked</source>
        <translation>Die Zeile, die es verlangte</translation>
    </message>
    <message>
        <source>Select a guard or a failure to read it in full.</source>
        <translation>Wählen Sie einen Guard oder einen Fehlschlag, um ihn ganz zu lesen.</translation>
    </message>
    <message>
        <source>No compiled frame yet</source>
        <translation>Noch kein kompilierter Frame</translation>
    </message>
    <message>
        <source>Each compiled function appears here with its entries: one for the first compile, one more for each recompile.</source>
        <translation>Jede kompilierte Funktion steht hier mit ihren Einträgen: einem für die erste Kompilierung, einem weiteren für jede Neukompilierung.</translation>
    </message>
    <message>
        <source>No guards</source>
        <translation>Keine Guards</translation>
    </message>
    <message>
        <source>None was recorded for this entry.</source>
        <translation>Für diesen Eintrag wurde keiner aufgezeichnet.</translation>
    </message>
    <message>
        <source>Choose a compiled entry; its assumptions are listed here.</source>
        <translation>Wählen Sie einen kompilierten Eintrag; seine Annahmen stehen dann hier.</translation>
    </message>
    <message>
        <source>No guard has failed</source>
        <translation>Kein Guard ist fehlgeschlagen</translation>
    </message>
    <message>
        <source>A failing guard recompiles its frame; it is listed here with what was expected and found.</source>
        <translation>Ein Guard, der fehlschlägt, lässt seinen Frame neu kompilieren; er steht hier mit dem, was erwartet und was gefunden wurde.</translation>
    </message>
    <message>
        <source>The guards cannot be read</source>
        <translation>Die Guards sind nicht lesbar</translation>
    </message>
    <message>
        <source>entry %1</source>
        <translation>Eintrag %1</translation>
    </message>
    <message>
        <source>Compiled because %1</source>
        <translation>Kompiliert, weil %1</translation>
    </message>
    <message>
        <source>cost</source>
        <translation>Kosten</translation>
    </message>
    <message>
        <source>line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Guard failed</source>
        <translation>Guard fehlgeschlagen</translation>
    </message>
    <message>
        <source>frame</source>
        <translation>Frame</translation>
    </message>
    <message>
        <source>Guard</source>
        <translation>Guard</translation>
    </message>
    <message>
        <source>guard %1</source>
        <translation>Guard %1</translation>
    </message>
    <message>
        <source>Check</source>
        <translation>Prüfung</translation>
    </message>
    <message>
        <source>Because of</source>
        <translation>Wegen</translation>
    </message>
    <message>
        <source>No frame was compiled</source>
        <translation>Kein Frame wurde kompiliert</translation>
    </message>
</context>
<context>
    <name>fusebox::views::KernelsView</name>
    <message>
        <source>Kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>generated, template, extern (a call of ATen), eager: launched by code outside compiled graphs, or autotune: launched by Fusebox to choose launch shapes, and in no share</source>
        <translation>generated: erzeugt, template: nach Vorlage, extern: ein Aufruf von ATen, eager: gestartet von Code außerhalb kompilierter Graphen, oder autotune: gestartet von Fusebox, um Startformen zu wählen, und in keinem Anteil</translation>
    </message>
    <message>
        <source>Result</source>
        <translation>Ergebnis</translation>
    </message>
    <message>
        <source>Type and shape of its last result</source>
        <translation>Typ und Form seines letzten Ergebnisses</translation>
    </message>
    <message>
        <source>Module</source>
        <translation>Modul</translation>
    </message>
    <message>
        <source>Path of the module that asked for it</source>
        <translation>Pfad des Moduls, das ihn verlangte</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Line of the program that it computes</source>
        <translation>Zeile des Programms, die er berechnet</translation>
    </message>
    <message>
        <source>Launches</source>
        <translation>Starts</translation>
    </message>
    <message>
        <source>With those that replays of CUDA graphs contain</source>
        <translation>Mit denen, die Wiederholungen von CUDA-Graphen enthalten</translation>
    </message>
    <message>
        <source>Total</source>
        <translation>Gesamt</translation>
    </message>
    <message>
        <source>Time of all launches: the device&apos;s, where it was measured</source>
        <translation>Zeit aller Starts: die des Geräts, wo sie gemessen wurde</translation>
    </message>
    <message>
        <source>Share</source>
        <translation>Anteil</translation>
    </message>
    <message>
        <source>Share of all kernel time</source>
        <translation>Anteil an der Zeit aller Kernel</translation>
    </message>
    <message>
        <source>Typical</source>
        <translation>Typisch</translation>
    </message>
    <message>
        <source>Mean without the slowest launch, which mostly is the first</source>
        <translation>Mittel ohne den langsamsten Start, der meist der erste ist</translation>
    </message>
    <message>
        <source>Mean</source>
        <translation>Mittel</translation>
    </message>
    <message>
        <source>Of all launches, the first and slowest too</source>
        <translation>Aller Starts, auch des ersten und langsamsten</translation>
    </message>
    <message>
        <source>Min</source>
        <translation>Min</translation>
    </message>
    <message>
        <source>Max</source>
        <translation>Max</translation>
    </message>
    <message>
        <source>Bytes</source>
        <translation>Bytes</translation>
    </message>
    <message>
        <source>Bytes read and written by all launches</source>
        <translation>Von allen Starts gelesene und geschriebene Bytes</translation>
    </message>
    <message>
        <source>Rate</source>
        <translation>Rate</translation>
    </message>
    <message>
        <source>Bytes moved a second of kernel time, by the tensors that a launch touches</source>
        <translation>Bewegte Bytes je Sekunde Kernelzeit, nach den Tensoren, die ein Start berührt</translation>
    </message>
    <message>
        <source>Of roof</source>
        <translation>Vom Dach</translation>
    </message>
    <message>
        <source>What it reaches of the device&apos;s memory rate (measured by a copy) or of its float32 arithmetic, whichever is more; above 100 % its data came from the device&apos;s cache</source>
        <translation>Was er von der Speicherrate des Geräts (gemessen mit einer Kopie) oder von dessen float32-Rechenleistung erreicht, je nachdem, was mehr ist; über 100 % kamen seine Daten aus dem Cache des Geräts</translation>
    </message>
    <message>
        <source>Registers</source>
        <translation>Register</translation>
    </message>
    <message>
        <source>Registers of a thread</source>
        <translation>Register eines Threads</translation>
    </message>
    <message>
        <source>Shared</source>
        <translation>Geteilt</translation>
    </message>
    <message>
        <source>Shared memory of a block</source>
        <translation>Geteilter Speicher eines Blocks</translation>
    </message>
    <message>
        <source>Local</source>
        <translation>Lokal</translation>
    </message>
    <message>
        <source>Local memory of a thread: its stack, and registers that were spilled</source>
        <translation>Lokaler Speicher eines Threads: sein Stapel und ausgelagerte Register</translation>
    </message>
    <message>
        <source>Occupancy</source>
        <translation>Belegung</translation>
    </message>
    <message>
        <source>Threads that a multiprocessor can hold of this kernel, of those that it can hold at all</source>
        <translation>Threads dieses Kernels, die ein Multiprozessor halten kann, von denen, die er überhaupt halten kann</translation>
    </message>
    <message>
        <source>Compiled in</source>
        <translation>Kompiliert in</translation>
    </message>
    <message>
        <source>Time of code generation, all tiers</source>
        <translation>Zeit der Codeerzeugung, alle Ränge</translation>
    </message>
    <message>
        <source>Nodes</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Graph nodes that it carries out</source>
        <translation>Knoten des Graphen, die er ausführt</translation>
    </message>
    <message>
        <source>10 % below %1, half below %2, 90 % below %3, 99 % below %4</source>
        <translation>10 % unter %1, die Hälfte unter %2, 90 % unter %3, 99 % unter %4</translation>
    </message>
    <message>
        <source>Filter kernels by name, kind or line</source>
        <translation>Kernel nach Name, Art oder Zeile filtern</translation>
    </message>
    <message>
        <source>No kernel yet</source>
        <translation>Noch kein Kernel</translation>
    </message>
    <message>
        <source>Kernels appear when a compiled graph has been lowered; times with their first launch.</source>
        <translation>Kernel erscheinen, wenn ein Graph umgesetzt ist; Zeiten mit ihrem ersten Start.</translation>
    </message>
    <message>
        <source>About the kernel</source>
        <translation>Über den Kernel</translation>
    </message>
    <message>
        <source>Summary</source>
        <translation>Zusammenfassung</translation>
    </message>
    <message>
        <source>Loop IR</source>
        <translation>Schleifen-IR</translation>
    </message>
    <message>
        <source>LLVM IR</source>
        <translation>LLVM-IR</translation>
    </message>
    <message>
        <source>Assembly</source>
        <translation>Assembler</translation>
    </message>
    <message>
        <source>Side by side</source>
        <translation>Nebeneinander</translation>
    </message>
    <message>
        <source>Filter nodes</source>
        <translation>Knoten filtern</translation>
    </message>
    <message>
        <source>Operator</source>
        <translation>Operator</translation>
    </message>
    <message>
        <source>Node</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Role</source>
        <translation>Rolle</translation>
    </message>
    <message>
        <source>No nodes recorded for this kernel</source>
        <translation>Zu diesem Kernel sind keine Knoten aufgezeichnet</translation>
    </message>
    <message>
        <source>Filter decisions</source>
        <translation>Entscheidungen filtern</translation>
    </message>
    <message>
        <source>Decision</source>
        <translation>Entscheidung</translation>
    </message>
    <message>
        <source>First</source>
        <translation>Erste</translation>
    </message>
    <message>
        <source>Second</source>
        <translation>Zweite</translation>
    </message>
    <message>
        <source>Reason</source>
        <translation>Grund</translation>
    </message>
    <message>
        <source>No fusion was considered</source>
        <translation>Keine Fusion wurde erwogen</translation>
    </message>
    <message>
        <source>Kernels of one node that no other could join have no decision.</source>
        <translation>Kernel aus einem Knoten, zu dem kein anderer kommen konnte, haben keine Entscheidung.</translation>
    </message>
    <message>
        <source>Fusion decisions</source>
        <translation>Fusionsentscheidungen</translation>
    </message>
    <message>
        <source>Filter counters</source>
        <translation>Zähler filtern</translation>
    </message>
    <message>
        <source>Counter</source>
        <translation>Zähler</translation>
    </message>
    <message>
        <source>What the device counted while the kernel ran; the tooltip has CUPTI&apos;s name</source>
        <translation>Was das Gerät zählte, während der Kernel lief; der Tooltip nennt den Namen bei CUPTI</translation>
    </message>
    <message>
        <source>How</source>
        <translation>Wie</translation>
    </message>
    <message>
        <source>around each launch: of the kernel alone. sampled: of the whole device at an interval, while the kernel ran</source>
        <translation>around each launch: des Kernels allein. sampled: des ganzen Geräts in einem Abstand, während der Kernel lief</translation>
    </message>
    <message>
        <source>Of a launch; percentages are weighted by the time of the launch</source>
        <translation>Eines Starts; Prozente sind nach der Zeit des Starts gewichtet</translation>
    </message>
    <message>
        <source>Least</source>
        <translation>Kleinste</translation>
    </message>
    <message>
        <source>Most</source>
        <translation>Größte</translation>
    </message>
    <message>
        <source>Launches that were counted, or were long enough to be sampled</source>
        <translation>Starts, die gezählt wurden oder lang genug waren, um abgetastet zu werden</translation>
    </message>
    <message>
        <source>Counters</source>
        <translation>Zähler</translation>
    </message>
    <message>
        <source>Roofline</source>
        <translation>Roofline</translation>
    </message>
    <message>
        <source>Export kernel table…</source>
        <translation>Kerneltabelle exportieren…</translation>
    </message>
    <message>
        <source>Triton</source>
        <translation>Triton</translation>
    </message>
    <message>
        <source>C++</source>
        <translation>C++</translation>
    </message>
    <message>
        <source>The kernels cannot be read</source>
        <translation>Die Kernel können nicht gelesen werden</translation>
    </message>
    <message>
        <source>The roofline cannot be read</source>
        <translation>Die Roofline ist nicht lesbar</translation>
    </message>
    <message>
        <source>No kernel was timed by a device</source>
        <translation>Kein Kernel wurde von einem Gerät gemessen</translation>
    </message>
    <message>
        <source>Recordings of programs that use an NVIDIA GPU show here how near each kernel comes to what the device allows.</source>
        <translation>Aufzeichnungen von Programmen, die eine NVIDIA-GPU benutzen, zeigen hier, wie nahe jeder Kernel dem kommt, was das Gerät erlaubt.</translation>
    </message>
    <message>
        <source>No %1</source>
        <translation>Kein %1</translation>
    </message>
    <message>
        <source>Select a kernel to see its times, code and fusion decisions.</source>
        <translation>Wählen Sie einen Kernel, um Zeiten, Code und Fusionsentscheidungen zu sehen.</translation>
    </message>
    <message>
        <source>Select a kernel.</source>
        <translation>Wählen Sie einen Kernel.</translation>
    </message>
    <message>
        <source>No counters</source>
        <translation>Keine Zähler</translation>
    </message>
    <message>
        <source>operator</source>
        <translation>Operator</translation>
    </message>
    <message>
        <source>device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>launches</source>
        <translation>Starts</translation>
    </message>
    <message>
        <source>total</source>
        <translation>gesamt</translation>
    </message>
    <message>
        <source>typical</source>
        <translation>typisch</translation>
    </message>
    <message>
        <source>%1 without the slowest</source>
        <translation>%1 ohne den langsamsten</translation>
    </message>
    <message>
        <source>mean</source>
        <translation>Mittel</translation>
    </message>
    <message>
        <source>fastest</source>
        <translation>schnellster</translation>
    </message>
    <message>
        <source>slowest</source>
        <translation>langsamster</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>Bytes</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>gemessen</translation>
    </message>
    <message>
        <source>by the device, all launches</source>
        <translation>vom Gerät, alle Starts</translation>
    </message>
    <message>
        <source>by the device, %1 of the launches</source>
        <translation>vom Gerät, %1 der Starts</translation>
    </message>
    <message>
        <source>the calls took</source>
        <translation>die Aufrufe dauerten</translation>
    </message>
    <message>
        <source>distribution</source>
        <translation>Verteilung</translation>
    </message>
    <message>
        <source>device function</source>
        <translation>Funktion des Geräts</translation>
    </message>
    <message>
        <source>launch</source>
        <translation>Start</translation>
    </message>
    <message>
        <source>grid %1, block %2</source>
        <translation>Gitter %1, Block %2</translation>
    </message>
    <message>
        <source>registers</source>
        <translation>Register</translation>
    </message>
    <message>
        <source>%1 a thread</source>
        <translation>%1 je Thread</translation>
    </message>
    <message>
        <source>shared memory</source>
        <translation>gemeinsamer Speicher</translation>
    </message>
    <message>
        <source>%1 a block</source>
        <translation>%1 je Block</translation>
    </message>
    <message>
        <source>local memory</source>
        <translation>lokaler Speicher</translation>
    </message>
    <message>
        <source>occupancy</source>
        <translation>Belegung</translation>
    </message>
    <message>
        <source>%1, limited by %2</source>
        <translation>%1, begrenzt durch %2</translation>
    </message>
    <message>
        <source>rate</source>
        <translation>Rate</translation>
    </message>
    <message>
        <source>arithmetic</source>
        <translation>Rechnen</translation>
    </message>
    <message>
        <source>line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>graph</source>
        <translation>Graph</translation>
    </message>
    <message>
        <source>show its nodes</source>
        <translation>seine Knoten zeigen</translation>
    </message>
    <message>
        <source>reason</source>
        <translation>Grund</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>compiled in %1</source>
        <translation>in %1 kompiliert</translation>
    </message>
    <message>
        <source>cache %1</source>
        <translation>Cache %1</translation>
    </message>
    <message>
        <source>first tier</source>
        <translation>erste Stufe</translation>
    </message>
    <message>
        <source>optimised tier</source>
        <translation>optimierte Stufe</translation>
    </message>
    <message>
        <source>This is a call of a library: %1</source>
        <translation>Dies ist ein Aufruf einer Bibliothek: %1</translation>
    </message>
    <message>
        <source>Fusebox launched this form of its own kernel while it chose launch shapes; the code is shown with the kernel that was chosen.</source>
        <translation>Fusebox startete diese Form des eigenen Kernels, während es Startformen wählte; der Code steht bei dem Kernel, der gewählt wurde.</translation>
    </message>
    <message>
        <source>median</source>
        <translation>Median</translation>
    </message>
    <message>
        <source>%1, standard deviation %2</source>
        <translation>%1, Standardabweichung %2</translation>
    </message>
    <message>
        <source>This is an operator of PyTorch: the recorder saw it run, not what it is made of.</source>
        <translation>Dies ist ein Operator von PyTorch: Der Rekorder sah ihn laufen, nicht, woraus er besteht.</translation>
    </message>
    <message>
        <source>Code outside compiled graphs launched this kernel of a library; Fusebox did not make it.</source>
        <translation>Code außerhalb kompilierter Graphen startete diesen Kernel einer Bibliothek; er ist nicht von Fusebox.</translation>
    </message>
    <message>
        <source>The recording holds none for this kernel.</source>
        <translation>Die Aufzeichnung enthält keinen für diesen Kernel.</translation>
    </message>
    <message>
        <source>PTX</source>
        <translation>PTX</translation>
    </message>
    <message>
        <source>The recording holds no cubin of this kernel.</source>
        <translation>Die Aufzeichnung enthält kein Cubin dieses Kernels.</translation>
    </message>
    <message>
        <source>SASS is the machine code of NVIDIA&apos;s GPUs; this kernel runs on the processor.</source>
        <translation>SASS ist der Maschinencode der GPUs von NVIDIA; dieser Kernel läuft auf dem Prozessor.</translation>
    </message>
    <message>
        <source>No counters of this kernel</source>
        <translation>Keine Zähler dieses Kernels</translation>
    </message>
    <message>
        <source>fusebox run --gpu-counters reads hardware counters around every kernel of an NVIDIA GPU, --gpu-sampling samples them while kernels run.</source>
        <translation>fusebox run --gpu-counters liest Hardwarezähler um jeden Kernel einer NVIDIA-GPU, --gpu-sampling tastet sie ab, während Kernel laufen.</translation>
    </message>
    <message>
        <source>Kernels</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>No kernel</source>
        <translation>Kein Kernel</translation>
    </message>
    <message>
        <source>Nothing was lowered to kernels, and none was launched, in this recording.</source>
        <translation>In dieser Aufzeichnung wurde nichts in Kernel übersetzt und keiner gestartet.</translation>
    </message>
    <message>
        <source>No roofline</source>
        <translation>Keine Roofline</translation>
    </message>
    <message>
        <source>The file does not say how many bytes its kernels move and how much they compute.</source>
        <translation>Die Datei sagt nicht, wie viele Bytes ihre Kernel bewegen und wie viel sie rechnen.</translation>
    </message>
    <message>
        <source>%1, where the function begins that launched it first</source>
        <translation>%1, wo die Funktion beginnt, die ihn zuerst startete</translation>
    </message>
    <message>
        <source>Inputs</source>
        <translation>Eingaben</translation>
    </message>
    <message>
        <source>Names of the values that it is given: they tell apart what is called alike; of several places the first</source>
        <translation>Namen der Werte, die er bekommt: Sie unterscheiden, was gleich heißt; von mehreren Stellen die erste</translation>
    </message>
    <message>
        <source>Compare others with this kernel</source>
        <translation>Andere mit diesem Kernel vergleichen</translation>
    </message>
    <message>
        <source>compared with</source>
        <translation>verglichen mit</translation>
    </message>
    <message>
        <source>%1 in %2</source>
        <translation>%1 in %2</translation>
    </message>
    <message>
        <source>Pin</source>
        <translation>Anheften</translation>
    </message>
</context>
<context>
    <name>fusebox::views::LifetimesCanvas</name>
    <message>
        <source>Lifetimes of buffers</source>
        <translation>Lebenszeiten der Puffer</translation>
    </message>
    <message>
        <source>%1 buffers, %2 at the peak</source>
        <translation>%1 Puffer, %2 am Höchststand</translation>
    </message>
    <message>
        <source>step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>This graph plans no buffers: everything it makes stays inside its kernels.</source>
        <translation>Dieser Graph plant keine Puffer: alles, was er macht, bleibt in seinen Kerneln.</translation>
    </message>
    <message>
        <source>planned, in the pool</source>
        <translation>geplant, im Pool</translation>
    </message>
    <message>
        <source>results</source>
        <translation>Ergebnisse</translation>
    </message>
    <message>
        <source>alive</source>
        <translation>am Leben</translation>
    </message>
    <message>
        <source>%1: %2%3, %4
%5
from step %6 (%7) to step %8 (%9)</source>
        <translation>%1: %2%3, %4
%5
von Schritt %6 (%7) bis Schritt %8 (%9)</translation>
    </message>
    <message>
        <source>a result, lives on after the call</source>
        <translation>ein Ergebnis, lebt nach dem Aufruf weiter</translation>
    </message>
    <message>
        <source>allocated, freed after its last use</source>
        <translation>eigener Speicher, nach der letzten Verwendung frei</translation>
    </message>
    <message>
        <source>allocated by itself, freed after its last use</source>
        <translation>eigener Speicher, nach der letzten Verwendung frei</translation>
    </message>
</context>
<context>
    <name>fusebox::views::MemoryView</name>
    <message>
        <source>Resident bytes of the whole process, and of each device what torch&apos;s allocator had in use and had taken</source>
        <translation>Belegter Speicher des ganzen Prozesses, und je Gerät, was Torchs Allokator benutzte und genommen hatte</translation>
    </message>
    <message>
        <source>Filter graphs</source>
        <translation>Graphen filtern</translation>
    </message>
    <message>
        <source>Function</source>
        <translation>Funktion</translation>
    </message>
    <message>
        <source>Peak</source>
        <translation>Höchststand</translation>
    </message>
    <message>
        <source>At step</source>
        <translation>Bei Schritt</translation>
    </message>
    <message>
        <source>Steps are kernels and calls in order of execution</source>
        <translation>Schritte sind Kernel und Aufrufe in der Reihenfolge der Ausführung</translation>
    </message>
    <message>
        <source>Pool</source>
        <translation>Pool</translation>
    </message>
    <message>
        <source>One piece of memory that planned buffers share, one after the other</source>
        <translation>Ein Stück Speicher, das sich geplante Puffer teilen, einer nach dem anderen</translation>
    </message>
    <message>
        <source>Planned</source>
        <translation>Geplant</translation>
    </message>
    <message>
        <source>What they would need without sharing</source>
        <translation>Was sie ohne Teilen brauchen würden</translation>
    </message>
    <message>
        <source>Results</source>
        <translation>Ergebnisse</translation>
    </message>
    <message>
        <source>Handed out: they live on after the call</source>
        <translation>Herausgegeben: sie leben nach dem Aufruf weiter</translation>
    </message>
    <message>
        <source>Inputs</source>
        <translation>Eingaben</translation>
    </message>
    <message>
        <source>Saved</source>
        <translation>Aufgehoben</translation>
    </message>
    <message>
        <source>Of a backward pass: activations that the forward pass keeps for it, parameters and inputs left out</source>
        <translation>Eines Rückwärtsgraphen: Aktivierungen, die der Vorwärtsdurchlauf dafür aufhebt, ohne Parameter und Eingaben</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Buffers and saved tensors</source>
        <translation>Puffer und aufgehobene Tensoren</translation>
    </message>
    <message>
        <source>Filter buffers</source>
        <translation>Puffer filtern</translation>
    </message>
    <message>
        <source>Buffer</source>
        <translation>Puffer</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>Bytes</source>
        <translation>Bytes</translation>
    </message>
    <message>
        <source>First step</source>
        <translation>Erster Schritt</translation>
    </message>
    <message>
        <source>Last step</source>
        <translation>Letzter Schritt</translation>
    </message>
    <message>
        <source>Tensor</source>
        <translation>Tensor</translation>
    </message>
    <message>
        <source>No graph selected</source>
        <translation>Kein Graph gewählt</translation>
    </message>
    <message>
        <source>Select a graph above.</source>
        <translation>Wählen Sie oben einen Graphen.</translation>
    </message>
    <message>
        <source>Filter saved tensors</source>
        <translation>Aufgehobene Tensoren filtern</translation>
    </message>
    <message>
        <source>Kept as</source>
        <translation>Aufgehoben als</translation>
    </message>
    <message>
        <source>Parameters and inputs live on anyway; the rest is kept only for the backward pass</source>
        <translation>Parameter und Eingaben leben ohnehin weiter; der Rest wird nur für den Rückwärtsdurchlauf aufgehoben</translation>
    </message>
    <message>
        <source>Type</source>
        <translation>Typ</translation>
    </message>
    <message>
        <source>Nothing is kept for a backward pass</source>
        <translation>Für einen Rückwärtsdurchlauf wird nichts aufgehoben</translation>
    </message>
    <message>
        <source>The function ran without gradients, or its backward pass was not recorded.</source>
        <translation>Die Funktion lief ohne Gradienten, oder ihr Rückwärtsdurchlauf wurde nicht aufgezeichnet.</translation>
    </message>
    <message>
        <source>Buffers</source>
        <translation>Puffer</translation>
    </message>
    <message>
        <source>Kept for backward</source>
        <translation>Für rückwärts aufgehoben</translation>
    </message>
    <message>
        <source>Export picture of lifetimes…</source>
        <translation>Bild der Lebenszeiten exportieren…</translation>
    </message>
    <message>
        <source>Export table of buffers…</source>
        <translation>Tabelle der Puffer exportieren…</translation>
    </message>
    <message>
        <source>No buffers recorded</source>
        <translation>Keine Puffer aufgezeichnet</translation>
    </message>
    <message>
        <source>Graphs appear here when they have been compiled.</source>
        <translation>Graphen stehen hier, sobald sie kompiliert sind.</translation>
    </message>
    <message>
        <source>The buffers of the graph that is selected above are shown here.</source>
        <translation>Die Puffer des oben gewählten Graphen stehen hier.</translation>
    </message>
    <message>
        <source>The memory plans cannot be read</source>
        <translation>Die Speicherpläne sind nicht lesbar</translation>
    </message>
    <message>
        <source>; the pool holds %1 of planned buffers in %2</source>
        <translation>; der Pool fasst %1 geplanter Puffer in %2</translation>
    </message>
    <message>
        <source>; all of it are results</source>
        <translation>; alles davon sind Ergebnisse</translation>
    </message>
    <message>
        <source>&lt;b&gt;%1&lt;/b&gt;&amp;nbsp; %2 at its peak, at step %3%4%5</source>
        <translation>&lt;b&gt;%1&lt;/b&gt;&amp;nbsp; %2 am Höchststand, bei Schritt %3%4%5</translation>
    </message>
    <message>
        <source>Kept for backward (%1)</source>
        <translation>Für rückwärts aufgehoben (%1)</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Most bytes of buffers and results alive at one step</source>
        <translation>Die meisten Bytes von Puffern und Ergebnissen, die in einem Schritt leben</translation>
    </message>
    <message>
        <source>Allocated</source>
        <translation>Eigener Speicher</translation>
    </message>
    <message>
        <source>By itself, apart from the pool (most results of library calls), and freed after the last use</source>
        <translation>Für sich, neben dem Pool (die meisten Ergebnisse von Bibliotheksaufrufen), und nach der letzten Verwendung frei</translation>
    </message>
    <message>
        <source>planned: in the pool; allocated: by itself, freed after its last use; result: handed out; view: another&apos;s memory</source>
        <translation>planned: im Pool; allocated: eigener Speicher, nach der letzten Verwendung frei; result: herausgegeben; view: Speicher eines anderen</translation>
    </message>
    <message>
        <source>; nothing lies in a pool</source>
        <translation>; nichts liegt in einem Pool</translation>
    </message>
</context>
<context>
    <name>fusebox::views::MessageBar</name>
    <message>
        <source>Message</source>
        <translation>Meldung</translation>
    </message>
    <message>
        <source>What can be done</source>
        <translation>Was man tun kann</translation>
    </message>
    <message>
        <source>Close message</source>
        <translation>Meldung schließen</translation>
    </message>
</context>
<context>
    <name>fusebox::views::OverviewView</name>
    <message>
        <source>finished: the program failed</source>
        <translation>beendet: das Programm schlug fehl</translation>
    </message>
    <message>
        <source>in no stage</source>
        <translation>in keiner Stufe</translation>
    </message>
    <message>
        <source>limit reached</source>
        <translation>Grenze erreicht</translation>
    </message>
    <message>
        <source>limits reached</source>
        <translation>Grenzen erreicht</translation>
    </message>
    <message>
        <source>Frames</source>
        <translation>Frames</translation>
    </message>
    <message>
        <source>Graphs</source>
        <translation>Graphen</translation>
    </message>
    <message>
        <source>Graph breaks</source>
        <translation>Graphbrüche</translation>
    </message>
    <message>
        <source>Recompiles</source>
        <translation>Neukompilierungen</translation>
    </message>
    <message>
        <source>Generated kernels</source>
        <translation>Erzeugte Kernel</translation>
    </message>
    <message>
        <source>Launches</source>
        <translation>Starts</translation>
    </message>
    <message>
        <source>Compile time</source>
        <translation>Kompilierzeit</translation>
    </message>
    <message>
        <source>Run time</source>
        <translation>Laufzeit</translation>
    </message>
    <message>
        <source>Cache hits</source>
        <translation>Cache-Treffer</translation>
    </message>
    <message>
        <source>Lists of the overview</source>
        <translation>Listen der Übersicht</translation>
    </message>
    <message>
        <source>Functions</source>
        <translation>Funktionen</translation>
    </message>
    <message>
        <source>Filter functions</source>
        <translation>Funktionen filtern</translation>
    </message>
    <message>
        <source>Function</source>
        <translation>Funktion</translation>
    </message>
    <message>
        <source>Compiled</source>
        <translation>Kompiliert</translation>
    </message>
    <message>
        <source>Wholly, partly or not at all: what was given to the compiler, with what resumes it after graph breaks</source>
        <translation>Ganz, teilweise oder gar nicht: was dem Compiler gegeben wurde, mit dem, was nach Graphbrüchen fortsetzt</translation>
    </message>
    <message>
        <source>Entries</source>
        <translation>Einträge</translation>
    </message>
    <message>
        <source>Compilations that can be called, one for each kind of input</source>
        <translation>Aufrufbare Kompilate, eines für jede Art von Eingabe</translation>
    </message>
    <message>
        <source>Breaks</source>
        <translation>Brüche</translation>
    </message>
    <message>
        <source>Compilations after a guard failed</source>
        <translation>Kompilierungen, nachdem ein Guard nicht mehr galt</translation>
    </message>
    <message>
        <source>What stands in the way</source>
        <translation>Was im Weg steht</translation>
    </message>
    <message>
        <source>What to do</source>
        <translation>Was hilft</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Not compiled</source>
        <translation>Nicht kompiliert</translation>
    </message>
    <message>
        <source>Filter failures</source>
        <translation>Fehlschläge filtern</translation>
    </message>
    <message>
        <source>What</source>
        <translation>Was</translation>
    </message>
    <message>
        <source>Reason</source>
        <translation>Grund</translation>
    </message>
    <message>
        <source>Times</source>
        <translation>Anzahl</translation>
    </message>
    <message>
        <source>Nothing failed</source>
        <translation>Nichts schlug fehl</translation>
    </message>
    <message>
        <source>Everything that the compiler was given was compiled.</source>
        <translation>Alles, was der Compiler bekam, wurde kompiliert.</translation>
    </message>
    <message>
        <source>Hottest kernels</source>
        <translation>Heißeste Kernel</translation>
    </message>
    <message>
        <source>Filter kernels</source>
        <translation>Kernel filtern</translation>
    </message>
    <message>
        <source>Kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>With those that replays of CUDA graphs contain</source>
        <translation>Mit denen, die Wiederholungen von CUDA-Graphen enthalten</translation>
    </message>
    <message>
        <source>Total</source>
        <translation>Gesamt</translation>
    </message>
    <message>
        <source>Share</source>
        <translation>Anteil</translation>
    </message>
    <message>
        <source>Share of all kernel time</source>
        <translation>Anteil an der Zeit aller Kernel</translation>
    </message>
    <message>
        <source>Mean</source>
        <translation>Mittel</translation>
    </message>
    <message>
        <source>Rate</source>
        <translation>Rate</translation>
    </message>
    <message>
        <source>Bytes moved a second</source>
        <translation>Bewegte Bytes je Sekunde</translation>
    </message>
    <message>
        <source>Operators</source>
        <translation>Operatoren</translation>
    </message>
    <message>
        <source>Filter operators</source>
        <translation>Operatoren filtern</translation>
    </message>
    <message>
        <source>Operator</source>
        <translation>Operator</translation>
    </message>
    <message>
        <source>Calls</source>
        <translation>Aufrufe</translation>
    </message>
    <message>
        <source>Own</source>
        <translation>Eigene</translation>
    </message>
    <message>
        <source>CPU time without the operators and runtime calls inside of it</source>
        <translation>CPU-Zeit ohne die Operatoren und Laufzeitaufrufe darin</translation>
    </message>
    <message>
        <source>Share of the own time of all</source>
        <translation>Anteil an der eigenen Zeit aller</translation>
    </message>
    <message>
        <source>CPU time with what it called</source>
        <translation>CPU-Zeit mit allem, was er aufrief</translation>
    </message>
    <message>
        <source>Total a call</source>
        <translation>Gesamt je Aufruf</translation>
    </message>
    <message>
        <source>Least</source>
        <translation>Kleinste</translation>
    </message>
    <message>
        <source>Most</source>
        <translation>Größte</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>Kernels and copies that its calls asked for</source>
        <translation>Kernel und Kopien, die seine Aufrufe verlangten</translation>
    </message>
    <message>
        <source>Sizes of inputs</source>
        <translation>Größen der Eingaben</translation>
    </message>
    <message>
        <source>Where the profiler recorded shapes</source>
        <translation>Wo der Profiler Formen aufzeichnete</translation>
    </message>
    <message>
        <source>Filter graph breaks</source>
        <translation>Graphbrüche filtern</translation>
    </message>
    <message>
        <source>What helps</source>
        <translation>Was hilft</translation>
    </message>
    <message>
        <source>Filter recompiles</source>
        <translation>Neukompilierungen filtern</translation>
    </message>
    <message>
        <source>Frame</source>
        <translation>Frame</translation>
    </message>
    <message>
        <source>Guard that failed</source>
        <translation>Guard, der nicht galt</translation>
    </message>
    <message>
        <source>Expected</source>
        <translation>Erwartet</translation>
    </message>
    <message>
        <source>Found</source>
        <translation>Gefunden</translation>
    </message>
    <message>
        <source>Outcome</source>
        <translation>Ergebnis</translation>
    </message>
    <message>
        <source>Stages</source>
        <translation>Stufen</translation>
    </message>
    <message>
        <source>Filter stages and passes</source>
        <translation>Stufen und Passes filtern</translation>
    </message>
    <message>
        <source>Stage or pass</source>
        <translation>Stufe oder Pass</translation>
    </message>
    <message>
        <source>Phase</source>
        <translation>Phase</translation>
    </message>
    <message>
        <source>Runs</source>
        <translation>Läufe</translation>
    </message>
    <message>
        <source>With the stages and passes inside of it</source>
        <translation>Mit den Stufen und Passes darin</translation>
    </message>
    <message>
        <source>Without the stages and passes inside of it</source>
        <translation>Ohne die Stufen und Passes darin</translation>
    </message>
    <message>
        <source>Own time as a share of all compile time</source>
        <translation>Eigene Zeit als Anteil an aller Kompilierzeit</translation>
    </message>
    <message>
        <source>Run and versions</source>
        <translation>Lauf und Versionen</translation>
    </message>
    <message>
        <source>Filter facts</source>
        <translation>Fakten filtern</translation>
    </message>
    <message>
        <source>Fact</source>
        <translation>Fakt</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>Wert</translation>
    </message>
    <message>
        <source>Nothing recorded about the run</source>
        <translation>Über den Lauf ist nichts aufgezeichnet</translation>
    </message>
    <message>
        <source>Losses</source>
        <translation>Verluste</translation>
    </message>
    <message>
        <source>Filter losses</source>
        <translation>Verluste filtern</translation>
    </message>
    <message>
        <source>What is missing</source>
        <translation>Was fehlt</translation>
    </message>
    <message>
        <source>Detail</source>
        <translation>Einzelheit</translation>
    </message>
    <message>
        <source>Nothing was lost</source>
        <translation>Nichts ging verloren</translation>
    </message>
    <message>
        <source>The session holds everything that the recorder saw.</source>
        <translation>Die Sitzung enthält alles, was der Rekorder sah.</translation>
    </message>
    <message>
        <source>Export stage times…</source>
        <translation>Stufenzeiten exportieren…</translation>
    </message>
    <message>
        <source>Reading the session…</source>
        <translation>Die Sitzung wird gelesen…</translation>
    </message>
    <message>
        <source>The overview cannot be read</source>
        <translation>Die Übersicht kann nicht gelesen werden</translation>
    </message>
    <message>
        <source>Adding up…</source>
        <translation>Wird zusammengezählt…</translation>
    </message>
    <message>
        <source>The operators cannot be read</source>
        <translation>Die Operatoren können nicht gelesen werden</translation>
    </message>
    <message>
        <source>● recording</source>
        <translation>● zeichnet auf</translation>
    </message>
    <message>
        <source>● being read</source>
        <translation>● wird gelesen</translation>
    </message>
    <message>
        <source>recording ended early: its process is gone</source>
        <translation>Aufzeichnung endete früh: ihr Prozess ist fort</translation>
    </message>
    <message>
        <source>finished</source>
        <translation>beendet</translation>
    </message>
    <message>
        <source>capture</source>
        <translation>Erfassung</translation>
    </message>
    <message>
        <source>AOT autograd</source>
        <translation>AOT-Autograd</translation>
    </message>
    <message>
        <source>inductor</source>
        <translation>Inductor</translation>
    </message>
    <message>
        <source>codegen</source>
        <translation>Codeerzeugung</translation>
    </message>
    <message>
        <source>What is not compiled runs as plain Python: see the lists below.</source>
        <translation>Was nicht kompiliert ist, läuft als gewöhnliches Python: siehe die Listen unten.</translation>
    </message>
    <message>
        <source>No function was compiled</source>
        <translation>Keine Funktion wurde kompiliert</translation>
    </message>
    <message>
        <source>No function was compiled yet</source>
        <translation>Noch keine Funktion wurde kompiliert</translation>
    </message>
    <message>
        <source>The program called nothing that torch.compile had been given.</source>
        <translation>Das Programm rief nichts auf, was torch.compile bekommen hatte.</translation>
    </message>
    <message>
        <source>Functions appear when torch.compile first captures them.</source>
        <translation>Funktionen erscheinen, sobald torch.compile sie zum ersten Mal erfasst.</translation>
    </message>
    <message>
        <source>No kernel ran</source>
        <translation>Kein Kernel lief</translation>
    </message>
    <message>
        <source>No kernel has run yet</source>
        <translation>Noch kein Kernel lief</translation>
    </message>
    <message>
        <source>The recording has no launch of compiled code.</source>
        <translation>Die Aufzeichnung enthält keinen Start kompilierten Codes.</translation>
    </message>
    <message>
        <source>Kernels appear with their first launch.</source>
        <translation>Kernel erscheinen mit ihrem ersten Start.</translation>
    </message>
    <message>
        <source>No graph breaks</source>
        <translation>Keine Graphbrüche</translation>
    </message>
    <message>
        <source>Every captured frame became one graph.</source>
        <translation>Jeder erfasste Frame wurde ein Graph.</translation>
    </message>
    <message>
        <source>No recompiles</source>
        <translation>Keine Neukompilierungen</translation>
    </message>
    <message>
        <source>No guard of a compiled entry has failed.</source>
        <translation>Kein Guard eines kompilierten Eintrags schlug fehl.</translation>
    </message>
    <message>
        <source>No stage recorded</source>
        <translation>Keine Stufe aufgezeichnet</translation>
    </message>
    <message>
        <source>Stages appear with the first compilation.</source>
        <translation>Stufen erscheinen mit der ersten Kompilierung.</translation>
    </message>
    <message>
        <source>compile</source>
        <translation>Kompilierung</translation>
    </message>
    <message>
        <source>compiles</source>
        <translation>Kompilierungen</translation>
    </message>
    <message>
        <source>call</source>
        <translation>Aufruf</translation>
    </message>
    <message>
        <source>calls</source>
        <translation>Aufrufe</translation>
    </message>
    <message>
        <source>compile stopped</source>
        <translation>Kompilierung brach ab</translation>
    </message>
    <message>
        <source>compiles stopped</source>
        <translation>Kompilierungen brachen ab</translation>
    </message>
    <message>
        <source>%1 fused</source>
        <translation>%1 fusioniert</translation>
    </message>
    <message>
        <source>beside %1 library calls</source>
        <translation>neben %1 Bibliotheksaufrufen</translation>
    </message>
    <message>
        <source>guards %1</source>
        <translation>Guards %1</translation>
    </message>
    <message>
        <source>miss</source>
        <translation>Fehlgriff</translation>
    </message>
    <message>
        <source>misses</source>
        <translation>Fehlgriffe</translation>
    </message>
    <message>
        <source>Overview</source>
        <translation>Übersicht</translation>
    </message>
    <message>
        <source>Functions that the compiler met, with what resumes them after graph breaks. Compiles: each attempt at one, and each backward pass.</source>
        <translation>Funktionen, auf die der Compiler traf, mit dem, was sie nach Graphbrüchen fortsetzt. Kompilierungen: jeder Versuch an einer, und jeder Rückwärtsgang.</translation>
    </message>
    <message>
        <source>Graphs that were captured: of every entry, of what resumes after breaks, and of backward passes. Calls: how often compiled code ran.</source>
        <translation>Erfasste Graphen: jedes Eintrags, dessen, was nach Brüchen fortsetzt, und der Rückwärtsgänge. Aufrufe: wie oft kompilierter Code lief.</translation>
    </message>
    <message>
        <source>Lines of the program at which compiling met a break, and how many compilations did.</source>
        <translation>Zeilen des Programms, an denen das Kompilieren auf einen Bruch traf, und wie viele Kompilierungen es waren.</translation>
    </message>
    <message>
        <source>Compilations because a guard of an earlier entry failed; backward passes count with their function.</source>
        <translation>Kompilierungen, weil ein Guard eines früheren Eintrags fehlschlug; Rückwärtsgänge zählen mit ihrer Funktion.</translation>
    </message>
    <message>
        <source>Runs of kernels and library calls, those that replays of CUDA graphs contain among them.</source>
        <translation>Läufe von Kerneln und Bibliotheksaufrufen, auch die, die in Wiederholungen von CUDA-Graphen enthalten sind.</translation>
    </message>
    <message>
        <source>Of all compilations, backward passes within those of their functions.</source>
        <translation>Aller Kompilierungen, Rückwärtsgänge innerhalb derer ihrer Funktionen.</translation>
    </message>
    <message>
        <source>In calls of compiled code; where a session has no calls: in kernels. Guards: what checking them took.</source>
        <translation>In Aufrufen kompilierten Codes; wo eine Sitzung keine Aufrufe hat: in Kerneln. Guards: was ihre Prüfung dauerte.</translation>
    </message>
    <message>
        <source>Graphs that were found compiled in the cache, and those that were not.</source>
        <translation>Graphen, die kompiliert im Cache lagen, und solche, die es nicht taten.</translation>
    </message>
    <message>
        <source>Breaks of its graphs: places and reasons</source>
        <translation>Brüche seiner Graphen: Stellen und Gründe</translation>
    </message>
    <message>
        <source>Of</source>
        <translation>Von</translation>
    </message>
    <message>
        <source>Code of an installed library or of Python that the program called, or that was put around its functions; else the program&apos;s own</source>
        <translation>Code einer installierten Bibliothek oder von Python, den das Programm aufgerufen hat oder der um seine Funktionen gelegt wurde; sonst der eigene des Programms</translation>
    </message>
    <message>
        <source>%1 of functions, %2 of backward passes</source>
        <translation>%1 von Funktionen, %2 von Rückwärtsgängen</translation>
    </message>
    <message>
        <source>Kernels that were generated, whether they ran or not; fused: those of several operators. Library calls are operators that are called as they are, such as matrix products.</source>
        <translation>Erzeugte Kernel, ob sie liefen oder nicht; fusioniert: die aus mehreren Operatoren. Bibliotheksaufrufe sind Operatoren, die aufgerufen werden, wie sie sind, etwa Matrixprodukte.</translation>
    </message>
    <message>
        <source>%1, of which %2 ran</source>
        <translation>%1, davon liefen %2</translation>
    </message>
    <message>
        <source>Function of the program that called it, where the profiler recorded stacks; of several the one with most of its time</source>
        <translation>Funktion des Programms, die ihn aufrief, wo der Profiler Stacks aufgezeichnet hat; von mehreren die mit dem größten Teil seiner Zeit</translation>
    </message>
    <message>
        <source>compile failed</source>
        <translation>Kompilierung misslungen</translation>
    </message>
    <message>
        <source>compiles failed</source>
        <translation>Kompilierungen misslungen</translation>
    </message>
    <message>
        <source>bypass</source>
        <translation>Umgehung</translation>
    </message>
    <message>
        <source>bypasses</source>
        <translation>Umgehungen</translation>
    </message>
    <message>
        <source>disabled for %1</source>
        <translation>abgeschaltet für %1</translation>
    </message>
    <message>
        <source>graph</source>
        <translation>Graph</translation>
    </message>
    <message>
        <source>graphs</source>
        <translation>Graphen</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
    <message>
        <source>Device, all</source>
        <translation>Gerät, alles</translation>
    </message>
    <message>
        <source>With those that what it called asked for</source>
        <translation>Mit denen, die das veranlasste, was er aufrief</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>What it took of the CPU&apos;s memory itself, less what it gave back meanwhile; where the profiler recorded memory</source>
        <translation>Was er selbst vom Speicher der CPU nahm, ohne das, was er währenddessen zurückgab; wo der Profiler Speicher aufzeichnete</translation>
    </message>
    <message>
        <source>Memory, all</source>
        <translation>Speicher, alles</translation>
    </message>
    <message>
        <source>With what it called</source>
        <translation>Mit dem, was er aufrief</translation>
    </message>
    <message>
        <source>Device memory</source>
        <translation>Gerätespeicher</translation>
    </message>
    <message>
        <source>What it took of torch&apos;s memory on devices itself, less what it gave back meanwhile</source>
        <translation>Was er selbst vom Speicher nahm, den torch auf Geräten verwaltet, ohne das, was er währenddessen zurückgab</translation>
    </message>
    <message>
        <source>Device memory, all</source>
        <translation>Gerätespeicher, alles</translation>
    </message>
    <message>
        <source>%1 lost</source>
        <translation>%1 verloren</translation>
    </message>
</context>
<context>
    <name>fusebox::views::QueryView</name>
    <message>
        <source>Kernels by time</source>
        <translation>Kernel nach Zeit</translation>
    </message>
    <message>
        <source>Lines of the program by kernel time</source>
        <translation>Zeilen des Programms nach Kernelzeit</translation>
    </message>
    <message>
        <source>Graph breaks by line</source>
        <translation>Graphbrüche nach Zeile</translation>
    </message>
    <message>
        <source>Guards that fail most</source>
        <translation>Guards, die am häufigsten fehlschlagen</translation>
    </message>
    <message>
        <source>Compile time by pass</source>
        <translation>Kompilierzeit nach Pass</translation>
    </message>
    <message>
        <source>Fusions that were refused, by reason</source>
        <translation>Abgelehnte Fusionen nach Grund</translation>
    </message>
    <message>
        <source>Filter views</source>
        <translation>Ansichten filtern</translation>
    </message>
    <message>
        <source>View</source>
        <translation>Ansicht</translation>
    </message>
    <message>
        <source>A row&apos;s double click asks for all of it</source>
        <translation>Ein Doppelklick auf die Zeile fragt nach allem</translation>
    </message>
    <message>
        <source>Columns</source>
        <translation>Spalten</translation>
    </message>
    <message>
        <source>Query</source>
        <translation>Abfrage</translation>
    </message>
    <message>
        <source>SELECT … FROM a view on the left; Ctrl+Return runs it. Nothing can be changed.</source>
        <translation>SELECT … FROM einer Ansicht links; Strg+Eingabe führt sie aus. Geändert werden kann nichts.</translation>
    </message>
    <message>
        <source>Examples</source>
        <translation>Beispiele</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>Ausführen</translation>
    </message>
    <message>
        <source>Run the query</source>
        <translation>Die Abfrage ausführen</translation>
    </message>
    <message>
        <source>Run the query (Ctrl+Return)</source>
        <translation>Die Abfrage ausführen (Strg+Eingabe)</translation>
    </message>
    <message>
        <source>The views cannot be listed</source>
        <translation>Die Ansichten lassen sich nicht auflisten</translation>
    </message>
    <message>
        <source>Reading…</source>
        <translation>Wird gelesen …</translation>
    </message>
    <message>
        <source>Filter rows</source>
        <translation>Zeilen filtern</translation>
    </message>
    <message>
        <source>No rows</source>
        <translation>Keine Zeilen</translation>
    </message>
    <message>
        <source>The query found nothing.</source>
        <translation>Die Abfrage fand nichts.</translation>
    </message>
    <message>
        <source>the first %1 rows; there are more</source>
        <translation>die ersten %1 Zeilen; es gibt mehr</translation>
    </message>
    <message>
        <source>row</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>rows</source>
        <translation>Zeilen</translation>
    </message>
    <message>
        <source>No session yet</source>
        <translation>Noch keine Sitzung</translation>
    </message>
</context>
<context>
    <name>fusebox::views::RecompilesView</name>
    <message>
        <source>Filter functions</source>
        <translation>Funktionen filtern</translation>
    </message>
    <message>
        <source>Function</source>
        <translation>Funktion</translation>
    </message>
    <message>
        <source>Entries</source>
        <translation>Einträge</translation>
    </message>
    <message>
        <source>Compiled variants of the code, each with its own guards</source>
        <translation>Kompilierte Fassungen des Codes, jede mit eigenen Guards</translation>
    </message>
    <message>
        <source>Again</source>
        <translation>Erneut</translation>
    </message>
    <message>
        <source>Time of compiling after the first entry</source>
        <translation>Zeit des Kompilierens nach dem ersten Eintrag</translation>
    </message>
    <message>
        <source>Hits</source>
        <translation>Treffer</translation>
    </message>
    <message>
        <source>Calls that found a fitting entry</source>
        <translation>Aufrufe, die einen passenden Eintrag fanden</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Nothing was compiled twice</source>
        <translation>Nichts wurde zweimal kompiliert</translation>
    </message>
    <message>
        <source>A code object appears here when a guard fails and it is compiled again.</source>
        <translation>Ein Codeobjekt steht hier, wenn ein Guard fehlschlägt und es noch einmal kompiliert wird.</translation>
    </message>
    <message>
        <source>Filter entries</source>
        <translation>Einträge filtern</translation>
    </message>
    <message>
        <source>#</source>
        <translation>#</translation>
    </message>
    <message>
        <source>Order of compiling</source>
        <translation>Reihenfolge des Kompilierens</translation>
    </message>
    <message>
        <source>Compile</source>
        <translation>Kompilieren</translation>
    </message>
    <message>
        <source>What this entry cost to make</source>
        <translation>Was dieser Eintrag kostete</translation>
    </message>
    <message>
        <source>Calls that its guards let in; – where not recorded</source>
        <translation>Aufrufe, die seine Guards durchließen; – wo es nicht aufgezeichnet ist</translation>
    </message>
    <message>
        <source>Guards</source>
        <translation>Guards</translation>
    </message>
    <message>
        <source>Assumptions checked before it runs</source>
        <translation>Annahmen, die vor ihm geprüft werden</translation>
    </message>
    <message>
        <source>Because</source>
        <translation>Weil</translation>
    </message>
    <message>
        <source>The guard of the entry used last that failed: what it expected, what it found</source>
        <translation>Der Guard des zuletzt benutzten Eintrags, der fehlschlug: was er erwartete, was er fand</translation>
    </message>
    <message>
        <source>No entry</source>
        <translation>Kein Eintrag</translation>
    </message>
    <message>
        <source>Choose a function on the left.</source>
        <translation>Wählen Sie links eine Funktion.</translation>
    </message>
    <message>
        <source>Why it was compiled again, and what to do</source>
        <translation>Warum noch einmal kompiliert wurde, und was hilft</translation>
    </message>
    <message>
        <source>Filter guards</source>
        <translation>Guards filtern</translation>
    </message>
    <message>
        <source>Guard</source>
        <translation>Guard</translation>
    </message>
    <message>
        <source>Where the value is read from, and what is checked of it</source>
        <translation>Woher der Wert gelesen wird, und was daran geprüft wird</translation>
    </message>
    <message>
        <source>First</source>
        <translation>Erste</translation>
    </message>
    <message>
        <source>What the entry chosen on the left above expects</source>
        <translation>Was der oben links gewählte Eintrag erwartet</translation>
    </message>
    <message>
        <source>Second</source>
        <translation>Zweite</translation>
    </message>
    <message>
        <source>What the entry chosen on the right above expects</source>
        <translation>Was der oben rechts gewählte Eintrag erwartet</translation>
    </message>
    <message>
        <source>Found</source>
        <translation>Gefunden</translation>
    </message>
    <message>
        <source>What a failing check of the first entry&apos;s guard found</source>
        <translation>Was eine fehlgeschlagene Prüfung des Guards des ersten Eintrags fand</translation>
    </message>
    <message>
        <source>The line that made the assumption</source>
        <translation>Die Zeile, die die Annahme machte</translation>
    </message>
    <message>
        <source>No difference</source>
        <translation>Kein Unterschied</translation>
    </message>
    <message>
        <source>Both entries make the same assumptions, or none were recorded. Untick “Only differences” to see all guards.</source>
        <translation>Beide Einträge nehmen dasselbe an, oder es wurde nichts aufgezeichnet. Ohne das Häkchen „Nur Unterschiede“ sind alle Guards zu sehen.</translation>
    </message>
    <message>
        <source>First entry to compare</source>
        <translation>Erster Eintrag des Vergleichs</translation>
    </message>
    <message>
        <source>Second entry to compare</source>
        <translation>Zweiter Eintrag des Vergleichs</translation>
    </message>
    <message>
        <source>Only differences</source>
        <translation>Nur Unterschiede</translation>
    </message>
    <message>
        <source>Leave out guards that both entries share</source>
        <translation>Guards weglassen, die beide Einträge haben</translation>
    </message>
    <message>
        <source>Guards of</source>
        <translation>Guards von</translation>
    </message>
    <message>
        <source>and</source>
        <translation>und</translation>
    </message>
    <message>
        <source>Select an entry to read why it was made.</source>
        <translation>Wählen Sie einen Eintrag, um zu lesen, warum er gemacht wurde.</translation>
    </message>
    <message>
        <source>When a guard fails, its code is compiled again. Each such code object appears here with all of its entries, the guards that tell them apart, and what to do about it.</source>
        <translation>Wenn ein Guard fehlschlägt, wird sein Code noch einmal kompiliert. Jedes solche Codeobjekt steht hier mit all seinen Einträgen, den Guards, die sie unterscheiden, und was zu tun ist.</translation>
    </message>
    <message>
        <source>The recompiles cannot be read</source>
        <translation>Die Neukompilierungen sind nicht lesbar</translation>
    </message>
    <message>
        <source>entry %1</source>
        <translation>Eintrag %1</translation>
    </message>
    <message>
        <source>Symbolic sizes of the new entry</source>
        <translation>Symbolische Größen des neuen Eintrags</translation>
    </message>
    <message>
        <source>first entry</source>
        <translation>erster Eintrag</translation>
    </message>
    <message>
        <source>entries</source>
        <translation>Einträge</translation>
    </message>
    <message>
        <source>line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>The first compile of this code; no guard stood in its way. Select a later entry to read which guard failed.</source>
        <translation>Die erste Kompilierung dieses Codes; kein Guard stand ihr im Weg. Wählen Sie einen späteren Eintrag, um zu lesen, welcher Guard fehlschlug.</translation>
    </message>
    <message>
        <source>Limit reached</source>
        <translation>Grenze erreicht</translation>
    </message>
    <message>
        <source>Guard failed</source>
        <translation>Guard fehlgeschlagen</translation>
    </message>
    <message>
        <source>Expected</source>
        <translation>Erwartet</translation>
    </message>
    <message>
        <source>Assumed at</source>
        <translation>Angenommen in</translation>
    </message>
    <message>
        <source>The call that did not fit</source>
        <translation>Der Aufruf, der nicht passte</translation>
    </message>
    <message>
        <source>Recompiles</source>
        <translation>Neukompilierungen</translation>
    </message>
    <message>
        <source>In logs</source>
        <translation>In Protokollen</translation>
    </message>
    <message>
        <source>As PyTorch&apos;s logs and tlparse name this compilation: [function/entry], _attempt behind it from the second on</source>
        <translation>So nennen PyTorchs Protokolle und tlparse diese Kompilierung: [Funktion/Eintrag], ab dem zweiten mit dem Versuch dahinter: _1</translation>
    </message>
    <message>
        <source>Cache</source>
        <translation>Cache</translation>
    </message>
    <message>
        <source>What the cache of compiled graphs had: hit, miss, bypass, or disabled by settings; nothing where it was not asked</source>
        <translation>Was der Cache für kompilierte Graphen hatte: hit (gefunden), miss (nicht gefunden), bypass (umgangen) oder disabled (durch Einstellungen abgeschaltet); nichts, wo er nicht gefragt wurde</translation>
    </message>
</context>
<context>
    <name>fusebox::views::RooflinePlot</name>
    <message>
        <source>Roofline</source>
        <translation>Roofline</translation>
    </message>
    <message>
        <source>operations a byte</source>
        <translation>Operationen je Byte</translation>
    </message>
    <message>
        <source>%1/s, measured by a copy</source>
        <translation>%1/s, mit einer Kopie gemessen</translation>
    </message>
    <message>
        <source>%1/s by clock and width</source>
        <translation>%1/s nach Takt und Breite</translation>
    </message>
    <message>
        <source>%1: %2, float32 %3 without tensor cores</source>
        <translation>%1: %2, float32 %3 ohne Tensorkerne</translation>
    </message>
    <message>
        <source>No kernel has both its operations counted and its time measured by the device.</source>
        <translation>Von keinem Kernel sind zugleich die Operationen gezählt und die Zeit vom Gerät gemessen.</translation>
    </message>
    <message numerus="yes">
        <source>%n kernel(s) without counted operations or bytes are left out</source>
        <translation>
            <numerusform>%n Kernel ohne gezählte Operationen oder Bytes ist weggelassen</numerusform>
            <numerusform>%n Kernel ohne gezählte Operationen oder Bytes sind weggelassen</numerusform>
        </translation>
    </message>
    <message>
        <source>%1
%2 at %3 operations a byte
%4 in all</source>
        <translation>%1
%2 bei %3 Operationen je Byte
%4 insgesamt</translation>
    </message>
    <message>
        <source>
%1 of the roof</source>
        <translation>
%1 des Dachs</translation>
    </message>
    <message>
        <source>
above float32 without tensor cores: it used those</source>
        <translation>
über float32 ohne Tensorkerne: Er benutzte sie</translation>
    </message>
</context>
<context>
    <name>fusebox::views::SessionLink</name>
    <message>
        <source>The file was deleted or moved.</source>
        <translation>Die Datei wurde gelöscht oder verschoben.</translation>
    </message>
    <message>
        <source>Another file was put in its place.</source>
        <translation>An ihre Stelle trat eine andere Datei.</translation>
    </message>
</context>
<context>
    <name>fusebox::views::SizePlot</name>
    <message>
        <source>Time over size</source>
        <translation>Zeit über Größe</translation>
    </message>
    <message numerus="yes">
        <source>%n size(s)</source>
        <translation>
            <numerusform>%n Größe</numerusform>
            <numerusform>%n Größen</numerusform>
        </translation>
    </message>
    <message>
        <source>%1: %2 (%3 to %4)</source>
        <translation>%1: %2 (%3 bis %4)</translation>
    </message>
</context>
<context>
    <name>fusebox::views::SlownessView</name>
    <message>
        <source>What to split</source>
        <translation>Was aufgeteilt wird</translation>
    </message>
    <message>
        <source>A step of the loop</source>
        <translation>Ein Schritt der Schleife</translation>
    </message>
    <message>
        <source>The whole recording</source>
        <translation>Die ganze Aufzeichnung</translation>
    </message>
    <message>
        <source>A step is one turn of the program&apos;s loop: marked by a profiler, or the pattern of calls that repeats</source>
        <translation>Ein Schritt ist ein Durchgang der Schleife des Programms: von einem Profiler markiert, oder das Muster von Aufrufen, die sich wiederholen</translation>
    </message>
    <message>
        <source>Time by kind</source>
        <translation>Zeit nach Art</translation>
    </message>
    <message>
        <source>Filter kinds of time</source>
        <translation>Arten von Zeit filtern</translation>
    </message>
    <message>
        <source>Where time goes</source>
        <translation>Wohin die Zeit geht</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>Of a step, on average</source>
        <translation>Eines Schritts, im Mittel</translation>
    </message>
    <message>
        <source>Share</source>
        <translation>Anteil</translation>
    </message>
    <message>
        <source>Times</source>
        <translation>Anzahl</translation>
    </message>
    <message>
        <source>Launches, calls … in a step; compilations in all steps that were read</source>
        <translation>Starts, Aufrufe … in einem Schritt; Kompilierungen in allen gelesenen Schritten</translation>
    </message>
    <message>
        <source>What it is</source>
        <translation>Was es ist</translation>
    </message>
    <message>
        <source>Nothing takes time</source>
        <translation>Nichts braucht Zeit</translation>
    </message>
    <message>
        <source>Filter parts</source>
        <translation>Teile filtern</translation>
    </message>
    <message>
        <source>Part</source>
        <translation>Teil</translation>
    </message>
    <message>
        <source>Of the step</source>
        <translation>Des Schritts</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>No parts</source>
        <translation>Keine Teile</translation>
    </message>
    <message>
        <source>Select a row above; what is outside compiled code is not recorded.</source>
        <translation>Wählen Sie oben eine Zeile; was außerhalb von kompiliertem Code liegt, wird nicht aufgezeichnet.</translation>
    </message>
    <message>
        <source>Export times by kind…</source>
        <translation>Zeiten nach Art exportieren…</translation>
    </message>
    <message>
        <source>Export table of kinds…</source>
        <translation>Tabelle der Arten exportieren…</translation>
    </message>
    <message>
        <source>The time cannot be split</source>
        <translation>Die Zeit lässt sich nicht aufteilen</translation>
    </message>
    <message>
        <source>Why is it slow?</source>
        <translation>Warum ist es langsam?</translation>
    </message>
    <message>
        <source>Result</source>
        <translation>Ergebnis</translation>
    </message>
    <message>
        <source>What the kernel makes</source>
        <translation>Was der Kernel macht</translation>
    </message>
    <message>
        <source>Module</source>
        <translation>Modul</translation>
    </message>
    <message>
        <source>Which asked for it</source>
        <translation>Welches ihn verlangte</translation>
    </message>
</context>
<context>
    <name>fusebox::views::SourceView</name>
    <message>
        <source>Graph break: %1</source>
        <translation>Graphbruch: %1</translation>
    </message>
    <message>
        <source>Guard failed: %1</source>
        <translation>Guard fehlgeschlagen: %1</translation>
    </message>
    <message>
        <source>What helps: %1</source>
        <translation>Was hilft: %1</translation>
    </message>
    <message>
        <source>%1 in %2 kernels, %3 launches</source>
        <translation>%1 in %2 Kerneln, %3 Starts</translation>
    </message>
    <message>
        <source>Filter files</source>
        <translation>Dateien filtern</translation>
    </message>
    <message>
        <source>File</source>
        <translation>Datei</translation>
    </message>
    <message>
        <source>Breaks</source>
        <translation>Brüche</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>Time of the kernels that its lines became</source>
        <translation>Zeit der Kernel, zu denen ihre Zeilen wurden</translation>
    </message>
    <message>
        <source>No file yet</source>
        <translation>Noch keine Datei</translation>
    </message>
    <message>
        <source>Files appear when a function of theirs is compiled.</source>
        <translation>Dateien stehen hier, sobald eine ihrer Funktionen kompiliert ist.</translation>
    </message>
    <message>
        <source>Source code</source>
        <translation>Quelltext</translation>
    </message>
    <message>
        <source>No source yet</source>
        <translation>Noch kein Quelltext</translation>
    </message>
    <message>
        <source>Choose a file beside. Files appear when a function of theirs is compiled.</source>
        <translation>Wählen Sie daneben eine Datei. Dateien stehen dort, sobald eine ihrer Funktionen kompiliert ist.</translation>
    </message>
    <message>
        <source>Select a line to see its graph breaks, failing guards and kernels.</source>
        <translation>Wählen Sie eine Zeile, um ihre Graphbrüche, fehlgeschlagenen Guards und Kernel zu sehen.</translation>
    </message>
    <message>
        <source>The files cannot be read</source>
        <translation>Die Dateien sind nicht lesbar</translation>
    </message>
    <message>
        <source>The file cannot be read</source>
        <translation>Die Datei ist nicht lesbar</translation>
    </message>
    <message>
        <source>%1 has no text in this session</source>
        <translation>Von %1 ist in dieser Sitzung kein Text</translation>
    </message>
    <message>
        <source>The text of this line is not in the imported file: it holds only the lines that it quotes.</source>
        <translation>Der Text dieser Zeile ist nicht in der importierten Datei: sie enthält nur die Zeilen, die sie zitiert.</translation>
    </message>
    <message>
        <source>kernel time</source>
        <translation>Kernelzeit</translation>
    </message>
    <message>
        <source>launches</source>
        <translation>Starts</translation>
    </message>
    <message>
        <source>captured nodes</source>
        <translation>erfasste Knoten</translation>
    </message>
    <message>
        <source>guards</source>
        <translation>Guards</translation>
    </message>
    <message>
        <source>Not compiled</source>
        <translation>Nicht kompiliert</translation>
    </message>
    <message>
        <source>Graph breaks</source>
        <translation>Graphbrüche</translation>
    </message>
    <message>
        <source>Guards that failed</source>
        <translation>Fehlgeschlagene Guards</translation>
    </message>
    <message>
        <source>Kernels</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>frame</source>
        <translation>Frame</translation>
    </message>
    <message>
        <source>Nothing was recorded for this line.</source>
        <translation>Zu dieser Zeile wurde nichts aufgezeichnet.</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>Quelltext</translation>
    </message>
    <message>
        <source>Of this file&apos;s kernels the first %1 of %2 are shown, up to line %3; Kernels has all.</source>
        <translation>Von den Kerneln dieser Datei sind die ersten %1 von %2 gezeigt, bis Zeile %3; „Kernel“ hat alle.</translation>
    </message>
    <message>
        <source>Of this file&apos;s guards that failed the first %1 of %2 are shown, up to line %3; Guards has all.</source>
        <translation>Von den fehlgeschlagenen Guards dieser Datei sind die ersten %1 von %2 gezeigt, bis Zeile %3; „Guards“ hat alle.</translation>
    </message>
    <message>
        <source>The recording speaks of no line of a file.</source>
        <translation>Die Aufzeichnung spricht von keiner Zeile einer Datei.</translation>
    </message>
    <message>
        <source>No file</source>
        <translation>Keine Datei</translation>
    </message>
    <message>
        <source>No source</source>
        <translation>Kein Quelltext</translation>
    </message>
    <message>
        <source>Open the line in an editor</source>
        <translation>Die Zeile in einem Editor öffnen</translation>
    </message>
    <message>
        <source>%1 is not on this machine.</source>
        <translation>%1 ist nicht auf dieser Maschine.</translation>
    </message>
    <message>
        <source>No editor was found. FUSEBOX_EDITOR names one, for example: code -g {file}:{line}</source>
        <translation>Kein Editor wurde gefunden. FUSEBOX_EDITOR nennt einen, zum Beispiel: code -g {file}:{line}</translation>
    </message>
    <message>
        <source>%1 could not be started.</source>
        <translation>%1 konnte nicht gestartet werden.</translation>
    </message>
</context>
<context>
    <name>fusebox::views::StageBar</name>
    <message>
        <source>Compile time by stage</source>
        <translation>Kompilierzeit nach Stufen</translation>
    </message>
</context>
<context>
    <name>fusebox::views::TimelineCanvas</name>
    <message>
        <source>Lanes</source>
        <translation>Spuren</translation>
    </message>
    <message>
        <source>Timeline</source>
        <translation>Zeitachse</translation>
    </message>
    <message>
        <source>%1
%2 spans, %3 rows deep</source>
        <translation>%1
%2 Spannen, %3 Reihen tief</translation>
    </message>
    <message>
        <source>Open the lane</source>
        <translation>Die Spur öffnen</translation>
    </message>
    <message>
        <source>Close the lane</source>
        <translation>Die Spur schließen</translation>
    </message>
    <message>
        <source>Hide the lane</source>
        <translation>Die Spur verbergen</translation>
    </message>
    <message>
        <source>Open all lanes</source>
        <translation>Alle Spuren öffnen</translation>
    </message>
    <message>
        <source>Close all lanes</source>
        <translation>Alle Spuren schließen</translation>
    </message>
    <message>
        <source>Show hidden lanes (%1)</source>
        <translation>Verborgene Spuren zeigen (%1)</translation>
    </message>
    <message>
        <source>%1
%2, at %3</source>
        <translation>%1
%2, bei %3</translation>
    </message>
    <message>
        <source>
sampled over %1</source>
        <translation>
abgetastet über %1</translation>
    </message>
    <message>
        <source>
%1 samples over %2, from %3 to %4</source>
        <translation>
%1 Abtastungen über %2, von %3 bis %4</translation>
    </message>
    <message>
        <source>%1 events in %2
busy %3 (%4)
longest %5: %6</source>
        <translation>%1 Ereignisse in %2
beschäftigt %3 (%4)
längstes %5: %6</translation>
    </message>
    <message>
        <source>from %1</source>
        <translation>ab %1</translation>
    </message>
    <message>
        <source>%1 shown</source>
        <translation>%1 zu sehen</translation>
    </message>
    <message>
        <source>Open the group (G)</source>
        <translation>Die Gruppe öffnen (G)</translation>
    </message>
    <message>
        <source>Close the group (G)</source>
        <translation>Die Gruppe schließen (G)</translation>
    </message>
    <message>
        <source>Let the lane scroll (P)</source>
        <translation>Die Spur mitrollen lassen (P)</translation>
    </message>
    <message>
        <source>Pin the lane on top (P)</source>
        <translation>Die Spur oben anheften (P)</translation>
    </message>
    <message>
        <source>flag at %1</source>
        <translation>Marke bei %1</translation>
    </message>
    <message>
        <source>%1 after the one before</source>
        <translation>%1 nach der davor</translation>
    </message>
</context>
<context>
    <name>fusebox::views::TimelineView</name>
    <message>
        <source>Find by name: kernels, calls, operators, stages</source>
        <translation>Nach Namen suchen: Kernel, Aufrufe, Operatoren, Stufen</translation>
    </message>
    <message>
        <source>Previous match (Shift+F3)</source>
        <translation>Voriger Treffer (Umschalt+F3)</translation>
    </message>
    <message>
        <source>Next match (F3)</source>
        <translation>Nächster Treffer (F3)</translation>
    </message>
    <message>
        <source>Zoom in (W)</source>
        <translation>Vergrößern (W)</translation>
    </message>
    <message>
        <source>Zoom out (S)</source>
        <translation>Verkleinern (S)</translation>
    </message>
    <message>
        <source>Show everything (F)</source>
        <translation>Alles zeigen (F)</translation>
    </message>
    <message>
        <source>Copy picture</source>
        <translation>Bild kopieren</translation>
    </message>
    <message>
        <source>Export picture…</source>
        <translation>Bild exportieren…</translation>
    </message>
    <message>
        <source>Nothing has happened yet</source>
        <translation>Noch ist nichts geschehen</translation>
    </message>
    <message>
        <source>Compiler stages, calls of compiled code and kernel launches appear here as they are recorded.</source>
        <translation>Stufen des Compilers, Aufrufe von kompiliertem Code und Starts von Kerneln stehen hier, sobald sie aufgezeichnet sind.</translation>
    </message>
    <message>
        <source>The timeline cannot be read</source>
        <translation>Die Zeitachse ist nicht lesbar</translation>
    </message>
    <message>
        <source>stage</source>
        <translation>Stufe</translation>
    </message>
    <message>
        <source>span</source>
        <translation>Spanne</translation>
    </message>
    <message>
        <source>Select a bar to see what it is.</source>
        <translation>Wählen Sie einen Balken, um zu sehen, was er ist.</translation>
    </message>
    <message>
        <source>call</source>
        <translation>Aufruf</translation>
    </message>
    <message>
        <source>%1 events</source>
        <translation>%1 Ereignisse</translation>
    </message>
    <message>
        <source>folded</source>
        <translation>zusammengefasst</translation>
    </message>
    <message>
        <source>event</source>
        <translation>Ereignis</translation>
    </message>
    <message>
        <source>start</source>
        <translation>Beginn</translation>
    </message>
    <message>
        <source>duration</source>
        <translation>Dauer</translation>
    </message>
    <message>
        <source>busy</source>
        <translation>beschäftigt</translation>
    </message>
    <message>
        <source>longest</source>
        <translation>längstes</translation>
    </message>
    <message>
        <source>Double click zooms into it.</source>
        <translation>Ein Doppelklick vergrößert es.</translation>
    </message>
    <message>
        <source>kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>detail</source>
        <translation>Einzelheit</translation>
    </message>
    <message>
        <source>line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>launches</source>
        <translation>Starts</translation>
    </message>
    <message>
        <source>%1, which took %2</source>
        <translation>%1, das %2 dauerte</translation>
    </message>
    <message>
        <source>compile</source>
        <translation>Kompilierung</translation>
    </message>
    <message>
        <source>show its guards</source>
        <translation>seine Guards zeigen</translation>
    </message>
    <message>
        <source>graph</source>
        <translation>Graph</translation>
    </message>
    <message>
        <source>show its graph</source>
        <translation>seinen Graphen zeigen</translation>
    </message>
    <message>
        <source>sampled</source>
        <translation>abgetastet</translation>
    </message>
    <message>
        <source>mean</source>
        <translation>Mittel</translation>
    </message>
    <message>
        <source>value</source>
        <translation>Wert</translation>
    </message>
    <message>
        <source>range</source>
        <translation>Bereich</translation>
    </message>
    <message>
        <source>%1 to %2 in %3 samples</source>
        <translation>%1 bis %2 in %3 Abtastungen</translation>
    </message>
    <message>
        <source>length</source>
        <translation>Länge</translation>
    </message>
    <message>
        <source>in the whole session</source>
        <translation>in der ganzen Sitzung</translation>
    </message>
    <message>
        <source>%1 on average, up to %2</source>
        <translation>%1 im Mittel, bis %2</translation>
    </message>
    <message>
        <source>device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>meaning</source>
        <translation>Bedeutung</translation>
    </message>
    <message>
        <source>counter</source>
        <translation>Zähler</translation>
    </message>
    <message>
        <source>Of the whole device, whatever ran there, every %1.</source>
        <translation>Des ganzen Geräts, was auch immer dort lief, alle %1.</translation>
    </message>
    <message>
        <source>asked for</source>
        <translation>verlangt</translation>
    </message>
    <message>
        <source>%1 before it began; the call took %2</source>
        <translation>%1 bevor er begann; der Aufruf dauerte %2</translation>
    </message>
    <message>
        <source>%1, stream %2</source>
        <translation>%1, Stream %2</translation>
    </message>
    <message>
        <source>operator</source>
        <translation>Operator</translation>
    </message>
    <message>
        <source>show its times and code</source>
        <translation>seine Zeiten und seinen Code zeigen</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>Bytes</translation>
    </message>
    <message>
        <source>launch</source>
        <translation>Start</translation>
    </message>
    <message>
        <source>grid %1, block %2</source>
        <translation>Gitter %1, Block %2</translation>
    </message>
    <message>
        <source>registers</source>
        <translation>Register</translation>
    </message>
    <message>
        <source>%1 a thread</source>
        <translation>%1 je Thread</translation>
    </message>
    <message>
        <source>shared memory</source>
        <translation>gemeinsamer Speicher</translation>
    </message>
    <message>
        <source>%1 a block</source>
        <translation>%1 je Block</translation>
    </message>
    <message>
        <source>local memory</source>
        <translation>lokaler Speicher</translation>
    </message>
    <message>
        <source>%1 a thread: stack and spilled registers</source>
        <translation>%1 je Thread: Stapel und ausgelagerte Register</translation>
    </message>
    <message>
        <source>occupancy</source>
        <translation>Belegung</translation>
    </message>
    <message>
        <source>CUDA graph</source>
        <translation>CUDA-Graph</translation>
    </message>
    <message>
        <source>graph %1, node %2</source>
        <translation>Graph %1, Knoten %2</translation>
    </message>
    <message>
        <source>Select a bar to see what it is, or a gap between two to see why nothing ran.</source>
        <translation>Wählen Sie einen Balken, um zu sehen, was er ist, oder eine Lücke zwischen zweien, um zu sehen, warum nichts lief.</translation>
    </message>
    <message>
        <source>gap of %1</source>
        <translation>Lücke von %1</translation>
    </message>
    <message>
        <source>before it</source>
        <translation>davor</translation>
    </message>
    <message>
        <source>after it</source>
        <translation>danach</translation>
    </message>
    <message>
        <source>%1 before the gap</source>
        <translation>%1 vor der Lücke</translation>
    </message>
    <message>
        <source>%1 into the gap</source>
        <translation>%1 in der Lücke</translation>
    </message>
    <message>
        <source>Meanwhile on the thread that asked</source>
        <translation>Währenddessen im Thread, der es verlangte</translation>
    </message>
    <message>
        <source>%1 (%2)</source>
        <translation>%1 (%2)</translation>
    </message>
    <message>
        <source>Nothing on the timeline has this in its name.</source>
        <translation>Nichts auf der Zeitachse hat dies im Namen.</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>Return and F3 go to the next one, Shift+F3 to the one before.</source>
        <translation>Eingabe und F3 gehen zum nächsten, Umschalt+F3 zum vorigen.</translation>
    </message>
    <message>
        <source>Adding up…</source>
        <translation>Wird zusammengezählt…</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>gemessen</translation>
    </message>
    <message>
        <source>Kernels and calls</source>
        <translation>Kernel und Aufrufe</translation>
    </message>
    <message>
        <source>On devices</source>
        <translation>Auf Geräten</translation>
    </message>
    <message>
        <source>Operators</source>
        <translation>Operatoren</translation>
    </message>
    <message>
        <source>Spans</source>
        <translation>Spannen</translation>
    </message>
    <message>
        <source>%1 (%2) in %3, each %4 to %5</source>
        <translation>%1 (%2) in %3, je %4 bis %5</translation>
    </message>
    <message>
        <source>Nothing ran in this span.</source>
        <translation>In dieser Spanne lief nichts.</translation>
    </message>
    <message>
        <source>Timeline</source>
        <translation>Zeitachse</translation>
    </message>
    <message>
        <source>its first run is marked</source>
        <translation>sein erster Lauf ist markiert</translation>
    </message>
    <message>
        <source>its compilation is marked</source>
        <translation>ihre Kompilierung ist markiert</translation>
    </message>
    <message>
        <source>Nothing happened</source>
        <translation>Nichts geschah</translation>
    </message>
    <message>
        <source>The recording holds no stage of the compiler, no call of compiled code and no kernel launch.</source>
        <translation>Die Aufzeichnung enthält keine Stufe des Compilers, keinen Aufruf kompilierten Codes und keinen Kernelstart.</translation>
    </message>
    <message>
        <source>launch %1</source>
        <translation>Start %1</translation>
    </message>
    <message>
        <source>it is marked</source>
        <translation>ist markiert</translation>
    </message>
    <message>
        <source>compilation</source>
        <translation>Kompilierung</translation>
    </message>
    <message>
        <source>W and S zoom at the pointer, A and D pan, Up and Down scroll, F shows everything; a click on a label opens and closes its lane; select a bar to see what it is, a gap of a GPU to see why nothing ran, Shift and drag measures and adds up; a click on the ruler (or M) sets a flag.</source>
        <translation>W und S vergrößern und verkleinern am Zeiger, A und D verschieben, Auf und Ab rollen, F zeigt alles; ein Klick auf eine Beschriftung öffnet und schließt ihre Spur; wählen Sie einen Balken, um zu sehen, was er ist, eine Lücke einer GPU, um zu sehen, warum nichts lief; Umschalt und Ziehen misst und summiert; ein Klick auf das Lineal (oder M) setzt eine Marke.</translation>
    </message>
</context>
<context>
    <name>fusebox::window::CompareWindow</name>
    <message>
        <source>&amp;File</source>
        <translation>&amp;Datei</translation>
    </message>
    <message>
        <source>Export as &amp;page…</source>
        <translation>Als &amp;Seite exportieren…</translation>
    </message>
    <message>
        <source>Export &amp;table…</source>
        <translation>&amp;Tabelle exportieren…</translation>
    </message>
    <message>
        <source>&amp;Swap A and B</source>
        <translation>A und B &amp;tauschen</translation>
    </message>
    <message>
        <source>&amp;Compare again</source>
        <translation>Erneut &amp;vergleichen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>&amp;Go</source>
        <translation>&amp;Gehe zu</translation>
    </message>
    <message>
        <source>F&amp;ind</source>
        <translation>&amp;Suchen</translation>
    </message>
    <message>
        <source>Show in &amp;A</source>
        <translation>In &amp;A zeigen</translation>
    </message>
    <message>
        <source>Show in &amp;B</source>
        <translation>In &amp;B zeigen</translation>
    </message>
    <message>
        <source>%1 and %2 – Fusebox</source>
        <translation>%1 und %2 – Fusebox</translation>
    </message>
    <message>
        <source>%1 under two engines – Fusebox</source>
        <translation>%1 unter zwei Engines – Fusebox</translation>
    </message>
    <message>
        <source>Running %1…</source>
        <translation>%1 läuft…</translation>
    </message>
    <message>
        <source>Once under each of %1.</source>
        <translation>Einmal unter jeder von %1.</translation>
    </message>
    <message>
        <source>%1 could not be started</source>
        <translation>%1 konnte nicht gestartet werden</translation>
    </message>
    <message>
        <source>The script ended with code %1; nothing is compared</source>
        <translation>Das Skript endete mit Code %1; nichts wird verglichen</translation>
    </message>
</context>
<context>
    <name>fusebox::window::DebugController</name>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
    <message>
        <source>breakpoint %1: %2</source>
        <translation>Haltepunkt %1: %2</translation>
    </message>
</context>
<context>
    <name>fusebox::window::DebugPanel</name>
    <message>
        <source>What the stopped compiler tells</source>
        <translation>Was der angehaltene Compiler sagt</translation>
    </message>
    <message>
        <source>Place of the stop; opens the line</source>
        <translation>Stelle des Halts; öffnet die Zeile</translation>
    </message>
    <message>
        <source>Nothing to tell at this stop</source>
        <translation>An diesem Halt gibt es nichts zu sagen</translation>
    </message>
    <message>
        <source>The program is not stopped</source>
        <translation>Das Programm ist nicht angehalten</translation>
    </message>
    <message>
        <source>Start one with Debug script…; it stops before its first compile.</source>
        <translation>Starten Sie eines mit „Skript debuggen…“; es hält vor der ersten Kompilierung.</translation>
    </message>
    <message>
        <source>It is known at stops of another kind; the console command &quot;help&quot; lists what can be asked.</source>
        <translation>Bekannt ist es bei Halten anderer Art; der Befehl „help“ der Konsole nennt, was gefragt werden kann.</translation>
    </message>
    <message>
        <source>Pause it, or set a breakpoint.</source>
        <translation>Halten Sie es an, oder setzen Sie einen Haltepunkt.</translation>
    </message>
    <message>
        <source>This cannot be told</source>
        <translation>Das kann nicht gesagt werden</translation>
    </message>
    <message>
        <source>Not debugging</source>
        <translation>Es wird nicht debuggt</translation>
    </message>
    <message>
        <source>Waiting for the program to load the engine…</source>
        <translation>Wartet, bis das Programm die Engine lädt…</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>Läuft</translation>
    </message>
    <message>
        <source>(whether the condition holds cannot be told: %1)  </source>
        <translation>(ob die Bedingung gilt, ist nicht zu sagen: %1)  </translation>
    </message>
    <message>
        <source>&lt;b&gt;Stopped&lt;/b&gt;  %1</source>
        <translation>&lt;b&gt;Angehalten&lt;/b&gt;  %1</translation>
    </message>
    <message>
        <source>They are known while a frame is being captured: stop at a line, a graph break or a compile.</source>
        <translation>Sie sind bekannt, während ein Frame erfasst wird: halten Sie bei einer Zeile, einem Graphbruch oder einer Kompilierung.</translation>
    </message>
    <message>
        <source>How guards will name it: where the value was read from. Values made while capturing have no source; what nobody has read yet is not guarded.</source>
        <translation>Wie Guards es nennen werden: woher der Wert gelesen wurde. Beim Erfassen entstandene Werte haben keine Quelle; was noch niemand las, ist nicht bewacht.</translation>
    </message>
    <message>
        <source>Filter locals</source>
        <translation>Lokale filtern</translation>
    </message>
    <message>
        <source>Local</source>
        <translation>Lokale</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>Wert</translation>
    </message>
    <message>
        <source>In short; tensors are stand-ins without data while capturing</source>
        <translation>In Kürze; Tensoren sind beim Erfassen Stellvertreter ohne Daten</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>Quelle</translation>
    </message>
    <message>
        <source>No locals</source>
        <translation>Keine Lokalen</translation>
    </message>
    <message>
        <source>Filter stack</source>
        <translation>Stapel filtern</translation>
    </message>
    <message>
        <source>Slot</source>
        <translation>Platz</translation>
    </message>
    <message>
        <source>0 is the bottom of the frame&apos;s value stack</source>
        <translation>0 ist der Boden des Wertestapels des Frames</translation>
    </message>
    <message>
        <source>The stack is empty</source>
        <translation>Der Stapel ist leer</translation>
    </message>
    <message>
        <source>Variables</source>
        <translation>Variablen</translation>
    </message>
    <message>
        <source>Filter frames</source>
        <translation>Frames filtern</translation>
    </message>
    <message>
        <source>#</source>
        <translation>#</translation>
    </message>
    <message>
        <source>Function</source>
        <translation>Funktion</translation>
    </message>
    <message>
        <source>Place</source>
        <translation>Stelle</translation>
    </message>
    <message>
        <source>Instruction</source>
        <translation>Instruktion</translation>
    </message>
    <message>
        <source>What it is about to execute</source>
        <translation>Was als Nächstes ausgeführt wird</translation>
    </message>
    <message>
        <source>No frames</source>
        <translation>Keine Frames</translation>
    </message>
    <message>
        <source>Frames are listed while one is being captured.</source>
        <translation>Frames werden genannt, während einer erfasst wird.</translation>
    </message>
    <message>
        <source>Bytecode round the current instruction</source>
        <translation>Bytecode um die aktuelle Instruktion</translation>
    </message>
    <message>
        <source>Frames</source>
        <translation>Frames</translation>
    </message>
    <message>
        <source>Filter guards</source>
        <translation>Guards filtern</translation>
    </message>
    <message>
        <source>Order in which they were made</source>
        <translation>Reihenfolge, in der sie entstanden</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>What is checked</source>
        <translation>Was geprüft wird</translation>
    </message>
    <message>
        <source>On</source>
        <translation>Worauf</translation>
    </message>
    <message>
        <source>Where the value is read from: L is a local of the frame, G its globals</source>
        <translation>Woher der Wert gelesen wird: L ist eine Lokale des Frames, G sind seine Globalen</translation>
    </message>
    <message>
        <source>Expected</source>
        <translation>Erwartet</translation>
    </message>
    <message>
        <source>What the compiled code will be made for</source>
        <translation>Wofür der kompilierte Code gemacht wird</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>What made the assumption</source>
        <translation>Was die Annahme machte</translation>
    </message>
    <message>
        <source>No guards yet</source>
        <translation>Noch keine Guards</translation>
    </message>
    <message>
        <source>Every value that tracing reads adds its assumptions here.</source>
        <translation>Jeder Wert, den das Erfassen liest, fügt hier seine Annahmen hinzu.</translation>
    </message>
    <message>
        <source>Guards</source>
        <translation>Guards</translation>
    </message>
    <message>
        <source>The graph captured so far</source>
        <translation>Der bisher erfasste Graph</translation>
    </message>
    <message>
        <source>Graph</source>
        <translation>Graph</translation>
    </message>
    <message>
        <source>Pass</source>
        <translation>Pass</translation>
    </message>
    <message>
        <source>Forbid</source>
        <translation>Verbieten</translation>
    </message>
    <message>
        <source>Keep these two apart, here and in graphs to come</source>
        <translation>Diese beiden getrennt lassen, hier und in kommenden Graphen</translation>
    </message>
    <message>
        <source>Force</source>
        <translation>Erzwingen</translation>
    </message>
    <message>
        <source>Fuse them whether it pays or not, where that is possible</source>
        <translation>Sie fusionieren, ob es lohnt oder nicht, wo es möglich ist</translation>
    </message>
    <message>
        <source>Filter fusions</source>
        <translation>Fusionen filtern</translation>
    </message>
    <message>
        <source>Order in which they will be decided</source>
        <translation>Reihenfolge, in der entschieden wird</translation>
    </message>
    <message>
        <source>First</source>
        <translation>Erste</translation>
    </message>
    <message>
        <source>Second</source>
        <translation>Zweite</translation>
    </message>
    <message>
        <source>vertical: the second reads what the first makes; horizontal: both read the same</source>
        <translation>vertical: die zweite liest, was die erste macht; horizontal: beide lesen dasselbe</translation>
    </message>
    <message>
        <source>Saves</source>
        <translation>Spart</translation>
    </message>
    <message>
        <source>Score: bytes of memory traffic that fusing saves</source>
        <translation>Bewertung: Bytes an Speicherverkehr, die die Fusion spart</translation>
    </message>
    <message>
        <source>No pair waits</source>
        <translation>Kein Paar wartet</translation>
    </message>
    <message>
        <source>This is the last fusion of the round.</source>
        <translation>Dies ist die letzte Fusion der Runde.</translation>
    </message>
    <message>
        <source>Filter rules</source>
        <translation>Regeln filtern</translation>
    </message>
    <message>
        <source>Rule</source>
        <translation>Regel</translation>
    </message>
    <message>
        <source>Operations</source>
        <translation>Operationen</translation>
    </message>
    <message>
        <source>No rule is in force</source>
        <translation>Keine Regel gilt</translation>
    </message>
    <message>
        <source>Forbid and Force make one for the pair that is decided.</source>
        <translation>„Verbieten“ und „Erzwingen“ machen eine für das Paar, das entschieden wird.</translation>
    </message>
    <message>
        <source>Take back</source>
        <translation>Zurücknehmen</translation>
    </message>
    <message>
        <source>The selected rule no longer holds, for graphs to come</source>
        <translation>Die gewählte Regel gilt nicht mehr, für kommende Graphen</translation>
    </message>
    <message>
        <source>Fusions</source>
        <translation>Fusionen</translation>
    </message>
    <message>
        <source>You forbade it: they stay apart.</source>
        <translation>Sie haben es verboten: sie bleiben getrennt.</translation>
    </message>
    <message>
        <source>You force it: they are fused where that is possible.</source>
        <translation>Sie erzwingen es: sie werden fusioniert, wo es möglich ist.</translation>
    </message>
    <message>
        <source>Now: %1 with %2 (%3), saves %4 bytes. %5</source>
        <translation>Jetzt: %1 mit %2 (%3), spart %4 Bytes. %5</translation>
    </message>
    <message>
        <source>Filter buffers</source>
        <translation>Puffer filtern</translation>
    </message>
    <message>
        <source>Buffer</source>
        <translation>Puffer</translation>
    </message>
    <message>
        <source>Role</source>
        <translation>Rolle</translation>
    </message>
    <message>
        <source>Type and sizes</source>
        <translation>Typ und Größen</translation>
    </message>
    <message>
        <source>First values</source>
        <translation>Erste Werte</translation>
    </message>
    <message>
        <source>Of an input in the processor&apos;s memory, in order of memory</source>
        <translation>Einer Eingabe im Speicher des Prozessors, in der Reihenfolge des Speichers</translation>
    </message>
    <message>
        <source>No arguments</source>
        <translation>Keine Argumente</translation>
    </message>
    <message>
        <source>They are known when a kernel is about to be launched.</source>
        <translation>Sie sind bekannt, kurz bevor ein Kernel startet.</translation>
    </message>
    <message>
        <source>Loop IR of the kernel</source>
        <translation>Schleifen-IR des Kernels</translation>
    </message>
    <message>
        <source>Code of the kernel</source>
        <translation>Code des Kernels</translation>
    </message>
    <message>
        <source>Kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>Tensor</source>
        <translation>Tensor</translation>
    </message>
    <message>
        <source>New breakpoint</source>
        <translation>Neuer Haltepunkt</translation>
    </message>
    <message>
        <source>model.py:12 · forward if x.shape[0] &gt; 32 · graph_break · recompile ignore 3 · pass decompose · fusion add* · kernel_launch …</source>
        <translation>model.py:12 · forward if x.shape[0] &gt; 32 · graph_break · recompile ignore 3 · pass decompose · fusion add* · kernel_launch …</translation>
    </message>
    <message>
        <source>Add</source>
        <translation>Hinzufügen</translation>
    </message>
    <message>
        <source>Stop there from now on</source>
        <translation>Von nun an dort halten</translation>
    </message>
    <message>
        <source>Enable or disable</source>
        <translation>Ein- oder ausschalten</translation>
    </message>
    <message>
        <source>Keep the selected breakpoint, but stop or do not stop there</source>
        <translation>Den gewählten Haltepunkt behalten, aber dort halten oder nicht halten</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Remove the selected breakpoint</source>
        <translation>Den gewählten Haltepunkt entfernen</translation>
    </message>
    <message>
        <source>Filter breakpoints</source>
        <translation>Haltepunkte filtern</translation>
    </message>
    <message>
        <source>As the console calls it; a program that runs has numbered it</source>
        <translation>Wie die Konsole ihn nennt; nummeriert hat ihn das laufende Programm</translation>
    </message>
    <message>
        <source>Stops at</source>
        <translation>Hält bei</translation>
    </message>
    <message>
        <source>An event of the compiler, or a line while it is traced</source>
        <translation>Ein Ereignis des Compilers, oder eine Zeile, während sie erfasst wird</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>One that is never hit may name a line or function that is not compiled</source>
        <translation>Einer, der nie getroffen wird, nennt vielleicht eine Zeile oder Funktion, die nicht kompiliert wird</translation>
    </message>
    <message>
        <source>No breakpoints</source>
        <translation>Keine Haltepunkte</translation>
    </message>
    <message>
        <source>Type one above, or click beside a line number in the source.</source>
        <translation>Geben Sie oben einen ein, oder klicken Sie im Quelltext neben eine Zeilennummer.</translation>
    </message>
    <message>
        <source>Breakpoints</source>
        <translation>Haltepunkte</translation>
    </message>
    <message>
        <source>on</source>
        <translation>an</translation>
    </message>
    <message>
        <source>off</source>
        <translation>aus</translation>
    </message>
    <message numerus="yes">
        <source>hit %n time(s)</source>
        <translation>
            <numerusform>einmal getroffen</numerusform>
            <numerusform>%n-mal getroffen</numerusform>
        </translation>
    </message>
    <message>
        <source>not hit yet</source>
        <translation>noch nicht getroffen</translation>
    </message>
    <message>
        <source>there is no such file</source>
        <translation>diese Datei gibt es nicht</translation>
    </message>
    <message>
        <source>, after %1 that pass</source>
        <translation>, nach %1, die durchgehen</translation>
    </message>
    <message>
        <source>Filter settings</source>
        <translation>Einstellungen filtern</translation>
    </message>
    <message>
        <source>Setting</source>
        <translation>Einstellung</translation>
    </message>
    <message>
        <source>No settings</source>
        <translation>Keine Einstellungen</translation>
    </message>
    <message>
        <source>They can be changed while the program is stopped.</source>
        <translation>Sie können geändert werden, während das Programm angehalten ist.</translation>
    </message>
    <message>
        <source>Setting to change</source>
        <translation>Einstellung, die geändert wird</translation>
    </message>
    <message>
        <source>New value</source>
        <translation>Neuer Wert</translation>
    </message>
    <message>
        <source>true, false or a number</source>
        <translation>true, false oder eine Zahl</translation>
    </message>
    <message>
        <source>Set</source>
        <translation>Setzen</translation>
    </message>
    <message>
        <source>Holds for what is compiled from now on</source>
        <translation>Gilt für alles, was von nun an kompiliert wird</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>Antworten</translation>
    </message>
    <message>
        <source>The commands of `fusebox debug --console`; help lists them.</source>
        <translation>Die Befehle von `fusebox debug --console`; help nennt sie.</translation>
    </message>
    <message>
        <source>Debugger command</source>
        <translation>Befehl an den Debugger</translation>
    </message>
    <message>
        <source>help</source>
        <translation>help</translation>
    </message>
    <message>
        <source>Console</source>
        <translation>Konsole</translation>
    </message>
    <message>
        <source>error: %1
</source>
        <translation>Fehler: %1
</translation>
    </message>
    <message>
        <source>breakpoint: %1
</source>
        <translation>Haltepunkt: %1
</translation>
    </message>
    <message>
        <source>Values lie on it in the middle of an expression. At the beginning of a line, and before the capture of a frame has begun, there are none.</source>
        <translation>Werte liegen mitten in einem Ausdruck darauf. Am Anfang einer Zeile und bevor die Aufnahme eines Frames begonnen hat, gibt es keine.</translation>
    </message>
    <message>
        <source>the program ended: no such function was compiled</source>
        <translation>das Programm ist zu Ende: keine solche Funktion wurde kompiliert</translation>
    </message>
    <message>
        <source>the program ended without a hit</source>
        <translation>das Programm ist ohne Treffer zu Ende</translation>
    </message>
</context>
<context>
    <name>fusebox::window::DiffPane</name>
    <message>
        <source>What the pass changed</source>
        <translation>Was der Pass änderte</translation>
    </message>
    <message>
        <source>The pass has not run yet; this is what it starts from.</source>
        <translation>Der Pass lief noch nicht; hiervon geht er aus.</translation>
    </message>
    <message>
        <source>What it made is code, not a text: stop at kernel_compile to read it. It started from this.</source>
        <translation>Was er machte, ist Code und kein Text: halten Sie bei kernel_compile, um ihn zu lesen. Hiervon ging er aus.</translation>
    </message>
    <message>
        <source>Changed lines: %1 (− went, + came)</source>
        <translation>Geänderte Zeilen: %1 (− ging, + kam)</translation>
    </message>
    <message>
        <source>The pass changed nothing.</source>
        <translation>Der Pass änderte nichts.</translation>
    </message>
</context>
<context>
    <name>fusebox::window::DockHost</name>
    <message>
        <source>Views</source>
        <translation>Ansichten</translation>
    </message>
</context>
<context>
    <name>fusebox::window::HistogramPlot</name>
    <message>
        <source>How many elements have which value</source>
        <translation>Wie viele Elemente welchen Wert haben</translation>
    </message>
    <message numerus="yes">
        <source>highest bar: %Ln element(s)</source>
        <translation>
            <numerusform>höchster Balken: %Ln Element</numerusform>
            <numerusform>höchster Balken: %Ln Elemente</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 … %2: %3</source>
        <translation>%1 … %2: %3</translation>
    </message>
</context>
<context>
    <name>fusebox::window::MainWindow</name>
    <message>
        <source>%1 does not exist</source>
        <translation>%1 gibt es nicht</translation>
    </message>
    <message>
        <source>%1 was written by a newer Fusebox</source>
        <translation>%1 stammt von einem neueren Fusebox</translation>
    </message>
    <message>
        <source>%1 is damaged, or no session</source>
        <translation>%1 ist beschädigt oder keine Sitzung</translation>
    </message>
    <message>
        <source>%1 cannot be read</source>
        <translation>%1 kann nicht gelesen werden</translation>
    </message>
    <message>
        <source>%1 cannot be opened</source>
        <translation>%1 kann nicht geöffnet werden</translation>
    </message>
    <message>
        <source>Check the path, or choose another session with Open.</source>
        <translation>Prüfen Sie den Pfad, oder wählen Sie mit „Öffnen“ eine andere Sitzung.</translation>
    </message>
    <message>
        <source>Update Fusebox, or open the session with the version that wrote it.</source>
        <translation>Aktualisieren Sie Fusebox, oder öffnen Sie die Sitzung mit der Version, die sie schrieb.</translation>
    </message>
    <message>
        <source>Record it again, or restore it from a copy.</source>
        <translation>Zeichnen Sie sie neu auf, oder stellen Sie sie aus einer Kopie wieder her.</translation>
    </message>
    <message>
        <source>Check its permissions and the disk.</source>
        <translation>Prüfen Sie ihre Rechte und den Datenträger.</translation>
    </message>
    <message>
        <source>Fusebox</source>
        <translation>Fusebox</translation>
    </message>
    <message>
        <source>Output</source>
        <translation>Ausgabe</translation>
    </message>
    <message>
        <source>Parts of %1 cannot be read</source>
        <translation>Teile von %1 können nicht gelesen werden</translation>
    </message>
    <message>
        <source>What could be read is shown.</source>
        <translation>Gezeigt wird, was gelesen werden konnte.</translation>
    </message>
    <message>
        <source>%1 – Fusebox</source>
        <translation>%1 – Fusebox</translation>
    </message>
    <message>
        <source>This recording ended early: its process is gone</source>
        <translation>Diese Aufzeichnung endete früh: ihr Prozess ist fort</translation>
    </message>
    <message>
        <source>It was killed, crashed or ran out of memory. Everything up to its last commit is here.</source>
        <translation>Er wurde beendet, stürzte ab oder hatte keinen Speicher mehr. Alles bis zum letzten Sichern ist hier.</translation>
    </message>
    <message>
        <source>The session may not be complete</source>
        <translation>Die Sitzung ist vielleicht nicht vollständig</translation>
    </message>
    <message>
        <source>reading %1: %2 %</source>
        <translation>%1 wird gelesen: %2 %</translation>
    </message>
    <message>
        <source>reading stopped</source>
        <translation>Lesen angehalten</translation>
    </message>
    <message>
        <source>Only the first %1 % of %2 was read</source>
        <translation>Nur die ersten %1 % von %2 wurden gelesen</translation>
    </message>
    <message>
        <source>Reading was stopped. Everything shown and counted is of that part; open the file again to read all of it.</source>
        <translation>Das Lesen wurde angehalten. Alles Gezeigte und Gezählte gilt diesem Teil; öffnen Sie die Datei erneut, um sie ganz zu lesen.</translation>
    </message>
    <message>
        <source>%1 is another file now</source>
        <translation>%1 ist jetzt eine andere Datei</translation>
    </message>
    <message>
        <source>%1 What is shown was read before; it stays until you read the new one.</source>
        <translation>%1 Was gezeigt wird, wurde zuvor gelesen; es bleibt, bis Sie die neue lesen.</translation>
    </message>
    <message>
        <source>Reload</source>
        <translation>Neu laden</translation>
    </message>
    <message>
        <source>%1 is no longer there</source>
        <translation>%1 ist nicht mehr da</translation>
    </message>
    <message>
        <source>%1 What is shown was read before; it stays until you close the session.</source>
        <translation>%1 Was gezeigt wird, wurde zuvor gelesen; es bleibt, bis Sie die Sitzung schließen.</translation>
    </message>
    <message>
        <source>● recording</source>
        <translation>● zeichnet auf</translation>
    </message>
    <message>
        <source>finished: the program failed</source>
        <translation>beendet: das Programm schlug fehl</translation>
    </message>
    <message>
        <source>ended early</source>
        <translation>endete früh</translation>
    </message>
    <message>
        <source>of another machine</source>
        <translation>von einer anderen Maschine</translation>
    </message>
    <message>
        <source>finished</source>
        <translation>beendet</translation>
    </message>
    <message>
        <source>A script is already running</source>
        <translation>Es läuft bereits ein Skript</translation>
    </message>
    <message>
        <source>Stop it first, or wait until it has ended.</source>
        <translation>Halten Sie es erst an, oder warten Sie, bis es endet.</translation>
    </message>
    <message>
        <source>[finished]</source>
        <translation>[beendet]</translation>
    </message>
    <message>
        <source>Fusebox ended unexpectedly while %1 was open</source>
        <translation>Fusebox endete unerwartet, während %1 offen war</translation>
    </message>
    <message>
        <source>No report was written: it was killed, or the machine stopped.</source>
        <translation>Es wurde kein Bericht geschrieben: es wurde beendet, oder die Maschine hielt an.</translation>
    </message>
    <message>
        <source>What happened is in %1; please send it along.</source>
        <translation>Was geschah, steht in %1; bitte senden Sie es mit.</translation>
    </message>
    <message>
        <source>Open it again</source>
        <translation>Wieder öffnen</translation>
    </message>
    <message>
        <source>Open %1</source>
        <translation>%1 öffnen</translation>
    </message>
    <message>
        <source>Compare %1 with it</source>
        <translation>%1 damit vergleichen</translation>
    </message>
    <message>
        <source>File</source>
        <translation>Datei</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>Ausführen</translation>
    </message>
    <message>
        <source>Go</source>
        <translation>Gehe zu</translation>
    </message>
    <message>
        <source>View</source>
        <translation>Ansicht</translation>
    </message>
    <message>
        <source>Layout</source>
        <translation>Anordnung</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>Hilfe</translation>
    </message>
    <message>
        <source>&amp;Open session or trace…</source>
        <translation>Sitzung oder Trace ö&amp;ffnen…</translation>
    </message>
    <message>
        <source>Open &amp;folder of traces…</source>
        <translation>&amp;Ordner mit Traces öffnen…</translation>
    </message>
    <message>
        <source>Open a TORCH_TRACE or TORCH_COMPILE_DEBUG folder</source>
        <translation>Einen TORCH_TRACE- oder TORCH_COMPILE_DEBUG-Ordner öffnen</translation>
    </message>
    <message>
        <source>E&amp;xport session…</source>
        <translation>Sitzung e&amp;xportieren…</translation>
    </message>
    <message>
        <source>Co&amp;mpare with…</source>
        <translation>&amp;Vergleichen mit…</translation>
    </message>
    <message>
        <source>Compare with a fol&amp;der…</source>
        <translation>Mit einem Or&amp;dner vergleichen…</translation>
    </message>
    <message>
        <source>Open the &amp;example</source>
        <translation>&amp;Beispiel öffnen</translation>
    </message>
    <message>
        <source>&amp;Reload</source>
        <translation>&amp;Neu laden</translation>
    </message>
    <message>
        <source>&amp;Close session</source>
        <translation>Sitzung s&amp;chließen</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>&amp;Beenden</translation>
    </message>
    <message>
        <source>&amp;Run script…</source>
        <translation>&amp;Skript ausführen…</translation>
    </message>
    <message>
        <source>Run under both engines and &amp;compare…</source>
        <translation>Unter beiden Engines ausführen und &amp;vergleichen…</translation>
    </message>
    <message>
        <source>Run &amp;again</source>
        <translation>&amp;Erneut ausführen</translation>
    </message>
    <message>
        <source>&amp;Stop script</source>
        <translation>Skript &amp;anhalten</translation>
    </message>
    <message>
        <source>Show &amp;output</source>
        <translation>A&amp;usgabe zeigen</translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation>&amp;Zurück</translation>
    </message>
    <message>
        <source>&amp;Forward</source>
        <translation>&amp;Vorwärts</translation>
    </message>
    <message>
        <source>&amp;Next session</source>
        <translation>&amp;Nächste Sitzung</translation>
    </message>
    <message>
        <source>&amp;Previous session</source>
        <translation>V&amp;orige Sitzung</translation>
    </message>
    <message>
        <source>F&amp;ind</source>
        <translation>&amp;Suchen</translation>
    </message>
    <message>
        <source>Find in &amp;everything</source>
        <translation>In &amp;allem suchen</translation>
    </message>
    <message>
        <source>&amp;Command palette</source>
        <translation>&amp;Befehlspalette</translation>
    </message>
    <message>
        <source>&amp;Tabs</source>
        <translation>&amp;Reiter</translation>
    </message>
    <message>
        <source>&amp;Compile: source beside graph, breaks and recompiles</source>
        <translation>&amp;Kompilieren: Quelltext neben Graph, Brüchen und Neukompilierungen</translation>
    </message>
    <message>
        <source>&amp;Debug: source beside graph</source>
        <translation>&amp;Debuggen: Quelltext neben Graph</translation>
    </message>
    <message>
        <source>&amp;Profile: timeline over kernels</source>
        <translation>&amp;Profil: Zeitachse über Kerneln</translation>
    </message>
    <message>
        <source>&amp;Reset this layout</source>
        <translation>Diese Anordnung &amp;zurücksetzen</translation>
    </message>
    <message>
        <source>Theme of the system</source>
        <translation>Thema des Systems</translation>
    </message>
    <message>
        <source>Light theme</source>
        <translation>Helles Thema</translation>
    </message>
    <message>
        <source>Dark theme</source>
        <translation>Dunkles Thema</translation>
    </message>
    <message>
        <source>&amp;Manual: about what is selected</source>
        <translation>&amp;Handbuch: zum Gewählten</translation>
    </message>
    <message>
        <source>Manual: &amp;contents</source>
        <translation>Handbuch: &amp;Inhalt</translation>
    </message>
    <message>
        <source>&amp;Keyboard</source>
        <translation>&amp;Tastatur</translation>
    </message>
    <message>
        <source>&amp;Doctor: what is installed here</source>
        <translation>&amp;Doktor: was hier installiert ist</translation>
    </message>
    <message>
        <source>&amp;About Fusebox</source>
        <translation>&amp;Über Fusebox</translation>
    </message>
    <message>
        <source>Open &amp;recent</source>
        <translation>&amp;Zuletzt geöffnet</translation>
    </message>
    <message>
        <source>Main</source>
        <translation>Hauptleiste</translation>
    </message>
    <message>
        <source>Reading the session</source>
        <translation>Sitzung wird gelesen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Cancel reading</source>
        <translation>Lesen abbrechen</translation>
    </message>
    <message>
        <source>Open session</source>
        <translation>Sitzung öffnen</translation>
    </message>
    <message>
        <source>Sessions and traces (*.fusebox *.log *.jsonl *.json *.json.gz *.pftrace *.perfetto-trace *.sqlite *.pt2 *.pt);;All files (*)</source>
        <translation>Sitzungen und Traces (*.fusebox *.log *.jsonl *.json *.json.gz *.pftrace *.perfetto-trace *.sqlite *.pt2 *.pt);;Alle Dateien (*)</translation>
    </message>
    <message>
        <source>Compare with</source>
        <translation>Vergleichen mit</translation>
    </message>
    <message>
        <source>Compare with a folder</source>
        <translation>Mit einem Ordner vergleichen</translation>
    </message>
    <message>
        <source>The example cannot be unpacked</source>
        <translation>Das Beispiel kann nicht entpackt werden</translation>
    </message>
    <message>
        <source>Keyboard</source>
        <translation>Tastatur</translation>
    </message>
    <message>
        <source>Filter keys</source>
        <translation>Tasten filtern</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>Tasten</translation>
    </message>
    <message>
        <source>What they do</source>
        <translation>Was sie tun</translation>
    </message>
    <message>
        <source>Where</source>
        <translation>Wo</translation>
    </message>
    <message>
        <source>Graph, timeline</source>
        <translation>Graph, Zeitachse</translation>
    </message>
    <message>
        <source>W A S D</source>
        <translation>W A S D</translation>
    </message>
    <message>
        <source>Graph: pan; timeline: zoom in, left, zoom out, right</source>
        <translation>Graph: schwenken; Zeitachse: vergrößern, links, verkleinern, rechts</translation>
    </message>
    <message>
        <source>+ −</source>
        <translation>+ −</translation>
    </message>
    <message>
        <source>Zoom</source>
        <translation>Vergrößerung</translation>
    </message>
    <message>
        <source>F</source>
        <translation>F</translation>
    </message>
    <message>
        <source>Show everything</source>
        <translation>Alles zeigen</translation>
    </message>
    <message>
        <source>Arrows</source>
        <translation>Pfeile</translation>
    </message>
    <message>
        <source>Graph: along edges; timeline: from bar to bar</source>
        <translation>Graph: an Kanten entlang; Zeitachse: von Balken zu Balken</translation>
    </message>
    <message>
        <source>Return</source>
        <translation>Eingabe</translation>
    </message>
    <message>
        <source>Open what is selected; open and close a group</source>
        <translation>Das Gewählte öffnen; eine Gruppe öffnen und schließen</translation>
    </message>
    <message>
        <source>F3, Shift+F3</source>
        <translation>F3, Umschalt+F3</translation>
    </message>
    <message>
        <source>Next and previous hit</source>
        <translation>Nächster und voriger Treffer</translation>
    </message>
    <message>
        <source>Find</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>Ctrl+C</source>
        <translation>Strg+C</translation>
    </message>
    <message>
        <source>Copy the selected rows</source>
        <translation>Die gewählten Zeilen kopieren</translation>
    </message>
    <message>
        <source>Tables</source>
        <translation>Tabellen</translation>
    </message>
    <message>
        <source>Debug</source>
        <translation>Debuggen</translation>
    </message>
    <message>
        <source>The program is not debugged any more</source>
        <translation>Das Programm wird nicht mehr debuggt</translation>
    </message>
    <message>
        <source>It runs on by itself.</source>
        <translation>Es läuft allein weiter.</translation>
    </message>
    <message>
        <source>&amp;Debug script…</source>
        <translation>Skript &amp;debuggen…</translation>
    </message>
    <message>
        <source>&amp;Continue</source>
        <translation>&amp;Fortsetzen</translation>
    </message>
    <message>
        <source>&amp;Pause</source>
        <translation>&amp;Pause</translation>
    </message>
    <message>
        <source>Step &amp;over</source>
        <translation>Schritt &amp;darüber</translation>
    </message>
    <message>
        <source>Step &amp;into</source>
        <translation>Schritt h&amp;inein</translation>
    </message>
    <message>
        <source>Step o&amp;ut</source>
        <translation>Schritt hina&amp;us</translation>
    </message>
    <message>
        <source>To next &amp;recompile</source>
        <translation>Bis zur nächsten &amp;Neukompilierung</translation>
    </message>
    <message>
        <source>To next graph &amp;break</source>
        <translation>Bis zum nächsten Graph&amp;bruch</translation>
    </message>
    <message>
        <source>Step over i&amp;nstruction</source>
        <translation>Schritt über eine I&amp;nstruktion</translation>
    </message>
    <message>
        <source>Step in&amp;to instruction</source>
        <translation>Schritt in eine Ins&amp;truktion</translation>
    </message>
    <message>
        <source>Toggle break&amp;point at the line</source>
        <translation>Halte&amp;punkt in der Zeile setzen oder entfernen</translation>
    </message>
    <message>
        <source>&amp;Skip this frame</source>
        <translation>Diesen Frame über&amp;springen</translation>
    </message>
    <message>
        <source>Leave the frame that is being captured to Python; the session says so</source>
        <translation>Den Frame, der gerade erfasst wird, Python überlassen; die Sitzung sagt es</translation>
    </message>
    <message>
        <source>R&amp;estart</source>
        <translation>N&amp;eustart</translation>
    </message>
    <message>
        <source>End the program and start it again, with the breakpoints as they are now</source>
        <translation>Das Programm beenden und neu starten, mit den Haltepunkten von jetzt</translation>
    </message>
    <message>
        <source>D&amp;etach</source>
        <translation>A&amp;bkoppeln</translation>
    </message>
    <message>
        <source>Let the program go on undebugged</source>
        <translation>Das Programm ohne Debugger weiterlaufen lassen</translation>
    </message>
    <message>
        <source>&amp;Kill</source>
        <translation>&amp;Töten</translation>
    </message>
    <message>
        <source>End the program at once, whatever it is doing</source>
        <translation>Das Programm sofort beenden, was es auch tut</translation>
    </message>
    <message>
        <source>S&amp;how the debug panel</source>
        <translation>Debug-&amp;Bereich zeigen</translation>
    </message>
    <message>
        <source>Only Fusebox&apos; own engine can be debugged</source>
        <translation>Nur Fusebox’ eigene Engine kann debuggt werden</translation>
    </message>
    <message>
        <source>Choose the engine &quot;fusebox&quot;, or run the script without the debugger.</source>
        <translation>Wählen Sie die Engine „fusebox“, oder führen Sie das Skript ohne Debugger aus.</translation>
    </message>
    <message>
        <source>The debugger cannot be started</source>
        <translation>Der Debugger kann nicht gestartet werden</translation>
    </message>
    <message>
        <source>No session was opened yet</source>
        <translation>Noch keine Sitzung wurde geöffnet</translation>
    </message>
    <message>
        <source>Report in one page (*.html)</source>
        <translation>Bericht auf einer Seite (*.html)</translation>
    </message>
    <message>
        <source>Chrome trace (*.json)</source>
        <translation>Chrome-Trace (*.json)</translation>
    </message>
    <message>
        <source>Chrome trace, compressed (*.json.gz)</source>
        <translation>Chrome-Trace, komprimiert (*.json.gz)</translation>
    </message>
    <message>
        <source>Perfetto trace (*.pftrace)</source>
        <translation>Perfetto-Trace (*.pftrace)</translation>
    </message>
    <message>
        <source>Launches as a table (*.csv)</source>
        <translation>Starts als Tabelle (*.csv)</translation>
    </message>
    <message>
        <source>Session (*.fusebox)</source>
        <translation>Sitzung (*.fusebox)</translation>
    </message>
    <message>
        <source>Session without names, paths and sources (*.fusebox)</source>
        <translation>Sitzung ohne Namen, Pfade und Quelltexte (*.fusebox)</translation>
    </message>
    <message>
        <source>Export session</source>
        <translation>Sitzung exportieren</translation>
    </message>
    <message>
        <source>A session cannot be exported onto itself</source>
        <translation>Eine Sitzung kann nicht auf sich selbst exportiert werden</translation>
    </message>
    <message>
        <source>Choose another name.</source>
        <translation>Wählen Sie einen anderen Namen.</translation>
    </message>
    <message>
        <source>Exported to %1</source>
        <translation>Exportiert nach %1</translation>
    </message>
    <message>
        <source>%1 was not written</source>
        <translation>%1 wurde nicht geschrieben</translation>
    </message>
    <message>
        <source>Looking at Python, PyTorch and the machine…</source>
        <translation>Python, PyTorch und die Maschine werden untersucht…</translation>
    </message>
    <message>
        <source>What Fusebox finds on this machine</source>
        <translation>Was Fusebox auf dieser Maschine findet</translation>
    </message>
    <message>
        <source>About Fusebox</source>
        <translation>Über Fusebox</translation>
    </message>
    <message>
        <source>Fusebox %1

Compiles PyTorch programs, and shows and debugs what the compiler did.

Built with Qt %2.</source>
        <translation>Fusebox %1

Kompiliert PyTorch-Programme, und zeigt und debuggt, was der Compiler tat.

Gebaut mit Qt %2.</translation>
    </message>
    <message>
        <source>%1 could not be started</source>
        <translation>%1 konnte nicht gestartet werden</translation>
    </message>
    <message>
        <source>A program is running</source>
        <translation>Ein Programm läuft</translation>
    </message>
    <message>
        <source>Closing the window ends the program that was started from it. What was recorded until then stays in its session.</source>
        <translation>Das Schließen des Fensters beendet das Programm, das von hier gestartet wurde. Was bis dahin aufgezeichnet wurde, bleibt in seiner Sitzung.</translation>
    </message>
    <message>
        <source>&amp;End the program and close</source>
        <translation>Programm &amp;beenden und schließen</translation>
    </message>
    <message>
        <source>Language of the system</source>
        <translation>Sprache des Systems</translation>
    </message>
    <message>
        <source>The language changes when Fusebox is started again</source>
        <translation>Die Sprache ändert sich, wenn Fusebox neu gestartet wird</translation>
    </message>
    <message>
        <source>English</source>
        <translation>English</translation>
    </message>
    <message>
        <source>Deutsch</source>
        <translation>Deutsch</translation>
    </message>
    <message>
        <source>Show the line</source>
        <translation>Die Zeile zeigen</translation>
    </message>
    <message>
        <source>&amp;Copy with the window&apos;s log</source>
        <translation>Mit dem Protokoll des Fensters &amp;kopieren</translation>
    </message>
    <message>
        <source>For a report of a fault: what is above, and what the window did lately</source>
        <translation>Für die Meldung eines Fehlers: was oben steht, und was das Fenster zuletzt tat</translation>
    </message>
    <message>
        <source>starting</source>
        <translation>startet</translation>
    </message>
    <message>
        <source>This folder holds recordings of other kinds too</source>
        <translation>Dieser Ordner enthält auch Aufzeichnungen anderer Art</translation>
    </message>
    <message>
        <source>They are not read with it. Each is opened by itself.</source>
        <translation>Sie werden nicht mitgelesen. Jede öffnet man für sich.</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>Auswählen …</translation>
    </message>
    <message>
        <source>Open another recording</source>
        <translation>Eine andere Aufzeichnung öffnen</translation>
    </message>
    <message>
        <source>What else the folder holds:</source>
        <translation>Was der Ordner noch enthält:</translation>
    </message>
</context>
<context>
    <name>fusebox::window::ManualWindow</name>
    <message>
        <source>Manual</source>
        <translation>Handbuch</translation>
    </message>
    <message>
        <source>Search the manual</source>
        <translation>Im Handbuch suchen</translation>
    </message>
    <message>
        <source>Pages of the manual</source>
        <translation>Seiten des Handbuchs</translation>
    </message>
    <message>
        <source>Page of the manual</source>
        <translation>Seite des Handbuchs</translation>
    </message>
    <message>
        <source>
| keys | what they do |
|---|---|
</source>
        <translation>
| Tasten | was sie tun |
|---|---|
</translation>
    </message>
</context>
<context>
    <name>fusebox::window::OutputPanel</name>
    <message>
        <source>Output of the script</source>
        <translation>Ausgabe des Skripts</translation>
    </message>
    <message>
        <source>What a script writes appears here. Start one with Run script…</source>
        <translation>Was ein Skript schreibt, erscheint hier. Starten Sie eines mit „Skript ausführen…“</translation>
    </message>
    <message>
        <source>Standard input of the script; Return sends the line</source>
        <translation>Standardeingabe des Skripts; Eingabe sendet die Zeile</translation>
    </message>
    <message>
        <source>Standard input</source>
        <translation>Standardeingabe</translation>
    </message>
</context>
<context>
    <name>fusebox::window::RunDialog</name>
    <message>
        <source>Run script</source>
        <translation>Skript ausführen</translation>
    </message>
    <message>
        <source>Debug script</source>
        <translation>Skript debuggen</translation>
    </message>
    <message>
        <source>Run under Fusebox&apos;s engine and PyTorch&apos;s own</source>
        <translation>Unter Fusebox’ und PyTorchs eigener Engine ausführen</translation>
    </message>
    <message>
        <source>What to run</source>
        <translation>Was ausgeführt wird</translation>
    </message>
    <message>
        <source>Script</source>
        <translation>Skript</translation>
    </message>
    <message>
        <source>Module (-m)</source>
        <translation>Modul (-m)</translation>
    </message>
    <message>
        <source>A Python script</source>
        <translation>Ein Python-Skript</translation>
    </message>
    <message>
        <source>Arguments of the script, quoted as in a shell</source>
        <translation>Argumente des Skripts, in Anführungszeichen wie in einer Shell</translation>
    </message>
    <message>
        <source>Environment variables: NAME=value &quot;OTHER=a value&quot;</source>
        <translation>Umgebungsvariablen: NAME=Wert &quot;ANDERE=ein Wert&quot;</translation>
    </message>
    <message>
        <source>The script&apos;s folder</source>
        <translation>Der Ordner des Skripts</translation>
    </message>
    <message>
        <source>The Python that Fusebox was built for</source>
        <translation>Das Python, für das Fusebox gebaut wurde</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>Engine</translation>
    </message>
    <message>
        <source>Fusebox</source>
        <translation>Fusebox</translation>
    </message>
    <message>
        <source>Stock torch.compile, recorded</source>
        <translation>PyTorchs torch.compile, aufgezeichnet</translation>
    </message>
    <message>
        <source>Eager: no compilation</source>
        <translation>Eager: ohne Kompilierung</translation>
    </message>
    <message>
        <source>Browse…</source>
        <translation>Wählen…</translation>
    </message>
    <message>
        <source>Browse for: %1</source>
        <translation>Auswählen: %1</translation>
    </message>
    <message>
        <source>Choose a script</source>
        <translation>Ein Skript wählen</translation>
    </message>
    <message>
        <source>Python (*.py);;All files (*)</source>
        <translation>Python (*.py);;Alle Dateien (*)</translation>
    </message>
    <message>
        <source>Arguments</source>
        <translation>Argumente</translation>
    </message>
    <message>
        <source>Environment</source>
        <translation>Umgebung</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Working directory</source>
        <translation>Arbeitsordner</translation>
    </message>
    <message>
        <source>Python</source>
        <translation>Python</translation>
    </message>
    <message>
        <source>Choose an interpreter</source>
        <translation>Einen Interpreter wählen</translation>
    </message>
    <message>
        <source>Debug</source>
        <translation>Debuggen</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>Ausführen</translation>
    </message>
    <message>
        <source>A module that Python finds, as package.module</source>
        <translation>Ein Modul, das Python findet, als paket.modul</translation>
    </message>
    <message>
        <source>The folder that the window was started in</source>
        <translation>Der Ordner, in dem das Fenster gestartet wurde</translation>
    </message>
    <message>
        <source>Name a module to run.</source>
        <translation>Nennen Sie ein Modul.</translation>
    </message>
    <message>
        <source>Choose a script to run.</source>
        <translation>Wählen Sie ein Skript.</translation>
    </message>
    <message>
        <source>%1 is not the name of a module.</source>
        <translation>%1 ist kein Name eines Moduls.</translation>
    </message>
    <message>
        <source>%1 does not exist.</source>
        <translation>%1 gibt es nicht.</translation>
    </message>
    <message>
        <source>%1 is not a variable: write NAME=value.</source>
        <translation>%1 ist keine Variable: schreiben Sie NAME=Wert.</translation>
    </message>
    <message>
        <source>The folder %1 does not exist.</source>
        <translation>Den Ordner %1 gibt es nicht.</translation>
    </message>
    <message>
        <source>%1 is not a program.</source>
        <translation>%1 ist kein Programm.</translation>
    </message>
    <message>
        <source>The session is written to the folder while the module runs, and opened at once.</source>
        <translation>Die Sitzung wird im Ordner geschrieben, während das Modul läuft, und sofort geöffnet.</translation>
    </message>
    <message>
        <source>The session is written beside the script while it runs, and opened at once.</source>
        <translation>Die Sitzung wird neben dem Skript geschrieben, während es läuft, und sofort geöffnet.</translation>
    </message>
    <message>
        <source>Operators outside compiled code</source>
        <translation>Operatoren außerhalb kompilierten Codes</translation>
    </message>
    <message>
        <source>The optimizer and what is not compiled, operator by operator with its line; about a microsecond each. Other engines always record them.</source>
        <translation>Der Optimierer und was nicht kompiliert ist, Operator für Operator mit seiner Zeile; etwa eine Mikrosekunde für jeden. Andere Engines zeichnen sie immer auf.</translation>
    </message>
    <message>
        <source>Counters of the GPU</source>
        <translation>Zähler der GPU</translation>
    </message>
    <message>
        <source>No counters of the GPU</source>
        <translation>Keine Zähler der GPU</translation>
    </message>
    <message>
        <source>Counters of the GPU, sampled</source>
        <translation>Zähler der GPU, abgetastet</translation>
    </message>
    <message>
        <source>Counters of the GPU, around every kernel</source>
        <translation>Zähler der GPU, um jeden Kernel herum</translation>
    </message>
    <message>
        <source>Sampled while kernels run as they would; around every kernel they run one after another.</source>
        <translation>Abgetastet, während Kernel wie sonst laufen; um jeden Kernel herum laufen sie nacheinander.</translation>
    </message>
    <message>
        <source>Record too</source>
        <translation>Auch aufzeichnen</translation>
    </message>
</context>
<context>
    <name>fusebox::window::ScriptRunner</name>
    <message>
        <source>was killed (signal 9); the system may have run out of memory</source>
        <translation>wurde getötet (Signal 9); vielleicht hatte das System keinen Speicher mehr</translation>
    </message>
    <message>
        <source>crashed: invalid memory access (signal 11)</source>
        <translation>stürzte ab: ungültiger Speicherzugriff (Signal 11)</translation>
    </message>
    <message>
        <source>aborted (signal 6)</source>
        <translation>brach ab (Signal 6)</translation>
    </message>
    <message>
        <source>was interrupted (signal 2)</source>
        <translation>wurde unterbrochen (Signal 2)</translation>
    </message>
    <message>
        <source>was asked to end (signal 15)</source>
        <translation>wurde gebeten zu enden (Signal 15)</translation>
    </message>
    <message>
        <source>crashed: bad memory access, or the disk is full (signal 7)</source>
        <translation>stürzte ab: falscher Speicherzugriff, oder der Datenträger ist voll (Signal 7)</translation>
    </message>
    <message>
        <source>was ended by signal %1</source>
        <translation>wurde durch Signal %1 beendet</translation>
    </message>
    <message>
        <source>%1 could not be started</source>
        <translation>%1 konnte nicht gestartet werden</translation>
    </message>
    <message>
        <source>%1. Check that the file exists and may be executed.</source>
        <translation>%1. Prüfen Sie, ob die Datei existiert und ausgeführt werden darf.</translation>
    </message>
    <message>
        <source>The whole output is in the Output panel; what was recorded until then is in the session.</source>
        <translation>Die ganze Ausgabe steht im Bereich „Ausgabe“; was bis dahin aufgezeichnet wurde, in der Sitzung.</translation>
    </message>
    <message>
        <source>%1 was stopped</source>
        <translation>%1 wurde angehalten</translation>
    </message>
    <message>
        <source>%1 was killed by the debugger, as asked</source>
        <translation>%1 wurde, wie verlangt, vom Debugger getötet</translation>
    </message>
    <message>
        <source>%1 %2</source>
        <translation>%1 %2</translation>
    </message>
    <message>
        <source>%1 ended with exit code %2</source>
        <translation>%1 endete mit Code %2</translation>
    </message>
    <message>
        <source>%1 ended with exit code %2: %3</source>
        <translation>%1 endete mit Code %2: %3</translation>
    </message>
</context>
<context>
    <name>fusebox::window::SessionTabs</name>
    <message>
        <source>Open sessions</source>
        <translation>Offene Sitzungen</translation>
    </message>
</context>
<context>
    <name>fusebox::window::StartPage</name>
    <message>
        <source>Fusebox</source>
        <translation>Fusebox</translation>
    </message>
    <message>
        <source>See what the compiler made of a PyTorch program: graphs, breaks, guards, kernels and their times.</source>
        <translation>Sehen Sie, was der Compiler aus einem PyTorch-Programm machte: Graphen, Brüche, Guards, Kernel und ihre Zeiten.</translation>
    </message>
    <message>
        <source>Recent sessions</source>
        <translation>Letzte Sitzungen</translation>
    </message>
    <message>
        <source>Filter recent sessions</source>
        <translation>Letzte Sitzungen filtern</translation>
    </message>
    <message>
        <source>No session yet. Run a script, or record one with “fusebox run script.py”, and it is listed here.</source>
        <translation>Noch keine Sitzung. Führen Sie ein Skript aus, oder zeichnen Sie eines mit „fusebox run script.py“ auf, und sie steht hier.</translation>
    </message>
    <message>
        <source>Remove from the list</source>
        <translation>Aus der Liste entfernen</translation>
    </message>
    <message>
        <source>%1, %2</source>
        <translation>%1, %2</translation>
    </message>
    <message>
        <source>the file is gone</source>
        <translation>die Datei ist fort</translation>
    </message>
    <message>
        <source>a folder</source>
        <translation>ein Ordner</translation>
    </message>
</context>
<context>
    <name>fusebox::window::TensorPane</name>
    <message>
        <source>Tensor to show</source>
        <translation>Gezeigter Tensor</translation>
    </message>
    <message>
        <source>x · self.layers.0.weight · a buffer of the launch</source>
        <translation>x · self.layers.0.weight · ein Puffer des Starts</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Zeigen</translation>
    </message>
    <message>
        <source>Search all for NaN</source>
        <translation>Alle nach NaN durchsuchen</translation>
    </message>
    <message>
        <source>Read every tensor of the list, and bring up those that hold NaN or infinity</source>
        <translation>Jeden Tensor der Liste lesen, und die nach oben holen, die NaN oder Unendlich enthalten</translation>
    </message>
    <message>
        <source>Filter tensors</source>
        <translation>Tensoren filtern</translation>
    </message>
    <message>
        <source>Tensor</source>
        <translation>Tensor</translation>
    </message>
    <message>
        <source>Type and sizes</source>
        <translation>Typ und Größen</translation>
    </message>
    <message>
        <source>NaN</source>
        <translation>NaN</translation>
    </message>
    <message>
        <source>Elements that are not a number</source>
        <translation>Elemente, die keine Zahl sind</translation>
    </message>
    <message>
        <source>Infinite</source>
        <translation>Unendlich</translation>
    </message>
    <message>
        <source>Least</source>
        <translation>Kleinstes</translation>
    </message>
    <message>
        <source>Of finite elements</source>
        <translation>Der endlichen Elemente</translation>
    </message>
    <message>
        <source>Most</source>
        <translation>Größtes</translation>
    </message>
    <message>
        <source>Mean</source>
        <translation>Mittel</translation>
    </message>
    <message>
        <source>No tensor lies in memory here</source>
        <translation>Kein Tensor liegt hier im Speicher</translation>
    </message>
    <message>
        <source>Stop before a compile or recompile, at a guard that fails, or before a kernel is launched. While capturing, tensors are stand-ins without data.</source>
        <translation>Halten Sie vor einer Kompilierung oder Neukompilierung, bei einem Guard, der nicht gilt, oder vor dem Start eines Kernels. Beim Erfassen sind Tensoren Stellvertreter ohne Daten.</translation>
    </message>
    <message>
        <source>Filter facts</source>
        <translation>Fakten filtern</translation>
    </message>
    <message>
        <source>Fact</source>
        <translation>Fakt</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>Wert</translation>
    </message>
    <message>
        <source>No tensor is chosen</source>
        <translation>Kein Tensor ist gewählt</translation>
    </message>
    <message>
        <source>Choose one in the list, or type its name.</source>
        <translation>Wählen Sie einen in der Liste, oder geben Sie seinen Namen ein.</translation>
    </message>
    <message>
        <source>First elements</source>
        <translation>Erste Elemente</translation>
    </message>
    <message>
        <source>%1 cannot be shown: %2</source>
        <translation>%1 kann nicht gezeigt werden: %2</translation>
    </message>
    <message>
        <source>%1 is made of these; without a name the list is that of the locals again.</source>
        <translation>%1 besteht aus diesen; ohne Namen zeigt die Liste wieder die lokalen Variablen.</translation>
    </message>
</context>
</TS>
