"""What a program prints, formats, logs and warns."""

from .grammar import statement


@statement(0.9)
def prints(g):
    x, L = g.variable("x") or "x", g.variable("L")
    n = g.integer()
    choices = [f"print('p', {n})", f'print(f"""{{{n}:>4}}|{{{n}!r}}""")', f"print('shape', {x}.shape, {x}.dtype)",
               f"print('%s and %d' % ('a', {n}))", f"print('{{:03d}}'.format({n}), end=';')", "print()", "print(LOG)",
               "print(len(LOG), *LOG[-2:], sep='-')"]
    if g.chance(0.3):
        choices += [f"print({x}.sum())",
                    f"print({x}.detach().abs().max())" if g.chance(0.2) else f"print('t', {x}.flatten()[:2])",
                    f"print(f'{{{x}.mean():.2f}}')"]
    if L:
        choices += [f"print(len({L}))", f"print([t.shape for t in {L}])"]
    if g.of("D"):
        choices.append(f"print(list({g.pick(g.of('D'))}))")
    if g.of("O"):
        choices += [f"print({g.pick(g.of('O'))})", f"print(f'{{{g.pick(g.of('O'))}}}')"]
    g.line(g.pick(choices))


@statement(0.6)
def texts(g):
    n, x = g.integer(), g.variable("x") or "x"
    g.new("t", g.pick([f'f"""a{{{n}}}"""', f"'-'.join(str(d) for d in {x}.shape)", f"'abc'[{n} % 3:]", f"str({n}) + 'b'",
                       f"'%04d' % ({n})", f"repr({x}.dtype)", f"'a,b,c'.split(',')[{n} % 3]", f'f"""{{{n} * 0.5:.3f}}"""',
                       f"'{{0}}/{{1}}'.format({n}, 'z').upper()", f"str([{n}, 'a', None])"]))


@statement(0.4)
def logging_to_a_list(g):
    n, t = g.integer(), g.variable("t")
    g.line(f"LOG.append({g.pick([n, t or repr('w'), f'({n}, 1)'])})")


@statement(0.25)
def log_of_tensors(g):
    g.line(f"LOG.append({g.variable('x') or 'x'})")


@statement(0.2)
def warns(g):
    g.line(f"warnings.warn('fuzz {g.number(0, 3)}')")


@statement(0.15)
def output_to_stderr(g):
    g.line("print('fuzz to stderr', call, file=sys.stderr)")
